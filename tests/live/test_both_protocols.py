"""What we say of groups of the new protocol, and of groups on their way to it, is what happens.

Real consumers join, leave, restart and change their protocol, one step after the other, the groups
side by side; in between everything settles and is described. Then all is predicted at once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from kassign_spark import listener_calls, migrate
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from tests.coordinator.predicted import predict_consumer_groups
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_TOPICS = {"both-grown": 6, "both-t": 12, "both-u": 4}
_GROWN = {"both-grown": 9}
_SECONDS = 120

Partition = tuple[str, int]
Act = Callable[[JavaConsumers], None]


class Starts(NamedTuple):
    """How the consumers of a group are started."""

    topics: list[str]
    assignor: str
    """Of the classic protocol."""
    static: tuple[str, ...] = ()
    """Places of members that have an instance id."""


GROUPS = {
    # Of the new protocol only.
    "new": Starts(["both-grown", "both-u"], "range", static=("s",)),
    # On their way there and back; counts that 2 and 3 divide, so that ids decide nothing.
    "dynamic": Starts(["both-t"], "cooperative-sticky"),
    "mixed": Starts(["both-t"], "range", static=("c",)),
    "static": Starts(["both-t"], "range", static=("a", "b")),
}


class Step(NamedTuple):
    """One thing that happens to a member of a group, which all others see settle."""

    action: str
    place: str = ""


def _start(consumers: JavaConsumers, group: str, place: str, *, new: bool) -> None:
    of = GROUPS[group]
    settings = {"group_instance_id": f"{group}-{place}"} if place in of.static else {}
    if new:
        settings["group_protocol"] = "consumer"
    assignor = None if new else of.assignor
    consumers.start(f"{group}-{place}", f"both-{group}", of.topics, assignor, **settings)


def _restarts(places: str, static: str = "") -> list[Step]:
    """Leave and join of each member; a static one does both at once."""
    steps = []
    for place in places:
        steps += [Step("replace", place)] if place in static else [
            Step("leave", place),
            Step("join", place),
        ]  # fmt: skip
    return steps


_UP = {
    "dynamic": _restarts("abc"),
    "mixed": _restarts("abc", "c"),
    "static": _restarts("ab", "ab"),
}
SCRIPTS: dict[str, list[Step]] = {
    "new": [Step("join", "b"), Step("join", "c"), Step("replace", "s"), Step("leave", "b"),
            Step("grow"), Step("join", "d")],
    **{group: [*steps, *steps] for group, steps in _UP.items()},
}  # fmt: skip
FIRST = {"new": "as", "dynamic": "abc", "mixed": "abc", "static": "ab"}


class Moment(NamedTuple):
    """Everything at one time at which every group has settled."""

    tables: ClusterTables
    states: dict[str, State]


class History(NamedTuple):
    """Moments, and which step each group took before each of them but the first."""

    moments: list[Moment]
    steps: list[dict[str, Step]]


@pytest.fixture(scope="module")
def history(spark: SparkSession, broker: SecuredBroker) -> Iterator[History]:
    address = broker.bootstrap_server
    create_topics(address, _TOPICS)
    with java_consumers(spark, address) as consumers:
        for group, places in FIRST.items():
            for place in places:
                _start(consumers, group, place, new=group == "new")
        moments = [_settled(consumers, address, None, {}, dict(_TOPICS))]
        taken: list[dict[str, Step]] = []
        sizes = dict(_TOPICS)
        for number in range(max(map(len, SCRIPTS.values()))):
            now = {g: steps[number] for g, steps in SCRIPTS.items() if number < len(steps)}
            for group, step in now.items():
                as_new = group == "new" or number < len(_UP[group])
                if step.action in ("leave", "replace"):
                    consumers.stop(f"{group}-{step.place}")
                if step.action in ("join", "replace"):
                    _start(consumers, group, step.place, new=as_new)
                if step.action == "grow":
                    admin = KafkaAdminClient(bootstrap_servers=address)
                    admin.create_partitions(_GROWN)
                    admin.close()
                    sizes |= _GROWN
            moments.append(_settled(consumers, address, moments[-1], now, sizes))
            taken.append(now)
        yield History(moments, taken)


def _settled(
    consumers: JavaConsumers,
    address: str,
    before: Moment | None,
    steps: Mapping[str, Step],
    sizes: Mapping[str, int],
) -> Moment:
    """Wait until every group has changed, if it should, and everybody has what he is to have."""
    for _ in range(_SECONDS):
        states = consumers.wait_until(
            lambda states_of: all(s.member_id for s in states_of.values())
        )
        tables = read_cluster(address, consumer_groups=True)
        if consumers.states() == states and all(
            _has_settled(group, tables, states, before, steps.get(group), sizes) for group in GROUPS
        ):
            return Moment(tables, states)
    raise TimeoutError(f"after {steps} the groups are {states}")


def _has_settled(
    group: str,
    tables: ClusterTables,
    states: Mapping[str, State],
    before: Moment | None,
    step: Step | None,
    sizes: Mapping[str, int],
) -> bool:
    rows = {row[2]: row for row in tables.members if row[1] == f"both-{group}"}
    mine = {s.member_id: s.assignment for s in states.values() if s.group_id == f"both-{group}"}
    is_new = any(row[-1] == "consumer" for row in rows.values())
    has = _by_member(tables.target if is_new else tables.owned, group)
    if set(rows) != set(mine) or any(mine[m] != has.get(m, []) for m in rows):
        return False
    if sum(map(len, has.values())) != sum(sizes[topic] for topic in GROUPS[group].topics):
        return False
    epochs = {row[7] for row in rows.values()}
    if before is not None and is_new and step and step.action != "replace":
        # A newcomer has the old epoch until the target is computed.
        old = [r[7] for r in before.tables.members if r[1] == f"both-{group}" and r[-1]]
        return len(epochs) == 1 and (not old or min(epochs) > max(old))
    return len(epochs) == 1


def _by_member(rows: Any, group: str) -> dict[str, list[Partition]]:
    result: dict[str, list[Partition]] = {}
    for row in rows:
        if row[1] == f"both-{group}":
            result.setdefault(row[2], []).append((row[3], row[4]))
    return {member: sorted(tps) for member, tps in result.items()}


class Predicted(NamedTuple):
    """By number of the step and group: verdict, target by member, calls by member."""

    verdicts: dict[tuple[int, str], str]
    targets: dict[tuple[int, str], dict[str, list[Partition]]]
    calls: dict[tuple[int, str], dict[str, list[tuple[str, list[Partition]]]]]


@pytest.fixture(scope="module")
def predicted(spark: SparkSession, history: History) -> Predicted:
    """Each step's answer, from what was before it; each in a cluster of its own."""
    members, topics, owned, target = [], [], [], []
    for number, taken in enumerate(history.steps):
        before, after = history.moments[number].tables, history.moments[number + 1].tables
        cluster = f"{number:02d}"
        topics += [(cluster, *row[1:]) for row in after.topics if row[1] in _TOPICS]
        for group in taken:
            name = f"both-{group}"
            here = [row for row in after.members if row[1] == name and row[-1] == "consumer"]
            members += [(cluster, *row[1:7], *_epoch(row, before), *row[8:]) for row in here]
            renamed = _renamed(before, here)
            had = before.target or []
            was_new = any(row[1] == name for row in had)
            list_of = had if was_new else [(*row, None) for row in before.owned]
            for row in list_of:
                member = renamed.get(row[2])
                if row[1] == name and member and here:
                    target.append((cluster, name, member, *row[3:]))
                    owned.append((cluster, name, member, *row[3:5]))
    tables = ClusterTables(members, topics, owned, [], target)
    snapshot = to_snapshot(tables, spark)
    result = predict_consumer_groups(
        snapshot.members, snapshot.topics, snapshot.owned, target=snapshot.target
    )
    calls = listener_calls(result.steps, snapshot.members).orderBy("round", "call").collect()
    answer = Predicted({}, {}, {})
    for row in result.verdicts.collect():
        answer.verdicts[int(row.cluster_id), row.group_id[5:]] = row.verdict
    for row in result.assignment.collect():
        of_group = answer.targets.setdefault((int(row.cluster_id), row.group_id[5:]), {})
        of_group.setdefault(row.member_id, []).append((row.topic, row.partition))
    for row in calls:
        calls_of_member = answer.calls.setdefault((int(row.cluster_id), row.group_id[5:]), {})
        moment = row.callback.removeprefix("onPartitions").lower()
        partitions = sorted((p.topic, p.partition) for p in row.partitions)
        calls_of_member.setdefault(row.member_id, []).append((moment, partitions))
    return answer


