"""The page's part on what was: rebalances a day and why, and the groups that had the most."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.display import printable
from kassign_spark.history.rebalance_columns import FIRST, REASONS, REBALANCES, STORMS
from kassign_spark.report.charts import WIDTH, colours, counts, draw_svg, row_size, short_name
from kassign_spark.report.details import Rows
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import has_table, read_table

MAX_LISTED = 200
MAX_TIMELINES = 12
MAX_POINTS = 300
MAX_DAYS = 92
_DAY = 86_400
_AT_ALL = ("group_id", "at", "generation", "reason", "moved", "longest_pause", "offset")
_COLOURS = {
    "member_joined": "#2f6fde",
    "member_left": "#8a97a6",
    "member_restarted": "#7b5cd6",
    "member_crashed": "#d64545",
    "member_too_slow": "#e58a1f",
    "members_changed": "#56a3c9",
    "subscription_changed": "#b8549c",
    "assignor_changed": "#8c6d46",
    "partitions_added": "#1f9d76",
    "handover": "#9fc23c",
    "protocol_changed": "#3c4a5c",
    "gap": "#c9b458",
    "unknown": "#c3c9d1",
}
"""Colours of the reasons, except the first of all, which no plot shows."""


class Past(NamedTuple):
    """The content of the part.

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
    history = conform(read_table(spark, folder, REBALANCES), REBALANCES)
    storms = None
    if has_table(spark, folder, STORMS.name):
        storms = conform(read_table(spark, folder, STORMS), STORMS)
    history = history.where(F.col("reason") != FIRST).select(*_AT_ALL)
    kept, totals = materialize(history, {"all": F.count(F.lit(1)), "last": F.max(_day("at"))})
    groups, counts = materialize(_measure_groups(kept, storms), {"groups": F.count(F.lit(1))})
    worst = groups.orderBy(F.col("rebalances").desc(), "group_id").limit(MAX_LISTED).collect()
    names = [row.group_id for row in worst[:MAX_TIMELINES]]
    return Past(
        rebalance_count=totals["all"],
        group_count=counts["groups"],
        storm_count=None if storms is None else storms.count(),
        days=_days(kept, totals["last"]),
        groups=[
            {**row.asDict(), "name": printable(row.group_id), "mostly": _meaning(row.mostly)}
            for row in worst
        ],
        timelines=_timelines(kept, names),
    )


def _day(column: str) -> Any:
    return F.floor(F.unix_seconds(column) / _DAY)


def _measure_groups(history: DataFrame, storms: DataFrame | None) -> DataFrame:
    reasons = history.groupBy("group_id", "reason").agg(
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


def _days(history: DataFrame, last: int | None) -> Rows:
    if last is None:
        return []
    shown = history.where(_day("at") > last - MAX_DAYS)
    totals = shown.groupBy(_day("at").alias("day"), "reason").count()
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        {**row.asDict(), "day": f"{begin + timedelta(days=row.day):%Y-%m-%d}"}
        for row in totals.orderBy("day", "reason").collect()
    ]


def _timelines(history: DataFrame, names: list[str]) -> Rows:
    points: dict[str, Rows] = {name: [] for name in names}
    if not names:
        return []
    latest = Window.partitionBy("group_id").orderBy(F.col("at").desc(), F.col("offset").desc())
    shown = (
        history.where(F.col("group_id").isin(names))
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


def charts_of_past(past: Past) -> dict[str, str]:
    """Draw days and timelines as SVG, by name; a drawing without data is left out."""
    return draw_svg(past, days=_drawn_days, timelines=_drawn_timelines)


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _meaning(reason: str) -> str:
    return REASONS.get(reason, reason)


def _reason_colours(altair: Any, rows: Rows) -> Any:
    used = {row["reason"] for row in rows}
    shown = {
        _words(reason): colour for reason, colour in _COLOURS.items() if _words(reason) in used
    }
    return colours(altair, "reason:N", shown, legend=altair.Legend(columns=3))


def _drawn_days(altair: Any, past: Past) -> Any:
    if not past.days:
        return None
    rows = [
        {
            "day": row["day"],
            "reason": _words(row["reason"]),
            "count": row["count"],
            "d": f"{row['day']}: {row['count']:,} times {_meaning(row['reason'])}",
        }
        for row in past.days
    ]
    plot = altair.Chart(altair.Data(values=rows)).mark_bar()
    return plot.encode(
        x=altair.X("day:O", title="day (UTC)", axis=altair.Axis(labelOverlap=True)),
        y=altair.Y("count:Q", title="rebalances", axis=counts(altair)),
        color=_reason_colours(altair, rows),
        description="d:N",
    ).properties(width=WIDTH, height=180)


def _drawn_timelines(altair: Any, past: Past) -> Any:
    rows = [
        {
            "group": f"{place + 1}. {short_name(line['name'])}",
            "at": point["at"],
            "reason": _words(point["reason"]),
            "moved": point["moved"],
            "d": _point_label(line["name"], point),
        }
        for place, line in enumerate(past.timelines)
        for point in line["points"]
    ]
    if not rows:
        return None
    plot = altair.Chart(altair.Data(values=rows)).mark_circle(opacity=0.8)
    return plot.encode(
        x=altair.X("at:T", title="UTC", scale=altair.Scale(type="utc")),
        y=altair.Y("group:N", sort=None, title=None),
        size=altair.Size("moved:Q", legend=None, scale=altair.Scale(range=[25, 220])),
        color=_reason_colours(altair, rows),
        description="d:N",
    ).properties(**row_size(past.timelines))


def _point_label(name: str, point: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(point["at"] / 1000, UTC)
    pause = (
        "" if point["pause"] is None else f", a partition was not read for {point['pause']:.1f} s"
    )
    return (
        f"{name}, {at:%Y-%m-%d %H:%M:%S}, generation {point['generation']}: "
        f"{_meaning(point['reason'])}; {point['moved']:,} partitions moved{pause}"
    )
