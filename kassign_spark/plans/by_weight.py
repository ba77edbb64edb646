"""Plans by weight: who should read what, so that loads are even and little moves; and the curve."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame

from kassign_spark.assignors.weighted.options import COSTS, KICKS, Bounds, Limit, check_choice
from kassign_spark.assignors.weighted.small import PlanOptions
from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.plans.weight_rows import (
    check_weight_options,
    fold_weights,
    refuse_weights,
    run_or_refuse,
)
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.plans.weighted_tasks import (
    CURVE,
    PLANNED,
    POINT,
    VERDICT,
    curve_arrow,
    plan_arrow,
)
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, MEMBERS, WEIGHTS, table_of
from kassign_spark.settings.computing import Settings

WEIGHT_VERDICTS = table_of("verdicts", f"cluster_id string?, group_id string, {VERDICT}")
TRADEOFF = table_of("tradeoff", f"cluster_id string?, group_id string, {POINT}")


class WeightPlan(NamedTuple):
    """A plan for every group, and what it gives; see ``plan_by_weight``."""

    assignment: DataFrame
    verdicts: DataFrame


def plan_by_weight(
    members: DataFrame,
    topics: DataFrame,
    weights: DataFrame,
    owned: DataFrame | None = None,
    *,
    limit: Limit = Limit(),
    bounds: Bounds = Bounds(),
    cost: str = "moves",
    together: Mapping[str, str] | None = None,
    missing_weight: float | None = None,
    base_weight: float = 0.0,
    effort: str = "default",
    settings: Settings = Settings(),
) -> WeightPlan:
    """Plan every group by the weight of its partitions: even loads, with few moves.

    A member's relative load is the sum of its weights by its capacity. In this order: the bounds
    are kept, every member is within its limit, moves are fewest, loads are most even. Groups are
    of any protocol and assignor. All is computed, and held, before this returns.

    A group without weights, and one whose weights are all 0, is planned by counts: the best
    balance, then the fewest moves. In others, partitions of weight 0 stay where they are, and new
    ones go by count.

    Args:
        members: ``schemas.MEMBERS``; capacity: what the member can take, null: 1.
        topics: ``schemas.TOPICS``, or one row per partition (topic, partition).
        weights: ``schemas.WEIGHTS``: weight >= 0 in any unit. A row without group_id (absent or
            null) serves every group that reads the topic; one with it comes before. Rows of
            topics that nobody reads are passed over.
        owned: ``schemas.OWNED``, what members own now. A claim on a topic that its member does not
            subscribe to is none.
        limit: the greatest load a member may have.
        bounds: on moves, moved weight and the difference of counts: they come before the limit.
        cost: `moves`: as few as can be; `weight`: as little moved weight, or sum of
            ``weights.move_cost`` where that is given.
        together: from topics to names of bundles: partition p of all topics of a bundle goes to
            one member, and counts as one partition.
        missing_weight: the weight of partitions that have no row, in groups that have one; None:
            they are an error.
        base_weight: what is added to the weight of every partition, such as the cost of fetching.
        effort: `fast` for a fleet's first look, `default`, or `thorough`.
        settings: ``batches``. A task plans a group whole, whatever its size; it takes about 500
            bytes of memory a partition for that.

    Returns:
        assignment: the columns of ``schemas.ASSIGNMENT``.
        verdicts: one row per group: cluster_id string (where the inputs have it), group_id string,
        verdict string (within_limit | nothing_to_do | bounded_by_partition |
        bounded_by_subscriptions | bounded_by_moves | bounded_by_counts | not_found),
        max_load double (of the plan), fair_load double (of the highest part of several members),
        load_bound double (no plan is lower), gap double (of max_load above it), limit double (of
        the members of that part), best_load double (found, whatever it moves), moves bigint,
        moves_bound bigint (no plan within the limits moves fewer), moved_weight double,
        count_difference int, dominant_count int (partitions that have a member for themselves),
        is_proven boolean (that no plan within the limits moves fewer, or that the limit cannot be
        kept), detail string (a sentence).

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or weights that are missing; lists every one.
        SettingsError: an option is not known or out of range.
    """
    check_choice("effort", effort, tuple(KICKS))
    weight_options = _weight_options(cost, together, missing_weight, base_weight)
    eligible, known_weights = _check_inputs(members, topics, weights, owned)
    options = PlanOptions(limit, bounds, effort)
    kernel = partial(plan_arrow, options=options, weights=weight_options)
    tasks = settings.batches or eligible.batches
    rows = run_or_refuse(fold_weights(eligible, known_weights), kernel, PLANNED, tasks)
    assignment = rows.where("member_id IS NOT NULL")
    verdicts = rows.where("verdict IS NOT NULL")
    has_cluster = has_cluster_id(members)
    return WeightPlan(
        to_result(assignment, ASSIGNMENT, has_cluster_id=has_cluster),
        to_result(verdicts, WEIGHT_VERDICTS, has_cluster_id=has_cluster),
    )


def tradeoff(
    members: DataFrame,
    topics: DataFrame,
    weights: DataFrame,
    owned: DataFrame | None = None,
    *,
    cost: str = "moves",
    together: Mapping[str, str] | None = None,
    missing_weight: float | None = None,
    base_weight: float = 0.0,
    effort: str = "default",
    settings: Settings = Settings(),
) -> DataFrame:
    """Trace how low the greatest load gets by number of moves, group by group.

    Args:
        members: as for ``plan_by_weight``.
        topics: as for ``plan_by_weight``.
        weights: as for ``plan_by_weight``.
        owned: as for ``plan_by_weight``.
        cost: what is few along the curve: `moves` or `weight`.
        together: as for ``plan_by_weight``.
        missing_weight: as for ``plan_by_weight``.
        base_weight: as for ``plan_by_weight``.
        effort: as for ``plan_by_weight``.
        settings: as for ``plan_by_weight``.

    Returns:
        one row per group and point, each with a lower load than those before it: cluster_id string
        (where the inputs have it), group_id string, moves bigint, moved_weight double,
        max_load double, skew double (that by the fair load of the whole group),
        count_difference int, bound double (no plan is lower, whatever it moves),
        is_knee boolean (the last point that saves 5 % of the fair load a move). Groups without
        weight have no row.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or weights that are missing; lists every one.
        SettingsError: an option is not known or out of range.
    """
    check_choice("effort", effort, tuple(KICKS))
    weight_options = _weight_options(cost, together, missing_weight, base_weight)
    kernel = partial(curve_arrow, effort=effort, weights=weight_options)
    eligible, known_weights = _check_inputs(members, topics, weights, owned)
    tasks = settings.batches or eligible.batches
    rows = run_or_refuse(fold_weights(eligible, known_weights), kernel, CURVE, tasks)
    traded = rows.where("moves IS NOT NULL")
    return to_result(traded, TRADEOFF, has_cluster_id=has_cluster_id(members))


def _weight_options(
    cost: str,
    together: Mapping[str, str] | None,
    missing_weight: float | None,
    base_weight: float,
) -> WeightOptions:
    check_choice("cost", cost, COSTS)
    check_weight_options(missing_weight=missing_weight, base_weight=base_weight)
    return WeightOptions(cost == "weight", missing_weight, base_weight, dict(together or {}))


def _check_inputs(
    members: DataFrame, topics: DataFrame, weights: DataFrame, owned: DataFrame | None
) -> tuple[Eligible, DataFrame]:
    """Check the inputs: the groups, and conforming weights."""
    check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
    inputs = conform_inputs(members, topics, owned)
    known_weights = conform(weights, WEIGHTS)
    eligible = inspect_inputs(inputs, None).eligible
    refuse_weights(known_weights, inputs.members)
    return eligible, known_weights
