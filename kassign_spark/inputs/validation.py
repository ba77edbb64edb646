"""What a person should know about the inputs before trusting a plan made of them."""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.checks import Inputs, as_problems, conform_inputs, refusals, resolved
from kassign_spark.inputs.hash_order import lost_orders
from kassign_spark.inputs.member_order import unknown_orders
from kassign_spark.inputs.rules import INT_MAX, quoted
from kassign_spark.schemas import GROUP_KEY, has_cluster_id, restore_cluster_id


def validate(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    assignors: Collection[str] | None = None,
) -> DataFrame:
    """List what is wrong or odd in the inputs, group by group.

    Args:
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``.
        assignors: names that ``members.assignor`` may hold; None: that column is not looked at.

    Returns:
        cluster_id string (where the inputs have it), group_id string (null: of the cluster),
        member_id string, topic string, partition int, problem string, detail string; empty where
        all is well. An assignment is refused for the problems that ``checks.refusals`` lists;
        these do not hinder one:
        `topic_without_metadata`, `topic_without_partitions` (left out, as Kafka does),
        `topic_listed_twice` (counts once), `pattern_without_match` (no topic matches now),
        `duplicate_group_instance_id` (a broker fences the
        older member), `owned_partition_missing` (dropped), `owner_not_in_group` (the member left),
        `claimed_twice` (the highest generation wins, equal ones dispute),
        `hash_order_not_reproduced` (which sticky members keep one partition more may differ),
        `member_order_unknown` (likewise, as ``member_seq`` is not given).

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    conforming = conform_inputs(members, topics, owned)
    inputs = resolved(conforming)
    sizes = inputs.topics.select("cluster_id", "topic", *_size(inputs.topics))
    found = [
        refusals(inputs, assignors),
        *_of_subscriptions(inputs.members, sizes),
        _idle_patterns(conforming.members, inputs.members),
        _duplicate_instances(inputs.members),
        lost_orders(inputs.members),
        *_of_owned(inputs, sizes),
    ]
    problems = reduce(DataFrame.unionByName, found).withColumn(
        "partition", F.expr("try_cast(partition as int)")
    )
    return restore_cluster_id(problems, has_cluster_id(members))


def _size(topics: DataFrame) -> list[str]:
    return [name for name in ("num_partitions", "partition") if name in topics.columns]


def _of_subscriptions(members: DataFrame, sizes: DataFrame) -> list[DataFrame]:
    subscribed = members.select(*GROUP_KEY, "member_id", F.explode("topics").alias("topic"))
    subscribers = subscribed.groupBy(*GROUP_KEY, "topic").agg(
        F.count_distinct("member_id").alias("subscribers")
    )
    again = F.filter("topics", lambda topic, i: F.array_position("topics", topic) <= i)
    repeated = members.select(
        *GROUP_KEY, "member_id", F.explode(F.array_distinct(again)).alias("topic")
    )
    who = F.concat(
        F.lit("subscribed to by "),
        F.col("subscribers").cast("string"),
        F.when(F.col("subscribers") == 1, " member").otherwise(" members"),
    )
    missing = subscribers.join(sizes, on=["cluster_id", "topic"], how="left_anti")
    left_out = F.lit("; left out of the assignment, as Kafka does")
    found = [
        as_problems(
            missing,
            "topic_without_metadata",
            F.concat(who, F.lit(", unknown to the table topics"), left_out),
        ),
        as_problems(
            repeated,
            "topic_listed_twice",
            F.lit("the member lists the topic more than once; it counts once"),
        ),
    ]
    if "num_partitions" in sizes.columns:
        empty = subscribers.join(
            sizes.where("num_partitions = 0"), on=["cluster_id", "topic"], how="left_semi"
        )
        found.append(
            as_problems(
                empty,
                "topic_without_partitions",
                F.concat(who, F.lit(", has no partitions"), left_out),
            )
        )
    return found


def _idle_patterns(members: DataFrame, resolved_members: DataFrame) -> DataFrame:
    by_pattern = members.where("topics_pattern IS NOT NULL").select(
        *GROUP_KEY, "member_id", "topics_pattern"
    )
    idle = resolved_members.where("topics_pattern IS NULL AND size(topics) = 0").select(
        *GROUP_KEY, "member_id"
    )
    return as_problems(
        by_pattern.join(idle, on=[*GROUP_KEY, "member_id"], how="left_semi"),
        "pattern_without_match",
        F.concat(F.lit("no topic matches "), quoted("topics_pattern"), F.lit(" as a whole")),
    )


def _duplicate_instances(members: DataFrame) -> DataFrame:
    duplicates = (
        members.where(F.col("group_instance_id").isNotNull())
        .groupBy(*GROUP_KEY, "group_instance_id")
        .agg(F.array_sort(F.collect_list("member_id")).alias("members"))
        .where(F.size("members") > 1)
        .withColumn("member_id", F.col("members")[0])
    )
    says = F.concat(
        F.lit("group.instance.id "),
        quoted("group_instance_id"),
        F.lit(" is used by "),
        F.array_join("members", ", "),
        F.lit("; a broker fences all but the newest"),
    )
    return as_problems(duplicates, "duplicate_group_instance_id", says)


def _of_owned(inputs: Inputs, sizes: DataFrame) -> list[DataFrame]:
    if inputs.owned is None:
        return []
    next_partition = F.try_add(F.max("partition"), F.lit(1))
    count = F.max("num_partitions") if "num_partitions" in sizes.columns else next_partition
    counts = sizes.groupBy("cluster_id", "topic").agg(count.alias("count"))
    owned = inputs.owned
    usable = counts.where(F.col("count").between(0, INT_MAX))
    gone = owned.join(counts, on=["cluster_id", "topic"], how="left").where(
        F.col("count").isNull() | (F.col("partition") >= F.col("count"))
    )
    strangers = owned.join(
        inputs.members.select(*GROUP_KEY, "member_id"),
        on=[*GROUP_KEY, "member_id"],
        how="left_anti",
    )
    by_stranger = strangers.groupBy(*GROUP_KEY, "member_id").agg(F.count("*").alias("rows"))
    claims = (
        owned.join(
            inputs.members.select(*GROUP_KEY, "member_id", "generation"),
            on=[*GROUP_KEY, "member_id"],
            how="inner",
        )
        .groupBy(*GROUP_KEY, "topic", "partition")
        .agg(
            F.array_sort(
                F.collect_list(F.struct("member_id", F.coalesce("generation", F.lit(-1))))
            ).alias("claims")
        )
        .where(F.size("claims") > 1)
        .withColumn("member_id", F.col("claims")[0]["member_id"])
    )
    each = F.transform(
        "claims",
        lambda c: F.concat(
            c["member_id"],
            F.when(c["col2"] < 0, " (no generation)").otherwise(
                F.concat(F.lit(" (generation "), c["col2"].cast("string"), F.lit(")"))
            ),
        ),
    )
    return [
        as_problems(
            gone,
            "owned_partition_missing",
            F.coalesce(
                F.concat(
                    F.lit("the topic has only "),
                    F.col("count").cast("string"),
                    F.lit(" partitions; the claim is dropped"),
                ),
                F.lit("the cluster has no such topic; the claim is dropped"),
            ),
        ),
        as_problems(
            by_stranger,
            "owner_not_in_group",
            F.concat(
                F.lit("owns "),
                F.col("rows").cast("string"),
                F.lit(" partitions but is no member of the group: it counts as having left"),
            ),
        ),
        unknown_orders(inputs.members, usable, owned),
        as_problems(
            claims, "claimed_twice", F.concat(F.lit("claimed by "), F.array_join(each, ", "))
        ),
    ]
