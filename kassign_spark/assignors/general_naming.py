"""From counts to partitions: who keeps which, and who gets which of the others."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kassign_spark.groups.large_classes import CLASS_KEY, EDGE_KEY, Classes
from kassign_spark.groups.subscribers import spread
from kassign_spark.schemas import GROUP_KEY

_TOPIC_KEY = (*CLASS_KEY, "topic")
_ASSIGNED = (*GROUP_KEY, "member_id", "topic", "partition")


def name_partitions(
    solved: DataFrame, classes: Classes, claims: DataFrame | None, tasks: int
) -> DataFrame:
    """Name as many partitions for each member and class as it is to have; runs no job.

    Of what it owns, a member keeps the lowest partitions, spread over topics as they are. The
    others go round the members that lack some, so that nobody gets a topic for itself.

    Args:
        solved: EDGE_KEY, owned bigint, assigned bigint.
        classes: of the same groups.
        claims: EDGE_KEY, member_id string, topic string, partition int: what is owned.
        tasks: how many there are to be.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    everything = F.expr("sequence(0, num_partitions - 1)")
    if "partitions" in classes.topics.columns:
        everything = F.col("partitions")
    if claims is None:
        free = classes.topics.select(*_TOPIC_KEY, everything.alias("free"))
        return _dealt(solved, free, classes, tasks)
    kept = _kept(solved, claims)
    taken = kept.groupBy(*_TOPIC_KEY).agg(F.collect_set("partition").alias("taken"))
    not_taken = F.array_except(everything, F.coalesce("taken", F.array().cast("array<int>")))
    free = classes.topics.join(taken, on=list(_TOPIC_KEY), how="left").select(
        *_TOPIC_KEY, not_taken.alias("free")
    )
    return kept.select(*_ASSIGNED).unionByName(_dealt(solved, free, classes, tasks))


def _kept(solved: DataFrame, claims: DataFrame) -> DataFrame:
    """Select the partitions that stay with their owner."""
    # Numbers first: rows are sorted by the first column as long as it differs.
    owner = Window.partitionBy("member", "class", *GROUP_KEY)
    return (
        claims.join(solved.where("assigned > 0"), on=list(EDGE_KEY), how="inner")
        .withColumn("place", F.row_number().over(owner.orderBy("partition", "topic")))
        .where("place <= assigned")
    )


def _dealt(solved: DataFrame, free: DataFrame, classes: Classes, tasks: int) -> DataFrame:
    """Deal each class's free partitions, topic by topic, to those that lack some.

    They are dealt in turn, one to each that still lacks any. So between two sizes of what members
    lack it is always the same members' turn, and who gets the partition of some rank is arithmetic
    on the rank: no join of partitions with places.
    """
    lacking = solved.selectExpr(*EDGE_KEY, "assigned - owned as lacks").where("lacks > 0")
    # The member that lacks most comes first: the next in turn are always a prefix of the list.
    in_turn = F.sort_array(F.collect_list(F.struct(-F.col("lacks"), "member", "member_id")))
    takers = (
        lacking.join(classes.members, on=[*GROUP_KEY, "member"], how="inner")
        .groupBy(*CLASS_KEY)
        .agg(in_turn["member_id"].alias("takers"))
    )
    size = F.size("free").cast("bigint")
    ranked = (
        free.where(size > 0)
        .withColumn("start", _sum_before(size, _class_window().orderBy("topic")))
        .withColumn("end", F.col("start") + size)
    )
    # A piece of a topic's free partitions goes to the same takers. The optimizer may cut it before
    # it drops the pieces that are none: so no length may be negative.
    first = "greatest(start, first_turn)"
    length = f"greatest(least(end, last_turn) - {first}, 0)"
    pieces = (
        ranked.join(_turns(lacking), on=list(CLASS_KEY), how="inner")
        .where("start < last_turn and first_turn < end")
        .join(takers, on=list(CLASS_KEY), how="inner")
        .selectExpr(
            *_TOPIC_KEY,
            "takers",
            "taker_count",
            f"({first} - first_turn) % taker_count as whose_turn",
            f"slice(free, int({first} - start + 1), int({length})) as piece",
        )
    )
    taker = "takers[int((whose_turn + place) % taker_count)] as member_id"
    return (
        spread(pieces, tasks)
        .select("*", F.posexplode("piece").alias("place", "partition"))
        .selectExpr(*GROUP_KEY, taker, "topic", "partition")
    )


def _turns(lacking: DataFrame) -> DataFrame:
    """Cut the ranks of a class's free partitions where the number of takers changes.

    Returns:
        CLASS_KEY, taker_count bigint, first_turn bigint, last_turn bigint (exclusive).
    """
    by_lacks = _class_window().orderBy("lacks")
    to_the_most = by_lacks.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    rounds = F.col("lacks") - F.lag("lacks", 1, 0).over(by_lacks)
    return (
        lacking.groupBy(*CLASS_KEY, "lacks")
        .agg(F.count("*").alias("members"))
        .withColumns({"taker_count": F.sum("members").over(to_the_most), "rounds": rounds})
        .withColumn("turns", F.col("rounds") * F.col("taker_count"))
        .withColumn("first_turn", _sum_before(F.col("turns"), by_lacks))
        .selectExpr(*CLASS_KEY, "taker_count", "first_turn", "first_turn + turns as last_turn")
    )


def _class_window() -> WindowSpec:
    return Window.partitionBy(*CLASS_KEY)


def _sum_before(count: Column, window: WindowSpec) -> Column:
    before = F.sum(count).over(window.rowsBetween(Window.unboundedPreceding, -1))
    return F.coalesce(before, F.lit(0).cast("bigint"))
