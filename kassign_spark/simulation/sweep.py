"""What if a group had more or fewer members, or its topics more partitions: all answers at once."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.errors import InputError
from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.rebalancing.steps import rebalance
from kassign_spark.rebalancing.summary import summarize
from kassign_spark.rounds import hold
from kassign_spark.schemas import (
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    OWNED,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.settings import Settings
from kassign_spark.simulation.questions import Growth, Sweep
from kassign_spark.simulation.state import sized_topics

_SEPARATOR = "\u001f"


def sweep(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    sweeps: Sequence[Sweep],
    *,
    settings: Settings = Settings(),
) -> DataFrame:
    """Answer what-if questions about the fleet as it is, all in one computation; runs jobs.

    A new member subscribes as one that is there, by turns, and knows of nothing that it owns; the
    members that go are the last by member_id.

    Args:
        members: ``schemas.MEMBERS``, each group with its assignor.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``, or None.
        sweeps: the questions.
        settings: how to compute it.

    Returns:
        One row a group and variant: cluster_id string (where the inputs have it), group_id string,
        sweep int (from 1), variant string (such as `members +1, partitions x2`), member_change
        int, partition_times int, partition_more int, member_count bigint, partition_count bigint,
        min_assigned bigint, max_assigned bigint, idle_count bigint: members with nothing,
        moved_count bigint, paused_count bigint, rounds int, settles boolean (as ``summarize``),
        detail string: why there is no answer, then all counts but member_count are null.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or a sweep of an unknown group or topic.
    """
    inputs = conform_inputs(members, topics, owned)
    eligible = look(inputs, known_assignors=ASSIGNORS).eligible
    variants = _variants(members, sweeps)
    _check_names(eligible.members, eligible.topics, sweeps)
    sized = sized_topics(eligible, inputs.topics)
    asked = hold(_asked(eligible.members, variants), {"rows": F.count(F.lit(1))}).frame
    possible = asked.where("member_count > 0").select(*GROUP_KEY, "variant_id", "variant")
    varied_members = hold(
        _vary_members(eligible.members, asked.where("member_count > 0")),
        {"rows": F.count(F.lit(1))},
    ).frame
    given = inputs.owned
    if given is not None:
        given = _in_variant(given.join(possible, on=list(GROUP_KEY), how="inner"))
        given = given.select(*OWNED.columns.names)
    steps = rebalance(
        varied_members.select(*MEMBERS.columns.names),
        _vary_topics(sized, variants),
        given,
        settings=settings,
    )
    held = hold(steps, {"rows": F.count(F.lit(1))}).frame
    measured = (
        _loads(held, varied_members)
        .join(summarize(held, given).drop("partition_count"), on=list(GROUP_KEY), how="left")
        .withColumnRenamed(CLUSTER_ID, "variant_id")
        .drop("member_count")
    )
    found = asked.join(measured, on=["variant_id", "group_id"], how="left")
    none = F.concat(
        F.lit("the group has only "),
        (F.col("member_count") - F.col("member_change")).cast("string"),
        F.when(F.col("member_count") - F.col("member_change") == 1, " member").otherwise(
            " members"
        ),
    )
    is_answered = F.col("member_count") > 0
    zero = F.lit(0).cast("bigint")
    return restore_cluster_id(
        found.select(
            *GROUP_KEY,
            "sweep",
            "variant",
            "member_change",
            "partition_times",
            "partition_more",
            F.greatest("member_count", zero).alias("member_count"),
            *(
                F.when(is_answered, F.coalesce(name, zero)).alias(name)
                for name in ("partition_count", "min_assigned", "max_assigned", "idle_count")
            ),
            *(
                F.when(is_answered, F.coalesce(name, zero)).alias(name)
                for name in ("moved_count", "paused_count")
            ),
            F.when(is_answered, F.coalesce("rounds", F.lit(0))).alias("rounds"),
            F.when(is_answered, F.coalesce("settles", F.lit(True))).alias("settles"),
            F.when(~is_answered, none).alias("detail"),
        ),
        has_cluster_id(members),
    )


def _variants(frame: DataFrame, sweeps: Sequence[Sweep]) -> DataFrame:
    rows: list[tuple[Any, ...]] = []
    for number, asked in enumerate(sweeps, start=1):
        for change in asked.members:
            for growth in asked.partitions:
                says = [f"members {change:+d}"] if list(asked.members) != [0] else []
                if list(asked.partitions) != [Growth()]:
                    grown = f"+{growth.more}" if growth.more else f"x{growth.times}"
                    says.append(f"partitions {grown}")
                what = (number, ", ".join(says), change, growth.times, growth.more)
                rows.append((len(rows), *what, asked.cluster_id, asked.group_id, asked.topic))
    return frame.sparkSession.createDataFrame(
        rows,
        "number int, sweep int, variant string, member_change int, partition_times int, "
        "partition_more int, only_cluster string, only_group string, only_topic string",
    )


def _check_names(members: DataFrame, topics: DataFrame, sweeps: Sequence[Sweep]) -> None:
    """Refuse sweeps of what is not there.

    Raises:
        InputError: lists every one.
    """
    problems = []
    for asked in sweeps:
        where = "" if asked.line is None else f"line {asked.line}: "
        for frame, column, name in (
            (members, CLUSTER_ID, asked.cluster_id),
            (members, "group_id", asked.group_id),
            (topics, "topic", asked.topic),
        ):
            if name is not None and frame.where(F.col(column) == name).limit(1).count() == 0:
                problems.append(f'{where}sweep: {column} "{name}" is not there')
    if problems:
        raise InputError("; ".join(problems))


def _is_asked(variants: DataFrame) -> Column:
    return F.coalesce(F.col("only_cluster") == F.col(CLUSTER_ID), F.lit(True))


def _variant_id() -> Column:
    """A cluster of its own for each variant: topics belong to clusters."""
    return F.concat_ws(_SEPARATOR, F.col("number").cast("string"), CLUSTER_ID)


def _asked(members: DataFrame, variants: DataFrame) -> DataFrame:
    """One row a group and variant, with variant_id and the member_count that it leads to."""
    counts = members.groupBy(*GROUP_KEY).agg(F.count("*").alias("members"))
    is_asked = _is_asked(variants) & F.coalesce(
        F.col("only_group") == F.col("group_id"), F.lit(True)
    )
    return (
        counts.crossJoin(F.broadcast(variants))
        .where(is_asked)
        .withColumn("variant_id", _variant_id())
        .withColumn("member_count", F.col("members") + F.col("member_change"))
        .drop("only_cluster", "only_group", "only_topic", "number")
    )


def _in_variant(frame: DataFrame) -> DataFrame:
    return frame.withColumn(CLUSTER_ID, F.col("variant_id"))


def _vary_members(members: DataFrame, asked: DataFrame) -> DataFrame:
    """Leave members out, or add copies; cluster_id is the variant's."""
    place = F.row_number().over(Window.partitionBy(*GROUP_KEY).orderBy("member_id"))
    ranked = members.withColumn("place", place).join(
        asked.select(*GROUP_KEY, "variant_id", "members", "member_change"),
        on=list(GROUP_KEY),
        how="inner",
    )
    # Copies of the member at place r are numbered r, r + n, r + 2n, ...; 0 is the member itself.
    copies = F.when(
        F.col("member_change") >= F.col("place"),
        F.sequence(F.col("place").cast("bigint"), F.col("member_change").cast("bigint"), "members"),
    ).otherwise(F.array().cast("array<bigint>"))
    stays = F.col("place") <= F.col("members") + F.col("member_change")
    all_numbers = F.concat(F.array(F.when(stays, F.lit(0).cast("bigint"))), copies)
    each = ranked.withColumn("copy", F.explode(F.array_compact(all_numbers)))
    is_copy = F.col("copy") > 0

    def numbered(name: str) -> Column:
        copied = F.concat(F.col(name), F.lit("+"), F.col("copy").cast("string"))
        return F.when(is_copy, copied).otherwise(F.col(name))

    return _in_variant(each).withColumns(
        {
            "member_id": numbered("member_id"),
            "group_instance_id": numbered("group_instance_id"),
            "generation": F.when(~is_copy, F.col("generation")),
            "member_seq": F.when(~is_copy, F.col("member_seq")),
        }
    )


