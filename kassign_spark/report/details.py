"""Details of one group on the page: its members, moves and problems."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import conform, fill_cluster_id
from kassign_spark.display import printable, topic_ranges
from kassign_spark.expressions import is_group_of
from kassign_spark.measures.partition_ranges import with_ranges
from kassign_spark.plans.diff import diff
from kassign_spark.report.why import GroupName
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, OWNED

Order = list[Column | str]
Rows = list[dict[str, Any]]

MAX_MEMBERS = 100
MAX_MOVES = 60
MAX_TOPICS = 8
MAX_RANGES = 13
"""One more than ``topic_ranges`` shows, which so knows that there are more."""
MAX_PROBLEMS = 20


class Details(NamedTuple):
    """Details of the chosen groups, by group.

    Attributes:
        members: dicts of member_id, before, after, has_left; those farthest from the mean, by load.
        moves: dicts of change, from_member, to_member, partition_count, partitions (text); those of
            most partitions; pair_count: how many such pairs there are.
        problems: dicts of kind, member_id, topic, partition, detail.
    """

    members: dict[GroupName, Rows]
    moves: dict[GroupName, Rows]
    problems: dict[GroupName, Rows]


def collect_details(
    names: Sequence[GroupName],
    loads: DataFrame,
    final: DataFrame,
    owned: DataFrame | None,
    problems: DataFrame,
) -> Details:
    """Collect what is known of some groups; each list is cut at its ``MAX_...``.

    Args:
        names: cluster_id (empty where not given) and group_id.
        loads: as ``member_loads`` gives them.
        final: ``schemas.ASSIGNMENT``.
        owned: ``schemas.OWNED``.
        problems: cluster_id, group_id, kind, member_id, topic, partition, detail.
    """
    if not names:
        return Details({}, {}, {})
    is_shown = is_group_of(names)
    mean = F.avg("after").over(Window.partitionBy(*GROUP_KEY))
    far = loads.where(is_shown).withColumn("distance", F.abs(F.col("after") - mean))
    farthest: Order = [F.col("distance").desc(), F.col("after").desc(), "member_id"]
    members = _collect_groups(_first(far, farthest, MAX_MEMBERS))
    for rows in members.values():
        rows.sort(key=lambda row: (-row["after"], -(row["before"] or 0), row["member_id"]))
    moves: dict[GroupName, Rows] = {}
    if owned is not None:
        before = conform(owned, OWNED).where(is_shown)
        after = conform(final, ASSIGNMENT).where(is_shown)
        moves = _collect_groups(_moves(before, after))
    order: Order = ["kind", "member_id", "topic", "partition", "detail"]
    first = _first(problems.where(is_shown), order, MAX_PROBLEMS)
    return Details(members, moves, _collect_groups(first))


def _moves(before: DataFrame, after: DataFrame) -> DataFrame:
    """Gather the partitions that go from one member to another, or from or to nobody."""
    pair = [*GROUP_KEY, "change", "from_member", "to_member"]
    changes = fill_cluster_id(diff(before, after)).where(F.col("change") != "kept")
    of_topics = with_ranges(changes, [*pair, "topic"], limit=MAX_RANGES)
    topic = F.struct("topic", "partition_count", "ranges")
    pairs = of_topics.groupBy(*pair).agg(
        F.sum("partition_count").alias("partition_count"),
        F.count("*").alias("topic_count"),
        F.slice(F.sort_array(F.collect_list(topic)), 1, MAX_TOPICS).alias("topics"),
    )
    counted = pairs.withColumn("pair_count", F.count("*").over(Window.partitionBy(*GROUP_KEY)))
    order: Order = [F.col("partition_count").desc(), *pair[2:]]
    return _first(counted, order, MAX_MOVES)


def _first(frame: DataFrame, order: Order, count: int) -> DataFrame:
    """Keep the first rows of each group: they get the column ``place``."""
    in_order = Window.partitionBy(*GROUP_KEY).orderBy(*order)
    return frame.withColumn("place", F.row_number().over(in_order)).where(F.col("place") <= count)


def _collect_groups(frame: DataFrame) -> dict[GroupName, Rows]:
    """Collect what ``_first`` keeps: it is little, and sorted here rather than by Spark."""
    groups: dict[GroupName, Rows] = {}
    for row in sorted(rows_of(frame), key=lambda row: row["place"]):
        groups.setdefault((row["cluster_id"], row["group_id"]), []).append(row)
    return groups


def rows_of(frame: DataFrame) -> Rows:
    """Collect the rows of a frame as dicts."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def partitions_text(move: dict[str, Any]) -> str:
    """Return which partitions move: ``orders[0-3,7] payments[2]``."""
    text = "  ".join(
        topic_ranges({**topic, "ranges": [[r["first"], r["last"]] for r in topic["ranges"]]})
        for topic in move["topics"]
    )
    hidden = move["topic_count"] - len(move["topics"])
    return text + (f"  ... {hidden} more topics" if hidden else "")


def to_page_json(name: GroupName, details: Details, member_count: int) -> dict[str, Any]:
    """Return one group's details for the page: printable names, members by their place."""
    members = details.members.get(name, [])
    moves = details.moves.get(name, [])
    present_count = sum(not row["has_left"] for row in members)
    return {
        "members": [
            [printable(row["member_id"]), row["before"], row["after"], int(row["has_left"])]
            for row in members
        ],
        "more_members": max(0, member_count - present_count),
        "moves": [
            [
                row["change"],
                *(row[end] and printable(row[end]) for end in ("from_member", "to_member")),
                row["partition_count"],
                partitions_text(row),
            ]
            for row in moves
        ],
        "more_moves": moves[0]["pair_count"] - len(moves) if moves else 0,
        "problems": [
            [row["kind"], printable(" · ".join(_place(row))), printable(row["detail"] or "")]
            for row in details.problems.get(name, [])
        ],
    }


def _place(problem: dict[str, Any]) -> list[str]:
    topic = problem["topic"] or ""
    if problem["partition"] is not None:
        topic += f"-{problem['partition']}"
    return [text for text in (problem["member_id"], topic) if text]
