"""Translate producers' records into consumers' traffic, by partition and by member."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id, topics_table
from kassign_spark.errors import InputError
from kassign_spark.groups.input_counts import fold_topics
from kassign_spark.inputs.problem_rows import TableCheck, refuse_problems
from kassign_spark.inputs.rules import Rule, rules_of_topics
from kassign_spark.producer.partitioner import placed_conforming
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, MEMBERS, Table, table_of

_COUNTS = ("record_count", "byte_count")
_PARTITION = "cluster_id string?, topic string, partition int"
SHARES = table_of("shares", f"{_PARTITION}, share double")
"""Columns of ``null_key_shares``."""
TRAFFIC = table_of("traffic", f"{_PARTITION}, record_count double, byte_count double?")
"""Columns of ``partition_traffic``; measured rates do as well."""


def partition_traffic(
    records: DataFrame,
    topics: DataFrame,
    shares: DataFrame | None = None,
    *,
    ignore_keys: bool = False,
) -> DataFrame:
    """Count what goes to each partition; records without a key are spread as expected values.

    Args:
        records: ``partitioner.RECORDS``.
        topics: ``schemas.TOPICS`` or one row per topic-partition.
        shares: ``SHARES``, from ``null_key_shares``; None, or a topic not in it: even shares.
        ignore_keys: ``partitioner.ignore.keys``: keys count as null.

    Returns:
        One row per partition of ``topics``: cluster_id string (where the inputs have it), topic
        string, partition int, record_count double, byte_count double (0 where no record has a
        byte_count). Records that ``place_records`` calls `invalid` or `no_topic` go nowhere.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only some have cluster_id.
        InputError: a number of partitions that no topic has.
    """
    form = topics_table(topics)
    check_same_clusters([(form, topics), (SHARES, shares)])
    topic_rows = conform(topics, form)
    refuse_problems([TableCheck(form, topic_rows, _ranges(form))])
    sizes = fold_topics(topic_rows, bad_row="false").where("num_partitions > 0")
    placed = placed_conforming(records, topics, ignore_keys=ignore_keys)
    in_topic = [CLUSTER_ID, "topic"]

    def sums(name: str) -> list[Column]:
        return [F.sum(quantity).cast("double").alias(f"{name}_{quantity}") for quantity in _COUNTS]

    with_partition = placed.where("placed_partition IS NOT NULL")
    fixed = with_partition.groupBy(*in_topic, F.col("placed_partition").alias("partition"))
    spread = placed.where("placement = 'null_key'").groupBy(*in_topic)
    every = sizes.select(
        *in_topic,
        (1 / F.col("num_partitions")).alias("even_share"),
        F.explode(F.sequence(F.lit(0), F.col("num_partitions").cast("int") - 1)).alias("partition"),
    )
    every = _with_share(every, shares)
    partition = [*in_topic, "partition"]
    sums_by_partition = every.join(fixed.agg(*sums("fixed")), on=partition, how="left")
    sums_by_partition = sums_by_partition.join(spread.agg(*sums("spread")), on=in_topic, how="left")
    none = F.lit(0.0)
    totals = {
        quantity: F.coalesce(f"fixed_{quantity}", none)
        + F.col("share") * F.coalesce(f"spread_{quantity}", none)
        for quantity in _COUNTS
    }
    result = sums_by_partition.withColumns(totals)
    return to_result(result, "partition_traffic", has_cluster_id=has_cluster_id(topics))


def _ranges(form: Table) -> list[Rule]:
    """Return the rules that keep a row per partition from becoming more rows than there can be."""
    return [rule for rule in rules_of_topics(form) if rule.problem.endswith("_out_of_range")]


def member_traffic(
    traffic: DataFrame,
    assignment: DataFrame,
    members: DataFrame | None = None,
    *,
    hot_ratio: float = 2.0,
) -> DataFrame:
    """Add up what each member of each group has to read, and point out hot members.

    Args:
        traffic: ``TRAFFIC``, one row per partition; a partition that is not in it counts as idle.
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``, so that members without partitions count; None: members are
            those of the assignment.
        hot_ratio: from how many times the mean of its group on a member is hot.

    Returns:
        One row per member: cluster_id string (where the inputs have it), group_id string, member_id
        string, partition_count bigint, record_count double, byte_count double, record_share double
        (of the group's records; null where there are none), load_ratio double (records over the
        mean of the group's members; null where there are none), is_hot boolean.

    Raises:
        InputError: ``hot_ratio`` is not above 0.
        SchemaError: columns are missing or of the wrong type, or only some have cluster_id.
    """
    if not hot_ratio > 0:
        raise InputError(f"hot_ratio is {hot_ratio!r}; give a number above 0")
    check_same_clusters([(TRAFFIC, traffic), (ASSIGNMENT, assignment), (MEMBERS, members)])
    member = [*GROUP_KEY, "member_id"]
    read = (
        conform(assignment, ASSIGNMENT)
        .join(conform(traffic, TRAFFIC), on=[CLUSTER_ID, "topic", "partition"], how="left")
        .groupBy(*member)
        .agg(
            F.count("*").alias("partition_count"),
            *(F.sum(quantity).alias(quantity) for quantity in _COUNTS),
        )
    )
    if members is not None:
        member_rows = conform(members, MEMBERS).select(*member).distinct()
        read = member_rows.join(read, on=member, how="left")
    in_group = Window.partitionBy(*GROUP_KEY)
    records = F.col("record_count")
    ratio = F.try_divide(records, F.avg(records).over(in_group))
    none = {quantity: F.coalesce(quantity, F.lit(0)) for quantity in ("partition_count", *_COUNTS)}
    rated = read.withColumns(none).withColumns(
        {
            "record_share": F.try_divide(records, F.sum(records).over(in_group)),
            "load_ratio": ratio,
            "is_hot": F.coalesce(ratio >= F.lit(hot_ratio), F.lit(False)),
        }
    )
    return to_result(rated, "member_traffic", has_cluster_id=has_cluster_id(assignment))


def _with_share(partitions: DataFrame, shares: DataFrame | None) -> DataFrame:
    """Add ``share``: the given one, even where a topic has none, 0 for a partition left out."""
    if shares is None:
        return partitions.withColumnRenamed("even_share", "share")
    share_rows = conform(shares, SHARES)
    topics = share_rows.select(CLUSTER_ID, "topic").distinct().withColumn("has_shares", F.lit(True))
    share = F.when(F.col("has_shares"), F.coalesce("share", F.lit(0.0))).otherwise(
        F.col("even_share")
    )
    return (
        partitions.join(topics, on=[CLUSTER_ID, "topic"], how="left")
        .join(share_rows, on=[CLUSTER_ID, "topic", "partition"], how="left")
        .select(CLUSTER_ID, "topic", "partition", share.alias("share"))
    )
