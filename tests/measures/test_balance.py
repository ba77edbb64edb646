"""Balance, many cases in one frame, a group each."""

from typing import Any

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.measures.balance import balance
from kassign_spark.measures.partition_ranges import holdings
from tests import builders
from tests.builders import owner_rows

_COLUMNS = (
    "group_id string, member_count int, partition_count bigint, min_assigned bigint, "
    "max_assigned bigint, mean_assigned double, stddev_assigned double, sum_of_squares bigint, "
    "kept_count bigint, moved_count bigint, subscription_type string, cross_rack_count bigint, "
    "is_balance_optimal boolean, is_optimal boolean, least_moves bigint, "
    "least_sum_of_squares bigint"
)

# group: members (name -> topics), assignment, owned, the row
_CASES: dict[str, tuple[dict[str, list[str]], str, str, tuple[Any, ...]]] = {
    "even": (
        {"C0": ["t0"], "C1": ["t0"]},
        "C0: t0p0 t0p1; C1: t0p2 t0p3",
        "C0: t0p0 t0p2; C1: t0p3",
        (2, 4, 2, 2, 2.0, 0.0, 8, 2, 1, "homogeneous", None, True, False, 0, 8),
    ),
    "idle member": (
        {"C0": ["t0"], "C1": ["t0"]},
        "C0: t0p0 t0p1",
        "C1: t0p0 t0p1",
        (2, 2, 0, 2, 1.0, 1.0, 4, 0, 2, "homogeneous", None, False, False, 1, 2),
    ),
    "nothing assigned": (
        {"C0": ["t0"]},
        "",
        "C0: t0p0",
        (1, 0, 0, 0, 0.0, 0.0, 0, 0, 0, "homogeneous", None, None, None, None, None),
    ),
    "differing": (
        {"C0": ["t0", "t1"], "C1": ["t1"]},
        "C0: t0p0; C1: t1p0",
        "",
        (2, 2, 1, 1, 1.0, 0.0, 2, 0, 0, "heterogeneous", None, True, True, 0, 2),
    ),
    "order and repetition make no difference": (
        {"C0": ["t0", "t1"], "C1": ["t1", "t0", "t1"]},
        "C0: t0p0; C1: t1p0",
        "C0: t0p0; C1: t1p0",
        (2, 2, 1, 1, 1.0, 0.0, 2, 2, 0, "homogeneous", None, True, True, 0, 2),
    ),
    "strangers own nothing here": (
        {"C0": ["t0"]},
        "C0: t0p0",
        "C9: t0p0",
        (1, 1, 1, 1, 1.0, 0.0, 1, 0, 1, "homogeneous", None, True, True, 1, 1),
    ),
}


def _frames(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    members = [
        {"group_id": group, "member_id": member, "topics": topics}
        for group, case in _CASES.items()
        for member, topics in case[0].items()
    ]
    assigned = [owner_rows(case[1], group) for group, case in _CASES.items()]
    owned = [row for group, case in _CASES.items() for row in owner_rows(case[2], group)]
    return (
        builders.assignment(spark, *assigned),
        builders.members(spark, members),
        builders.owned(spark, owned),
    )


def test_each_measure(spark: SparkSession) -> None:
    expected = [(group, *case[3]) for group, case in _CASES.items()]
    assert_df_equality(
        balance(*_frames(spark)),
        spark.createDataFrame(expected, _COLUMNS),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_without_owned_nothing_is_kept_or_moved(spark: SparkSession) -> None:
    assigned, members, _ = _frames(spark)
    expected = []
    for group, case in _CASES.items():
        *counts, _, _, subscriptions, _, balanced, _, moves, squares = case[3]
        proven = (balanced, balanced, None if moves is None else 0, squares)
        expected.append((group, *counts, None, None, subscriptions, None, *proven))
    assert_df_equality(
        balance(assigned, members),
        spark.createDataFrame(expected, _COLUMNS),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_cross_rack_partitions(spark: SparkSession) -> None:
    """Unknown replicas, and members without a rack, cross nothing."""
    members = [
        {"group_id": group, "member_id": member, "topics": ["t", "u"], "rack_id": rack}
        for group, member, rack in (
            ("g", "east", "e"),
            ("g", "west", "w"),
            ("g", "nowhere", ""),
            ("h", "anywhere", None),
        )
    ]
    topics = [
        {"topic": "t", "num_partitions": 4, "replica_racks": [["e", "w"], ["e"], [None], []]},
        {"topic": "u", "num_partitions": 1, "replica_racks": None},
    ]
    assigned = builders.assignment(
        spark,
        owner_rows("east: tp0 tp2; west: tp1 tp3 up0; nowhere: tp1", "g"),
        owner_rows("anywhere: tp0 tp1", "h"),
    )
    frames = assigned, builders.members(spark, members)
    rows = balance(*frames, topics=builders.topics(spark, topics)).collect()
    assert {row.group_id: row.cross_rack_count for row in rows} == {"g": 1, "h": 0}
    no_racks = builders.topics(spark, {"t": 4, "u": 1})
    assert "cross_rack_count" in balance(*frames, topics=no_racks).columns
    (first, _) = balance(*frames, topics=no_racks).collect()
    assert first.cross_rack_count is None


def test_clusters_do_not_mix(spark: SparkSession) -> None:
    rows = [
        {"cluster_id": cluster, "group_id": "g", "member_id": "C0", "topics": ["t0"]}
        for cluster in ("east", "west")
    ]
    result = balance(
        builders.assignment(spark, owner_rows("C0: t0p0 t0p1", "g", cluster_id="east")),
        builders.members(spark, rows),
        builders.owned(spark, owner_rows("C0: t0p0 t0p1", "g", cluster_id="west")),
    ).orderBy("cluster_id")
    assert result.columns[:2] == ["cluster_id", "group_id"]
    assert [(r.cluster_id, r.partition_count, r.kept_count) for r in result.collect()] == [
        ("east", 2, 0),
        ("west", 0, 0),
    ]


def test_holdings_are_ranges(spark: SparkSession) -> None:
    members = [
        {"group_id": "g", "member_id": name, "topics": ["t0"]} for name in ("C2", "C0", "C1", "C3")
    ]
    result = holdings(
        builders.assignment(
            spark,
            owner_rows("C0: t1p0 t0p5 t0p1 t0p0 t0p3 t0p4 t0p9; C2: t2p1 t1p1 t0p8 t0p7", "g"),
        ),
        builders.members(spark, members),
        limit=3,
    )
    rows = [row.asDict(recursive=True) for row in result.orderBy("member_id").collect()]
    shown = [
        (
            row["member_id"],
            row["partition_count"],
            row["topic_count"],
            {
                t["topic"]: [(r["first"], r["last"]) for r in t["ranges"]]
                for t in row["topics"] or []
            },
        )
        for row in rows
    ]
    assert shown == [
        ("C0", 7, 2, {"t0": [(0, 1), (3, 5), (9, 9)], "t1": [(0, 0)]}),
        ("C1", 0, 0, {}),
        ("C2", 4, 3, {"t0": [(7, 8)], "t1": [(1, 1)], "t2": [(1, 1)]}),
    ]