def _epoch(row: Any, before: ClusterTables) -> tuple[int | None]:
    """The epoch that a member had; none of one that has just come."""
    return (next((r[7] for r in before.members if r[2] == row[2]), None),)


def _renamed(before: ClusterTables, after: list[Any]) -> dict[str, str]:
    """Ids of members that are still there, or whose place another one has taken."""
    by_instance = {row[3]: row[2] for row in after if row[3]}
    here = {row[2] for row in after}
    return {
        row[2]: row[2] if row[2] in here else by_instance[row[3]]
        for row in before.members
        if row[2] in here or (row[3] and row[3] in by_instance)
    }


def test_every_target_is_the_brokers(history: History, predicted: Predicted) -> None:
    compared = 0
    for number, taken in enumerate(history.steps):
        after = history.moments[number + 1].tables
        for group, step in taken.items():
            target = _by_member(after.target, group)
            if not target or step.action == "replace":
                # Nothing is computed then: the next test has it.
                continue
            mine = predicted.targets[number, group]
            assert {m: sorted(tps) for m, tps in mine.items()} == target, (number, group, step)
            compared += 1
    # A classic group's first target, and all of the new protocol; not what is classic again.
    assert compared >= 15


def test_a_static_restart_moves_nothing(history: History) -> None:
    """Neither in a new group nor from one protocol to the other, either way."""
    seen = 0
    for number, taken in enumerate(history.steps):
        before, after = (history.moments[number + i].states for i in (0, 1))
        for group, step in taken.items():
            if step.action != "replace":
                continue
            for name in before:
                if name.startswith(f"{group}-"):
                    assert before[name].assignment == after[name].assignment, (number, name)
                    if name != f"{group}-{step.place}":
                        assert before[name].events == after[name].events, (number, name)
            seen += 1
    assert seen == 7


