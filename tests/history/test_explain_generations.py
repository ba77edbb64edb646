"""``explain_history`` on logs whose assignments are the jar's own answers, and altered ones."""

import base64
import json
import random
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from kassign_spark.errors import InputError, SchemaError
from kassign_spark.history import explained_generations as module
from kassign_spark.history.explain_read import SIZES
from kassign_spark.history.explained_generations import (
    AS_ASSIGNED,
    explain_generations,
    explain_history,
)
from kassign_spark.history.rebalance_columns import EXPLAINED
from kassign_spark.log.log_schemas import RECORDS
from kassign_spark.schemas import TOPICS
from kassign_spark.spark.spark_versions import arrow_schema
from tests.history.logs import at
from tests.kafka import oracle
from tests.kafka.log_records import Bytes, Record, write
from tests.kafka.oracle import ASSIGNORS, Assigned, Group
from tests.log.batches import decoded
from tests.oracles import protocol
from tests.query_counter import counting
from tests.random_states import random_states

SEED = 1822
STATES = random_states(160, seed=SEED, assignors=ASSIGNORS, hostile_share=0.3, user_data=False)


def _user_data(member: oracle.Member, assignor: str) -> bytes | None:
    if assignor != "sticky":
        return member.user_data
    if member.user_data is not None or not (member.owned or member.generation is not None):
        return member.user_data
    return protocol.encode_sticky_user_data(protocol.Claims(tuple(member.owned), member.generation))


def _record(
    name: str, number: int, group: Group, answer: Assigned, assignor: str | None = None
) -> Record:
    """A generation as the coordinator writes it."""
    assignor = assignor or group.assignor
    members = []
    for member in group.members:
        subscription = protocol.Subscription(
            tuple(member.topics),
            () if assignor == "sticky" else tuple(member.owned),
            member.generation,
            member.rack_id,
            _user_data(member, assignor),
        )
        assignment = protocol.Assignment(tuple(answer[member.member_id]))
        members.append(
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "clientId": f"client-{member.member_id}",
                "clientHost": "/10.0.0.1",
                "rebalanceTimeout": 300_000,
                "sessionTimeout": 45_000,
                "subscription": _text(protocol.encode_subscription(subscription)),
                "assignment": _text(protocol.encode_assignment(assignment)),
            }
        )
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": assignor,
        "leader": group.members[0].member_id,
        "currentStateTimestamp": round(at(number).timestamp() * 1000),
        "members": members,
    }
    return Record(2, {"group": name}, 3, value)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _swapped(rng: random.Random, answer: Assigned) -> Assigned | None:
    """The answer with one partition of each of two members exchanged."""
    having = [member for member, own in answer.items() if own]
    if len(having) < 2:
        return None
    one, other = rng.sample(having, 2)
    a, b = rng.choice(answer[one]), rng.choice(answer[other])
    return answer | {
        one: [tp for tp in answer[one] if tp != a] + [b],
        other: [tp for tp in answer[other] if tp != b] + [a],
    }


def _without_empty_racks(group: Group) -> Group:
    """Java's client sends none, and librdkafka does."""
    members = [replace(member, rack_id=member.rack_id or None) for member in group.members]
    return replace(group, members=members)


class Case:
    """The same groups by their own topics, each a group and generation of one log."""

    def __init__(self, spark: SparkSession) -> None:
        rng = random.Random(SEED)
        # Topics are the cluster's: those of each group are its own.
        self.groups = [
            _apart(index, _without_empty_racks(group)) for index, group in enumerate(STATES)
        ]
        by_name = {name: oracle.assign(spark, self.groups, assignor=name) for name in ASSIGNORS}
        self.expected: dict[tuple[str, int], tuple[str, set[str]]] = {}
        records = []
        for index, group in enumerate(self.groups):
            answer = by_name[group.assignor][index]
            if isinstance(answer, str):
                continue
            for number, plan in enumerate((answer, _swapped(rng, answer))):
                if plan is None:
                    continue
                fitting = {
                    name
                    for name in ASSIGNORS
                    if oracle.as_sets(by_name[name][index]) == oracle.as_sets(plan)
                }
                self.expected[f"g{index}", number] = group.assignor, fitting
                records.append(_record(f"g{index}", number, group, plan))
        self.records = write(spark, records)
        sizes = [(topic, racks) for group in self.groups for topic, racks in group.topics.items()]
        self.topics = [
            (None, topic, racks, None)
            if isinstance(racks, int)
            else (None, topic, len(racks), [list(of) for of in racks])
            for topic, racks in sizes
        ]


