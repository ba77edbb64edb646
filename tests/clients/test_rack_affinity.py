"""kafka-go's `rack-affinity`, beside the library: what is certain, and what Go draws."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kassign_spark.live.cluster_rows import topic_rows
from tests.clients.libraries import Answer, answers
from tests.clients.test_drawn import explained
from tests.clients.test_eager import predicted
from tests.kafka.oracle import Group, Member

_COUNT, _RUNS = 200, 150
"""So many runs that a group with two answers shows both, the seldom one in one of eight."""
_SELDOM = 1_000
"""So many that a topic with leaders in two racks shows each of its answers.

Of more racks no number is enough: Go's runtime begins anywhere in a small map and goes on in its
order, so that it never shows all the orders that the language allows.
"""
_RACKS = ("a", "b", "c", "d")


def _group(rng: random.Random) -> Group:
    """Members and leaders in up to four racks, some of them in none."""
    racks = [*_RACKS[: rng.randint(1, 4)], *([None] if rng.random() < 0.2 else [])]
    topics = {
        f"t{n}": [[rng.choice(racks), rng.choice(_RACKS)] for _ in range(rng.randint(1, 14))]
        for n in range(rng.randint(1, 3))
    }
    is_alike = rng.random() < 0.5
    members = [
        Member(
            f"m{rng.randint(0, 999)}-{n}",
            [*topics] if is_alike else rng.sample([*topics], rng.randint(1, len(topics))),
            rack_id=rng.choice(racks),
        )
        for n in range(rng.randint(1, 7))
    ]
    members[0] = replace(members[0], rack_id="a")
    return Group(topics, members, "rack-affinity")


@pytest.mark.usefixtures("own_processes")
def test_answers_are_certain_or_drawn() -> None:
    rng = random.Random(3)
    groups = [_group(rng) for _ in range(_COUNT)]
    runs = [answers("kafka-go", groups) for _ in range(_RUNS)]
    verdicts = predicted("kafka-go", groups)
    certain = 0
    for place, (verdict, own) in enumerate(verdicts):
        seen = [run[place] for run in runs]
        if verdict == "drawn":
            assert any(answer != seen[0] for answer in seen), groups[place]
            _check_certain(groups[place], str(own), seen)
        else:
            assert (verdict, seen) == ("ok", [own] * _RUNS), groups[place]
            certain += 1
    assert _COUNT / 4 < certain < _COUNT * 0.9


@pytest.mark.usefixtures("own_processes")
def test_explain_takes_each_answer_that_can_be_drawn_and_no_other() -> None:
    rng = random.Random(4)
    groups = [_group(rng) for _ in range(_COUNT)]
    drawn = 0
    for _ in range(3):
        seen = answers("kafka-go", groups)
        for assignor, detail in explained("kafka-go", groups, seen):
            assert assignor == "rack-affinity"
            drawn += "by lot" in (detail or "")
    assert drawn > _COUNT / 4
    runs = [answers("kafka-go", groups) for _ in range(_RUNS)]
    exchanged = [_exchange(rng, *pair) for pair in zip(groups, runs[0], strict=True)]
    names = [name for name, _ in explained("kafka-go", groups, exchanged)]
    for place, name in enumerate(names):
        if name == "rack-affinity":
            possible = [run[place] for run in runs]
            if exchanged[place] in possible:
                continue
            # Go draws for each topic anew: all topics together may take more draws than these.
            possible += answers("kafka-go", [groups[place]] * _SELDOM)
            for topic, replica_racks in groups[place].topics.items():
                if len({leader for leader, _ in replica_racks}) > 2:
                    continue
                assert _of_topic(exchanged[place], topic) in (
                    _of_topic(answer, topic) for answer in possible
                ), groups[place]
    assert names.count("rack-affinity") < _COUNT / 2


def test_unknown_racks_are_no_answer() -> None:
    group = _group(random.Random(5))
    unknown = replace(group, topics={name: len(of) for name, of in group.topics.items()})
    ((verdict, _),) = predicted("kafka-go", [unknown])
    assert verdict == "inexact"


def test_a_snapshot_has_the_rack_of_the_leader_first() -> None:
    partitions = [
        {"partition_index": 0, "leader_id": 3, "replica_nodes": [1, 2, 3]},
        {"partition_index": 1, "leader_id": -1, "replica_nodes": [2, 1]},
    ]
    ((_, _, _, racks, _),), _ = topic_rows(
        [{"name": "t", "partitions": partitions}], {1: "a", 2: "b", 3: "c"}, None
    )
    assert racks == [["c", "a", "b"], ["b", "a"]]


def _of_topic(answer: Answer, topic: str) -> dict[str, set[int]]:
    assert isinstance(answer, dict)
    return {
        member: {number for name, number in own if name == topic} for member, own in answer.items()
    }


def _exchange(rng: random.Random, group: Group, answer: Answer) -> Answer:
    assert isinstance(answer, dict)
    owners = {partition: member for member, own in answer.items() for partition in own}
    first, second = rng.choice([*owners]), rng.choice([*owners])
    reads = {member.member_id: {*member.topics} for member in group.members}
    changed = {member: {*own} for member, own in answer.items()}
    if first[0] in reads[owners[second]] and second[0] in reads[owners[first]]:
        changed[owners[first]] = changed[owners[first]] - {first} | {second}
        changed[owners[second]] = changed[owners[second]] - {second} | {first}
    return changed


def _check_certain(group: Group, detail: str, seen: Sequence[Answer]) -> None:
    sizes = [
        [len(plan[member.member_id]) for member in group.members]
        for plan in seen
        if isinstance(plan, dict)
    ]
    if "each member gets" in detail:
        assert sizes == sizes[:1] * len(seen), group
        return
    least, most = map(int, re.findall(r"fewer than (\d+) or more than (\d+)", detail)[0])
    assert all(least <= size <= most for each in sizes for size in each), group
