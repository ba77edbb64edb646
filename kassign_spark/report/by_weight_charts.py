"""Plots of loads by weight: before and after, and the curves as steps down to their floors."""

from typing import Any

from kassign_spark.report.by_weight import FoundByWeight
from kassign_spark.report.charts import (
    AFTER,
    BEFORE,
    HOT,
    WORST,
    as_svg,
    counts,
    row_size,
    short_name,
    when_colours,
)


def charts_by_weight(found: FoundByWeight) -> dict[str, str]:
    """SVG by name, loads and curves; one of which nothing is known is left out."""
    return as_svg(found, loads=_loads, curves=_curves)


def _loads(altair: Any, found: FoundByWeight) -> Any:
    rows = [
        {
            "group": f"{place + 1}. {short_name(group['name'])}",
            "when": when,
            "skew": round(group[f"skew_{when}"], 4),
            "d": f"{group['name']}, {when}: the fullest member has {group[f'skew_{when}']:.2f} "
            "times the fair load",
        }
        for place, group in enumerate(found.groups[:WORST])
        for when in ("before", "after")
        if group[f"skew_{when}"] is not None
    ]
    if not rows:
        return None
    circles = altair.Chart(altair.Data(values=rows)).mark_circle(size=60, opacity=1)
    points = circles.encode(
        y=altair.Y("group:N", sort=None, title=None),
        x=altair.X("skew:Q", title="load of the fullest member, by the fair load"),
        color=when_colours(altair),
        description="d:N",
    )
    fair = altair.Chart(altair.Data(values=[{"one": 1}])).mark_rule(color=BEFORE, strokeDash=[3, 3])
    size = row_size({row["group"] for row in rows})
    return altair.layer(fair.encode(x="one:Q"), points).properties(**size)


def _curves(altair: Any, found: FoundByWeight) -> Any:
    """Draw each curve: so many moves, and from there on that load; its floor is a dashed line."""
    if not found.curves:
        return None
    drawn = []
    for curve in found.curves:
        points = curve["points"]
        floor = points[-1]["floor"]
        rows = [
            {
                "moves": point["moves"],
                "skew": round(point["skew"], 4),
                "d": f"{curve['name']}: {point['moves']} moves, {point['skew']:.2f} times the fair "
                f"load{', the knee' if point['is_knee'] else ''}",
                "is_knee": point["is_knee"],
            }
            for point in points
        ]
        # The last step goes on, so that a curve of one point is seen.
        end = {**rows[-1], "moves": max(rows[-1]["moves"] * 1.05, rows[-1]["moves"] + 1)}
        x = altair.X("moves:Q", title="moves", axis=counts(altair))
        y = altair.Y("skew:Q", title="load by fair load", scale=altair.Scale(zero=False))
        steps = altair.Chart(altair.Data(values=[*rows, end])).encode(x=x, y=y)
        line = steps.mark_line(interpolate="step-after", color=AFTER, strokeWidth=2)
        size = altair.condition(altair.datum.is_knee, altair.value(110), altair.value(28))
        circles = altair.Chart(altair.Data(values=rows)).mark_circle(color=AFTER, opacity=1)
        knee = circles.encode(x=x, y=y, size=size, description="d:N")
        said = f"{curve['name']}: no plan is below {floor:.2f} times the fair load"
        floors = altair.Chart(altair.Data(values=[{"floor": round(floor, 4), "d": said}]))
        bound = floors.mark_rule(color=HOT, strokeDash=[4, 3]).encode(
            y=altair.Y("floor:Q"), description="d:N"
        )
        title = altair.TitleParams(short_name(curve["name"]), fontSize=12, color="currentColor")
        drawn.append(altair.layer(bound, line, knee).properties(width=220, height=140, title=title))
    return altair.concat(*drawn, columns=3)