def _apart(index: int, group: Group) -> Group:
    def name(topic: str) -> str:
        return f"{topic}-{index}"

    members = [
        replace(
            member,
            topics=[name(topic) for topic in member.topics],
            owned=[(name(topic), partition) for topic, partition in member.owned],
        )
        for member in group.members
    ]
    return Group({name(t): n for t, n in group.topics.items()}, members, group.assignor)


@pytest.fixture(scope="module")
def case(spark: SparkSession) -> Case:
    return Case(spark)


def _frame(spark: SparkSession, records: list[Bytes]) -> Any:
    rows = [
        {"key": key, "value": value, "topic": "__consumer_offsets", "partition": 7}
        | {"offset": offset, "timestamp": at(offset)}
        for offset, (key, value) in enumerate(records)
    ]
    return spark.createDataFrame(
        pa.Table.from_pylist(rows, arrow_schema(RECORDS.columns)).to_pandas(), RECORDS.columns
    )


def test_the_jars_own_answers_are_explained_and_altered_ones_are_not(
    spark: SparkSession, case: Case
) -> None:
    topics = spark.createDataFrame(case.topics, StructType(TOPICS.columns.fields[:4]))
    raw = _frame(spark, case.records).repartition(3).localCheckpoint()
    with counting(spark) as counted:
        result = explain_history(raw, topics)
        rows = {(row.group_id, row.generation): row for row in result.collect()}
    assert counted.jobs <= 4  # with adaptive execution a shuffle is a job of its own
    assert result.schema == EXPLAINED.columns
    assert rows.keys() == case.expected.keys()
    assert counted.queries == 2
    counts = {True: 0, False: 0}
    for place, (assignor, fitting) in case.expected.items():
        row: Row = rows[place]
        assert row.at.astimezone(UTC) == at(place[1])
        assert row.is_explained == (assignor in fitting), (place, row, fitting)
        assert row.assignor == assignor
        assert row.leader_client.startswith("client-")
        if assignor in fitting:
            assert row.explained_by == assignor
        counts[row.is_explained] += 1
    assert counts[True] > 120
    assert counts[False] > 60


