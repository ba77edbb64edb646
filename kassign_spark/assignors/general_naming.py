"""From counts to partitions: who keeps which, and who gets which of the others."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kassign_spark.eligibility.classes import CLASS_KEY, EDGE_KEY, Classes
from kassign_spark.schemas import GROUP_KEY

_ASSIGNED = (*GROUP_KEY, "member_id", "topic", "partition")
_TOPIC_KEY = (*GROUP_KEY, "topic")


def name_partitions(solved: DataFrame, classes: Classes, claims: DataFrame | None) -> DataFrame:
    """Name as many partitions for each member and class as it is to have; runs no job.

    Of what it owns, a member keeps the lowest partitions, spread over topics as they are. The
    others go round the members that lack some, so that nobody gets a topic for itself.

    Args:
        solved: EDGE_KEY, owned bigint, assigned bigint.
        classes: of the same groups.
        claims: EDGE_KEY, member_id string, topic string, partition int: what is owned.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    everything = F.sequence(F.lit(0), F.col("num_partitions") - 1)
    if claims is None:
        free = classes.topics.select(*CLASS_KEY, "topic", everything.alias("free"))
        return _dealt(solved, free, classes)
    kept = _kept(solved, claims)
    taken = kept.groupBy(*_TOPIC_KEY).agg(F.collect_set("partition").alias("taken"))
    not_taken = F.array_except(everything, F.coalesce("taken", F.array().cast("array<int>")))
    free = classes.topics.join(taken, on=list(_TOPIC_KEY), how="left").select(
        *CLASS_KEY, "topic", not_taken.alias("free")
    )
    return kept.unionByName(_dealt(solved, free, classes))


def _kept(solved: DataFrame, claims: DataFrame) -> DataFrame:
    """What stays with its owner."""
    # Numbers first: rows are sorted by the first column as long as it tells them apart.
    lowest = Window.partitionBy("member", "class", *GROUP_KEY).orderBy("partition", "topic")
    return (
        claims.join(solved.where("assigned > 0"), on=list(EDGE_KEY), how="inner")
        .withColumn("place", F.row_number().over(lowest))
        .where("place <= assigned")
        .select(*_ASSIGNED)
    )


def _dealt(solved: DataFrame, free: DataFrame, classes: Classes) -> DataFrame:
    """What goes to those that lack some: partitions and places of a class meet by number."""
    in_class = Window.partitionBy(*CLASS_KEY)
    takers = (
        solved.select(*EDGE_KEY, (F.col("assigned") - F.col("owned")).alias("lacks"))
        .where("lacks > 0")
        .withColumns(
            {
                "start": _sum_before(F.col("lacks"), in_class.orderBy("member")),
                "taker_count": F.count("*").over(in_class),
            }
        )
    )
    places = takers.join(classes.members, on=[*GROUP_KEY, "member"], how="inner").select(
        *CLASS_KEY,
        "member_id",
        F.explode(F.sequence("start", F.col("start") + F.col("lacks") - 1)).alias("place"),
    )
    size = F.size("free").cast("bigint")
    partitions = (
        free.where(size > 0)
        .withColumns(
            {
                "start": _sum_before(size, in_class.orderBy("topic")),
                "free_count": F.sum(size).over(in_class),
            }
        )
        .join(takers.select(*CLASS_KEY, "taker_count").distinct(), on=list(CLASS_KEY), how="inner")
        .select(
            *CLASS_KEY,
            "topic",
            "start",
            "free_count",
            "taker_count",
            F.posexplode("free").alias("place_in_topic", "partition"),
        )
        .select(*CLASS_KEY, "topic", "partition", _place_in_turn().alias("place"))
    )
    return partitions.join(places, on=[*CLASS_KEY, "place"], how="inner").select(*_ASSIGNED)


def _sum_before(count: Column, window: WindowSpec) -> Column:
    before = F.sum(count).over(window.rowsBetween(Window.unboundedPreceding, -1))
    return F.coalesce(before, F.lit(0).cast("bigint"))


def _place_in_turn() -> Column:
    """Deal free partitions out in turn, to places that lie one taker's after another's.

    Laid out in rows as long as there are takers, partitions are numbered down the columns.
    """
    rank = F.col("start") + F.col("place_in_topic")
    takers, count = F.col("taker_count"), F.col("free_count")
    column = rank % takers
    full_rows = F.call_function("div", count, takers)
    row = F.call_function("div", rank, takers)
    return column * full_rows + F.least(column, count % takers) + row
