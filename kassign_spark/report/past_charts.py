"""Plots of what was: rebalances a day by their reason, and a line of time for each group."""

from datetime import UTC, datetime
from typing import Any

from kassign_spark.history.columns import REASONS
from kassign_spark.report.charts import WIDTH, as_svg, counts, row_size, short_name
from kassign_spark.report.past import Past

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
"""Of each reason but the first of all, which no plot shows."""


def charts_of_past(past: Past) -> dict[str, str]:
    """SVG by name, days and timelines; one of which nothing is known is left out."""
    return as_svg(past, days=_days, timelines=_timelines)


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _meaning(reason: str) -> str:
    return REASONS.get(reason, reason)


def _colour(altair: Any, reasons: set[str]) -> Any:
    shown = [reason for reason in _COLOURS if reason in reasons]
    scale = altair.Scale(
        domain=[_words(reason) for reason in shown], range=[_COLOURS[reason] for reason in shown]
    )
    return altair.Color("reason:N", scale=scale, legend=altair.Legend(columns=3))


def _days(altair: Any, past: Past) -> Any:
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
        color=_colour(altair, {row["reason"] for row in past.days}),
        description="d:N",
    ).properties(width=WIDTH, height=180)


def _timelines(altair: Any, past: Past) -> Any:
    reasons = {point["reason"] for line in past.timelines for point in line["points"]}
    rows = [
        {
            "group": f"{place + 1}. {short_name(line['name'])}",
            "at": point["at"],
            "reason": _words(point["reason"]),
            "moved": point["moved"],
            "d": _said(line["name"], point),
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
        color=_colour(altair, reasons),
        description="d:N",
    ).properties(**row_size(past.timelines))


def _said(name: str, point: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(point["at"] / 1000, UTC)
    pause = (
        "" if point["pause"] is None else f", a partition was not read for {point['pause']:.1f} s"
    )
    return (
        f"{name}, {at:%Y-%m-%d %H:%M:%S}, generation {point['generation']}: "
        f"{_meaning(point['reason'])}; {point['moved']:,} partitions moved{pause}"
    )
