"""The general pass as a program of supersteps over vectors of members. ``costs`` explains it.

The program is the same for every engine and any number of blocks, and so is its result. What
depends on the order of classes goes by prefixes over blocks, which are ranges of classes.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from kassign_spark.engine.block import Sums
from kassign_spark.engine.commands import Command, Engine, PerBlock, Vector
from kassign_spark.engine.costs import HIGH, LOW, MIDDLE, MUST_FILL, UNREACHABLE
from kassign_spark.engine.edges import Flags
from kassign_spark.engine.segments import Longs


class _Supersteps:
    """Hands commands to an engine; those that need no answer travel with the next one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pending: list[Command] = []
        self.count: Counter[str] = Counter()

    def defer(self, name: str, *arguments: Any) -> None:
        """Defer a command to the next one that returns an answer."""
        self._pending.append(Command(name, arguments))

    def answers(self, name: str, *arguments: Any) -> list[Vector]:
        """Return a matrix for each vector of the answer, with a row for each block."""
        commands = [*self._pending, Command(name, arguments)]
        self._pending = []
        self.count[name] += 1
        return [np.array(rows) for rows in zip(*self._engine.step(commands), strict=True)]


def find_components(engine: Engine, member_count: int) -> Longs:
    """Name connected components: for each member the least member of its own."""
    return _labels(_Supersteps(engine), member_count)


def settle_blocks(
    engine: Engine, member_count: int, component: Longs | None = None
) -> Counter[str]:
    """Assign all partitions: balance best, then cost least; ``Block.result`` has what comes of it.

    Args:
        engine: what holds the blocks.
        member_count: how many members there are.
        component: a number of the connected component of each member, where that is known.

    Returns:
        How many supersteps there were, by kind.
    """
    steps = _Supersteps(engine)
    part = _number_names(_labels(steps, member_count) if component is None else component)
    sums = Sums(*steps.answers("sum_up", part))
    while sums.rows.any():
        rows = sums.rows.sum(axis=0)
        is_left = rows > 0
        parts, part = np.unique(part[is_left], return_inverse=True)
        quota = (sums.supply.sum(axis=0)[parts] // np.bincount(part))[part]
        owned = sums.owned[:, is_left]
        keeps = quota - _before(owned)
        steps.defer("start", np.cumsum(is_left) - 1, part, PerBlock(keeps))
        load = np.minimum(quota, owned.sum(axis=0))
        distance, is_stuck = _push_all(steps, _Members(rows[is_left], part, quota, load))
        level = np.where(distance < UNREACHABLE, MIDDLE, HIGH)
        level[distance < -MUST_FILL // 2] = LOW
        is_settled = (level == MIDDLE) | ((level == HIGH) & ~is_stuck[part])
        part = _number_names(part * 3 + level)
        sums = Sums(*steps.answers("cut", level, is_settled, part))
    return steps.count


@dataclass
class _Members:
    """One number per member.

    Attributes:
        rows: edges.
        part: numbered from 0.
        quota: places that must be filled.
        load: partitions that the member holds.
    """

    rows: Longs
    part: Longs
    quota: Longs
    load: Longs

    def places(self) -> Longs:
        """Return the distance from each member to a place of its own."""
        may_fill = np.where(self.load == self.quota, 1, UNREACHABLE)
        return np.where(self.load < self.quota, 1 - MUST_FILL, may_fill)


def _number_names(names: Longs) -> Longs:
    return np.unique(names, return_inverse=True)[1]


def _before(rows: Vector) -> Vector:
    """Return for each block the total of the blocks before it."""
    return np.cumsum(rows, axis=0) - rows


def _labels(steps: _Supersteps, member_count: int) -> Longs:
    label: Longs = np.arange(member_count)
    while True:
        (labels,) = steps.answers("label", label)
        label = labels.min(axis=0)
        if (labels == label).all():
            return label
        label = label[label]


def _push_all(steps: _Supersteps, members: _Members) -> tuple[Longs, Flags]:
    """Push along cheapest paths until no open partition has any.

    Returns:
        The distance of each member, and for each part whether partitions stay open.
    """
    while True:
        distance, is_moving, is_stuck, can_give = _relax(steps, members)
        if not is_moving.any():
            return distance, is_stuck
        is_busy = is_moving[members.part]
        if 2 * members.rows[is_busy].sum() >= members.rows.sum():
            _push(steps, members, distance, can_give)
            continue
        busy = _Members(
            members.rows[is_busy],
            (np.cumsum(is_moving) - 1)[members.part[is_busy]],
            members.quota[is_busy],
            members.load[is_busy],
        )
        steps.defer("narrow", np.where(is_busy, np.cumsum(is_busy) - 1, -1), busy.part)
        _push(steps, busy, distance[is_busy], can_give[:, is_busy])
        distance[is_busy], is_stuck[is_moving] = _push_all(steps, busy)
        steps.defer("widen")
        return distance, is_stuck


def _relax(steps: _Supersteps, members: _Members) -> tuple[Longs, Flags, Flags, Vector]:
    """Find the distances; see ``Flow.relax``, but what may be given is still by block."""
    distance, part_count = members.places(), int(members.part.max()) + 1
    while True:
        distances, *flags, can_give = steps.answers("relax", distance, part_count)
        distance = distances.min(axis=0)
        if (distances == distance).all():
            return distance, *(np.any(flag, axis=0) for flag in flags), can_give


def _push(steps: _Supersteps, members: _Members, distance: Longs, can_give: Vector) -> None:
    """Move open partitions along cheapest paths until none of them finds room."""
    missing = members.quota - members.load
    has_room = (distance == members.places()) & (distance < UNREACHABLE)
    room = np.where(has_room, np.where(missing > 0, missing, 1), 0)
    steps.defer("aim", distance)
    limits: tuple[PerBlock, ...] = ()
    while True:
        accepts = room + can_give.sum(axis=0)
        (offers,) = steps.answers("push", accepts, *limits)
        if not offers.any():
            return
        arrived = np.minimum(accepts, offers.sum(axis=0))
        placed = np.minimum(arrived, room)
        give_limit = arrived - placed - _before(can_give)
        limits = PerBlock(accepts - _before(offers)), PerBlock(give_limit)
        can_give = can_give - np.clip(give_limit, 0, can_give)
        members.load = members.load + placed
        room = room - placed
