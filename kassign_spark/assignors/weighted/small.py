"""Plans for groups that the search of single steps serves: many side by side."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.answer import GroupMeasures, WeightedPlan, answer_of
from kassign_spark.assignors.weighted.bounded import breaks, keep_bounds, plan_with_counts
from kassign_spark.assignors.weighted.bounds import load_bounds, moves_bound, pigeonhole
from kassign_spark.assignors.weighted.counts import best_counts, counts_decide
from kassign_spark.assignors.weighted.fewest import PlannedStates, find_fewest
from kassign_spark.assignors.weighted.objective import EVEN, EVEN_FIRST, reach, within
from kassign_spark.assignors.weighted.options import KICKS, Bounds, Limit
from kassign_spark.assignors.weighted.parts import (
    Parts,
    find_parts,
    limits_by_part,
    reach_parts,
    shown_level,
    weights_within,
)
from kassign_spark.assignors.weighted.problem import Doubles, Group, Longs, PaddedGroups, stack
from kassign_spark.assignors.weighted.reach import BestLoads, judge, keep_better
from kassign_spark.assignors.weighted.steps import state_of


class PlanOptions(NamedTuple):
    """The caller's choices."""

    limit: Limit
    bounds: Bounds
    effort: str


class BatchBounds(NamedTuple):
    """Bounds of groups before moves are considered.

    Attributes:
        batch: the groups.
        power: [group], by what weights were multiplied.
        bound: [group], the best of all bounds.
        reached: the best loads that were found.
        parts: what each member is held to.
    """

    batch: PaddedGroups
    power: Doubles
    bound: Doubles
    reached: BestLoads
    parts: Parts


def batch_bounds(groups: Sequence[Group], effort: str) -> BatchBounds:
    """Find the bounds, the parts and the best loads of groups."""
    batch = stack(groups)
    bounds = load_bounds(batch)
    reached, parts = reach_parts(batch, bounds, find_parts(batch), KICKS[effort])
    _take_best_counts(groups, batch, reached)
    bound = bounds.load.copy()
    for row in np.flatnonzero(reached.most > bound).tolist():
        bound[row] = pigeonhole(groups[row], float(bound[row]), float(reached.most[row]))
    power = np.array([group.power for group in groups])
    return BatchBounds(batch, power, bound, reached, parts)


def plan_small(groups: Sequence[Group], options: PlanOptions) -> list[WeightedPlan]:
    """Plan groups of similar size."""
    bounds = batch_bounds(groups, options.effort)
    batch, reached, parts = bounds.batch, bounds.reached, bounds.parts
    load = reached.state.load / batch.capacity
    relative = limits_by_part(options.limit, parts, load, bounds.power)
    limit = weights_within(relative, batch.capacity)
    needed_moves = moves_bound(batch, limit)
    planned, counts, least = _plan(groups, bounds, limit, needed_moves, options)
    chosen = planned.take(np.arange(len(groups)))
    away = batch.away(planned.state.owner)
    stopped = np.flatnonzero(breaks(options.bounds, away, batch.weight, bounds.power))
    if len(stopped):
        kept = keep_bounds(
            batch.take(stopped), np.maximum(limit[stopped], 1.0), reached.state.owner[stopped],
            options.bounds, bounds.power[stopped],
            None if counts is None else counts[stopped],
            options.effort,
        )  # fmt: skip
        chosen.put(stopped, kept)
    level = shown_level(batch, parts, parts.level)
    shown = shown_level(batch, parts, relative)
    is_stopped = np.isin(np.arange(len(groups)), stopped)
    answers = []
    for row, group in enumerate(groups):
        size = len(group.weight)
        measured = GroupMeasures(
            limit=limit[row, : len(group.capacity)],
            fair_load=float(level[row]),
            load_bound=float(bounds.bound[row]),
            shown_limit=float(shown[row]),
            best_load=float(reached.most[row]),
            moves_bound=int(needed_moves[row]),
            dominant=tuple(np.flatnonzero(parts.dominant[row]).tolist()),
            max_count_difference=options.bounds.max_count_difference,
            least_difference=int(least[row]),
        )
        freely = planned.state.owner[row, :size] if is_stopped[row] else None
        answers.append(answer_of(group, chosen.state.owner[row, :size], measured, freely))
    return answers


def _plan(
    groups: Sequence[Group],
    bounds: BatchBounds,
    limit: Doubles,
    needed_moves: Longs,
    options: PlanOptions,
) -> tuple[PlannedStates, Doubles | None, Longs]:
    batch, kicks = bounds.batch, KICKS[options.effort]
    cost, start = unit_costs(batch), bounds.reached.state.owner
    if options.bounds.max_count_difference is not None:
        difference = options.bounds.max_count_difference
        return plan_with_counts(groups, batch, limit, cost, [start], difference, kicks)
    even_first = options.limit.tolerance == 0
    objective = within(batch, limit, cost, even=EVEN_FIRST if even_first else EVEN)
    cheapest = np.where(batch.home >= 0, cost, np.inf).min(axis=1, initial=np.inf)
    bound = needed_moves.astype(np.float64) * np.where(np.isfinite(cheapest), cheapest, 0.0)
    planned = find_fewest(batch, objective, [start], bound, kicks, even_first=even_first)
    return planned, None, np.full(len(groups), -1)


def _take_best_counts(groups: Sequence[Group], batch: PaddedGroups, reached: BestLoads) -> None:
    """Apply the optimum of counts where all partitions weigh the same and all members are equal."""
    for row, group in enumerate(groups):
        if counts_decide(group):
            subset = batch.take(np.array([row]))
            owner = np.zeros((1, batch.weight.shape[1]), np.int64)
            owner[0, : len(group.weight)] = best_counts(group)
            objective = reach(subset, np.ones(subset.capacity.shape))
            exact = judge(subset, objective, state_of(subset, owner))
            keep_better(reached, np.array([row]), exact._replace(cost=np.array([-1.0])))


def unit_costs(batch: PaddedGroups) -> Doubles:
    """Return costs of moves up to 1, so that they weigh against evenness alike in every group."""
    most = batch.cost.max(axis=1, initial=0.0)[:, None]
    result: Doubles = np.where(most > 0, batch.cost / np.maximum(most, 1e-300), 0.0)
    return result
