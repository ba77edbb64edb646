"""librdkafka's assignors, beside its own sources: histories, racks, stale claims, lost topics."""

import random
from dataclasses import replace

import pytest

from tests.clients.libraries import answers
from tests.clients.test_eager import predicted
from tests.clients.test_older_sticky import fresh, later
from tests.kafka.oracle import Group

_COUNT = 250
_RACKS = ("ra", "rb", "rc")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_processes")]


@pytest.mark.parametrize("has_racks", [False, True])
def test_cooperative_sticky(has_racks: bool) -> None:
    rng = random.Random(17)
    groups = [fresh(rng, "cooperative-sticky") for _ in range(_COUNT)]
    equal = crashed = 0
    for generation in range(1, 4):
        groups = [_in_racks(rng, group) if has_racks else group for group in groups]
        seen_answers = answers("librdkafka", groups)
        for group, answer, (verdict, own) in zip(
            groups, seen_answers, predicted("librdkafka", groups), strict=True
        ):
            if verdict == "undefined":  # what has been freed may still be there
                crashed += answer == "crash"
                continue
            assert (verdict, own) == ("ok", answer), group
            equal += 1
        groups = [
            _without_racks(group)
            if answer == "crash"
            else later(rng, _without_racks(group), answer, generation)
            for group, answer in zip(groups, seen_answers, strict=True)
        ]
    assert equal > 2.9 * _COUNT
    assert crashed < 0.05 * _COUNT


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_roundrobin_with_racks_and_static_members(assignor: str) -> None:
    rng = random.Random(18)
    groups = [_static(rng, _in_racks(rng, fresh(rng, assignor))) for _ in range(2 * _COUNT)]
    seen_answers = answers("librdkafka", groups)
    for group, answer, own in zip(
        groups, seen_answers, predicted("librdkafka", groups), strict=True
    ):
        assert own == ("ok", answer), group


def _in_racks(rng: random.Random, group: Group) -> Group:
    """Replicas and members in racks, some in none; in two of five groups nothing is."""
    if rng.random() < 0.4:
        return group
    topics = {}
    for topic, size in group.topics.items():
        assert isinstance(size, int)
        of_topic = [tuple(rng.sample(_RACKS, rng.randint(0, 3))) for _ in range(size)]
        topics[topic] = size if rng.random() < 0.15 else of_topic
    members = [replace(m, rack_id=rng.choice([*_RACKS, "rz", None])) for m in group.members]
    return replace(group, topics=topics, members=members)


def _without_racks(group: Group) -> Group:
    sizes = {t: n if isinstance(n, int) else len(n) for t, n in group.topics.items()}
    return replace(group, topics=sizes)


def _static(rng: random.Random, group: Group) -> Group:
    """Some or all members are static: the broker makes their ids of their instance ids."""
    share = rng.choice((0, 0.5, 1))
    members = []
    for n, member in enumerate(group.members):
        if rng.random() < share:
            instance = f"{rng.choice('abc')}{rng.randint(0, 9)}{n}"
            member = replace(
                member, group_instance_id=instance, member_id=f"{instance}-{rng.randint(0, 99)}"
            )
        members.append(member)
    return replace(group, members=members)