def test_the_kernel_says_the_same_in_pieces(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    records = decoded(case.records)
    sizes = pa.Table.from_pylist(
        [
            {"topic": topic, "size": size, "racks": None if racks is None else json.dumps(racks)}
            for _, topic, size, racks in case.topics
        ],
        SIZES,
    )
    whole = explain_generations(records, sizes)
    monkeypatch.setattr(module, "_WORK", 100)
    assert explain_generations(records, sizes).equals(whole)
    assert set(whole["is_explained"].to_pylist()) == {True, False}


PAIR = Group({"t": 4}, [oracle.Member("a", ["t"]), oracle.Member("b", ["t"])], "range")
RANGE: Assigned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
ROUND: Assigned = {"a": [("t", 0), ("t", 2)], "b": [("t", 1), ("t", 3)]}
NO_ONE: Assigned = {"a": [("t", 0), ("t", 3)], "b": [("t", 1), ("t", 2)]}
WITHHELD = Group(
    {"t": 2},
    [oracle.Member("a", ["t"], [("t", 0), ("t", 1)], 3), oracle.Member("b", ["t"])],
    "cooperative-sticky",
)


def _by_hand(spark: SparkSession, sizes: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """Generations of group g, one after the other."""
    with_other_members = _record("g", 6, PAIR, RANGE)
    assert with_other_members.value is not None
    broken = _record("g", 7, PAIR, RANGE)
    assert broken.value is not None
    broken.value["members"][1]["subscription"] = _text(b"\x00")
    far = RANGE | {"b": [("t", 2), ("t", 2**31 - 1)]}
    records = [
        _record("g", 1, PAIR, RANGE),
        # A static member that came back, which no assignor was asked for.
        _record("g", 1, PAIR, NO_ONE),
        _record("g", 2, PAIR, ROUND),
        _record("g", 3, PAIR, NO_ONE),
        _record("g", 4, PAIR, RANGE, "strict-range"),
        _record("g", 5, WITHHELD, {"a": [("t", 0)], "b": []}),
        Record(2, {"group": "g"}, 3, with_other_members.value | {"protocolType": "connect"}),
        broken,
        _record("g", 8, PAIR, far),
        _empty(9),
        Record(2, {"group": "g"}),
        # Deleted and made anew: the same number is another generation.
        _record("g", 1, PAIR, ROUND),
    ]
    size_table = None
    if sizes is not None:
        topics = [{"topic": topic, "size": size} for topic, size in sizes.items()]
        size_table = pa.Table.from_pylist(topics, SIZES)
    explained = explain_generations(decoded(write(spark, records)), size_table)
    rows: list[dict[str, Any]] = explained.to_pylist()
    return rows


def _empty(number: int) -> Record:
    value = _record("g", number, PAIR, RANGE).value
    assert value is not None
    return Record(2, {"group": "g"}, 3, value | {"members": [], "leader": None, "protocol": None})


def test_generations_by_hand(spark: SparkSession) -> None:
    rows = _by_hand(spark)
    records = [
        (row["generation"], row["explained_by"], row["is_explained"], row["detail"]) for row in rows
    ]
    own = "its own assignor range differs in 2 partitions: t-1 is with b, not with a"
    same = f"{own}; sticky, cooperative-sticky would give the same"
    nearest = "nearest is range: t-1 is with b, not with a"
    assert records == [
        (1, "range", True, AS_ASSIGNED),
        (2, "roundrobin", False, f"{same}; {AS_ASSIGNED}"),
        (3, None, False, f"{nearest}; {AS_ASSIGNED}"),
        (4, "range", None, module.OTHERS),
        (5, "cooperative-sticky", True, AS_ASSIGNED),
        (7, None, None, module.UNREADABLE),
        (8, None, None, module.TOO_MANY),
        (1, "roundrobin", False, f"{same}; {AS_ASSIGNED}"),
    ]
    assert {row["leader_client"] for row in rows} == {"client-a"}


def test_topics_grow(spark: SparkSession) -> None:
    """Generations from before are as if there were no more partitions than they show."""
    for sizes, detail in (({"t": 4}, None), ({"t": 6}, AS_ASSIGNED), ({"u": 1}, AS_ASSIGNED)):
        first, second, third = _by_hand(spark, sizes)[:3]
        assert (first["is_explained"], first["detail"]) == (True, detail)
        assert (second["explained_by"], second["is_explained"]) == ("roundrobin", False)
        assert not third["is_explained"]


def test_what_is_refused(spark: SparkSession) -> None:
    raw = _frame(spark, write(spark, [_record("g", 1, PAIR, RANGE)]))
    for rows, sentence in (
        ("('t', -1)", "topic t with num_partitions -1: Kafka has no such topic"),
        ("('t', 2), ('t', 3)", "topic t has different numbers"),
    ):
        topics = spark.sql(f"SELECT * FROM VALUES {rows} AS v(topic, num_partitions)")
        with pytest.raises(InputError, match=sentence):
            explain_history(raw, topics)
    with pytest.raises(SchemaError, match="num_partitions"):
        explain_history(raw, spark.sql("SELECT 't' AS topic"))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InputError, match="this is a stream"):
        explain_history(stream)
