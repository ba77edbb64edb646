"""One row a group: its members in Kafka's order, its topics, and who subscribes to what.

Partitions stay counts here. A topic read by five hundred groups is never expanded five hundred
times, and a group whose members subscribe alike costs as much as its members plus its topics, not
their product: members of one subscription are merged first, topics of the same subscribers share
one list of them.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.expressions import java_string_order
from kassign_spark.schemas import GROUP_KEY


class Eligible(NamedTuple):
    """What a strategy is given; every frame has ``cluster_id`` and ``group_id``, never null.

    Attributes:
        members: ``schemas.MEMBERS``, checked, with ``member_rank`` int (0-based, MemberInfo order).
        topics: ``schemas.TOPICS``, checked, one row a topic, without topics of no partition; it
            belongs to clusters and has no ``group_id``.
        owned: ``schemas.OWNED``, or None where nothing is known of it.
        groups: the frame that ``fold_groups`` describes.
    """

    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None
    groups: DataFrame


def eligible(members: DataFrame, topics: DataFrame, owned: DataFrame | None) -> Eligible:
    """Prepare checked, conforming tables for the strategies; runs no job."""
    assignable = topics.where("num_partitions > 0")
    ranked = members.withColumn("member_rank", member_rank())
    return Eligible(ranked, assignable, owned, fold_groups(ranked, assignable))


def member_rank() -> Column:
    """Rank the members of a group as ``AbstractPartitionAssignor.MemberInfo`` compares them.

    Static members come first, by ``group.instance.id``; the others follow, by ``member.id``.

    Returns:
        int, 0-based, over the columns of ``schemas.MEMBERS``.
    """
    order = Window.partitionBy(*GROUP_KEY).orderBy(
        F.col("group_instance_id").isNull(),
        java_string_order(F.col("group_instance_id")),
        java_string_order(F.col("member_id")),
    )
    return F.row_number().over(order) - 1


def fold_groups(ranked: DataFrame, topics: DataFrame) -> DataFrame:
    """Fold ranked members and topics into one row a group.

    A subscribed topic that ``topics`` lacks is left out, as Kafka does; a topic listed twice by a
    member counts once (RangeAssignor since 3.5).

    Returns:
        One row for each group that has a member subscribed to a topic with partitions:
        cluster_id string, group_id string,
        members array<string>: member ids; a member's index is its ``member_rank``,
        topics array<struct<topic string, num_partitions int, subscribers int>>: in Java's string
        order; ``subscribers`` is an index into
        subscriber_ranks array<array<int>>: member ranks, ascending, of each class of topics.
    """
    subscriptions = ranked.groupBy(
        *GROUP_KEY, F.sort_array(F.array_distinct("topics")).alias("topics")
    ).agg(
        F.sort_array(F.collect_list("member_rank")).alias("ranks"),
        F.sort_array(F.collect_list(F.struct("member_rank", "member_id"))).alias("ranked_members"),
    )
    # The lowest rank among its members names a subscription within its group.
    subscribed = subscriptions.select(
        "*", F.col("ranks")[0].alias("subscription"), F.explode("topics").alias("topic")
    )
    classes = (
        subscribed.join(topics, on=["cluster_id", "topic"], how="inner")
        .groupBy(*GROUP_KEY, "topic", F.col("num_partitions").cast("int").alias("num_partitions"))
        .agg(F.sort_array(F.collect_list("subscription")).alias("subscriptions"))
        .groupBy(*GROUP_KEY)
        .agg(
            F.sort_array(
                F.collect_list(
                    F.struct(
                        java_string_order(F.col("topic")).alias("topic_order"),
                        "topic",
                        "num_partitions",
                        "subscriptions",
                    )
                )
            ).alias("topics"),
            F.sort_array(F.collect_set("subscriptions")).alias("classes"),
        )
    )
    groups = subscriptions.groupBy(*GROUP_KEY).agg(
        F.sort_array(F.flatten(F.collect_list("ranked_members"))).alias("ranked_members"),
        F.map_from_entries(F.collect_list(F.struct(F.col("ranks")[0], "ranks"))).alias("ranks_of"),
    )
    return groups.join(classes, on=list(GROUP_KEY), how="inner").select(
        *GROUP_KEY,
        F.col("ranked_members.member_id").alias("members"),
        F.transform(
            "topics",
            lambda t: F.struct(
                t["topic"].alias("topic"),
                t["num_partitions"].alias("num_partitions"),
                (F.array_position("classes", t["subscriptions"]) - 1)
                .cast("int")
                .alias("subscribers"),
            ),
        ).alias("topics"),
        F.transform(
            "classes",
            lambda class_: F.sort_array(
                F.flatten(F.transform(class_, lambda s: F.element_at("ranks_of", s)))
            ),
        ).alias("subscriber_ranks"),
    )
