"""Every kind of event: what starts a rebalance, and what does not; many groups, few steps."""

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from kassign_spark.simulation.events import EVENTS
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member

_SESSION, _POLL, _METADATA, _INITIAL = 45_000, 300_000, 300_000, 3_000
_TOPICS = {"t": 6, "u": 4, "orders-eu": 2}


class Scenario:
    """A group whose members own what its assignor has given them, and what happens to it."""

    def __init__(
        self, assignor: str, *events: dict[str, Any], static: bool = False, **members: Any
    ):
        self.assignor, self.events, self.static = assignor, events, static
        self.members = members or {m: ["t"] for m in ("C0", "C1", "C2")}

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows = []
        for member, subscription in self.members.items():
            row: dict[str, Any] = {"group_id": name, "member_id": member, "generation": 3}
            row["topics_pattern" if isinstance(subscription, str) else "topics"] = subscription
            row["group_instance_id"] = f"i-{member}" if self.static else None
            rows.append({**row, "assignor": self.assignor})
        return rows


def e(kind: str, member_id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "member_id": member_id, **more}


_LEAVES = e("member_leaves", "C1")
_CRASHES = e("member_crashes", "C1")
_TOO_LATE = e("member_polls_too_late", "C1")
_JOINS = e("member_joins", "C9")
_RESTARTS = e("member_restarts", "C1", downtime_ms=20_000)

SCENARIOS = {
    "joins": Scenario("cooperative-sticky", _JOINS),
    "joins-eager": Scenario("sticky", _JOINS),
    "leaves": Scenario("cooperative-sticky", _LEAVES),
    "leaves-static": Scenario("range", _LEAVES, static=True),
    "crashes": Scenario("range", _CRASHES),
    "crashes-static": Scenario("cooperative-sticky", _CRASHES, static=True),
    "too-late": Scenario("roundrobin", _TOO_LATE),
    "too-late-static": Scenario("sticky", _TOO_LATE, static=True),
    "restarts": Scenario("sticky", _RESTARTS),
    "back-in-time": Scenario("sticky", {**_RESTARTS, "new_member_id": "C1-again"}, static=True),
    "back-too-late": Scenario("sticky", {**_RESTARTS, "session_timeout_ms": 20_000}, static=True),
    "back-with-more": Scenario("range", {**_RESTARTS, "topics": ["t", "u"]}, static=True),
    "back-with-other": Scenario("range", {**_RESTARTS, "topics": ["u"]}, static=True),
    "resubscribes": Scenario(
        "cooperative-sticky", e("subscription_changes", "C1", topics=["t", "u"])
    ),
    "all-resubscribe": Scenario("range", e("subscription_changes", topics=["u"])),
    "same-subscription": Scenario("range", e("subscription_changes", topics=["t"])),
    "same-by-pattern": Scenario("range", e("subscription_changes", topics_pattern="t")),
    "same-pattern": Scenario(
        "range", e("subscription_changes", topics_pattern="t+"), C0="t", C1="t|x"
    ),
    "other-pattern": Scenario(
        "range", e("subscription_changes", topics_pattern="[tu]"), C0="t", C1="t|x"
    ),
    "last-leaves": Scenario(
        "range", e("member_leaves", "C0"), e("member_joins", "C5", topics=["t"]), C0=["t"]
    ),
    "first-bounce": Scenario(
        "range",
        e("assignor_changes", "C0", assignors=["cooperative-sticky", "range"]),
        static=True,
    ),
    "refused": Scenario("range", e("member_joins", "C9", assignors=["sticky"])),
    "lists": Scenario("range", C0=["orders-eu"], C1=["t"], C2=["orders-us"]),
    "by-pattern": Scenario("cooperative-sticky", C0="orders-.*", C1="orders-.*"),
}
_CLUSTER = [
    e("topic_grows", topic="t", num_partitions=9),
    e("topic_appears", topic="orders-us", num_partitions=2),
    e("topic_appears", topic="__share_group_state", num_partitions=2),
    e("topic_disappears", topic="orders-eu"),
]
_BARRIER = 10