def test_every_listener_call_of_the_new_protocol(history: History, predicted: Predicted) -> None:
    """Of all members that speak it, alone or beside classic ones on their way there and back.

    What arrives may come in pieces, as its holders let go of it one after the other.
    """
    compared = {"alone": 0, "beside classic ones": 0}
    for number, taken in enumerate(history.steps):
        for group, step in taken.items():
            is_there = (number, group) in predicted.verdicts
            if step.action == "replace" or not is_there:
                continue
            calls = predicted.calls.get((number, group), {})
            new = _new_places(group, number)
            for name, state in history.moments[number + 1].states.items():
                if state.group_id != f"both-{group}" or (new is not None and name[-1] not in new):
                    continue
                events = _since(history, number, name)
                expected = calls.get(state.member_id, [])
                assert _merged(events) == _merged(expected), (number, name, events, expected)
                # The client always says what was assigned, also when it is nothing.
                assert bool(events) == bool(expected), (number, name)
                compared["alone" if new is None else "beside classic ones"] += len(events)
    assert compared["alone"] >= 12
    assert compared["beside classic ones"] >= 12


def _new_places(group: str, number: int) -> set[str] | None:
    """Members of the new protocol after a step of a group that changes over; None: all are."""
    if group == "new":
        return None
    steps = SCRIPTS[group][: number + 1]
    up, down = steps[: len(_UP[group])], steps[len(_UP[group]) :]
    came = {step.place for step in up if step.action != "leave"}
    return came - {step.place for step in down}


