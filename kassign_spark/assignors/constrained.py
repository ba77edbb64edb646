"""The constrained pass of the sticky assignors: all members of a group subscribe alike.

Exactly what Kafka's client does (``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, clients
3.7.1 and later, without racks): every member keeps of what it owns up to its quota, and the rest is
handed out one by one to those below. Where Kafka loops, this counts: the places that are free have
a closed order, the partitions that are free have another, and the two are zipped by position.

All counts are per member, topic or lap; partitions are arrays until the very end, and no step
ranks the partitions of a whole group in one task.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.dealing import deal
from kassign_spark.assignors.roundrobin import turns, whose_turn
from kassign_spark.eligibility.claims import Claims, hash_order, partition_of, topic_number_of
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.eligibility.subscribers import homogeneous_groups, spread
from kassign_spark.expressions import div, java_string_order
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_PLACES_PER_TASK = 100_000


def assign_constrained(eligible: Eligible, claims: Claims | None, settings: Settings) -> DataFrame:
    """Assign the groups whose members all subscribe alike.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: another member owns the
        partition now, or several dispute it, so that a cooperative rebalance withholds it.
    """
    groups = homogeneous_groups(eligible)
    if claims is None:
        return _take_turns(groups, eligible, settings)
    topics = claims.subscribed.join(groups.select(*GROUP_KEY), on=list(GROUP_KEY), how="left_semi")
    members, _ = hold(_keep(_quotas(groups, topics), claims), {"members": F.count("*")})
    given = _pool(topics, members, claims).join(
        _places(members), on=[*GROUP_KEY, "position"], how="inner"
    )
    columns = [*GROUP_KEY, "member_id", "topic", "partition", "is_moving"]
    return _kept(members, topics).unionByName(given.select(*columns))


def _take_turns(groups: DataFrame, eligible: Eligible, settings: Settings) -> DataFrame:
    """Deal where nothing is owned: then all laps are full, and members take turns by id."""
    by_id = F.transform(
        "members", lambda member: F.struct(java_string_order(member), member.alias("member_id"))
    )
    ring = groups.withColumn("members", F.sort_array(by_id)["member_id"])
    dealt = deal(turns(ring, eligible, settings), whose_turn())
    return dealt.withColumn("is_moving", F.lit(False))


def _kept(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Name what members keep."""
    names = topics.groupBy(*GROUP_KEY).agg(
        F.sort_array(F.collect_list(F.struct("topic_number", "topic")))["topic"].alias("names")
    )
    claim = F.col("claim")
    return (
        members.select(*GROUP_KEY, "member_id", "kept")
        .join(names, on=list(GROUP_KEY), how="inner")
        .select(*GROUP_KEY, "member_id", "names", F.explode("kept").alias("claim"))
        .select(
            *GROUP_KEY,
            "member_id",
            F.col("names")[topic_number_of(claim)].alias("topic"),
            partition_of(claim).alias("partition"),
            F.lit(False).alias("is_moving"),
        )
    )


