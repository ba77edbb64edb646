"""What each member may have: the caller's limit, part by part."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.bounds import LoadBounds
from kassign_spark.assignors.weighted.options import Limit
from kassign_spark.assignors.weighted.parts import Parts
from kassign_spark.assignors.weighted.problem import Batch, Bools, Doubles, Longs
from kassign_spark.assignors.weighted.reach import CLOSE, Reached, find_reach, keep_better

_ROUNDING = 1 + 1e-12
"""A limit times a capacity is rounded; what was meant to fit still fits."""
_LEAST_LEVEL = 1e-4


class Held(NamedTuple):
    """What members are held to.

    Attributes:
        level: [group, member], the fair relative load.
        part: [group, member].
        alone: [group, member], whether it has a dominant partition.
        dominant: [group, partition].
    """

    level: Doubles
    part: Longs
    alone: Bools
    dominant: Bools


def reach_parts(batch: Batch, bounds: LoadBounds, parts: Parts, kicks: int) -> tuple[Reached, Held]:
    """Search the best loads part by part; where parts cost the maximum anything, as one part."""
    serves = batch.eligible.any(axis=1)
    first = np.argmax(serves, axis=1)[:, None]
    several = (serves & (parts.part != np.take_along_axis(parts.part, first, 1))).any(axis=1)
    level = np.maximum(parts.level, parts.level.max(axis=1)[:, None] * _LEAST_LEVEL)
    measured = np.where(several[:, None], level, bounds.load[:, None])
    reached = find_reach(batch, measured, bounds.load, kicks)
    one = ~several
    again = np.flatnonzero(several & (reached.most > bounds.load * CLOSE))
    if len(again):
        some = batch.take(again)
        as_one = np.broadcast_to(bounds.load[again][:, None], some.capacity.shape)
        whole = find_reach(some, as_one, bounds.load[again], kicks)
        lower = whole.most < reached.most[again]
        one[again[lower]] = True
        keep_better(reached, again[lower], whole.take(np.flatnonzero(lower)))
    flat = one[:, None]
    held = Held(
        np.where(flat, bounds.fractional[:, None], parts.level),
        np.where(flat, 0, parts.part),
        parts.alone & ~flat,
        parts.dominant & ~flat,
    )
    return reached, held


def relative_limits(
    limit: Limit, batch: Batch, reached: Reached, held: Held, power: Doubles
) -> Doubles:
    """[group, member]: the greatest relative load that each member may have."""
    if limit.max_load is not None:
        return np.broadcast_to((limit.max_load * power)[:, None], batch.capacity.shape)
    if limit.max_skew is not None:
        skewed: Doubles = held.level * limit.max_skew
        return skewed
    assert limit.tolerance is not None
    groups, members = batch.capacity.shape
    best = np.zeros((groups, 2 * members))
    rows = np.broadcast_to(np.arange(groups)[:, None], held.part.shape)
    np.maximum.at(best, (rows, held.part), reached.state.load / batch.capacity)
    of_part = np.take_along_axis(best, held.part, 1)
    result: Doubles = np.maximum(of_part, held.level) * (1 + limit.tolerance)
    return result


def weights_within(relative: Doubles, capacity: Doubles) -> Doubles:
    """[group, member]: the weight that fits under a relative limit; whole."""
    result: Doubles = np.floor(relative * capacity * _ROUNDING)
    return result


def shown_level(batch: Batch, held: Held, values: Doubles) -> Doubles:
    """[group]: the value of the highest part of members that have no dominant partition."""
    common = batch.eligible.any(axis=1) & ~held.alone
    at = np.argmax(np.where(common, held.level, -1.0), axis=1)[:, None]
    return np.take_along_axis(values, at, 1)[:, 0]
