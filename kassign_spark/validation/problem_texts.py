"""What ``validate`` says of each problem: expressions over what was counted."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.inputs.rules import quoted

_LEFT_OUT = "; left out of the assignment, as Kafka does"


def without_metadata_says(subscribers: Column) -> Column:
    """Of a topic that the table of topics lacks."""
    return F.concat(_who(subscribers), F.lit(f", unknown to the table topics{_LEFT_OUT}"))


def without_partitions_says(subscribers: Column) -> Column:
    """Of a topic with no partitions."""
    return F.concat(_who(subscribers), F.lit(f", has no partitions{_LEFT_OUT}"))


def _who(subscribers: Column) -> Column:
    return F.concat(
        F.lit("subscribed to by "),
        subscribers.cast("string"),
        F.when(subscribers == 1, " member").otherwise(" members"),
    )


def instance_says(instance: str, members: Column) -> Column:
    """Of a group.instance.id, the name of its column, that several members have."""
    return F.concat(
        F.lit("group.instance.id "),
        quoted(instance),
        F.lit(" is used by "),
        F.array_join(members, ", "),
        F.lit("; a broker fences all but the newest"),
    )


def gone_says(count: Column) -> Column:
    """Of a claim on a partition beyond the ``count`` that there are; null: there is no topic."""
    return F.coalesce(
        F.concat(
            F.lit("the topic has only "),
            count.cast("string"),
            F.lit(" partitions; the claim is dropped"),
        ),
        F.lit("the cluster has no such topic; the claim is dropped"),
    )


def no_such_weight_says(count: Column) -> Column:
    """Of a weight of a partition beyond the ``count`` that there are; null: there is no topic."""
    return F.coalesce(
        F.concat(
            F.lit("the topic has only "),
            count.cast("string"),
            F.lit(" partitions; the weight is passed over"),
        ),
        F.lit("the cluster has no such topic; the weight is passed over"),
    )


def stranger_says(rows: Column) -> Column:
    """Of an owner that is not in the group."""
    return F.concat(
        F.lit("owns "),
        rows.cast("string"),
        F.lit(" partitions but is no member of the group: it counts as having left"),
    )


def claims_say(members: Column, generations: Column) -> Column:
    """Of a partition with several claims: who, and in which generation, -1 if in none."""
    each = F.zip_with(
        members,
        generations,
        lambda member, generation: F.concat(
            member,
            F.when(generation < 0, " (no generation)").otherwise(
                F.concat(F.lit(" (generation "), generation.cast("string"), F.lit(")"))
            ),
        ),
    )
    return F.concat(F.lit("claimed by "), F.array_join(each, ", "))
