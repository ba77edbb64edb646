"""What a report is made of: the tables of a plan, and those of the snapshot it was made of."""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from kassign_spark import schemas
from kassign_spark.around.coordinators import LEADERS
from kassign_spark.errors import InputError
from kassign_spark.inputs.checks import refuse_broken_rows
from kassign_spark.inputs.rules import quoted
from kassign_spark.origin import noted_snapshot
from kassign_spark.rounds import settle
from kassign_spark.schemas import (
    ASSIGNMENT,
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    Table,
    conform,
    fill_cluster_id,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.tables import Snapshot, empty_table, has_table, read_snapshot, read_table

BALANCE = Table(
    schemas.BALANCE.name,
    StructType([*schemas.BALANCE.columns, StructField("assignor", StringType())]),
)
"""The table ``balance`` as ``kassign-spark assign`` writes it."""

VIOLATIONS = Table(
    "violations",
    StructType(
        [
            StructField(CLUSTER_ID, StringType()),
            StructField("group_id", StringType()),
            StructField("rule", StringType(), nullable=False),
            StructField("member_id", StringType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("detail", StringType()),
        ]
    ),
)


class Plan(NamedTuple):
    """A plan and its snapshot.

    Attributes:
        assignment: ``schemas.ASSIGNMENT``.
        balance: ``BALANCE``, with cluster_id as a key: an empty string where it is not given.
        violations: ``VIOLATIONS``, likewise; empty where the plan has none.
        snapshot: its members with the assignor that the plan was made with.
        leaders: ``coordinators.LEADERS``; empty where the snapshot has none.
    """

    assignment: DataFrame
    balance: DataFrame
    violations: DataFrame
    snapshot: Snapshot
    leaders: DataFrame


def snapshot_of(spark: SparkSession, plan: str, given: str | None) -> str:
    """Say which snapshot a plan was made of: the one that is named, or the one that it notes.

    Raises:
        InputError: the folder is not there, or neither says it.
    """
    if not has_table(spark, plan, BALANCE.name):
        raise InputError(
            f"folder {plan}: has no table balance, so it is no plan of kassign-spark assign"
        )
    found = given or noted_snapshot(spark, plan)
    if found is None:
        raise InputError(
            f"plan {plan}: does not say of which snapshot it was made; name it with --snapshot"
        )
    return found


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
    named = has_cluster_id(read.members)
    assignment = _read(spark, plan, ASSIGNMENT, named)
    refuse_broken_rows(assignment, ASSIGNMENT)
    balance = _read(spark, plan, BALANCE, named)
    violations = empty_table(spark, VIOLATIONS, cluster_id=True)
    if has_table(spark, plan, VIOLATIONS.name):
        violations = fill_cluster_id(_read(spark, plan, VIOLATIONS, named))
    leaders = empty_table(spark, LEADERS, cluster_id=named)
    if has_table(spark, snapshot, LEADERS.name):
        found = read_table(spark, snapshot, LEADERS)
        leaders = found if found.columns else leaders
    keyed = fill_cluster_id(balance)
    _refuse_other_groups(plan, snapshot, keyed, read.members)
    planned = read._replace(members=_planned(read.members, keyed))
    return Plan(assignment, keyed, violations, planned, leaders)


def _read(spark: SparkSession, folder: str, table: Table, named: bool) -> DataFrame:
    """Read a table with the types that it has; of text files, numbers come as text."""
    frame = read_table(spark, folder, table)
    if not frame.columns:  # JSON lines without a line tell no columns
        return empty_table(spark, table, cluster_id=named)
    types = {field.name: field.dataType for field in table.columns}
    typed = frame.select(
        *(
            F.col(f"`{name}`").cast(types[name]).alias(name)
            for name in frame.columns
            if name in types
        )
    )
    conform(typed, table)
    absent = [f for f in table.columns if f.name not in typed.columns and f.name != CLUSTER_ID]
    return typed.withColumns({f.name: F.lit(None).cast(f.dataType) for f in absent})


def _refuse_other_groups(plan: str, snapshot: str, balance: DataFrame, members: DataFrame) -> None:
    """Refuse a snapshot that the plan was not made of.

    Raises:
        InputError: it names the first group that differs.
    """
    counts = conform(members, MEMBERS).groupBy(*GROUP_KEY).agg(F.count("*").alias("there"))
    both = balance.select(*GROUP_KEY, "member_count").join(counts, on=list(GROUP_KEY), how="full")
    differs = ~F.col("member_count").eqNullSafe(F.col("there"))
    none = F.lit(0).cast("bigint")
    found = (
        both.where(differs)
        .select(
            *GROUP_KEY,
            quoted("group_id").alias("name"),
            F.coalesce("member_count", none).alias("planned"),
            F.coalesce("there", none).alias("there"),
        )
        .orderBy(*GROUP_KEY)
        .limit(1)
        .collect()
    )
    for row in found:
        raise InputError(
            f"plan {plan}: is not of snapshot {snapshot}: group {row['name']} has {row['planned']} "
            f"members in the plan and {row['there']} in the snapshot; name its own with --snapshot"
        )


def _planned(members: DataFrame, balance: DataFrame) -> DataFrame:
    """Give members the assignor of the plan, which may have been chosen for all groups."""
    assignors = balance.select(*GROUP_KEY, F.col("assignor").alias("planned_assignor"))
    conforming = conform(members, MEMBERS).join(assignors, on=list(GROUP_KEY), how="left")
    chosen = conforming.withColumn("assignor", F.coalesce("planned_assignor", "assignor")).drop(
        "planned_assignor"
    )
    # With the estimate of a join Spark takes the members for huge, and plans accordingly.
    chosen = settle(chosen).frame
    return restore_cluster_id(chosen, has_cluster_id(members))