def _quotas(groups: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a member: min_quota, max_quota, and how many members may have more than the least."""
    partitions = F.col("partition_count")
    counts = topics.groupBy(*GROUP_KEY).agg(F.sum("num_partitions").alias("partition_count"))
    return (
        groups.join(counts, on=list(GROUP_KEY), how="inner")
        .withColumn("member_count", F.size("members"))
        .select(
            *GROUP_KEY,
            F.explode("members").alias("member_id"),
            "member_count",
            div(partitions, F.col("member_count")).alias("min_quota"),
            F.ceil(partitions / F.col("member_count")).alias("max_quota"),
            (partitions % F.col("member_count")).alias("places_at_max"),
        )
    )


def _keep(quotas: DataFrame, claims: Claims) -> DataFrame:
    """Let each member keep its claims up to its quota, lowest partition numbers first.

    The first members, in hash order, that own ``max_quota`` or more keep that many, as long as
    there are places at it.
    """
    claimed = quotas.join(
        claims.members.select(*GROUP_KEY, "member_id", "member_seq", "claims"),
        on=[*GROUP_KEY, "member_id"],
        how="left",
    ).withColumn("claims", F.coalesce("claims", F.array().cast("array<bigint>")))
    owned_count = F.size("claims")
    owns_max = (owned_count >= F.col("max_quota")) & (F.col("places_at_max") > 0)
    # Hashing is worth its time only where the order decides.
    order = (F.when(F.col("owns_max"), key) for key in hash_order(F.col("member_count")))
    rank = F.row_number().over(Window.partitionBy(*GROUP_KEY, "owns_max").orderBy(*order))
    quota = F.when(
        F.col("owns_max") & (rank <= F.col("places_at_max")), F.col("max_quota")
    ).otherwise(F.col("min_quota"))
    return (
        claimed.withColumn("owns_max", owns_max)
        .withColumn("quota", quota.cast("int"))
        .select(
            *GROUP_KEY,
            "member_id",
            "min_quota",
            "places_at_max",
            "owns_max",
            F.slice("claims", F.lit(1), F.col("quota")).alias("kept"),
            F.when(
                owned_count > F.col("quota"),
                F.slice("claims", F.col("quota") + 1, owned_count),
            ).alias("dropped"),
        )
    )


def _places(members: DataFrame) -> DataFrame:
    """Number the free places in the order in which they are filled.

    Members below ``min_quota`` get one partition each a lap, by member id. Then the extra ones go
    to those that had exactly ``min_quota``, by id, and then to the newly filled, by the lap in
    which they were filled and id.

    Returns:
        cluster_id, group_id, position bigint (0-based), member_id.
    """
    missing = (F.col("min_quota") - F.size("kept")).cast("int")
    order = java_string_order(F.col("member_id"))
    recipient = F.struct(order.alias("order"), missing.alias("missing"), "member_id")
    groups = (
        members.groupBy(*GROUP_KEY)
        .agg(
            F.sort_array(F.collect_list(F.when(missing >= 0, recipient))).alias("recipients"),
            F.sum(F.greatest(missing, F.lit(0))).alias("below"),
            (F.max("places_at_max") - F.count_if("owns_max")).cast("int").alias("extras"),
        )
        .withColumn("extras", F.greatest("extras", F.lit(0)))
        .where("below + extras > 0")
    )
    laps = F.coalesce(F.array_max(F.transform("recipients", lambda r: r["missing"])), F.lit(0))
    per_task = F.greatest(F.lit(1), div(F.lit(_PLACES_PER_TASK), F.size("recipients")).cast("int"))
    # The extra places are one lap more.
    starts = F.sequence(F.lit(1), laps + 1, per_task)
    chunks = groups.select("*", F.explode(starts).alias("first_lap"), laps.alias("laps"))
    lap_numbers = F.sequence(
        F.col("first_lap"), F.least(F.col("first_lap") + per_task - 1, F.col("laps") + 1)
    )
    filled = spread(chunks).select("*", F.explode(lap_numbers).alias("lap"))
    before = F.aggregate(
        "recipients",
        F.lit(0).cast("bigint"),
        lambda total, r: total + F.least(r["missing"], F.col("lap") - 1),
    )
    takers = F.when(
        F.col("lap") <= F.col("laps"),
        F.filter("recipients", lambda r: r["missing"] >= F.col("lap")),
    ).otherwise(F.slice(_by_lap_filled(), F.lit(1), F.col("extras")))
    # In two steps: beside a generator, an expression is evaluated for every row that comes out.
    return (
        filled.select(*GROUP_KEY, before.alias("first"), takers.alias("takers"))
        .select(*GROUP_KEY, "first", F.posexplode("takers").alias("offset", "taker"))
        .select(
            *GROUP_KEY,
            (F.col("first") + F.col("offset")).alias("position"),
            F.col("taker.member_id").alias("member_id"),
        )
    )


def _by_lap_filled() -> Column:
    """Sort recipients by the lap in which they reach the minimum, those that had it first."""
    by_lap = F.sort_array(
        F.transform("recipients", lambda r: F.struct(r["missing"], r["order"], r["member_id"]))
    )
    return F.transform(
        by_lap,
        lambda r: F.struct(
            r["order"].alias("order"),
            r["missing"].alias("missing"),
            r["member_id"].alias("member_id"),
        ),
    )


def _pool(topics: DataFrame, members: DataFrame, claims: Claims) -> DataFrame:
    """Number the free partitions by topic and partition number.

    Returns:
        cluster_id, group_id, position bigint (0-based), topic, partition int, is_moving boolean.
    """
    key = [*GROUP_KEY, "topic_number"]
    released = (
        members.select(*GROUP_KEY, F.explode("dropped").alias("claim"))
        .groupBy(*GROUP_KEY, topic_number_of(F.col("claim")).alias("topic_number"))
        .agg(F.collect_list(partition_of(F.col("claim"))).alias("released"))
    )
    none = F.array().cast("array<int>")
    all_partitions = F.sequence(F.lit(0), F.col("num_partitions") - 1)
    unclaimed = F.array_except(all_partitions, F.coalesce("claimed", none))
    both = F.concat(
        _free(unclaimed, F.lit(False)), _free(F.coalesce("released", none), F.lit(True))
    )
    free = (
        topics.join(claims.topics, on=key, how="left")
        .join(released, on=key, how="left")
        .select(*key, "topic", F.sort_array(both).alias("free"))
    )
    in_order = Window.partitionBy(*GROUP_KEY).orderBy("topic_number")
    before = F.sum("free_count").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    offsets = free.select(*key, F.size("free").alias("free_count")).select(
        *key, F.coalesce(before, F.lit(0)).alias("first")
    )
    pool = (
        spread(free.where(F.size("free") > 0).join(offsets, on=key, how="inner"), *key)
        .select(*key, "topic", "first", F.posexplode("free").alias("offset", "partition"))
        .select(
            *GROUP_KEY,
            (F.col("first") + F.col("offset")).alias("position"),
            "topic_number",
            "topic",
            "partition.partition",
            "partition.is_moving",
        )
    )
    if claims.disputed is None:
        return pool
    in_dispute = claims.disputed.withColumn("in_dispute", F.lit(True))
    return pool.join(in_dispute, on=[*key, "partition"], how="left").withColumn(
        "is_moving", F.col("is_moving") | F.coalesce("in_dispute", F.lit(False))
    )


def _free(partitions: Column, is_moving: Column) -> Column:
    return F.transform(
        partitions, lambda p: F.struct(p.alias("partition"), is_moving.alias("is_moving"))
    )
