"""The page's part on loads by weight: before and after the plan, and what each move would give."""

from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.display import group_name, printable
from kassign_spark.groups.named_groups import is_group_of
from kassign_spark.measures.balance import balance
from kassign_spark.plans.by_weight import tradeoff
from kassign_spark.report.plan import Plan
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY

Rows = list[dict[str, Any]]

MAX_LISTED = 200
MAX_CURVES = 6


class Weighing(NamedTuple):
    """What partitions weigh; see ``balance``."""

    weights: DataFrame
    missing_weight: float | None
    base_weight: float


class FoundByWeight(NamedTuple):
    """What the part is made of.

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


def collect_by_weight(plan: Plan, weighing: Weighing) -> FoundByWeight:
    """Weigh a plan and what was before it; runs jobs."""
    members, _, owned = plan.snapshot
    said = weighing._asdict()
    after = fill_cluster_id(balance(plan.assignment, members, owned, **said)).selectExpr(
        *(*GROUP_KEY, "max_load as max_after", "mean_load as fair", "load_skew as skew_after"),
        "moved_weight",
    )
    known = after.where("skew_after IS NOT NULL")
    if owned is None:
        nothing = F.lit(None).cast("double")
        both = known.withColumns({"max_before": nothing, "skew_before": nothing})
    else:
        # What somebody owned who has left is no load of anybody; partitions may be new: before and
        # after are told by one fair load, that of the plan.
        before = fill_cluster_id(balance(owned, members, **said)).selectExpr(
            *GROUP_KEY, "max_load as max_before"
        )
        joined = known.join(before, on=list(GROUP_KEY), how="left")
        both = joined.withColumn("skew_before", F.expr("max_before / fair"))
    held, counted = hold(both, {"groups": F.count(F.lit(1))})
    groups = _first(held, F.col("skew_after"), MAX_LISTED)
    chosen = _first(held, F.coalesce("skew_before", "skew_after"), MAX_CURVES)
    curves = _curves(plan, weighing, [(row["cluster_id"], row["group_id"]) for row in chosen])
    return FoundByWeight(
        counted["groups"], [{**row, "name": printable(group_name(row))} for row in groups], curves
    )


def _first(frame: DataFrame, worst: Column, limit: int) -> Rows:
    ordered = frame.orderBy(worst.desc(), *GROUP_KEY).limit(limit)
    return [row.asDict() for row in ordered.collect()]


def _curves(plan: Plan, weighing: Weighing, names: list[tuple[str, str]]) -> Rows:
    if not names:
        return []

    def chosen(frame: DataFrame) -> DataFrame:
        kept = fill_cluster_id(frame).where(is_group_of(names))
        return restore_cluster_id(kept, has_cluster_id(frame))

    members, topics, owned = plan.snapshot
    known = None if owned is None else chosen(owned)
    found = tradeoff(chosen(members), topics, owned=known, **weighing._asdict())
    points: dict[tuple[str, str], Rows] = {name: [] for name in names}
    for row in fill_cluster_id(found).orderBy("moves").collect():
        floor = row.bound * row.skew / row.max_load if row.max_load else 0.0
        points[row.cluster_id, row.group_id].append(
            {"moves": row.moves, "skew": row.skew, "floor": floor, "is_knee": row.is_knee}
        )
    return [
        {"name": printable(group_name(dict(zip(GROUP_KEY, name, strict=True)))), "points": of}
        for name, of in points.items()
        if of
    ]
