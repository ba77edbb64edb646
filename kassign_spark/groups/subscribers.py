"""One row per group and topic with its subscribers: what Range and RoundRobin deal from."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import Eligible, member_order
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.settings.computing import Settings


def homogeneous_topics(eligible: Eligible, settings: Settings) -> DataFrame:
    """Return the topics of the groups whose members all subscribe alike.

    A subscribed topic that the cluster lacks is left out, as Kafka does.

    Returns:
        cluster_id string, group_id string, topic string, num_partitions int,
        subscribers array<string>: all member ids of the group, in MemberInfo order.
    """
    groups = homogeneous_groups(eligible).withColumnRenamed("members", "subscribers")
    sizes = eligible.topics.select(CLUSTER_ID, "topic", "num_partitions")
    return explode_topics(groups, settings, eligible.tasks).join(
        sizes, on=[CLUSTER_ID, "topic"], how="inner"
    )


def homogeneous_groups(eligible: Eligible) -> DataFrame:
    """Return the rows of ``eligible.groups`` whose members subscribe alike, and to something."""
    return eligible.groups.where(F.col("is_homogeneous") & (F.size("topics") > 0))


def explode_topics(groups: DataFrame, settings: Settings, tasks: int) -> DataFrame:
    """Explode ``topics`` of one row per group into ``topic``, a large group over several tasks.

    Groups have cluster_id string, group_id string, subscribers array<string>, topics array.
    """
    length = settings.topics_per_task
    starts = F.sequence(F.lit(1), F.size("topics"), F.lit(length))
    slices = F.transform(starts, lambda start: F.slice("topics", start, length))
    sliced = groups.select(*GROUP_KEY, "subscribers", F.explode(slices).alias("topics"))
    return spread(sliced, tasks).select(
        *GROUP_KEY, "subscribers", F.explode("topics").alias("topic")
    )


def heterogeneous_topics(eligible: Eligible) -> DataFrame:
    """Return the topics of the groups whose members' subscriptions differ.

    A topic listed twice by a member counts once (RangeAssignor since 3.5).

    Returns:
        The columns of ``homogeneous_topics``, where ``subscribers`` are the topic's own, and
        subscriber_ranks array<int>: the subscribers' ranks among all members of their group.
    """
    differing = eligible.groups.where(~F.col("is_homogeneous")).select(*GROUP_KEY)
    rank = F.row_number().over(Window.partitionBy(*GROUP_KEY).orderBy(*member_order())) - 1
    subscriptions = (
        eligible.members.join(differing, on=list(GROUP_KEY), how="left_semi")
        .withColumn("member_rank", rank)
        .selectExpr(
            *GROUP_KEY, "member_rank", "member_id", "explode(array_distinct(topics)) as topic"
        )
        .join(eligible.topics, on=["cluster_id", "topic"], how="inner")
    )
    # By topic: one giant group is many tasks here.
    ranked = F.sort_array(F.collect_list(F.struct("member_rank", "member_id")))
    return (
        spread(subscriptions, eligible.tasks, *GROUP_KEY, "topic")
        .groupBy(*GROUP_KEY, "topic", "num_partitions")
        .agg(ranked.alias("ranked"))
        .select(
            *GROUP_KEY,
            "topic",
            "num_partitions",
            F.col("ranked.member_id").alias("subscribers"),
            F.col("ranked.member_rank").alias("subscriber_ranks"),
        )
    )


def deal(topics: DataFrame, place: Column) -> DataFrame:
    """Give every partition of every topic to one of the topic's subscribers.

    The only place where partitions are expanded: no join and no shuffle comes after it.

    Args:
        topics: the columns of ``homogeneous_topics``, and further ones that ``place`` needs.
        place: int, an index into ``subscribers``, from these columns and ``partition`` int.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    partitions = F.sequence(F.lit(0), F.col("num_partitions") - 1)
    return topics.select("*", F.explode(partitions).alias("partition")).select(
        *GROUP_KEY, F.col("subscribers")[place].alias("member_id"), "topic", "partition"
    )


def spread(frame: DataFrame, tasks: int, *keys: str) -> DataFrame:
    """Spread a few rows that are about to become many over ``tasks`` tasks.

    Adaptive execution sees only the few and would put them into one task; it leaves alone a
    number of partitions that is given.
    """
    return frame.repartition(tasks, *keys) if tasks > 1 else frame
