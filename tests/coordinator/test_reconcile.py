"""Rounds of heartbeats towards a new target: small cases, and the coordinator's own."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from kassign_spark.coordinator.reconcile import (
    MOST_ROUNDS,
    NEVER,
    Pairs,
    Steps,
    actions_in,
    reconcile,
)
from kassign_spark.plans.listener import consumer_listener_calls
from tests.coordinator.chains import Computation
from tests.coordinator.described_states import Described


def pairs(text: str) -> Pairs:
    """From "0:1,2 1:3": member, then its partitions."""
    result = [
        (int(part.split(":")[0]), int(p))
        for part in text.split()
        for p in part.split(":")[1].split(",")
    ]
    both = np.array(result, dtype=np.int64).reshape(-1, 2)
    return Pairs(both[:, 0], both[:, 1])


def followed(owned: str, target: str, count: int, away: tuple[int, ...] = ()) -> Steps:
    is_away = np.zeros(count, dtype=bool)
    is_away[list(away)] = True
    return reconcile(pairs(owned), pairs(target), is_away)


def shown(steps: Steps, number: int) -> dict[str, str]:
    actions = actions_in(steps, number)
    return {
        f"{m}:{p}": str(action)
        for m, p, action in zip(steps.members, steps.partitions, actions, strict=True)
        if action
    }


def test_a_member_that_joins_waits_for_what_others_give_up() -> None:
    steps = followed("0:0,1,2,3", "0:0,1 1:2,3", 2)
    assert steps.round_count == MOST_ROUNDS
    assert steps.arrived_in.tolist() == [2, 1]
    kept = {"0:0": "retained", "0:1": "retained"}
    goes = {"0:2": "revoked", "0:3": "revoked"}
    assert shown(steps, 1) == kept | goes | {"1:2": "withheld", "1:3": "withheld"}
    assert shown(steps, 2) == kept | {"1:2": "withheld", "1:3": "withheld"}
    assert shown(steps, 3) == kept | {"1:2": "assigned", "1:3": "assigned"}


def test_what_a_leaver_had_arrives_in_the_first_round() -> None:
    steps = followed("0:0,1", "0:0,1,2 1:3", 2)
    assert steps.round_count == 1
    assert shown(steps, 1)["0:2"] == shown(steps, 1)["1:3"] == "assigned"


def test_a_loser_gets_free_partitions_only_after_it_has_confirmed() -> None:
    steps = followed("0:0,1", "0:1,2", 1)
    assert steps.round_count == 2
    assert shown(steps, 1) == {"0:0": "revoked", "0:1": "retained", "0:2": "withheld"}
    assert shown(steps, 2) == {"0:1": "retained", "0:2": "assigned"}


def test_a_swap_and_a_chain_take_no_more_than_three_rounds() -> None:
    assert followed("0:0 1:1", "0:1 1:0", 2).round_count == MOST_ROUNDS
    assert followed("0:0 1:1 2:2", "0:2 1:0 2:1", 3).round_count == MOST_ROUNDS


def test_a_static_member_that_is_away_gives_nothing_and_gets_nothing() -> None:
    steps = followed("0:0,1 1:2", "0:0,2 1:1 2:3", 3, away=(0,))
    assert steps.arrived_in.tolist() == [0, 2, 1]
    last = shown(steps, MOST_ROUNDS)
    assert last["1:1"] == last["0:2"] == "withheld", "0 is away"
    assert last["0:1"] == "retained"
    assert shown(steps, 1)["1:2"] == "revoked", "it need not wait for the one that is away"


def test_nothing_changes() -> None:
    steps = followed("0:0 1:1", "0:0 1:1", 2)
    assert steps.round_count == 0
    assert shown(steps, 1) == {"0:0": "retained", "1:1": "retained"}


LISTENED: dict[str, tuple[str, str, list[int], list[str]]] = {
    "joined": (
        "0:0,1",
        "0:0 1:1",
        [1],
        ["1 0 revoked 1", "1 0 assigned", "1 1 assigned", "3 1 assigned 1"],
    ),
    "more": ("0:0", "0:0,1", [], ["1 0 assigned 1"]),
    "swapped": (
        "0:0 1:1",
        "0:1 1:0",
        [],
        [
            *("1 0 revoked 0", "1 0 assigned", "1 1 revoked 1", "1 1 assigned"),
            *("3 0 assigned 1", "3 1 assigned 0"),
        ],
    ),
    "same": ("0:0 1:1", "0:0 1:1", [], []),
}
"""What two members hold, what they are to hold, which of them are new, and the calls."""


@pytest.fixture(scope="module")
def calls(spark: SparkSession) -> dict[str, list[str]]:
    """What the listeners are told on the way from target to target, by case."""
    steps: list[tuple[object, ...]] = []
    members: list[tuple[object, ...]] = []
    for case, (owned, target, new, _) in LISTENED.items():
        of = followed(owned, target, 2)
        for number in range(1, max(of.round_count, 1) + 1):
            for at, action in shown(of, number).items():
                member, partition = at.split(":")
                steps.append(("", case, number, member, "t", int(partition), action))
        members += [("", case, str(member), 0 if member in new else 1) for member in range(2)]
    calls = consumer_listener_calls(
        spark.createDataFrame(
            steps,
            "cluster_id string, group_id string, round int, member_id string, topic string, "
            "partition int, action string",
        ),
        spark.createDataFrame(
            members, "cluster_id string, group_id string, member_id string, generation bigint"
        ),
    )
    result = defaultdict(list)
    for row in calls.orderBy("round", "member_id", "call").collect():
        name = row.callback.removeprefix("onPartitions").lower()
        partitions = [str(of.partition) for of in row.partitions]
        result[row.group_id].append(" ".join([str(row.round), row.member_id, name, *partitions]))
    return result


@pytest.mark.parametrize("case", LISTENED)
def test_listener(calls: dict[str, list[str]], case: str) -> None:
    assert calls.get(case, []) == LISTENED[case][-1]


def test_rounds_are_the_coordinators(computed: dict[str, list[Computation]]) -> None:
    """Heartbeats in random order: the first round to the letter, the third is always the last."""
    followed_groups = [c for of in computed.values() for c in of if c.rounds and _was_settled(c)]
    differing = [
        (number, c.event, difference)
        for number, c in enumerate(followed_groups)
        for difference in _differences(c)
    ]
    assert differing == []
    assert len(followed_groups) > 1000
    counts = Counter(_steps(c)[0].round_count for c in followed_groups)
    assert min(counts[number] for number in (0, 1, 2, 3)) > 20


def _was_settled(computation: Computation) -> bool:
    described = computation.script.answers[computation.before]
    return computation.was_settled and all(
        member["epoch"] == described["assignment_epoch"]
        and sorted((t, sorted(p)) for t, _, p in member["assignment"])
        == sorted((t, sorted(p)) for t, _, p in member["target"])
        for member in described["members"]
    )


def _differences(computation: Computation) -> Iterator[str]:
    steps, described, codes = _steps(computation)
    answers = [computation.script.answers[i] for i in computation.rounds]
    members = [m["member_id"] for m in described["members"]]
    first = {**answers[1], computation.first: answers[0]}
    has = {number: _having(steps, number, len(members)) for number in range(MOST_ROUNDS + 1)}
    owned = has[0]
    for m, member in enumerate(members):
        answer = first[member]
        assigned = _coded(answer["assignment"], codes) if "assignment" in answer else owned[m]
        if assigned != has[1][m]:
            yield "the first round"
        if (answer["epoch"] == described["assignment_epoch"]) != (steps.arrived_in[m] == 1):
            yield "the epoch after the first round"
        confirmed = answers[2].get(member, {})
        assigned = _coded(confirmed["assignment"], codes) if "assignment" in confirmed else assigned
        if not has[2][m] <= assigned <= has[3][m]:
            yield "the second round"
    settled = answers[4]
    if settled["group_state"] != "Stable":
        yield "the group has not settled"
    for member in settled["members"]:
        if _listed(member["assignment"], codes) != has[3][members.index(member["member_id"])]:
            yield "the third round"


def _steps(computation: Computation) -> tuple[Steps, Described, dict[tuple[str, int], int]]:
    """The model's rounds, from what was described before and the coordinator's own target."""
    described = computation.script.answers[computation.after]
    before = computation.script.answers[computation.before]["members"]
    place = {m["member_id"]: i for i, m in enumerate(described["members"])}
    codes: dict[tuple[str, int], int] = {}
    rows: dict[str, list[tuple[int, int]]] = {"owned": [], "target": []}
    for member in before:  # what its client has, partitions of deleted topics too
        for topic_id, p in member["owned"]:
            code = codes.setdefault((topic_id, p), len(codes))
            rows["owned"].append((place[member["member_id"]], code))
    for member in described["members"]:
        for topic_id, _, numbers in member["target"]:
            for p in numbers:
                code = codes.setdefault((topic_id, p), len(codes))
                rows["target"].append((place[member["member_id"]], code))
    owned, target = (Pairs(*np.array(rows[name], dtype=np.int64).reshape(-1, 2).T) for name in rows)
    return reconcile(owned, target, np.zeros(len(place), dtype=bool)), described, codes


def _having(steps: Steps, number: int, count: int) -> list[set[int]]:
    """What each member has after a round; 0: before the first."""
    has: list[set[int]] = [set() for _ in range(count)]
    changed = (steps.changed_in > NEVER) & (steps.changed_in <= number)
    for m, p in zip(
        steps.members[changed != steps.is_held],
        steps.partitions[changed != steps.is_held],
        strict=True,
    ):
        has[m].add(int(p))
    return has


def _coded(assignment: list[tuple[str, int]], codes: dict[tuple[str, int], int]) -> set[int]:
    return {codes[topic_id, p] for topic_id, p in assignment}


def _listed(assignment: list[Any], codes: dict[tuple[str, int], int]) -> set[int]:
    return {codes[topic_id, p] for topic_id, _, numbers in assignment for p in numbers}
