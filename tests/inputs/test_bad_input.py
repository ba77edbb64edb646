"""Every bad input of the design has one defined result: an error in one line, or Kafka's own."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign
from kassign_spark.assignors import ASSIGNORS
from kassign_spark.errors import InputError, KassignError, SchemaError
from kassign_spark.inputs.checks import input_checks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.problem_rows import list_problems
from tests import builders
from tests.builders import Rows, owner_rows

_MEMBER = {"group_id": "g", "member_id": "C0", "topics": ["t0"], "assignor": "range"}
_OTHER = {**_MEMBER, "member_id": "C1"}
_TOPIC = {"topic": "t0", "num_partitions": 2}
_OWNED = {"group_id": "g", "member_id": "C0", "topic": "t0", "partition": 0}
_NAMED = "not null or empty"
_ROW = "every row needs a"


def _text(spark: SparkSession, **tables: Any) -> str:
    """The text of the error that ``assign`` ends with, for tables given as rows."""
    rows = {"members": [_MEMBER], "topics": [_TOPIC], "owned": [_OWNED], **tables}
    frames = [getattr(builders, name)(spark, each, wide=True) for name, each in rows.items()]
    with pytest.raises(InputError) as error:
        assign(*frames)
    assert "\n" not in str(error.value)
    return str(error.value)


def _details(spark: SparkSession, **tables: Any) -> list[str]:
    """All problems of tables given as rows, in one job; wide, so that numbers can overflow."""
    rows = {"members": [_MEMBER], "topics": [_TOPIC], "owned": [_OWNED], **tables}
    frames = [getattr(builders, name)(spark, each, wide=True) for name, each in rows.items()]
    problems = list_problems(input_checks(conform_inputs(*frames), ASSIGNORS))
    return sorted(row.detail for row in problems.collect())


_MEMBERS = {
    "duplicate": (
        [_MEMBER, _MEMBER],
        'column member_id: "C0" appears 2 times in group "g": give each member once',
    ),
    "empty group": (
        [{**_MEMBER, "group_id": ""}],
        f'column group_id: "" (at group_id="" member_id="C0"): {_ROW} group_id, {_NAMED}',
    ),
    "null group": (
        [{**_MEMBER, "group_id": None}],
        f'column group_id: null (at member_id="C0"): {_ROW} group_id, {_NAMED}',
    ),
    "empty member": (
        [{**_MEMBER, "member_id": ""}],
        f'column member_id: "" (at group_id="g" member_id=""): {_ROW} member_id, {_NAMED}',
    ),
    "null member": (
        [_MEMBER, {**_MEMBER, "member_id": None}],
        f'column member_id: null (at group_id="g"): {_ROW} member_id, {_NAMED}',
    ),
    "no topics": (
        [{**_MEMBER, "topics": None}],
        'column topics: null (at group_id="g" member_id="C0"): give an empty array for a member '
        "that subscribes to nothing",
    ),
    "null topic": (
        [{**_MEMBER, "topics": ["t0", None]}],
        'column topics: ["t0",null] (at group_id="g" member_id="C0"): null and empty names are no '
        "topics: leave them out",
    ),
    "empty topic": (
        [{**_MEMBER, "topics": [""]}],
        'column topics: [""] (at group_id="g" member_id="C0"): null and empty names are no topics: '
        "leave them out",
    ),
    "generation too low": (
        [{**_MEMBER, "generation": -2}],
        'column generation: -2 (at group_id="g" member_id="C0"): must be a whole '
        "number from -1 to 2147483647",
    ),
    "generation overflows": (
        [{**_MEMBER, "generation": 2**31}],
        'column generation: 2147483648 (at group_id="g" member_id="C0"): must be a whole '
        "number from -1 to 2147483647",
    ),
    "negative place": (
        [{**_MEMBER, "member_seq": -1}],
        'column member_seq: -1 (at group_id="g" member_id="C0"): must be a whole '
        "number from 0 to 2147483647",
    ),
    "several leaders": (
        [{**_MEMBER, "is_leader": True}, {**_OTHER, "is_leader": True}],
        'column is_leader: group "g" has more than one leader; name one or none',
    ),
    "both types": (
        [{**_MEMBER, "group_type": "consumer"}, _OTHER],
        'column group_type: group "g" has members of both types; a group is classic or consumer',
    ),
    "unknown assignor": (
        [{**_MEMBER, "assignor": "fair"}],
        'column assignor: "fair" of group "g": unknown assignor; known are cooperative-sticky, '
        "range, roundrobin, sticky",
    ),
    "mixed assignors": (
        [_MEMBER, {**_OTHER, "assignor": "roundrobin"}],
        'column assignor: "range", "roundrobin" of group "g": the members of a group use one '
        "assignor; name one for all of them",
    ),
    "half-named assignor": (
        [_MEMBER, {**_OTHER, "assignor": None}],
        'column assignor: "null", "range" of group "g": the members of a group use one assignor; '
        "name one for all of them",
    ),
    "no assignor": (
        [{**_MEMBER, "assignor": None}],
        'column assignor: "null" of group "g": no assignor is named; fill in the column or choose '
        "one for all groups",
    ),
}


@pytest.fixture(scope="module")
def member_details(spark: SparkSession) -> list[str]:
    """Of a frame with all cases, a group each."""
    rows = [
        {**row, "group_id": row["group_id"] and case}
        for case, (members, _) in _MEMBERS.items()
        for row in members
    ]
    return _details(spark, members=[_MEMBER, *rows])


@pytest.mark.parametrize("case", _MEMBERS)
def test_members(member_details: list[str], case: str) -> None:
    _, expected = _MEMBERS[case]
    assert f"table members, {expected}".replace('"g"', f'"{case}"') in member_details


def test_members_are_refused_for_nothing_else(member_details: list[str]) -> None:
    assert len(member_details) == len(_MEMBERS)


_COUNT = "must be a whole number from 0 to 10000000"
_COUNT_FROM_0 = "must be a whole number from 0 to 9999999"
_PARTITION = "must be a whole number from 0 to 2147483647"
_TOPICS = {
    "two counts": (
        [_TOPIC, {**_TOPIC, "num_partitions": 3}],
        'column num_partitions: topic "t0" is given with 2 and with 3 partitions: give each topic '
        "once",
    ),
    "negative count": (
        [{**_TOPIC, "num_partitions": -1}],
        f'column num_partitions: -1 (at topic="t0"): {_COUNT}',
    ),
    "count overflows": (
        [{**_TOPIC, "num_partitions": 2**31}],
        f'column num_partitions: 2147483648 (at topic="t0"): {_COUNT}',
    ),
    "null count": (
        [{**_TOPIC, "num_partitions": None}],
        f'column num_partitions: null (at topic="t0"): {_ROW} num_partitions',
    ),
    "null name": (
        [{**_TOPIC, "topic": None}],
        f"column topic: null: {_ROW} topic, {_NAMED}",
    ),
    "empty name": (
        [{**_TOPIC, "topic": ""}],
        f'column topic: "" (at topic=""): {_ROW} topic, {_NAMED}',
    ),
    "a gap": (
        [{"topic": "t0", "partition": 0}, {"topic": "t0", "partition": 2}],
        'column partition: topic "t0" has 2 of the partitions 0..2: give all of them, or their '
        "count as num_partitions",
    ),
    "does not begin with 0": (
        [{"topic": "t0", "partition": 1}],
        'column partition: topic "t0" has 1 of the partitions 0..1: give all of them, or their '
        "count as num_partitions",
    ),
    "negative partition": (
        [{"topic": "t0", "partition": 0}, {"topic": "t0", "partition": -1}],
        f'column partition: -1 (at topic="t0"): {_COUNT_FROM_0}',
    ),
    "null partition": (
        [{"topic": "t0", "partition": 0}, {"topic": "t0", "partition": None}],
        f'column partition: null (at topic="t0"): {_ROW} partition',
    ),
}


@pytest.fixture(scope="module")
def topic_details(spark: SparkSession) -> list[str]:
    """Of two frames, one a form of the table, with all cases, a topic each."""
    rows = [
        {**row, "topic": row["topic"] and case.replace(" ", "-")}
        for case, (topics, _) in _TOPICS.items()
        for row in topics
    ]
    by_partition = [row for row in rows if "partition" in row]
    by_count = [row for row in rows if "partition" not in row]
    return _details(spark, topics=[_TOPIC, *by_count]) + _details(
        spark, topics=[{"topic": "t0", "partition": 0}, *by_partition]
    )


@pytest.mark.parametrize("case", _TOPICS)
def test_topics(topic_details: list[str], case: str) -> None:
    _, expected = _TOPICS[case]
    assert (
        f"table topics, {expected}".replace('"t0"', f'"{case.replace(" ", "-")}"') in topic_details
    )


def test_topics_are_refused_for_nothing_else(topic_details: list[str]) -> None:
    assert len(topic_details) == len(_TOPICS)


_AT = 'group_id="g" member_id="C0" topic="t0"'
_OWNED_CASES = {
    "negative partition": (
        {"partition": -1},
        f"column partition: -1 (at {_AT}): {_PARTITION}",
    ),
    "partition overflows": (
        {"partition": 2**31},
        f"column partition: 2147483648 (at {_AT}): {_PARTITION}",
    ),
    "null partition": (
        {"partition": None},
        f"column partition: null (at {_AT}): {_ROW} partition",
    ),
    "null member": (
        {"member_id": None},
        'column member_id: null (at group_id="g" topic="t0" partition=0): '
        f"{_ROW} member_id, {_NAMED}",
    ),
    "empty group": (
        {"group_id": ""},
        'column group_id: "" (at group_id="" member_id="C0" topic="t0" partition=0): '
        f"{_ROW} group_id, {_NAMED}",
    ),
    "empty topic": (
        {"topic": ""},
        'column topic: "" (at group_id="g" member_id="C0" topic="" partition=0): '
        f"{_ROW} topic, {_NAMED}",
    ),
}


def test_owned(spark: SparkSession) -> None:
    rows = [{**_OWNED, **change} for change, _ in _OWNED_CASES.values()]
    expected = [f"table owned, {text}" for _, text in _OWNED_CASES.values()]
    assert _details(spark, owned=[_OWNED, *rows]) == sorted(expected)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("members", _MEMBERS["null member"][0]),
        ("members", _MEMBERS["duplicate"][0]),
        ("members", _MEMBERS["several leaders"][0]),
        ("members", _MEMBERS["both types"][0]),
        ("members", _MEMBERS["mixed assignors"][0]),
        ("members", _MEMBERS["no assignor"][0]),
        ("members", _MEMBERS["unknown assignor"][0]),
        ("topics", _TOPICS["negative count"][0]),
        ("topics", _TOPICS["two counts"][0]),
        ("topics", _TOPICS["a gap"][0]),
        ("owned", [{**_OWNED, "partition": 2**31}]),
    ],
)
def test_assign_refuses_each_kind(spark: SparkSession, table: str, rows: Rows) -> None:
    """One for each way in which the preparation notices that something is wrong."""
    assert _text(spark, **{table: rows}).startswith(f"table {table}, column ")


def test_an_assignor_for_all_overrides_the_column(spark: SparkSession) -> None:
    some = [{**_MEMBER, "assignor": "fair"}, {**_OTHER, "assignor": None}]
    frames = (builders.members(spark, some), builders.topics(spark, {"t0": 2}))
    assert assign(*frames, assignor="range").count() == 2
    with pytest.raises(InputError, match="unknown assignor 'fair'; known are cooperative-sticky,"):
        assign(*frames, assignor="fair")


def test_every_problem_is_in_one_error(spark: SparkSession) -> None:
    text = _text(
        spark,
        members=[_MEMBER, _MEMBER, {**_OTHER, "topics": None}],
        topics=[{**_TOPIC, "num_partitions": -5}],
        owned=[{**_OWNED, "partition": -7}],
    )
    for part in ('"C0" appears 2 times', "column topics: null", "-5 (at", "-7 (at"):
        assert part in text


def test_many_problems_are_counted(spark: SparkSession) -> None:
    many = [{"topic": f"t{i:02}", "num_partitions": -1} for i in range(50)]
    text = _text(spark, topics=many)
    assert text.count("column num_partitions: -1") == 20
    assert text.endswith("; and 30 more problems")


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("members", lambda f: f.drop("member_id"), "column member_id (string) is missing"),
        ("members", lambda f: f.drop("member_id", "group_id"), "column group_id (string) is"),
        ("topics", lambda f: f.drop("num_partitions"), "column num_partitions (int) is missing"),
        ("owned", lambda f: f.drop("partition"), "column partition (int) is missing"),
        (
            "members",
            lambda f: f.withColumn("topics", F.lit("t0")),
            "column topics must be array<string>, not string",
        ),
        (
            "members",
            lambda f: f.withColumn("generation", F.lit("1")),
            "column generation must be int, not string",
        ),
        (
            "topics",
            lambda f: f.withColumn("num_partitions", F.lit(2.5)),
            "column num_partitions must be int, not double",
        ),
        (
            "topics",
            lambda f: f.withColumn("replica_racks", F.array(F.lit("a"))),
            "column replica_racks must be array<array<string>>, not array<string>",
        ),
        (
            "owned",
            lambda f: f.withColumn("partition", F.lit("0")),
            "column partition must be int, not string",
        ),
        (
            "owned",
            lambda f: f.select("*", F.lit(1).alias("partition")),
            "column partition appears twice",
        ),
    ],
)
def test_columns(
    spark: SparkSession, table: str, change: Callable[[DataFrame], DataFrame], expected: str
) -> None:
    frames = {
        "members": builders.members(spark, [_MEMBER]),
        "topics": builders.topics(spark, [_TOPIC]),
        "owned": builders.owned(spark, [_OWNED]),
    }
    frames[table] = change(frames[table])
    with pytest.raises(SchemaError) as error:
        assign(**frames)
    assert str(error.value).startswith(f"table {table}: ")
    assert expected in str(error.value)


@pytest.mark.parametrize("table", ["members", "topics", "owned"])
def test_cluster_id_in_one_table_only(spark: SparkSession, table: str) -> None:
    frames = {
        "members": builders.members(spark, [_MEMBER]),
        "topics": builders.topics(spark, [_TOPIC]),
        "owned": builders.owned(spark, [_OWNED]),
    }
    frames[table] = frames[table].withColumn("cluster_id", F.lit("east"))
    others = ", ".join(name for name in frames if name != table)
    with pytest.raises(SchemaError, match=f"column cluster_id: {table} has it, {others} has not"):
        assign(**frames)


def test_empty_tables_give_an_empty_assignment(spark: SparkSession) -> None:
    members = builders.members(spark, [_MEMBER])
    topics, owned = builders.topics(spark, [_TOPIC]), builders.owned(spark, [_OWNED])
    none = [frame.limit(0) for frame in (members, topics, owned)]
    columns = ["group_id", "member_id", "topic", "partition"]
    for frames in ([none[0], topics, owned], [members, none[1], owned], none):
        result = assign(*frames)
        assert result.columns == columns
        assert result.collect() == []
    assert assign(members, topics, none[2]).count() == 2


def test_kafkas_own_answer_where_there_is_one(spark: SparkSession) -> None:
    """Claims on what is gone or disputed, repeated topics and strangers change nothing."""
    result = assign(
        builders.members(spark, [{**_MEMBER, "topics": ["t0", "t0", "gone"]}, _OTHER]),
        builders.topics(spark, [_TOPIC, _TOPIC, {"topic": "none", "num_partitions": 0}]),
        builders.owned(
            spark,
            owner_rows("C0: t0p0 t0p9 gonep0; C1: t0p0; C2: t0p1", "g")
            + owner_rows("C0: t0p0", "else"),
        ),
    )
    expected = builders.assignment(spark, owner_rows("C0: t0p0; C1: t0p1", "g"))
    assert sorted(result.collect()) == sorted(expected.select(result.columns).collect())


def test_every_error_of_ours_is_a_kassign_error() -> None:
    assert issubclass(InputError, KassignError)
    assert issubclass(SchemaError, KassignError)