def _vary_topics(topics: DataFrame, variants: DataFrame) -> DataFrame:
    grows = F.coalesce(F.col("only_topic") == F.col("topic"), F.lit(True))
    size = F.col("num_partitions").cast("bigint")
    grown = F.when(grows, size * F.col("partition_times") + F.col("partition_more")).otherwise(size)
    return (
        topics.crossJoin(F.broadcast(variants))
        .where(_is_asked(variants))
        .select(
            _variant_id().alias(CLUSTER_ID),
            "topic",
            grown.alias("num_partitions"),
            F.when(grown == size, F.col("replica_racks")).alias("replica_racks"),
        )
    )


def _loads(steps: DataFrame, members: DataFrame) -> DataFrame:
    """Count what the members of each group have in the end."""
    last = F.max("round").over(Window.partitionBy(*GROUP_KEY))
    held = (
        steps.withColumn("last", last)
        .where((F.col("round") == F.col("last")) & F.col("action").isin("retained", "assigned"))
        .groupBy(*GROUP_KEY, "member_id")
        .agg(F.count("*").alias("load"))
    )
    load = F.coalesce("load", F.lit(0).cast("bigint"))
    return (
        members.select(*GROUP_KEY, "member_id")
        .join(held, on=[*GROUP_KEY, "member_id"], how="left")
        .groupBy(*GROUP_KEY)
        .agg(
            F.sum(load).alias("partition_count"),
            F.min(load).alias("min_assigned"),
            F.max(load).alias("max_assigned"),
            F.count_if(load == 0).alias("idle_count"),
        )
    )
