"""What each member may have: the caller's limit, part by part."""

import numpy as np

from kassign_spark.assignors.weighted.bounds import LoadBounds
from kassign_spark.assignors.weighted.options import Limit
from kassign_spark.assignors.weighted.parts import Parts
from kassign_spark.assignors.weighted.problem import Batch, Doubles, Longs
from kassign_spark.assignors.weighted.reach import CLOSE, Reached, find_reach, keep_better

_ROUNDING = 1 + 1e-12
"""A limit times a capacity is rounded; what was meant to fit still fits."""
_LEAST_LEVEL = 1e-4


def reach_parts(
    batch: Batch, bounds: LoadBounds, parts: Parts, kicks: int
) -> tuple[Reached, Parts]:
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
    held = Parts(
        np.where(flat, bounds.fractional[:, None], parts.level),
        np.where(flat, 0, parts.part),
        parts.dominant & ~flat,
        parts.alone & ~flat,
    )
    return reached, held


def relative_limits(
    limit: Limit, level: Doubles, part: Longs, reached: Doubles, power: Doubles
) -> Doubles:
    """[group, member]: the greatest relative load that each member may have.

    Args:
        limit: the caller's.
        level: [group, member], the fair relative load.
        part: [group, member].
        reached: [group, member], relative, the best that was found.
        power: [group], by what weights were multiplied.
    """
    if limit.max_load is not None:
        return np.broadcast_to((limit.max_load * power)[:, None], level.shape)
    if limit.max_skew is not None:
        skewed: Doubles = level * limit.max_skew
        return skewed
    assert limit.tolerance is not None
    groups, members = level.shape
    best = np.zeros((groups, 2 * members))
    rows = np.broadcast_to(np.arange(groups)[:, None], part.shape)
    np.maximum.at(best, (rows, part), reached)
    result: Doubles = np.maximum(best[rows, part], level) * (1 + limit.tolerance)
    return result


def weights_within(relative: Doubles, capacity: Doubles) -> Doubles:
    """[group, member]: the weight that fits under a relative limit; whole."""
    result: Doubles = np.floor(relative * capacity * _ROUNDING)
    return result


def shown_level(batch: Batch, held: Parts, values: Doubles) -> Doubles:
    """[group]: the value of the highest part of members that have no dominant partition."""
    common = batch.eligible.any(axis=1) & ~held.alone
    at = np.argmax(np.where(common, held.level, -1.0), axis=1)[:, None]
    return np.take_along_axis(values, at, 1)[:, 0]
