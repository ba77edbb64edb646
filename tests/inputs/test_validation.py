"""Validate: each problem seen to be found and not to be found, a group each."""

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.validation.validate import validate
from tests import builders
from tests.builders import owner_rows

_COLUMNS = (
    "group_id string, member_id string, topic string, partition int, problem string, detail string"
)
_LEFT_OUT = "; left out of the assignment, as Kafka does"

# group: rows of members, owned, (member, topic, partition, problem, detail)
_CASES: dict[str, tuple[list[dict[str, object]], str, list[tuple[object, ...]]]] = {
    "well": (
        [{"member_id": "C0", "topics": ["t2"]}, {"member_id": "C1", "topics": []}],
        "C0: t2p0; C1: t2p1",
        [],
    ),
    "topic unknown": (
        [{"member_id": "C0", "topics": ["t2", "gone"]}, {"member_id": "C1", "topics": ["gone"]}],
        "",
        [
            (
                None,
                "gone",
                None,
                "topic_without_metadata",
                f"subscribed to by 2 members, unknown to the table topics{_LEFT_OUT}",
            )
        ],
    ),
    "topic empty": (
        [{"member_id": "C0", "topics": ["none"]}],
        "",
        [
            (
                None,
                "none",
                None,
                "topic_without_partitions",
                f"subscribed to by 1 member, has no partitions{_LEFT_OUT}",
            )
        ],
    ),
    "both types": (
        [
            {"member_id": "C0", "topics": ["t2"], "group_type": "consumer"},
            {"member_id": "C1", "topics": ["t2"]},
        ],
        "",
        [
            (
                None,
                None,
                None,
                "group_type_mixed",
                'table members, column group_type: group "both types" has members of both types; '
                "a group is classic or consumer",
            )
        ],
    ),
    "topic repeated": (
        [{"member_id": "C0", "topics": ["t2", "t2"]}],
        "",
        [
            (
                "C0",
                "t2",
                None,
                "topic_listed_twice",
                "the member lists the topic more than once; it counts once",
            )
        ],
    ),
    "instances differ": (
        [
            {"member_id": "C0", "topics": ["t2"], "group_instance_id": "i0"},
            {"member_id": "C1", "topics": ["t2"], "group_instance_id": "i1"},
        ],
        "",
        [],
    ),
    "instance repeated": (
        [
            {"member_id": "C1", "topics": ["t2"], "group_instance_id": "i0"},
            {"member_id": "C0", "topics": ["t2"], "group_instance_id": "i0"},
        ],
        "",
        [
            (
                "C0",
                None,
                None,
                "duplicate_group_instance_id",
                'group.instance.id "i0" is used by C0, C1; a broker fences all but the newest',
            )
        ],
    ),
    "partition gone": (
        [{"member_id": "C0", "topics": ["t2"]}],
        "C0: t2p2",
        [
            (
                "C0",
                "t2",
                2,
                "owned_partition_missing",
                "the topic has only 2 partitions; the claim is dropped",
            )
        ],
    ),
    "topic gone": (
        [{"member_id": "C0", "topics": ["t2"]}],
        "C0: gonep0",
        [
            (
                "C0",
                "gone",
                0,
                "owned_partition_missing",
                "the table topics does not have the topic; the claim is dropped",
            )
        ],
    ),
    "owner gone": (
        [{"member_id": "C0", "topics": ["t2"]}],
        "C9: t2p0 t2p1",
        [
            (
                "C9",
                None,
                None,
                "owner_not_in_group",
                "owns 2 partitions but is not a member of the group: it counts as having left",
            )
        ],
    ),
    "claimed twice": (
        [
            {"member_id": "C0", "topics": ["t2"], "generation": 3},
            {"member_id": "C1", "topics": ["t2"]},
        ],
        "C1: t2p0; C0: t2p0",
        [
            (
                "C0",
                "t2",
                0,
                "claimed_twice",
                "claimed by C0 (generation 3), C1 (no generation)",
            )
        ],
    ),
    "ids missing": (
        [{"member_id": "", "topics": ["t2"]}] * 2,
        "",
        [
            (
                "",
                None,
                None,
                "member_id_missing",
                'table members, column member_id: "" (at group_id="ids missing" member_id=""): '
                "every row needs a member_id, not null or empty",
            )
        ]
        * 2,
    ),
    "member repeated": (
        [{"member_id": "C0", "topics": ["t2"]}] * 2,
        "",
        [
            (
                "C0",
                None,
                None,
                "duplicate_member",
                'table members, column member_id: "C0" appears 2 times in group "member repeated": '
                "give each member once",
            )
        ],
    ),
    "refused": (
        [{"member_id": "C0", "topics": None}],
        "",
        [
            (
                "C0",
                None,
                None,
                "topics_missing",
                'table members, column topics: null (at group_id="refused" member_id="C0"): give '
                "an empty array for a member that subscribes to nothing",
            )
        ],
    ),
}


def _frames(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    members = [
        {"assignor": "range", "group_id": group, **row}
        for group, case in _CASES.items()
        for row in case[0]
    ]
    owned = [row for group, case in _CASES.items() for row in owner_rows(case[1], group)]
    return (
        builders.members(spark, members),
        builders.topics(spark, {"t2": 2, "none": 0}),
        builders.owned(spark, owned),
    )


def test_each_problem(spark: SparkSession) -> None:
    expected = [(group, *row) for group, case in _CASES.items() for row in case[2]]
    assert_df_equality(
        validate(*_frames(spark), assignors=ASSIGNORS),
        spark.createDataFrame(expected, _COLUMNS),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_topics_one_row_a_partition(spark: SparkSession) -> None:
    """The same but for what that form cannot say: a topic without partitions."""
    members, _, owned = _frames(spark)
    by_partition = builders.topics(spark, [{"topic": "t2", "partition": p} for p in (0, 1)])
    result = validate(members, by_partition, owned).where("topic IS NOT NULL")
    expected = [
        (group, row[1], row[2], str(row[3]).replace("without_partitions", "without_metadata"))
        for group, case in _CASES.items()
        for row in case[2]
        if row[1]
    ]
    rows = result.select("group_id", "topic", "partition", "problem").collect()
    assert sorted(map(str, map(tuple, rows))) == sorted(map(str, expected))


def test_assignors_are_looked_at_when_names_are_given(spark: SparkSession) -> None:
    members, topics, _ = _frames(spark)
    members = members.where("group_id = 'well'").withColumn("assignor", F.lit("fair"))
    assert validate(members, topics).collect() == []
    (problem,) = validate(members, topics, assignors=["range"]).collect()
    assert problem.problem == "assignor_unusable"
    assert problem.group_id == "well"
