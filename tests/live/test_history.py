"""Every generation of a real broker's groups has the reason that it had.

Consumers of both protocols join, restart, see a topic grow, crash, come back, subscribe to less and
leave, one thing after the other, each once all has settled. What was done, and what the consumers
then held, is beside what the log says; the pauses are beside the calls of their listeners.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from kassign_spark.history.rebalances import rebalances
from kassign_spark.log.group_log import read_group_log
from tests.kafka import commands
from tests.kafka.consumers import Event, JavaConsumers, State, java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_TOPICS = {"history-t": 4, "history-u": 2}
_ASSIGNORS = {"eager": "range", "cooperative": "cooperative-sticky", "new": None}

Row = dict[str, Any]
Partition = tuple[str, int]


@dataclass(frozen=True)
class _Step:
    """What was done, as the log should say it, and who held what then."""

    reason: str
    client: str
    """Who joined, left or changed: the end of its name; empty: nobody."""
    states: dict[str, State]

    def owners(self, kind: str) -> dict[Partition, str]:
        return {
            partition: name
            for name, state in self.states.items()
            if name.startswith(f"{kind}-")
            for partition in state.assignment
        }


class _Script:
    """Consumers of one group of each protocol, all of which do the same."""

    def __init__(self, consumers: JavaConsumers) -> None:
        self.consumers = consumers
        self.steps: list[_Step] = []
        self.running: set[str] = set()
        self.partitions = sum(_TOPICS.values())
        self.narrow = ""
        """Who reads one topic alone."""

    def start(self, place: str, **settings: str) -> None:
        self.running.add(place)
        for kind, assignor in _ASSIGNORS.items():
            own = {"session_timeout_ms": "6000"} if assignor else {"group_protocol": "consumer"}
            self.consumers.start(
                f"{kind}-{place}",
                f"history-{kind}",
                list(_TOPICS),
                assignor,
                metadata_max_age_ms="500",
                enable_auto_commit="true",
                auto_commit_interval_ms="200",
                **own,
                **settings,
            )

    def end(self, place: str, how: Callable[[str], None]) -> None:
        self.running.discard(place)
        for kind in _ASSIGNORS:
            how(f"{kind}-{place}")

    def subscribe(self, place: str, topic: str) -> None:
        self.narrow = place
        for kind in _ASSIGNORS:
            self.consumers.subscribe(f"{kind}-{place}", [topic])

    def done(self, reason: str, client: str = "") -> None:
        """Wait until all has settled after what was done."""
        states = self.consumers.wait_until(self._settled, 90)
        self.steps.append(_Step(reason, client, states))

    def _settled(self, states: dict[str, State]) -> bool:
        if states.keys() != {f"{kind}-{place}" for kind in _ASSIGNORS for place in self.running}:
            return False
        for kind in _ASSIGNORS:
            of = {name: state for name, state in states.items() if name.startswith(f"{kind}-")}
            owned = [partition for state in of.values() for partition in state.assignment]
            if len({state.generation for state in of.values()}) != 1:
                return False
            if not len(owned) == len(set(owned)) == self.partitions:
                return False
            if self.narrow and any(
                topic == "history-u"
                for name, state in of.items()
                for topic, _ in state.assignment
                if name == f"{kind}-{self.narrow}"
            ):
                return False
        return True


def test_the_log_says_what_was_done(
    spark: SparkSession, broker: SecuredBroker, tmp_path: Path
) -> None:
    address = broker.bootstrap_server
    create_topics(address, _TOPICS)
    with java_consumers(spark, address) as consumers:
        script = _Script(consumers)
        script.start("a")
        script.done("first", "a")
        script.start("b", group_instance_id="b")
        script.done("member_joined", "b")
        # The return of a static member is no rebalance.
        script.end("b", consumers.stop)
        script.start("b", group_instance_id="b")
        script.done("")
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.create_partitions({"history-u": 3})
        admin.close()
        script.partitions += 1
        script.done("partitions_added")
        script.end("a", consumers.crash)
        script.done("member_crashed", "a")
        script.start("a")
        script.done("member_restarted", "a")
        script.subscribe("a", "history-t")
        script.done("subscription_changed", "a")
        script.narrow = ""
        script.end("a", consumers.stop)
        script.done("member_left", "a")
        commands.run(["log", "--bootstrap-server", address, "--save", tmp_path / "log"])
        events = consumers.events()
    log = read_group_log(tmp_path / "log", spark)
    listed = rebalances(log).where("group_id LIKE 'history-%'").orderBy("group_id", "offset")
    rows = [row.asDict() for row in listed.collect()]
    commits: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    mine = log.commits.where("group_id LIKE 'history-%' AND NOT is_tombstone").orderBy("offset")
    for commit in mine.collect():
        place = (commit.group_id, commit.topic, commit.partition)
        commits.setdefault(place, []).append((commit["offset"], _milliseconds(commit["at"])))
    seen = 0
    for kind in _ASSIGNORS:
        own = [row for row in rows if row["group_id"] == f"history-{kind}"]
        _check_steps(kind, own, script.steps)
        of = [event for event in events if event.name.startswith(f"{kind}-")]
        seen += _check_pauses(own, commits, of)
    assert seen


def _check_steps(kind: str, rows: list[Row], steps: list[_Step]) -> None:
    """Each step has its row, in order, and after it rows that only hand over."""
    first, *later = rows
    assert first["reason"] == "first"
    if kind == "new":
        # The coordinator's epochs begin at 1, of which it makes no record.
        assert first["generation"] == 2
        # It may learn of a topic after its first member did.
        while later[0]["reason"] == "partitions_added":
            del later[0]
    else:
        # Empty, before its first member: generation 0.
        assert (first["generation"], first["member_count"]) == (0, 0)
        assert (later[0]["reason"], later[0]["joined_clients"]) == ("member_joined", [f"{kind}-a"])
        del later[0]
    before = steps[0]
    for step in steps[1:]:
        if not step.reason:
            assert step.owners(kind) == before.owners(kind)
            before = step
            continue
        row = later.pop(0)
        reason = step.reason
        if kind == "new" and reason == "member_crashed":
            # This client leaves even so, where it says that it would not: a member that leaves
            # sends a heartbeat at once, with that (AbstractHeartbeatRequestManager.poll).
            reason = "member_left"
        assert row["reason"] == reason, row
        client = [f"{kind}-{step.client}"] if step.client else []
        came = reason in ("member_joined", "member_restarted")
        went = reason in ("member_left", "member_crashed")
        changed = reason == "subscription_changed"
        for column, is_it, of in (
            ("joined", came, step),
            ("left", went, before),
            ("changed", changed, step),
        ):
            assert row[f"{column}_clients"] == (client if is_it else []), row
            ids = [of.states[name].member_id for name in client if is_it]
            # That of a static member is its instance's to begin with.
            assert row[column] == ids, row
        assert len(row["grown_topics"]) == (reason == "partitions_added")
        if kind != "new":  # of which the log has ids of topics
            assert row["grown_topics"] == ["history-u"] * (reason == "partitions_added")
        assert row["static_restarts"] == (reason == "partitions_added")
        assert row["member_count"] == sum(name.startswith(kind) for name in step.states)
        moved, last = row["moved"], row
        while later and later[0]["reason"] == "handover":
            assert kind == "cooperative"
            last = later.pop(0)
            assert (last["joined"], last["left"], last["changed"]) == ([], [], [])
            moved += last["moved"]
        had, has = before.owners(kind), step.owners(kind)
        different = sum(has[partition] != owner for partition, owner in had.items())
        assert moved == different, (row, had, has)
        if last is row:
            assert row["kept"] == len(had) - different
        generations = {s.generation for n, s in step.states.items() if n.startswith(kind)}
        assert generations == {last["generation"]}
        before = step
    assert later == []


def _check_pauses(
    rows: list[Row], commits: dict[tuple[str, str, int], list[tuple[int, int]]], events: list[Event]
) -> int:
    """A pause is between two commits around its record, which are around what consumers saw.

    Around by their offsets: a commit may be of the record's very millisecond.

    Returns:
        How many were of a partition that a consumer gave up before the record and got after it.
    """
    seen = 0
    for row in rows:
        if row["longest_pause"] is None:
            continue
        topic, partition = row["longest_pause_topic"], row["longest_pause_partition"]
        times, at = commits[row["group_id"], topic, partition], _milliseconds(row["at"])
        around = [
            (begin, end)
            for (before, begin), (after, end) in pairwise(times)
            if before < row["offset"] < after
        ]
        assert len(around) == 1, (row, times)
        begin, end = around[0]
        assert begin <= at <= end, (row, times)
        assert end - begin == round(row["longest_pause"] * 1000), (row, times)
        calls = [e for e in events if (topic, partition) in e.partitions]
        for gave, got in pairwise(calls):
            if gave.event == "revoked" and got.event == "assigned" and gave.at <= at <= got.at:
                # Who gives it up has committed before, and who gets it commits after.
                seen += 1
                assert begin <= gave.at <= got.at <= end, (row, gave, got)
    return seen


def _milliseconds(time: datetime) -> int:
    return round(time.astimezone(UTC).timestamp() * 1000)
