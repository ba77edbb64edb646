"""librdkafka's assignors, beside real consumers on its own mock cluster.

Member ids are the cluster's, so static members are in another order by them.
"""

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from kassign_spark.client_libraries import LIBRDKAFKA
from kassign_spark.plans.exact import follow_exactly_arrow
from tests.clients.mock_cluster import Joined, join, mock_cluster, settle
from tests.clients.test_eager import predicted
from tests.kafka.oracle import Group, Member
from tests.task_rows import SCHEMA, name_of, rows_of

_TOPICS = {"a": 1, "t": 3, "u": 5, "v": 12}
_GROUPS = 24
_SESSION = {
    # The mock cluster waits as long for members to come to the next rebalance. On a busy machine it
    # may also leave a group in the middle of one until the first session ends.
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "300",
}

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_processes")]

Holdings = dict[str, set[tuple[str, int]]]


def _state(group: Sequence[Joined], holdings: Holdings, generation: int) -> Group:
    members = []
    for joined in group:
        member_id = str(joined.consumer.memberid())
        instance = joined.settings.get("group.instance.id")
        owned = sorted(holdings.get(member_id, ()))
        number = generation if owned else None
        members.append(Member(member_id, joined.topics, owned, number, instance))
    return Group(_TOPICS, members, group[0].settings["partition.assignment.strategy"])


def _owned(group: Sequence[Joined]) -> Holdings:
    return {str(joined.consumer.memberid()): joined.partitions for joined in group}


def _topics(rng: random.Random) -> list[str]:
    return rng.sample([*_TOPICS], rng.randint(1, 3))


def test_range_and_roundrobin() -> None:
    rng = random.Random(5)
    groups = []
    with mock_cluster(_TOPICS) as address:
        for number in range(_GROUPS):
            strategy = {"partition.assignment.strategy": rng.choice(("range", "roundrobin"))}
            static_share, shared = rng.choice((0, 0.5, 1)), _topics(rng)
            is_alike = rng.random() < 0.5
            group = []
            for place in range(rng.randint(1, 4)):
                static = {"group.instance.id": f"i{rng.randint(0, 9)}{place}"}
                settings = strategy | (static if rng.random() < static_share else {})
                topics = shared if is_alike else _topics(rng)
                group.append(join(address, name_of(number), _SESSION | settings, topics))
            groups.append(group)
        settle(_TOPICS, groups)
        states = [_state(group, {}, 0) for group in groups]
        settled = [_owned(group) for group in groups]
        for group in groups:
            for joined in group:
                joined.consumer.close()
    equal = 0
    answers = predicted(LIBRDKAFKA, states)
    for state, owned, (verdict, predicted_answer) in zip(states, settled, answers, strict=True):
        if verdict != "undefined":
            assert (verdict, predicted_answer) == ("ok", owned), state
            equal += 1
    assert equal >= 0.9 * _GROUPS


def test_cooperative_sticky_through_its_rounds() -> None:
    """A member joins a group that has settled.

    All of a group subscribe alike: where they differ, a leader may crash, and this process with it.
    """
    rng = random.Random(7)
    strategy = {"partition.assignment.strategy": "cooperative-sticky"} | _SESSION
    groups = []
    with mock_cluster(_TOPICS) as address:
        for number in range(_GROUPS):
            topics, count = _topics(rng), rng.randint(1, 3)
            groups.append([join(address, name_of(number), strategy, topics) for _ in range(count)])
        settle(_TOPICS, groups)
        states = [[_state(group, {}, 0) for group in groups]]
        settled = [[_owned(group) for group in groups]]
        undisturbed = [[_is_expected(group, {("assign",)}) for group in groups]]
        for number, group in enumerate(groups):
            group.append(join(address, name_of(number), strategy, group[0].topics))
        settle(_TOPICS, groups)
        states.append(
            [_state(group, owned, 1) for group, owned in zip(groups, settled[-1], strict=True)]
        )
        settled.append([_owned(group) for group in groups])
        undisturbed.append(
            [
                _is_expected(group, _AFTER_A_JOIN)
                and settled[0][number].keys() < settled[1][number].keys()
                for number, group in enumerate(groups)
            ]
        )
        for group in groups:
            for joined in group:
                joined.consumer.close()
    verdicts = [
        _check(state, owned, answer)
        for step in range(2)
        for state, owned, answer, is_known in zip(
            states[step], settled[step], _followed(states[step]), undisturbed[step], strict=True
        )
        if is_known
    ]
    # On a busy machine some groups rebalance once more, and their history is not known.
    assert len(verdicts) >= _GROUPS // 2
    assert verdicts.count("ok") >= 0.9 * len(verdicts)


_AFTER_A_JOIN = {
    ("assign",),
    ("assign", "assign"),
    ("revoke", "assign", "assign"),
}
"""Calls of a member when another one joins: the second rebalance is there if anything moves."""


def _is_expected(group: Sequence[Joined], expected: set[tuple[str, ...]]) -> bool:
    """Return whether the members received no calls but these; forget them.

    Each rebalance ends with a call `assign`, though there is nothing new.
    """
    calls = {tuple(joined.calls) for joined in group}
    for joined in group:
        joined.calls.clear()
    return calls <= expected


def _check(state: Group, owned: Holdings, answer: tuple[str, Holdings]) -> str:
    verdict, predicted_answer = answer
    if verdict == "ok":
        assert predicted_answer == owned, state
    return verdict


def _followed(states: Sequence[Group]) -> list[tuple[str, Holdings]]:
    """Return each group's verdict, and what members have when the last round is over."""
    rows = [r for n, group in enumerate(states) for r in rows_of(group, name_of(n), LIBRDKAFKA)]
    answers: list[tuple[str, Holdings]] = [
        ("", {member.member_id: set() for member in group.members}) for group in states
    ]
    last = [0] * len(states)
    pieces = [
        row
        for t in follow_exactly_arrow(pa.Table.from_pylist(rows, SCHEMA))
        for row in t.to_pylist()
    ]
    for row in pieces:
        number = int(row["group_id"][1:])
        if row["member_id"] is None:
            answers[number] = row["verdict"], answers[number][1]
        else:
            last[number] = max(last[number], row["round"])
    for row in pieces:
        number = int(row["group_id"][1:])
        if row["round"] == last[number] and row["action"] in ("retained", "assigned"):
            answers[number][1][row["member_id"]] |= {(row["topic"], p) for p in row["partitions"]}
    return answers
