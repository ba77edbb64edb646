"""Groups too large to be planned by weight in one task: which they are, and their partitions."""

from functools import partial, reduce
from itertools import groupby
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.sizes import restrict_to
from kassign_spark.assignors.weighted.cut import PARTITIONS_A_MEMBER
from kassign_spark.errors import InputError
from kassign_spark.expressions import java_string_order
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import (
    partition_of,
    read_claims,
    subscribed_topics,
    topic_number,
    topic_number_of,
)
from kassign_spark.inputs.checks import MAX_LISTED
from kassign_spark.plans.weight_rows import refused_groups, shared_and_own
from kassign_spark.plans.weighted_groups import NAMED, Given, missing_says
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings

AT = ("topic_number", "partition")
"""A partition of a group: its topic by number, in Java's order of names, and its own."""
_BYTES_OF_A_PARTITION = 800
"""What a group takes in a task that plans it by weight, for each of its partitions."""


class Large(NamedTuple):
    """Groups that are cut.

    Attributes:
        eligible: these groups.
        topics: cluster_id string, group_id string, topic string, num_partitions int,
            topic_number int.
        members: cluster_id string, group_id string, member_id string, home int.
        parts: cluster_id string, group_id string, topic_number int, partition int, whole double
            (its weight as ``problem.scaled`` makes it), cost double, home int? (who owns it).
        units: one row a group: cluster_id string, group_id string, power double, member_count int,
            free bigint (partitions of nobody), free_idle bigint (those without weight).
        most_free: the greatest ``free``.
    """

    eligible: Eligible
    topics: DataFrame
    members: DataFrame
    parts: DataFrame
    units: DataFrame
    most_free: int


def most_weighed_partitions(settings: Settings) -> int:
    """How many partitions of a group a task plans by weight."""
    return settings.bytes_per_task // _BYTES_OF_A_PARTITION


def cut(
    eligible: Eligible,
    weights: DataFrame,
    given: Given,
    settings: Settings,
    *,
    even_first: bool = False,
) -> tuple[Eligible, Large | None]:
    """Tell groups that are cut from those that a task plans whole; runs jobs if some are large.

    Cut are groups of more partitions than fit a task (``sizes``) and at least
    ``PARTITIONS_A_MEMBER`` a member, that have weight. Where topics are kept together, none is, nor
    with ``even_first`` those whose partitions all weigh the same: their best balance is by counts.

    Returns:
        the groups for tasks, and the others; None: there are none.

    Raises:
        InputError: some of these have partitions without weight; lists groups.
    """
    border = most_weighed_partitions(settings)
    if eligible.most_partitions <= border or given.together:
        return eligible, None
    keys = list(GROUP_KEY)
    sizes = eligible.members.groupBy(*keys).agg(F.count(F.lit(1)).alias("member_count"))
    sizes = sizes.join(
        subscribed_topics(eligible).groupBy(*keys).agg(F.sum("num_partitions").alias("partitions")),
        on=keys,
        how="inner",
    )
    enough = F.greatest(F.lit(border + 1), F.col("member_count") * PARTITIONS_A_MEMBER)
    found_large, counted = hold(
        sizes.where(F.col("partitions") >= enough), {"groups": F.count(F.lit(1))}
    )
    if not counted["groups"]:
        return eligible, None
    some = restrict_to(eligible, found_large)
    topics = hold(subscribed_topics(some).withColumn("topic_number", topic_number())).frame
    # In Java's order of their ids, as a task numbers them.
    in_order = Window.partitionBy(*keys).orderBy(java_string_order(F.col("member_id")))
    home = (F.row_number().over(in_order) - 1).alias("home")
    members = some.members.select(*keys, "member_id", home)
    raw = hold(_partitions(some, topics, members, weights)).frame
    units, found = hold(
        _units(raw, found_large, given, even_first),
        {
            "problems": F.count_if(F.col("lacks")),
            "weighed": F.count_if(F.col("power") > 0),
            "most_free": F.max("free"),
        },
    )
    if found["problems"]:
        raise _lacking(raw, units.where("lacks"), topics)
    if not found["weighed"]:
        return eligible, None
    weighed = units.where("power > 0")
    some = restrict_to(some, weighed)
    parts = _weighed(raw, weighed, given)
    large = Large(some, topics, members, parts, weighed, found["most_free"])
    return restrict_to(eligible, weighed, "left_anti"), large


