"""Violations: each rule seen to fail and to pass, all cases in one frame, a group each."""

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.measures.violations import violations
from tests import builders
from tests.builders import owner_rows

_COLUMNS = (
    "group_id string, rule string, member_id string, topic string, partition int, detail string"
)
_NOBODY = "subscribed to, but assigned to no member"

# group: members and their topics, assignment, owned, (rule, member, topic, partition, detail)
_CASES: dict[str, tuple[dict[str, list[str]], str, str, list[tuple[object, ...]]]] = {
    "well": ({"C0": ["t2"], "C1": ["t2"]}, "C0: t2p0; C1: t2p1", "", []),
    "well without partitions": ({"C0": ["gone", "none"], "C1": []}, "", "", []),
    "stranger": (
        {"C0": ["t1"]},
        "C9: t1p0",
        "",
        [("unknown_member", "C9", "t1", 0, "the group has no such member")],
    ),
    "not subscribed": (
        {"C0": ["t1"], "C1": []},
        "C1: t1p0",
        "",
        [("not_subscribed", "C1", "t1", 0, "the member does not subscribe to the topic")],
    ),
    "beyond the last": (
        {"C0": ["t2"]},
        "C0: t2p0 t2p1 t2p2",
        "",
        [("unknown_partition", "C0", "t2", 2, "the topic has 2 partitions")],
    ),
    "topic unknown": (
        {"C0": ["gone"]},
        "C0: gonep0",
        "",
        [("unknown_partition", "C0", "gone", 0, "the cluster has no such topic")],
    ),
    "twice": (
        {"C0": ["t1"], "C1": ["t1"]},
        "C1: t1p0; C0: t1p0",
        "",
        [("assigned_twice", "C0", "t1", 0, "assigned to C0, C1")],
    ),
    "twice to one": (
        {"C0": ["t1"]},
        "C0: t1p0 t1p0",
        "",
        [("assigned_twice", "C0", "t1", 0, "assigned to C0, C0")],
    ),
    "twice and not at all": (
        {"C0": ["t2"]},
        "C0: t2p1 t2p1",
        "",
        [
            ("assigned_twice", "C0", "t2", 1, "assigned to C0, C0"),
            ("unassigned", None, "t2", 0, _NOBODY),
        ],
    ),
    "left over": ({"C0": ["t2"]}, "C0: t2p0", "", [("unassigned", None, "t2", 1, _NOBODY)]),
    "all left over": ({"C0": ["t1"]}, "", "", [("unassigned", None, "t1", 0, _NOBODY)]),
    "withheld": ({"C0": ["t2"], "C1": ["t2"]}, "C0: t2p0", "C0: t2p0 t2p1", []),
    "owner has left": (
        {"C0": ["t2"]},
        "C0: t2p0",
        "C9: t2p1",
        [("unassigned", None, "t2", 1, _NOBODY)],
    ),
    "owned in another group": (
        {"C0": ["t1"]},
        "",
        "",
        [("unassigned", None, "t1", 0, _NOBODY)],
    ),
}


def _frames(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    members = [
        {"group_id": group, "member_id": member, "topics": topics}
        for group, case in _CASES.items()
        for member, topics in case[0].items()
    ]
    owned = [row for group, case in _CASES.items() for row in owner_rows(case[2], group)]
    owned += owner_rows("C0: t1p0", "no such group")
    return (
        builders.assignment(spark, *(owner_rows(case[1], group) for group, case in _CASES.items())),
        builders.members(spark, members),
        builders.topics(spark, {"t1": 1, "t2": 2, "none": 0}),
        builders.owned(spark, owned),
    )


def test_each_rule(spark: SparkSession) -> None:
    expected = [(group, *row) for group, case in _CASES.items() for row in case[3]]
    assert_df_equality(
        violations(*_frames(spark)),
        spark.createDataFrame(expected, _COLUMNS),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_without_owned_nothing_is_withheld(spark: SparkSession) -> None:
    rows = violations(*_frames(spark)[:3]).where("group_id = 'withheld'").collect()
    assert [tuple(row) for row in rows] == [("withheld", "unassigned", None, "t2", 1, _NOBODY)]