def events_frame(spark: SparkSession, rows: list[dict[str, Any]]) -> Any:
    fields = [
        StructField(f.name, LongType() if isinstance(f.dataType, IntegerType) else f.dataType)
        for f in EVENTS.columns
        if f.name != "cluster_id" or any("cluster_id" in row for row in rows)
    ]
    return spark.createDataFrame(
        [tuple(row.get(f.name) for f in fields) for row in rows], StructType(fields)
    )


def fleet(spark: SparkSession) -> tuple[list[Any], dict[str, int], list[Any]]:
    """The groups as rows; what is owned is what Kafka's own assignor gives."""
    rows = {name: of.rows(name) for name, of in SCENARIOS.items()}
    groups = [
        Group(_TOPICS, [Member(r["member_id"], _known(r)) for r in of], of[0]["assignor"])
        for of in rows.values()
    ]
    owned = []
    for name, answer in zip(rows, oracle.assign(spark, groups), strict=True):
        assert isinstance(answer, dict)
        owned += [
            {"group_id": name, "member_id": m, "topic": t, "partition": p}
            for m, tps in answer.items()
            for t, p in tps
        ]
    return [row for of in rows.values() for row in of], _TOPICS, owned


def events() -> list[dict[str, Any]]:
    """What happens to each group, and then to the topics of all."""
    rows = [
        {**event, "event": n, "group_id": name}
        for name, of in SCENARIOS.items()
        for n, event in enumerate(of.events)
    ]
    return rows + [{**event, "event": _BARRIER + n} for n, event in enumerate(_CLUSTER)]


def _known(row: dict[str, Any]) -> list[str]:
    if "topics" in row:
        return [t for t in row["topics"] if t in _TOPICS]
    import re

    return [t for t in _TOPICS if re.fullmatch(row["topics_pattern"], t)]


Simulated = dict[tuple[str, int, int], list[Row]]


def outcome(simulated: Simulated, name: str, event: int = 0, stage: int = 1) -> tuple[Any, ...]:
    rows = simulated[name, event, stage]
    assert len({(r.rebalance, r.reason, r.noticed_within_ms) for r in rows}) == 1
    return rows[0].rebalance, rows[0].noticed_within_ms, max(r["round"] or 0 for r in rows)


@pytest.mark.parametrize(
    ("name", "rebalance", "noticed", "rounds"),
    [
        ("joins", True, 0, 2),
        ("joins-eager", True, 0, 1),
        ("leaves", True, 0, 1),
        ("leaves-static", True, _SESSION, 1),
        ("crashes", True, _SESSION, 1),
        ("crashes-static", True, _SESSION, 1),
        ("too-late", True, _POLL, 1),
        ("too-late-static", True, _POLL + _SESSION, 1),
        ("restarts", True, 0, 1),
        ("back-too-late", True, 20_000, 1),
        ("resubscribes", True, 0, 2),
        ("all-resubscribe", True, 0, 1),
        ("same-subscription", False, None, 0),
        ("same-by-pattern", True, 0, 1),
        ("same-pattern", False, None, 0),
        ("other-pattern", True, 0, 1),
        ("last-leaves", True, 0, 0),
        ("refused", False, None, 0),
    ],
)
def test_what_starts_a_rebalance(
    simulated: Simulated, name: str, rebalance: bool, noticed: int | None, rounds: int
) -> None:
    assert outcome(simulated, name) == (rebalance, noticed, rounds)
    joined = simulated[name, 0, 1][0].joined_within_ms
    assert joined == (_POLL if rebalance else None)


