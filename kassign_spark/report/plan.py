"""The input of a report: the tables of a plan and of its snapshot."""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from kassign_spark import schemas
from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.conforming import conform, fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.inputs.problem_rows import refuse_broken_rows
from kassign_spark.inputs.rules import is_consumer_group, sql_quoted
from kassign_spark.schemas import (
    ASSIGNMENT,
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    VERDICTS,
    Table,
    table_of,
)
from kassign_spark.spark.iteration import settle
from kassign_spark.tables.origin import noted_snapshot
from kassign_spark.tables.snapshots import (
    Snapshot,
    empty_table,
    has_table,
    read_snapshot,
    read_table,
)

OF_PLAN = ("assignor", "path")
"""Columns that ``kassign-spark assign`` adds to ``schemas.BALANCE``."""
BALANCE = Table(
    schemas.BALANCE.name,
    StructType([*schemas.BALANCE.columns, *(StructField(name, StringType()) for name in OF_PLAN)]),
)
"""The table ``balance`` as ``kassign-spark assign`` writes it."""

VIOLATIONS = table_of(
    "violations",
    "cluster_id string?, group_id string?, rule string, member_id string?, topic string?, "
    "partition int?, detail string?",
)


class Plan(NamedTuple):
    """A plan and its snapshot.

    Attributes:
        assignment: ``schemas.ASSIGNMENT``.
        balance: ``BALANCE``, with cluster_id as a key: an empty string where it is not given.
        violations: ``VIOLATIONS``; None where the plan has none.
        snapshot: its members with the assignor that the plan was made with; of a plan by weight
            each group's own, where it is one of Kafka's client, else null.
        leaders: ``schemas.LEADERS``; None where the snapshot has none.
        is_by_weight: no assignor made it: members use ``assign()``, without a rebalance.
    """

    assignment: DataFrame
    balance: DataFrame
    violations: DataFrame | None
    snapshot: Snapshot
    leaders: DataFrame | None
    is_by_weight: bool = False


def snapshot_of(spark: SparkSession, plan: str, path: str | None) -> str:
    """Return which snapshot a plan was made of: the one that is named, or the one that it notes.

    Raises:
        InputError: the folder does not exist, or neither says it.
    """
    if not has_table(spark, plan, BALANCE.name):
        raise InputError(
            f"folder {plan}: has no table balance, so it is not a plan of kassign-spark assign"
        )
    snapshot = path or noted_snapshot(spark, plan, BALANCE.name)
    if snapshot is None:
        raise InputError(
            f"plan {plan}: does not say of which snapshot it was made; name it with --snapshot"
        )
    return snapshot


def read_plan(spark: SparkSession, plan: str, snapshot: str) -> Plan:
    """Read what a report is made of.

    Raises:
        InputError: a table is missing or cannot be read, or the plan is of another snapshot.
        SchemaError: columns are missing or of the wrong type.
    """
    try:
        read = read_snapshot(snapshot, spark)
    except InputError as error:
        raise InputError(f"{error}; --snapshot names the snapshot of {plan}") from None
    has_clusters = has_cluster_id(read.members)
    assignment = _read(spark, plan, ASSIGNMENT, has_clusters)
    refuse_broken_rows(assignment, ASSIGNMENT)
    balance = _read(spark, plan, BALANCE, has_clusters)
    violations = None
    if has_table(spark, plan, VIOLATIONS.name):
        violations = fill_cluster_id(_read(spark, plan, VIOLATIONS, has_clusters))
    leaders = None if read.leaders is None or read.leaders.isEmpty() else read.leaders
    keyed = fill_cluster_id(balance)
    are_own, of_all = _compare_groups(plan, snapshot, keyed, read.members)
    members, is_by_weight = read.members, has_table(spark, plan, VERDICTS.name)
    if is_by_weight:
        members = _keep_kafkas(members)
    elif not are_own:
        members = _set_planned_assignors(members, keyed, of_all)
    planned = read._replace(members=members)
    return Plan(assignment, keyed, violations, planned, leaders, is_by_weight)


