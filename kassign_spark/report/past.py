"""The page's part on what was: rebalances a day and why, and the groups that had the most."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.display import printable
from kassign_spark.history.columns import FIRST, REASONS, REBALANCES, STORMS
from kassign_spark.rounds import hold
from kassign_spark.tables.snapshots import has_table, read_table

Rows = list[dict[str, Any]]

MAX_LISTED = 200
MAX_TIMELINES = 12
MAX_POINTS = 300
MAX_DAYS = 92
_DAY = 86_400
_AT_ALL = ("group_id", "at", "generation", "reason", "moved", "longest_pause", "offset")


class Past(NamedTuple):
    """What the part is made of.

    Attributes:
        rebalance_count: but for the first generations that the log has of groups.
        group_count: groups that rebalanced.
        storm_count: of the table storms; None where the folder has none.
        days: dicts of day (as 2026-11-22, UTC), reason, count: the last ``MAX_DAYS`` days of the
            log, in order.
        groups: dicts of name, rebalances, moved, longest_pause, mostly (a reason in words), storms;
            those with the most rebalances first, at most ``MAX_LISTED``.
        timelines: of the first ``MAX_TIMELINES`` of them dicts of name, points: dicts of at
            (milliseconds since 1970), generation, reason, moved, pause; the last ``MAX_POINTS``.
    """

    rebalance_count: int
    group_count: int
    storm_count: int | None
    days: Rows
    groups: Rows
    timelines: Rows


def collect_past(spark: SparkSession, folder: str) -> Past:
    """Read what the command `history` wrote; runs jobs."""
    told = conform(read_table(spark, folder, REBALANCES), REBALANCES)
    storms = None
    if has_table(spark, folder, STORMS.name):
        storms = conform(read_table(spark, folder, STORMS), STORMS)
    told = told.where(F.col("reason") != FIRST).select(*_AT_ALL)
    kept, counted = hold(told, {"all": F.count(F.lit(1)), "last": F.max(_day("at"))})
    groups, counts = hold(_by_group(kept, storms), {"groups": F.count(F.lit(1))})
    worst = groups.orderBy(F.col("rebalances").desc(), "group_id").limit(MAX_LISTED).collect()
    names = [row.group_id for row in worst[:MAX_TIMELINES]]
    return Past(
        rebalance_count=counted["all"],
        group_count=counts["groups"],
        storm_count=None if storms is None else storms.count(),
        days=_days(kept, counted["last"]),
        groups=[
            {
                **row.asDict(),
                "name": printable(row.group_id),
                "mostly": REASONS.get(row.mostly, row.mostly),
            }
            for row in worst
        ],
        timelines=_timelines(kept, names),
    )


def _day(column: str) -> Any:
    return F.floor(F.unix_seconds(column) / _DAY)


def _by_group(told: DataFrame, storms: DataFrame | None) -> DataFrame:
    reasons = told.groupBy("group_id", "reason").agg(
        F.count(F.lit(1)).alias("count"),
        F.sum("moved").alias("moved"),
        F.max("longest_pause").alias("longest_pause"),
    )
    most = F.min(F.struct((-F.col("count")).alias("fewest"), "reason"))
    groups = reasons.groupBy("group_id").agg(
        F.sum("count").alias("rebalances"),
        F.sum("moved").alias("moved"),
        F.max("longest_pause").alias("longest_pause"),
        most["reason"].alias("mostly"),
    )
    if storms is None:
        return groups.withColumn("storms", F.lit(None).cast("bigint"))
    of_group = storms.groupBy("group_id").agg(F.count(F.lit(1)).alias("storms"))
    return groups.join(of_group, on="group_id", how="left").fillna(0, subset=["storms"])


def _days(told: DataFrame, last: int | None) -> Rows:
    if last is None:
        return []
    shown = told.where(_day("at") > last - MAX_DAYS)
    counted = shown.groupBy(_day("at").alias("day"), "reason").count()
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        {**row.asDict(), "day": f"{begin + timedelta(days=row.day):%Y-%m-%d}"}
        for row in counted.orderBy("day", "reason").collect()
    ]


def _timelines(told: DataFrame, names: list[str]) -> Rows:
    points: dict[str, Rows] = {name: [] for name in names}
    if not names:
        return []
    latest = Window.partitionBy("group_id").orderBy(F.col("at").desc(), F.col("offset").desc())
    shown = (
        told.where(F.col("group_id").isin(names))
        .withColumn("place", F.row_number().over(latest))
        .where(F.col("place") <= MAX_POINTS)
        .orderBy("group_id", F.col("place").desc())
        .selectExpr(
            *("group_id", "unix_millis(at) as at", "generation", "reason", "moved"),
            "longest_pause as pause",
        )
    )
    for row in shown.collect():
        points[row.group_id].append(row.asDict())
    return [{"name": printable(name), "points": points[name]} for name in names]
