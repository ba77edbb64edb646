"""The page's part on loads by weight: before and after the plan, and what each move would give."""

from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.display import group_name
from kassign_spark.expressions import is_group_of
from kassign_spark.measures.balance import balance
from kassign_spark.plans.by_weight import tradeoff
from kassign_spark.report.charts import (
    AFTER,
    BEFORE,
    HOT,
    WORST,
    counts,
    draw_svg,
    row_size,
    short_name,
    when_colours,
)
from kassign_spark.report.details import Rows, rows_of
from kassign_spark.report.plan import Plan
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize

MAX_LISTED = 200
MAX_CURVES = 6


class Weighing(NamedTuple):
    """The options for weights; see ``balance``."""

    weights: DataFrame
    missing_weight: float | None
    base_weight: float


class WeightSection(NamedTuple):
    """The content of the part.

    Attributes:
        group_count: groups that have weight.
        groups: dicts of name, max_before, max_after, fair, skew_before, skew_after, moved_weight;
            the most uneven after the plan first, at most ``MAX_LISTED``. What was before is None
            where it is not known.
        curves: of the groups that were most uneven before, at most ``MAX_CURVES``, dicts of name,
            points: dicts of moves, skew, floor (no plan is lower), is_knee, by moves.
    """

    group_count: int
    groups: Rows
    curves: Rows


def collect_by_weight(plan: Plan, weighing: Weighing) -> WeightSection:
    """Weigh a plan and what was before it; runs jobs."""
    members, _, owned = plan.snapshot
    options = weighing._asdict()
    after = fill_cluster_id(balance(plan.assignment, members, owned, **options)).selectExpr(
        *(*GROUP_KEY, "max_load as max_after", "mean_load as fair", "load_skew as skew_after"),
        "moved_weight",
    )
    skewed = after.where("skew_after IS NOT NULL")
    if owned is None:
        nothing = F.lit(None).cast("double")
        both = skewed.withColumns({"max_before": nothing, "skew_before": nothing})
    else:
        # What somebody owned who has left is no load of anybody; partitions may be new: before and
        # after are relative to one fair load, the plan's.
        before = fill_cluster_id(balance(owned, members, **options)).selectExpr(
            *GROUP_KEY, "max_load as max_before"
        )
        loads = skewed.join(before, on=list(GROUP_KEY), how="left")
        both = loads.withColumn("skew_before", F.expr("max_before / fair"))
    groups_by_skew, totals = materialize(both, {"groups": F.count(F.lit(1))})
    groups = _first(groups_by_skew, F.col("skew_after"), MAX_LISTED)
    chosen = _first(groups_by_skew, F.coalesce("skew_before", "skew_after"), MAX_CURVES)
    curves = _curves(plan, weighing, [(row["cluster_id"], row["group_id"]) for row in chosen])
    return WeightSection(
        totals["groups"], [{**row, "name": group_name(row)} for row in groups], curves
    )


def _first(frame: DataFrame, worst: Column, limit: int) -> Rows:
    return rows_of(frame.orderBy(worst.desc(), *GROUP_KEY).limit(limit))


def _curves(plan: Plan, weighing: Weighing, names: list[tuple[str, str]]) -> Rows:
    if not names:
        return []

    def chosen(frame: DataFrame) -> DataFrame:
        kept = fill_cluster_id(frame).where(is_group_of(names))
        return restore_cluster_id(kept, has_cluster_id(frame))

    members, topics, owned = plan.snapshot
    owned_of_chosen = None if owned is None else chosen(owned)
    traded = tradeoff(chosen(members), topics, owned=owned_of_chosen, **weighing._asdict())
    points: dict[tuple[str, str], Rows] = {name: [] for name in names}
    for row in fill_cluster_id(traded).orderBy("moves").collect():
        floor = row.bound * row.skew / row.max_load if row.max_load else 0.0
        points[row.cluster_id, row.group_id].append(
            {"moves": row.moves, "skew": row.skew, "floor": floor, "is_knee": row.is_knee}
        )
    return [
        {"name": group_name(dict(zip(GROUP_KEY, name, strict=True))), "points": curve}
        for name, curve in points.items()
        if curve
    ]


def charts_by_weight(contents: WeightSection) -> dict[str, str]:
    """Draw loads and curves as SVG, by name; a drawing without data is left out."""
    return draw_svg(contents, loads=_drawn_loads, curves=_drawn_curves)


def _drawn_loads(altair: Any, contents: WeightSection) -> Any:
    rows = [
        {
            "group": f"{place + 1}. {short_name(group['name'])}",
            "when": moment,
            "skew": round(group[f"skew_{moment}"], 4),
            "d": f"{group['name']}, {moment}: the fullest member has {group[f'skew_{moment}']:.2f} "
            "times the fair load",
        }
        for place, group in enumerate(contents.groups[:WORST])
        for moment in ("before", "after")
        if group[f"skew_{moment}"] is not None
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


def _drawn_curves(altair: Any, contents: WeightSection) -> Any:
    """Draw each curve: load by number of moves, in steps; its floor is a dashed line."""
    if not contents.curves:
        return None
    drawn = []
    for curve in contents.curves:
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
        label = f"{curve['name']}: no plan is below {floor:.2f} times the fair load"
        floors = altair.Chart(altair.Data(values=[{"floor": round(floor, 4), "d": label}]))
        bound = floors.mark_rule(color=HOT, strokeDash=[4, 3]).encode(
            y=altair.Y("floor:Q"), description="d:N"
        )
        title = altair.TitleParams(short_name(curve["name"]), fontSize=12, color="currentColor")
        drawn.append(altair.layer(bound, line, knee).properties(width=220, height=140, title=title))
    return altair.concat(*drawn, columns=3)