def _read(spark: SparkSession, folder: str, table: Table, has_clusters: bool) -> DataFrame:
    """Read a table with the types that it has; of text files, numbers come as text."""
    frame = read_table(spark, folder, table)
    if not frame.columns:  # JSON lines without a line have no columns
        return empty_table(spark, table, cluster_id=has_clusters)
    types = {field.name: field.dataType.simpleString() for field in table.columns}
    names = [name for name in frame.columns if name in types]
    typed = frame.selectExpr(*(f"cast(`{name}` as {types[name]}) as `{name}`" for name in names))
    conform(typed, table)
    absent = [f for f in table.columns if f.name not in (*names, CLUSTER_ID)]
    return typed.select("*", *(F.lit(None).cast(f.dataType).alias(f.name) for f in absent))


def _compare_groups(
    plan: str, snapshot: str, balance: DataFrame, members: DataFrame
) -> tuple[bool, str | None]:
    """Refuse a snapshot that the plan was not made of, and compare the assignors.

    Returns:
        whether every member names the assignor of the plan, and the one of all groups; None: they
        differ.

    Raises:
        InputError: it names the first group that differs.
    """
    assignors = conform(members, MEMBERS).selectExpr(*GROUP_KEY, "assignor", "1L as member")
    of_plan = balance.selectExpr(
        *GROUP_KEY, "cast(member_count as bigint) as planned", "assignor as planned_assignor"
    )
    by_group = (
        of_plan.unionByName(assignors, allowMissingColumns=True)
        .groupBy(*GROUP_KEY)
        .agg(
            F.max("planned").alias("planned"),
            F.sum("member").alias("there"),
            F.max("planned_assignor").alias("assignor"),
            F.expr("count(assignor) as naming"),
            F.expr("min(assignor) as least"),
            F.expr("max(assignor) as most"),
        )
    )
    group = (
        f"struct({', '.join(GROUP_KEY)}, {sql_quoted('group_id')} as name, "
        "coalesce(planned, 0L) as planned, coalesce(there, 0L) as there)"
    )
    is_own = "coalesce(naming = there and least = assignor and most = assignor, false)"
    (difference,) = by_group.selectExpr(
        f"min(if(planned <=> there, null, {group})) as differs",
        f"bool_and(assignor is null or {is_own}) as are_own",
        "min(assignor) as least",
        "min(assignor) <=> max(assignor) and count(assignor) = count(*) as is_one",
    ).collect()
    if difference.differs is not None:
        row = difference.differs
        raise InputError(
            f"plan {plan}: is not of snapshot {snapshot}: group {row['name']} has {row['planned']} "
            f"members in the plan and {row['there']} in the snapshot; name its own with --snapshot"
        )
    return difference.are_own is not False, difference.least if difference.is_one else None


def _keep_kafkas(members: DataFrame) -> DataFrame:
    """Clear assignors whose rebalances cannot be followed: a plan by weight needs none."""
    name = F.col("assignor")
    conforming = conform(members, MEMBERS)
    is_one = (F.count(name) == F.count("*")) & (F.min(name) == F.max(name))
    is_known = F.min(name).isin(*KAFKAS) & ~F.bool_or(is_consumer_group())
    groups = conforming.groupBy(*GROUP_KEY).agg(
        F.when(is_one & is_known, F.min(name)).alias("assignor")
    )
    with_assignors = conforming.drop("assignor").join(groups, on=list(GROUP_KEY), how="inner")
    return restore_cluster_id(settle(with_assignors).frame, has_cluster_id(members))


def _set_planned_assignors(members: DataFrame, balance: DataFrame, of_all: str | None) -> DataFrame:
    """Return members with the plan's assignor, which may have been chosen for all groups."""
    if of_all is not None:
        return members.withColumn("assignor", F.lit(of_all))
    of_groups = balance.select(*GROUP_KEY, F.col("assignor").alias("planned_assignor"))
    conforming = conform(members, MEMBERS).join(of_groups, on=list(GROUP_KEY), how="left")
    chosen = conforming.withColumn("assignor", F.coalesce("planned_assignor", "assignor")).drop(
        "planned_assignor"
    )
    # With the estimate of a join Spark takes the members for huge, and plans accordingly.
    return restore_cluster_id(settle(chosen).frame, has_cluster_id(members))
