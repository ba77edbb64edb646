"""How evenly an assignment loads the members of each group, and how much of it stayed."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.groups.rack_use import fold_racks
from kassign_spark.groups.task_sizes import MOST_ROWS_OF_A_GROUP, task_sizes
from kassign_spark.inputs.checks import MAX_LISTED
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.measures.balance_tasks import balance_in_tasks
from kassign_spark.measures.certificate import certify
from kassign_spark.measures.weighted_loads import MISSING, Weighing
from kassign_spark.plans.diff import changes
from kassign_spark.plans.weight_rows import check_weight_options, refuse_weights, refused_groups
from kassign_spark.results import answer
from kassign_spark.rounds import hold
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, MEMBERS, OWNED, TOPICS, WEIGHTS

_STAYED = ("kept_count", "moved_count")


class _Known(NamedTuple):
    """Conforming inputs: members with the topics of their patterns, and folded racks."""

    assigned: DataFrame
    members: DataFrame
    owned: DataFrame | None
    racks: DataFrame | None

    def of_groups(self) -> list[DataFrame]:
        """The tables that have ``GROUP_KEY``."""
        return [frame for frame in self[:3] if frame is not None]

    def where(self, condition: Column) -> "_Known":
        """Keep the groups that meet a condition over ``GROUP_KEY``."""
        owned = None if self.owned is None else self.owned.where(condition)
        return _Known(
            self.assigned.where(condition), self.members.where(condition), owned, self.racks
        )


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
        One row a group of ``members``: cluster_id string (where the inputs have it),
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
        the best balance, least_sum_of_squares bigint. These are proven (``certificate``), and null
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
    assigned = conform(assignment, ASSIGNMENT)
    known = _Known(
        assigned,
        # Whatever else a pattern matches is assigned to nobody, and so has no part in any measure.
        with_topics(conform(members, MEMBERS), assigned.select(CLUSTER_ID, "topic")),
        None if owned is None else conform(owned, OWNED),
        None if racked is None else fold_racks(conform(racked, TOPICS)),
    )
    if weights is None:
        whole = _balance(known)
    else:
        check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
        check_weight_options(missing_weight=missing_weight, base_weight=base_weight)
        told = conform(weights, WEIGHTS)
        refuse_weights(told, known.members)
        whole = _weighed(known, Weighing(told, missing_weight, base_weight))
    form = "balance" if weights is None else "balance.weighted"
    return answer(whole, form, has_cluster_id=has_cluster_id(members))


def _weighed(known: _Known, weighing: Weighing) -> DataFrame:
    """Measure all groups in tasks, whatever their size, and refuse those that lack weights."""
    tasks = task_sizes(known.of_groups()).tasks
    counted = balance_in_tasks(*known, tasks=tasks, weighing=weighing)
    whole, found = hold(_without_unknown(counted, known), {"missing": F.sum(MISSING)})
    if found["missing"]:
        rows = whole.where(F.col(MISSING) > 0).orderBy(*GROUP_KEY).limit(MAX_LISTED + 1).collect()
        listed = refused_groups(
            [
                (row.group_id, f"table weights has no row for {row[MISSING]} of its partitions")
                for row in rows
            ]
        )
        raise InputError(f"{listed}; give them weights, or missing_weight")
    return whole.drop(MISSING)


def _without_unknown(counted: DataFrame, known: _Known) -> DataFrame:
    """Null for what cannot be known of these inputs."""
    of_owned = [name for name in (*_STAYED, "moved_weight") if name in counted.columns]
    unknown = of_owned if known.owned is None else []
    unknown += ["cross_rack_count"] if known.racks is None else []
    types = dict(counted.dtypes)
    nulls = {name: F.lit(None).cast(types[name]) for name in unknown}
    return counted.withColumns(nulls) if nulls else counted


def _balance(known: _Known) -> DataFrame:
    """Measure groups that fit a task in tasks, and larger ones by steps over DataFrames."""
    sizes = task_sizes(known.of_groups(), MOST_ROWS_OF_A_GROUP)
    if sizes.is_large is None:
        return _without_unknown(balance_in_tasks(*known, tasks=sizes.tasks), known)
    small = balance_in_tasks(*known.where(~sizes.is_large), tasks=sizes.tasks)
    large = _balance_in_steps(*known.where(sizes.is_large))
    return _without_unknown(small.unionByName(large, allowMissingColumns=True), known)


def _balance_in_steps(
    assigned: DataFrame, members: DataFrame, owned: DataFrame | None, racks: DataFrame | None
) -> DataFrame:
    """Measure as ``balance_in_tasks``; columns of what is None are not there."""
    owners = None if owned is None else _owners(assigned, owned)
    proven = certify(assigned, members, None if owners is None else _one_owner(owners)).select(
        *GROUP_KEY, "is_balance_optimal", "is_optimal", "least_moves", "least_sum_of_squares"
    )
    measured = _loads(assigned, members)
    if owners is not None:
        stayed = _stayed(owners)
        measured = measured.join(stayed, list(GROUP_KEY), "left").fillna(0, list(_STAYED))
    if racks is not None:
        crossing = _cross_rack(assigned, members, racks)
        measured = measured.join(crossing, list(GROUP_KEY), "left").fillna(0, ["cross_rack_count"])
    return measured.join(proven, on=list(GROUP_KEY), how="left")


def _loads(assigned: DataFrame, members: DataFrame) -> DataFrame:
    held = assigned.groupBy(*GROUP_KEY, "member_id").agg(F.count("*").alias("load"))
    load = F.coalesce("load", F.lit(0))
    topics = F.sort_array(F.array_distinct("topics")).alias("topics")
    return (
        members.select(*GROUP_KEY, "member_id", topics)
        .join(held, on=[*GROUP_KEY, "member_id"], how="left")
        .groupBy(*GROUP_KEY)
        .agg(
            F.count("*").cast("int").alias("member_count"),
            F.sum(load).alias("partition_count"),
            F.min(load).alias("min_assigned"),
            F.max(load).alias("max_assigned"),
            F.avg(load).alias("mean_assigned"),
            _stddev(load).alias("stddev_assigned"),
            F.sum(load * load).alias("sum_of_squares"),
            F.when(F.min("topics") == F.max("topics"), "homogeneous")
            .otherwise("heterogeneous")
            .alias("subscription_type"),
        )
    )


def _stddev(load: Column) -> Column:
    """Of the population, by whole numbers to the last step: the same in whatever order."""
    wide = load.cast("decimal(18, 0)")
    count, total = F.count("*"), F.sum(wide).cast("decimal(18, 0)")
    squares = F.sum(load * load).cast("decimal(18, 0)")
    return F.sqrt((count.cast("decimal(18, 0)") * squares - total * total).cast("double")) / count


def _one_owner(owners: DataFrame) -> DataFrame:
    """Also where a partition is assigned more than once: who has it still, else the first."""
    has_it_still = F.when(F.col("change") == "kept", F.col("member_id"))
    first = F.coalesce(F.min(has_it_still), F.min("member_id")).alias("member_id")
    return owners.groupBy(*GROUP_KEY, "topic", "partition").agg(first)


def _owners(assigned: DataFrame, owned: DataFrame) -> DataFrame:
    """One owner a partition: of several, the one that has it still; with change of ``changes``."""
    had = changes(owned, assigned).where(F.col("from_member").isNotNull())
    return had.withColumnRenamed("from_member", "member_id")


def _cross_rack(assigned: DataFrame, members: DataFrame, racks: DataFrame) -> DataFrame:
    """Count partitions by group that have replicas, but none in their member's rack."""
    racked = members.where(F.length("rack_id") > 0).select(*GROUP_KEY, "member_id", "rack_id")
    each = F.posexplode("replica_racks").alias("partition", "racks")
    known = F.array_compact(F.coalesce("racks", F.array().cast("array<string>"))).alias("racks")
    replicas = (
        racks.select(CLUSTER_ID, "topic", each)
        .select(CLUSTER_ID, "topic", F.col("partition").cast("bigint").alias("partition"), known)
        .where(F.size("racks") > 0)
    )
    return (
        assigned.join(racked, on=[*GROUP_KEY, "member_id"], how="inner")
        .join(replicas, on=[CLUSTER_ID, "topic", "partition"], how="inner")
        .groupBy(*GROUP_KEY)
        .agg(F.count_if(~F.array_contains("racks", F.col("rack_id"))).alias("cross_rack_count"))
    )


def _stayed(owners: DataFrame) -> DataFrame:
    """Count what stays and what moves."""
    return owners.groupBy(*GROUP_KEY).agg(
        F.count_if(F.col("change") == "kept").alias("kept_count"),
        F.count_if(F.col("change") == "moved").alias("moved_count"),
    )
