"""Measure how evenly an assignment loads the members of each group, and how much of it stayed."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.groups.rack_use import fold_racks
from kassign_spark.groups.task_sizes import tasks_of
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.problem_rows import MAX_LISTED
from kassign_spark.measures.balance_tasks import balance_in_tasks
from kassign_spark.measures.weighted_loads import MISSING, Weighing
from kassign_spark.plans.weight_rows import check_weight_options, refuse_weights, refused_groups
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, MEMBERS, OWNED, TOPICS, WEIGHTS
from kassign_spark.spark.iteration import materialize


class _Inputs(NamedTuple):
    """Conforming inputs: members with the topics of their patterns, and folded racks."""

    assigned: DataFrame
    members: DataFrame
    owned: DataFrame | None
    racks: DataFrame | None


def balance(
    assignment: DataFrame,
    members: DataFrame,
    owned: DataFrame | None = None,
    topics: DataFrame | None = None,
    *,
    weights: DataFrame | None = None,
    missing_weight: float | None = None,
    base_weight: float = 0.0,
) -> DataFrame:
    """Measure an assignment, also one that Kafka made, by counts and by weight.

    Args:
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``; members without partitions count with a load of zero.
        owned: ``schemas.OWNED``: who had what before.
        topics: ``schemas.TOPICS``, for ``cross_rack_count`` alone.
        weights: ``schemas.WEIGHTS``: what partitions weigh, as for ``plan_by_weight``; capacities
            are those of ``members``. With them, all is computed, and held, before this returns.
        missing_weight: the weight of partitions that have no row, in groups that have one; None:
            they are an error.
        base_weight: what is added to the weight of every partition.

    Returns:
        One row per group of ``members``: cluster_id string (where the inputs have it),
        group_id string, member_count int, partition_count bigint, min_assigned bigint,
        max_assigned bigint, mean_assigned double, stddev_assigned double (of the population),
        sum_of_squares bigint (of the loads; the least possible is the best balance),
        kept_count bigint: partitions that stay with a member that had them, moved_count bigint:
        partitions that somebody else had, both null without ``owned``,
        subscription_type string: `homogeneous` where all members subscribe to the same topics,
        else `heterogeneous`, cross_rack_count bigint: partitions of which some replica's rack is
        known, and none is in the rack of the member; null without ``topics`` that have
        ``replica_racks``, and is_balance_optimal boolean:
        no assignment of these partitions has a smaller sum_of_squares, is_optimal boolean: nor, at
        that balance, keeps more, least_moves bigint: the fewest partitions that can change owner at
        the best balance, least_sum_of_squares bigint. These are proven (``optimality``), and null
        where nothing is assigned. With ``weights`` also, null in groups without a weight:
        total_weight double, max_load double (the greatest of a member's weight by its capacity),
        mean_load double (the fair load: weight by capacity of all who subscribe to what is
        assigned), load_skew double (max_load by mean_load; null where nothing weighs anything),
        moved_weight double (of what counts as moved; null without ``owned``).

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: weights or capacities that have no meaning, or weights that are missing.
        SettingsError: an option is out of range.
    """
    racked = topics if topics is not None and "replica_racks" in topics.columns else None
    check_same_clusters(
        [(ASSIGNMENT, assignment), (MEMBERS, members), (OWNED, owned), (TOPICS, racked)]
    )
    inputs = _Inputs(
        conform(assignment, ASSIGNMENT),
        conform(members, MEMBERS),
        None if owned is None else conform(owned, OWNED),
        None if racked is None else fold_racks(conform(racked, TOPICS)),
    )
    tasks = tasks_of(inputs.assigned, inputs.members, inputs.owned)
    if "topics_pattern" in members.columns:
        # Whatever else a pattern matches is assigned to nobody, and so has no part in any measure.
        topic_names = inputs.assigned.select(CLUSTER_ID, "topic")
        inputs = inputs._replace(members=with_topics(inputs.members, topic_names))
    weighing = None
    if weights is not None:
        check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
        check_weight_options(missing_weight=missing_weight, base_weight=base_weight)
        known_weights = conform(weights, WEIGHTS)
        refuse_weights(known_weights, inputs.members)
        weighing = Weighing(known_weights, missing_weight, base_weight)
    whole = _without_unknown(balance_in_tasks(*inputs, tasks=tasks, weighing=weighing), inputs)
    if weighing is not None:
        whole = _check_weighed(whole)
    form = "balance" if weights is None else "balance.weighted"
    return to_result(whole, form, has_cluster_id=has_cluster_id(members))


def _check_weighed(measured: DataFrame) -> DataFrame:
    """Materialize the measures, and refuse groups that lack weights."""
    whole, counts = materialize(measured, {"missing": F.sum(MISSING)})
    if counts["missing"]:
        rows = whole.where(F.col(MISSING) > 0).orderBy(*GROUP_KEY).limit(MAX_LISTED + 1).collect()
        refusal = refused_groups(
            [
                (row.group_id, f"table weights has no row for {row[MISSING]} of its partitions")
                for row in rows
            ]
        )
        raise InputError(f"{refusal}; give them weights, or missing_weight")
    return whole.drop(MISSING)


def _without_unknown(measures: DataFrame, inputs: _Inputs) -> DataFrame:
    """Set to null what these inputs cannot tell."""
    unknown = ["kept_count", "moved_count", "moved_weight"] if inputs.owned is None else []
    if inputs.racks is None:
        unknown.append("cross_rack_count")
    types = dict(measures.dtypes)
    nulls = {name: F.lit(None).cast(types[name]) for name in unknown if name in types}
    return measures.withColumns(nulls) if nulls else measures