@pytest.mark.parametrize(
    ("name", "rebalance", "noticed", "rounds"),
    [
        ("restarts", True, 0, 1),
        ("back-in-time", False, None, 0),
        ("back-too-late", True, 0, 1),
        ("back-with-more", False, None, 0),
        ("back-with-other", True, 0, 1),
        ("first-bounce", False, None, 0),
    ],
)
def test_a_restarted_member_comes_back(
    simulated: Simulated, name: str, rebalance: bool, noticed: int | None, rounds: int
) -> None:
    assert outcome(simulated, name, stage=2) == (rebalance, noticed, rounds)
    assert ((name, 0, 1) in simulated) == (name in ("restarts", "back-too-late"))


def test_topics_touch_their_subscribers_alone(simulated: Simulated) -> None:
    grown = {
        name for (name, event, _), rows in simulated.items() if event == 10 and rows[0].rebalance
    }
    assert grown == set(SCENARIOS) - {"all-resubscribe", "by-pattern"}
    assert outcome(simulated, "joins", 10)[:2] == (True, _METADATA)
    appeared = {
        name for (name, event, _), rows in simulated.items() if event == 11 and rows[0].rebalance
    }
    assert appeared == {"lists", "by-pattern"}
    assert not any(rows[0].rebalance for (_, event, _), rows in simulated.items() if event == 12)
    gone = {
        name for (name, event, _), rows in simulated.items() if event == 13 and rows[0].rebalance
    }
    assert gone == {"lists", "by-pattern"}


def final_owned(rows: list[Row]) -> dict[str, set[tuple[str, int]]]:
    last = max(r["round"] or 0 for r in rows)
    result: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        if row["round"] == last and row.action in ("retained", "assigned"):
            result[row.member_id].add((row.topic, row.partition))
    return result


def test_each_event_meets_the_state_that_the_one_before_left(
    simulated: Simulated, spark: SparkSession
) -> None:
    """The final state of groups whose assignor knows nothing of the past is what Kafka gives."""
    joined = ["C0", "C1", "C2", "C9"]
    after = {
        "leaves-static": ["C0", "C2"],
        "crashes": ["C0", "C2"],
        "too-late": ["C0", "C2"],
        "back-with-more": ["C0", "C1", "C2"],
        "last-leaves": ["C5"],
        "refused": ["C0", "C1", "C2"],
    }
    sizes = {**_TOPICS, "t": 9}
    for name, members in after.items():
        topics = {m: ["t"] for m in members}
        if name == "back-with-more":
            topics["C1"] = ["t", "u"]
        group = Group(sizes, [Member(m, topics[m]) for m in members], SCENARIOS[name].assignor)
        if name in ("leaves-static", "back-with-more"):
            group = Group(
                sizes,
                [Member(m, topics[m], group_instance_id=f"i-{m}") for m in members],
                SCENARIOS[name].assignor,
            )
        [answer] = oracle.assign(spark, [group])
        assert isinstance(answer, dict)
        result = final_owned(simulated[name, 10, 1])
        assert {m: sorted(result[m]) for m in members} == oracle.as_sets(answer), name
    sticky = final_owned(simulated["joins", 10, 1])
    assert {m: len(tps) for m, tps in sticky.items()} == dict(
        zip(joined, [3, 2, 2, 2], strict=True)
    )
    before = final_owned(simulated["joins", 0, 1])
    assert all(before[m] <= sticky[m] for m in joined)


def test_what_a_member_had_that_goes_is_told(simulated: Simulated) -> None:
    for name, action in {"leaves": "revoked", "crashes": "lost", "too-late-static": "lost"}.items():
        gone = [r for r in simulated[name, 0, 1] if r["round"] == 0]
        assert {r.member_id for r in gone} == {"C1"}
        assert {r.action for r in gone} == {action}
        assert len(gone) == 2
    assert {r.reason for r in simulated["refused", 0, 1]} == {
        "the member is refused: no assignor is on every list (INCONSISTENT_GROUP_PROTOCOL)"
    }
    # The new id of a static member takes over, whatever comes then.
    assert {r.member_id for r in simulated["back-in-time", 10, 1]} == {"C0", "C1-again", "C2"}