def _partitions(
    eligible: Eligible, topics: DataFrame, members: DataFrame, weights: DataFrame
) -> DataFrame:
    """All partitions, with what is said of them: weight double?, move_cost double?, home int?."""
    numbered = topics.repartition(eligible.tasks, *GROUP_KEY, "topic")
    there = numbered.select(
        *GROUP_KEY,
        "topic_number",
        F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition"),
        F.lit(None).cast("int").alias("home"),
    )
    shared, own = shared_and_own(weights, topics)
    own = own.join(topics, on=[*GROUP_KEY, "topic"], how="inner")

    def told(frame: DataFrame, whose: str) -> DataFrame:
        return frame.where("partition < num_partitions").selectExpr(
            *GROUP_KEY,
            *AT,
            f"cast(weight as double) as {whose}",
            f"cast(move_cost as double) as {whose}_cost",
        )

    frames = [there, told(own, "own"), told(shared, "shared")]
    if eligible.owned is not None:
        frames.append(_owners(eligible, topics, members))
    by_partition = (
        reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
        .groupBy(*GROUP_KEY, *AT)
        .agg(*(F.max(n).alias(n) for n in ("own", "own_cost", "shared", "shared_cost", "home")))
    )
    is_own = F.col("own").isNotNull()
    return by_partition.select(
        *GROUP_KEY,
        *AT,
        F.coalesce("own", "shared").alias("weight"),
        F.when(is_own, F.col("own_cost")).otherwise(F.col("shared_cost")).alias("move_cost"),
        "home",
    )


def _owners(eligible: Eligible, topics: DataFrame, members: DataFrame) -> DataFrame:
    """Who owns what, of what they subscribe to, by number."""
    assert eligible.owned is not None
    owned = eligible.owned
    if eligible.heterogeneous:
        subscribed = eligible.members.select(
            *GROUP_KEY, "member_id", F.explode("topics").alias("topic")
        ).distinct()
        owned = owned.join(subscribed, on=[*GROUP_KEY, "member_id", "topic"], how="left_semi")
    claims = read_claims(eligible._replace(owned=owned), topics)
    claim = F.col("claim")
    found = (
        claims.members.join(members, on=[*GROUP_KEY, "member_id"], how="inner")
        .select(*GROUP_KEY, "home", F.explode("claims").alias("claim"))
        .select(
            *GROUP_KEY,
            topic_number_of(claim).alias("topic_number"),
            partition_of(claim).alias("partition"),
            "home",
        )
    )
    if claims.disputed is None:
        return found
    return found.join(claims.disputed, on=[*GROUP_KEY, *AT], how="left_anti")


def _weight(given: Given) -> Column:
    return F.coalesce("weight", F.lit(given.missing or 0.0)) + F.lit(given.base)


def _units(raw: DataFrame, large: DataFrame, given: Given, even_first: bool) -> DataFrame:
    """How the weights of each group are scaled, as ``problem.scaled`` does; power 0: no weight."""
    keys, weight = list(GROUP_KEY), _weight(given)
    counted = raw.groupBy(*keys).agg(
        F.count("*").alias("count"),
        F.count("weight").alias("known"),
        F.max(weight).alias("most"),
        F.min(weight).alias("least"),
        F.count_if(F.col("home").isNull()).alias("free"),
        F.count_if(F.col("home").isNull() & (weight <= 0)).alias("free_idle"),
    )
    # The logarithm is rounded; powers of two are not.
    near = "cast(floor(log2(most)) as int)"
    more = (
        f"CASE WHEN pow(2, {near}) > most THEN 0 WHEN pow(2, {near} + 1) <= most THEN 2 ELSE 1 END"
    )
    shift = f"50 - {near} - {more} - length(bin(count))"
    by_count = "least = most" if even_first else "false"
    lacks = "known > 0 AND known < count" if given.missing is None else "false"
    has_weight = f"known > 0 AND most > 0 AND NOT ({by_count})"
    return counted.join(large.select(*keys, "member_count"), on=keys, how="inner").selectExpr(
        *keys,
        f"{lacks} as lacks",
        f"if({has_weight}, pow(2, greatest(least({shift}, 1000), -1000)), 0D) as power",
        "cast(member_count as int) as member_count",
        "count - known as missing",
        "free",
        "free_idle",
    )


def _weighed(raw: DataFrame, units: DataFrame, given: Given) -> DataFrame:
    cost = "coalesce(move_cost, weight)" if given.by_weight else "1D"
    powers = F.broadcast(units.select(*GROUP_KEY, "power"))
    return (
        raw.join(powers, on=list(GROUP_KEY), how="inner")
        .withColumn("weight", _weight(given))
        .selectExpr(*GROUP_KEY, *AT, "rint(weight * power) as whole", f"{cost} as cost", "home")
    )


def _lacking(raw: DataFrame, units: DataFrame, topics: DataFrame) -> InputError:
    """The error of groups that have partitions without weight: it names the first of them."""
    keys = list(GROUP_KEY)
    in_order = Window.partitionBy(*keys).orderBy(*AT)
    first = (
        raw.where("weight IS NULL")
        .join(units.select(*keys, "missing"), on=keys, how="inner")
        .withColumn("place", F.row_number().over(in_order))
        .where(F.col("place") <= NAMED)
        .join(topics, on=[*keys, "topic_number"], how="inner")
        .orderBy(*keys, "place")
        .limit((MAX_LISTED + 1) * NAMED)
        .collect()
    )
    return refused_groups(
        [
            (group, missing_says(missing, [f"{row.topic}-{row.partition}" for row in of_group]))
            for (_, group, missing), of_group in groupby(
                first, lambda row: (row.cluster_id, row.group_id, row.missing)
            )
        ]
    )
