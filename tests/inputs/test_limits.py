"""Counts beyond their limits: refused in one line before anything is made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import (
    Settings,
    assign,
    compare,
    migrate,
    partition_traffic,
    predict,
    validate,
    violations,
)
from kassign_spark.errors import InputError, KassignError, SettingsError
from kassign_spark.groups import inspection
from kassign_spark.inputs import checks
from kassign_spark.limits import (
    EVENTS,
    MEMBERS_OF_A_GROUP,
    NEW_MEMBERS_OF_A_SWEEP,
    PARTITIONS_OF_A_GROUP,
    PARTITIONS_OF_A_TOPIC,
    SWEEPS,
    TEXT_FILE_BYTES,
)
from kassign_spark.live.client_properties import read_properties
from kassign_spark.settings import load_settings
from kassign_spark.simulation.event_file import read_events
from kassign_spark.simulation.events import check_events
from kassign_spark.simulation.questions import Growth, Sweep, parse_sweep
from kassign_spark.simulation.simulate import simulate
from kassign_spark.simulation.sweep import sweep
from kassign_spark.simulation.timeouts import Timeouts
from tests import builders
from tests.simulation.test_simulate import e, events_frame

_MEMBER = {"group_id": "g", "member_id": "C0", "topics": ["t"], "assignor": "sticky"}
_WIDE = {f"t{i}": PARTITIONS_OF_A_TOPIC for i in range(3)}
_CALLS: list[Callable[..., Any]] = [
    assign,
    compare,
    lambda members, topics: migrate(members, topics, builders.owned(members.sparkSession, [])),
    predict,
]
"""A call of each kind; the others look at their inputs as these do."""


@pytest.mark.parametrize("number", range(len(_CALLS)))
def test_no_function_follows_a_topic_beyond_its_limit(spark: SparkSession, number: int) -> None:
    members = builders.members(spark, [_MEMBER])
    topics = builders.topics(spark, {"t": PARTITIONS_OF_A_TOPIC + 1})
    with pytest.raises(
        InputError, match=r"^table topics, column num_partitions: 10000001 \(at topic"
    ):
        _CALLS[number](members, topics)


def test_no_group_reads_more_than_its_limit(spark: SparkSession) -> None:
    """Nor do sums of the greatest numbers overflow."""
    far = {f"far{i}": 2**63 - 1 for i in range(3)}
    rows = [{**_MEMBER, "group_id": "small", "topics": ["t0"]}]
    rows += [{**_MEMBER, "group_id": "far", "topics": [*far]}]
    for group, of in (("g", {}), ("h", {"group_type": "consumer", "assignor": None})):
        wide = {**_MEMBER, "group_id": group, **of}
        rows += [{**wide, "topics": [name], "member_id": name} for name in _WIDE]
    sizes = [{"topic": t, "num_partitions": size} for t, size in {**_WIDE, **far}.items()]
    members, topics = builders.members(spark, rows), builders.topics(spark, sizes, wide=True)
    says = "reads 30,000,000 partitions; at most 20,000,000 are taken; leave it out"
    lines = {f'table members, column topics: group "{group}" {says}' for group in "fgh"}
    lines = {line.replace('"f"', '"far"') for line in lines}
    with pytest.raises(InputError) as error:
        compare(members, topics)
    sentences = str(error.value).split("; table ")
    assert lines <= {f"table {line.removeprefix('table ')}" for line in sentences}
    problems = validate(members, topics).where("problem = 'group_reads_too_much'").collect()
    assert {row.detail for row in problems} == lines


def test_no_group_has_more_members_than_its_limit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = checks.TOO_LARGE["group_has_too_many_members"]
    monkeypatch.setattr(inspection, "MEMBERS_OF_A_GROUP", 1)
    monkeypatch.setitem(checks.TOO_LARGE, "group_has_too_many_members", limit._replace(most=1))
    members = builders.members(spark, [_MEMBER, {**_MEMBER, "member_id": "C1"}])
    says = r'column member_id: group "g" has 2 members; at most 1 are taken; leave it out'
    with pytest.raises(InputError, match=says):
        assign(members, builders.topics(spark, {"t": 1}))


def test_partitions_one_by_one_have_the_same_limit(spark: SparkSession) -> None:
    members = builders.members(spark, [_MEMBER])
    topics = builders.topics(spark, [{"topic": "t", "partition": PARTITIONS_OF_A_TOPIC}])
    with pytest.raises(InputError, match=r"column partition: 10000000 .* from 0 to 9999999"):
        assign(members, topics)


def test_what_asks_no_group_is_held_to_the_limit_too(spark: SparkSession) -> None:
    topics = builders.topics(spark, {"t": 2**31 - 1})
    records = spark.createDataFrame([("t", "k")], "topic string, key string")
    with pytest.raises(InputError, match="column num_partitions: 2147483647"):
        partition_traffic(records, topics)
    members = builders.members(spark, [_MEMBER])
    assert violations(builders.owned(spark, []), members, topics).collect() == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"members": "+2147483647"}, "sweep: members +2147483647: at most 10,000 members come"),
        ({"members": 10_001}, "sweep: members +10001: at most 10,000 members come"),
        ({"members": [1, 2**62]}, "sweep: members +4611686018427387904: at most"),
        ({"members": "-2147483647"}, "sweep: members -2147483647: at most 10,000 members come and"),
        ({"partitions": "+10000001"}, "a topic has at most 10,000,000 partitions"),
        ({"partitions": "x2147483647"}, "a topic has at most 10,000,000 partitions"),
        ({"members": "0..99", "partitions": "x1..x11"}, "sweep: 1,100 variants; at most 1,000"),
    ],
)
def test_a_sweep_asks_for_counts_that_can_be(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        parse_sweep(asked)
    assert says in str(error.value)


def test_a_sweep_made_in_python_is_held_to_the_same() -> None:
    assert Sweep(members=(NEW_MEMBERS_OF_A_SWEEP,)).members == (10_000,)
    for made in (
        lambda: Sweep(members=(2**31 - 1,)),
        lambda: Sweep(members=range(10**12)),
        lambda: Sweep(partitions=[Growth(more=2**40)]),
        lambda: Sweep(partitions=[Growth(times=0)]),
    ):
        with pytest.raises(InputError, match=r"^sweep: "):
            made()


def test_sweeps_and_events_are_counted(spark: SparkSession) -> None:
    members, topics = builders.members(spark, [_MEMBER]), builders.topics(spark, {"t": 1})
    with pytest.raises(InputError, match=r"^101 sweeps; at most 100$"):
        sweep(members, topics, None, [Sweep(members=(1,))] * (SWEEPS + 1))
    events = spark.range(EVENTS + 1).selectExpr(
        "int(id) as event", "'member_leaves' as kind", "'g' as group_id", "'C0' as member_id"
    )
    with pytest.raises(InputError, match=r"^100,001 events; at most 100,000 are followed$"):
        check_events(events, Timeouts())


def test_events_make_no_topic_beyond_its_limit(spark: SparkSession) -> None:
    kinds = ("topic_grows", "topic_appears", "topic_is_recreated")
    size = PARTITIONS_OF_A_TOPIC + 1
    rows = [{"event": n, **e(kind, topic="t", num_partitions=size)} for n, kind in enumerate(kinds)]
    with pytest.raises(InputError) as error:
        check_events(events_frame(spark, rows), Timeouts())
    assert str(error.value).count("num_partitions is 10000001; must be a whole number") == 3


def test_events_make_no_group_beyond_its_limit(spark: SparkSession) -> None:
    sizes = {"t": 1, "u": 10_000_000, "v": 9_999_999}
    classic = {**_MEMBER, "topics": list(sizes)}
    new = {**classic, "group_id": "h", "group_type": "consumer", "assignor": None}
    members, topics = builders.members(spark, [classic, new]), builders.topics(spark, sizes)
    rows = [{"event": 1, **e("topic_grows", topic="t", num_partitions=2)}]
    with pytest.raises(InputError) as error:
        simulate(members, topics, None, events_frame(spark, rows))
    for group in "gh":
        says = f'group "{group}" reads 20,000,001 partitions; simulate follows groups of at most'
        assert says in str(error.value)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (read_events, "events file {}: has more than 16,777,216 bytes"),
        (load_settings, "settings file {}: has more than 16,777,216 bytes"),
        (read_properties, "client properties file {} cannot be read: has more than 16,777,216"),
    ],
)
def test_no_text_file_is_read_beyond_its_limit(
    tmp_path: Path, read: Callable[[str], Any], says: str
) -> None:
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(TEXT_FILE_BYTES + 1)
    for path in ("/dev/zero", str(large)):
        with pytest.raises(KassignError) as error:
            read(path)
        assert says.format(path) in str(error.value)


def test_no_setting_asks_for_more_tasks_than_its_limit() -> None:
    with pytest.raises(SettingsError, match="setting batches: at most 1000000"):
        Settings(batches=2**31 - 1)


def test_the_limits_are_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text()
    for limit in (PARTITIONS_OF_A_TOPIC, PARTITIONS_OF_A_GROUP, MEMBERS_OF_A_GROUP, EVENTS):
        assert f"{limit:,}" in text