def _since(history: History, number: int, name: str) -> list[tuple[str, list[Partition]]]:
    """Calls of a consumer since the moment before; of one that has just started, all."""
    before = history.moments[number].states.get(name)
    state = history.moments[number + 1].states[name]
    is_same = before is not None and before.member_id == state.member_id
    return state.events[len(before.events) :] if before and is_same else state.events


def _merged(calls: list[tuple[str, list[Partition]]]) -> dict[str, list[Partition]]:
    result: dict[str, list[Partition]] = {"revoked": [], "assigned": [], "lost": []}
    for moment, partitions in calls:
        result[moment] += partitions
    return {moment: sorted(tps) for moment, tps in result.items()}


@pytest.mark.parametrize("to", ["consumer", "classic"])
def test_a_migration_step_by_step(spark: SparkSession, history: History, to: str) -> None:
    """Each restart moves, pauses and leaves unread as many partitions as ``migrate`` says."""
    wrong = []
    for group, assignor in (
        ("dynamic", "cooperative-sticky"),
        ("mixed", "range"),
        ("static", "range"),
    ):
        first = 0 if to == "consumer" else len(_UP[group])
        start = history.moments[first]
        steps = _migrated(spark, start, group, to, assignor)
        assert [(s.event, s.place) for s in steps] == [(s.action, s.place) for s in _UP[group]]
        for number, step in enumerate(steps, start=first):
            seen = _observed(history, number, group, step.place)
            if step.counts != seen:
                wrong.append((group, number, step, seen))
    assert wrong == []


class StepSummary(NamedTuple):
    """What ``migrate`` says of one step: its event, whose, and moved, paused and unread."""

    event: str
    place: str
    counts: tuple[int, int, int]


def _migrated(
    spark: SparkSession, start: Moment, group: str, to: str, assignor: str
) -> list[StepSummary]:
    snapshot = to_snapshot(start.tables, spark)
    name = f"both-{group}"
    places = {s.member_id: n[-1] for n, s in start.states.items() if s.group_id == name}
    order = [(name, member, "abc".index(place)) for member, place in places.items()]
    steps, verdicts = migrate(
        snapshot.members.where(f"group_id = '{name}'"),
        snapshot.topics,
        None if snapshot.owned is None else snapshot.owned.where(f"group_id = '{name}'"),
        to=to,
        order=spark.createDataFrame(order, "group_id string, member_id string, position int"),
        assignor=assignor if to == "classic" else None,
    )
    (verdict,) = verdicts.collect()
    assert (verdict.verdict, verdict.way) == ("ready", "online")
    return [
        StepSummary(row.event, places[row.member_id], (row.moved, row.paused, row.unread))
        for row in steps.orderBy("step").collect()
    ]


def _observed(history: History, number: int, group: str, place: str) -> tuple[int, int, int]:
    """Partitions that went to another member, that one that stays gave up, that lay idle."""
    before, after = (_holders(history.moments[number + i], group) for i in (0, 1))
    moved = sum(before[tp] != name for tp, name in after.items() if tp in before)
    paused = 0
    for name, state in history.moments[number + 1].states.items():
        if state.group_id == f"both-{group}" and name != f"{group}-{place}":
            calls = _merged(_since(history, number, name))
            assert calls["lost"] == [], (number, name)
            paused += len(set(calls["revoked"]))
    is_here = f"{group}-{place}" in history.moments[number].states
    unread = sum(name == f"{group}-{place}" for name in before.values()) if is_here else 0
    return moved, paused, unread


def _holders(moment: Moment, group: str) -> dict[Partition, str]:
    return {
        tp: name
        for name, state in moment.states.items()
        if state.group_id == f"both-{group}"
        for tp in state.assignment
    }
