"""The sticky assignors of kafka-python and aiokafka, beside the libraries, with histories."""

import random
from dataclasses import replace

import pytest

from tests.clients.libraries import Answer, answers
from tests.clients.test_eager import predicted
from tests.kafka.oracle import Group, Member

_COUNT = 250
_SEED = 11


def fresh(rng: random.Random, assignor: str) -> Group:
    topics = {f"t{n}": rng.randint(1, 12) for n in range(rng.randint(1, 5))}
    shared = sorted(rng.sample([*topics], rng.randint(1, len(topics))))
    is_alike = rng.random() < 0.6
    members = [
        Member(
            f"{rng.choice('abc')}-{rng.randint(0, 99):02}-{n}",
            shared if is_alike else rng.sample([*topics], rng.randint(1, len(topics))),
        )
        for n in range(rng.randint(1, 6))
    ]
    return Group(topics, members, assignor)


def later(rng: random.Random, group: Group, answer: Answer, generation: int) -> Group:
    """The group as it meets again: a member came, went, restarted or was left behind."""
    assert not isinstance(answer, str)
    members = []
    for member in group.members:
        own = sorted(answer[member.member_id])
        if member.generation is None or rng.random() > 0.15:  # else it has missed the last one
            member = replace(member, owned=own, generation=generation)
        members.append(member)
    topics = dict(group.topics)
    for _ in range(rng.randint(0, 2)):
        change = rng.choice(("comes", "goes", "restarts", "grows", "vanishes"))
        place = rng.randrange(len(members))
        if change == "comes":
            like = members[place]
            members.insert(place, Member(f"n-{rng.randint(0, 999):03}-{generation}", like.topics))
        elif change == "goes" and len(members) > 1:
            del members[place]
        elif change == "restarts":
            members[place] = Member(
                f"r-{rng.randint(0, 999):03}-{generation}", members[place].topics
            )
        elif change == "grows":
            topic = rng.choice([*topics])
            topics[topic] += rng.randint(1, 4)
        elif change == "vanishes" and len(topics) > 1:
            del topics[rng.choice([*topics])]
    return Group(topics, members, group.assignor)


_CASES = [
    ("kafka-python", "sticky"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "sticky"),
]


@pytest.mark.parametrize("has_positions", [False, True])
@pytest.mark.parametrize(("client", "assignor"), _CASES)
def test_answers_are_those_of_the_library(client: str, assignor: str, has_positions: bool) -> None:
    """What members own is sorted, as the library sends it, or in any order, which is known."""
    rng = random.Random(_SEED)
    groups = [fresh(rng, assignor) for _ in range(_COUNT)]
    equal = 0
    for generation in range(1, 4):
        if has_positions:
            groups = [_shuffled(rng, group) for group in groups]
        plans = answers(client, groups)
        for group, answer, (verdict, own) in zip(
            groups, plans, predicted(client, groups, has_positions=has_positions), strict=True
        ):
            assert isinstance(answer, dict)
            if verdict == "inexact":
                continue
            assert (verdict, own) == ("ok", answer), group
            equal += 1
        groups = [later(rng, *pair, generation) for pair in zip(groups, plans, strict=True)]
    assert equal > 2.7 * _COUNT


def _shuffled(rng: random.Random, group: Group) -> Group:
    members = [replace(m, owned=rng.sample(m.owned, len(m.owned))) for m in group.members]
    return replace(group, members=members)
