"""Mending: members above their limit exchange with members below theirs, many pairs at once."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.bulk import deal, group_by_member, shed
from kassign_spark.assignors.weighted.problem import Doubles, Group, Longs
from kassign_spark.groups.numbers import ranges

_ROUNDS = 400
_STUCK = 24
_FEWEST_TRIES, _MOST_TRIES = 40, 300
_ELEMENTS = 30_000_000
"""A step for one member looks at the owners of all partitions: fewer steps for large groups."""
_MOST_PUSHED = 200_000
"""A push copies them: only in groups with no more partitions than this."""
_HOPELESS = 40
_PUSHES = 3
_PAIR_ELEMENTS = 200_000


class Exchanges(NamedTuple):
    """The best exchange of each pair of members that has any.

    Attributes:
        pair: its number.
        gain: by how much it lowers the weight above limits.
        cost: how many moves it adds.
        offered: the partition that goes to the second member.
        taken: the partition that comes back; -1: none.
    """

    pair: Longs
    gain: Doubles
    cost: Doubles
    offered: Longs
    taken: Longs

    def take(self, rows: Longs) -> "Exchanges":
        """Return some of the members."""
        return Exchanges(*(column[rows] for column in self))  # type: ignore[arg-type]


def mend(
    group: Group, owner: Longs, load: Doubles, limit: Doubles, *, swaps_only: bool = False
) -> None:
    """Pair the fullest members with the emptiest, round after round, until none is above its limit.

    The last few are tried with every other member, and where nothing helps in one exchange, a
    partition is pushed to a member that makes room for it.
    """
    if not len(group.weight):  # of a group that was cut nothing may need to move
        return
    serves = group.eligible.any(axis=0)
    stuck = shift = 0
    for _ in range(_ROUNDS):
        over = np.flatnonzero(load > limit)
        under = np.flatnonzero((load < limit) & serves)
        if not len(over) or not len(under):
            return
        over = over[np.argsort(-(load - limit)[over], kind="stable")]
        under = under[np.argsort(-(limit - load)[under], kind="stable")]
        count = min(len(over), len(under))
        first = over[:count]
        second = under[(np.arange(count) + shift) % len(under)]
        exchanges = _exchanges(group, owner, load, limit, first, second, swaps_only=swaps_only)
        if len(exchanges.pair):
            _apply(group, owner, load, exchanges, first, second)
            stuck = 0
            shift += len(exchanges.pair) < count
        else:
            stuck += 1
            shift += 1
            if stuck > min(_STUCK, len(under)) or len(over) <= 3:
                break
    _mend_last(group, owner, load, limit, swaps_only=swaps_only)


def _mend_last(
    group: Group, owner: Longs, load: Doubles, limit: Doubles, *, swaps_only: bool
) -> None:
    hopeless = np.zeros(len(load), bool)
    serves = group.eligible.any(axis=0)
    tries = min(max(_ELEMENTS // len(owner), _FEWEST_TRIES), _MOST_TRIES)
    may_push = not swaps_only and len(owner) <= _MOST_PUSHED
    for _ in range(tries):
        over = np.flatnonzero((load > limit) & ~hopeless)
        under = np.flatnonzero((load < limit) & serves)
        if not len(over) or not len(under):
            return
        worst = over[np.argmax((load - limit)[over])]
        size = int((owner == worst).sum())
        most = max(1, _PAIR_ELEMENTS // max(size, 1))
        under = under[np.argsort(-(limit - load)[under], kind="stable")[:most]]
        first = np.full(len(under), worst)
        exchanges = _exchanges(group, owner, load, limit, first, under, swaps_only=swaps_only)
        if len(exchanges.pair):
            best = np.lexsort((exchanges.pair, exchanges.cost, -exchanges.gain))[:1]
            _apply(group, owner, load, exchanges.take(best), first, under)
        elif not may_push or not _push(group, owner, load, limit, int(worst)):
            hopeless[worst] = True
            if hopeless.sum() > _HOPELESS:
                return


def _push(group: Group, owner: Longs, load: Doubles, limit: Doubles, member: int) -> bool:
    """Move a partition of ``member`` to another that sheds lighter ones; False: none can.

    Where members have few classes in common, nobody has the room for a heavy partition that the
    members together have.
    """
    mine = np.flatnonzero(owner == member)
    enough = mine[group.weight[mine] >= load[member] - limit[member]]
    before = np.maximum(load - limit, 0.0).sum()
    for partition in enough[::-1][:_PUSHES].tolist():
        weight = group.weight[partition]
        takes = group.eligible[group.class_[partition]] & (limit >= weight)
        takes[member] = False
        takers = np.flatnonzero(takes)
        for taker in takers[np.argsort((load - limit)[takers], kind="stable")][:_PUSHES].tolist():
            new, new_load = owner.copy(), load.copy()
            new[partition] = -1  # the taker keeps it
            new_load[member] -= weight
            new_load[taker] += weight
            only = np.zeros(len(load), bool)
            only[taker] = True
            owned = group_by_member(new, len(load), only)
            pushed = shed(group, new_load, np.where(only, limit, np.inf), owned, by_cost=False)
            np.subtract.at(new_load, new[pushed], group.weight[pushed])
            new[pushed], new[partition] = -1, taker
            deal(group, new, new_load, pushed, limit)
            if np.maximum(new_load - limit, 0.0).sum() < before:
                owner[:], load[:] = new, new_load
                return True
    return False


def _exchanges(
    group: Group,
    owner: Longs,
    load: Doubles,
    limit: Doubles,
    first: Longs,
    second: Longs,
    *,
    swaps_only: bool,
) -> Exchanges:
    """Find for each pair the move or swap that lowers what is above limits most.

    The first member of a pair is above its limit, the second below.
    """
    members = len(load)
    involved = np.zeros(members, bool)
    involved[first] = involved[second] = True
    owned = group_by_member(owner, members, involved)
    pairs = np.arange(len(first))

    def of(side: Longs, other: Longs) -> tuple[Longs, Longs]:
        count = owned.start[side + 1] - owned.start[side]
        pair = np.repeat(pairs, count)
        partition = owned.partition[ranges(owned.start[side], count)]
        fits = group.eligible[group.class_[partition], other[pair]]
        return pair[fits], partition[fits]

    pair, offered = of(first, second)
    back_pair, back = of(second, first)
    excess, room = (load - limit)[first], (limit - load)[second]
    weight = group.weight[offered]
    # Ascending by pair and weight, as one number: partitions of a member come heaviest first.
    span = 2.0 ** (int(np.frexp(group.weight[0])[1]) + 1)
    keys = (back_pair * span + group.weight[back])[::-1]
    order = np.argsort(keys, kind="stable")
    keys, back = keys[order], back[::-1][order]
    target = np.maximum(weight - np.minimum(excess, room)[pair], 0.0)
    place = np.searchsorted(keys, pair * span + target, side="right")
    starts = np.searchsorted(keys, pairs * span)
    ends = np.searchsorted(keys, (pairs + 1) * span)
    stays = (owner[offered] == group.home[offered]).astype(np.float64)
    options = [] if swaps_only else [(np.full(len(offered), -1), np.ones(len(offered), bool))]
    for near in (place - 1, place):
        is_there = (near >= starts[pair]) & (near < ends[pair])
        options.append((np.where(is_there, near, 0), is_there))
    blocks = []
    for option, (near, is_there) in enumerate(options):
        taken = np.where(near >= 0, back[near] if len(back) else -1, -1)
        is_swap = taken >= 0
        change = weight - np.where(is_swap, group.weight[taken], 0.0)
        gain = excess[pair] - np.maximum(excess[pair] - change, 0.0)
        gain -= np.maximum(change - room[pair], 0.0)
        gain = np.where(is_there & (change > 0), gain, 0.0)
        cost = stays + np.where(is_swap, owner[taken] == group.home[taken], 0.0)
        useful, number = gain > 0, np.full(len(pair), option)
        blocks.append([column[useful] for column in (pair, gain, cost, offered, taken, number)])
    pair, gain, cost, offered, taken, number = map(np.concatenate, zip(*blocks, strict=True))
    order = np.lexsort((-offered, number, cost, -gain, pair))
    best = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
    return Exchanges(pair, gain, cost, offered, taken).take(best)


def _apply(
    group: Group, owner: Longs, load: Doubles, exchanges: Exchanges, first: Longs, second: Longs
) -> None:
    """Make exchanges of pairs that have no member in common."""
    offered, taken, from_, to = (
        exchanges.offered,
        exchanges.taken,
        first[exchanges.pair],
        second[exchanges.pair],
    )
    owner[offered] = to
    load[from_] -= group.weight[offered]
    load[to] += group.weight[offered]
    swapped = taken >= 0
    owner[taken[swapped]] = from_[swapped]
    load[to[swapped]] -= group.weight[taken[swapped]]
    load[from_[swapped]] += group.weight[taken[swapped]]
