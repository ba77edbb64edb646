"""Seeded random groups with everything that has ever made two assignors disagree."""

import random
from collections.abc import Sequence

from tests.kafka.oracle import Group, Member

# One sorts first by code point, the other by UTF-16 unit.
_FIRST_BY_CODE_POINT, _FIRST_BY_UNIT = "\uffee", "\U0001f600"
_PREFIXES = ("consumer-", "C", "ab", "Ab", "", "消费者", _FIRST_BY_CODE_POINT, _FIRST_BY_UNIT)
_TOPIC_CHARACTERS = "aAbBzZ019._-"


def random_groups(count: int, *, seed: int, assignors: Sequence[str]) -> list[Group]:
    """Groups without claims; ``seed`` alone decides."""
    rng = random.Random(seed)
    return [_group(rng, rng.choice(assignors)) for _ in range(count)]


def random_topics(rng: random.Random, most: int = 8) -> dict[str, int]:
    count = rng.randint(1, most)
    names = {"".join(rng.choices(_TOPIC_CHARACTERS, k=rng.randint(1, 6))) for _ in range(count)}
    names = {f"{name}_" if name in (".", "..") else name for name in names}  # as Kafka refuses
    # Sorted: a set's order differs from run to run.
    return {name: rng.choice((1, 2, 3, rng.randint(1, 40))) for name in sorted(names)}


def random_member_ids(rng: random.Random, count: int) -> list[str]:
    ids: set[str] = set()
    while len(ids) < count:
        prefix = rng.choice(_PREFIXES)
        ids.add(f"{prefix}{rng.randint(1, 3 * count)}" + rng.choice(("", f"-{rng.random()}")))
    return rng.sample(sorted(ids), count)


def random_subscriptions(
    rng: random.Random, topics: Sequence[str], members: int
) -> list[Sequence[str]]:
    """Equal ones in half of the groups, with a topic that no metadata knows in some."""
    known = [*topics, "not.in.metadata"] if rng.random() < 0.2 else list(topics)
    if rng.random() < 0.5:
        chosen = rng.sample(known, rng.randint(1, len(known)))
        in_any_order = rng.random() < 0.3
        return [rng.sample(chosen, len(chosen)) if in_any_order else chosen for _ in range(members)]
    subscriptions = [rng.sample(known, rng.randint(0, len(known))) for _ in range(members)]
    for subscription in subscriptions:
        if subscription and rng.random() < 0.1:
            subscription.append(rng.choice(subscription))
    return subscriptions


def _group(rng: random.Random, assignor: str) -> Group:
    topics = random_topics(rng)
    count = rng.choice((1, 2, 3, rng.randint(1, 12), rng.randint(1, 60)))
    static_share = rng.choice((0, 0, 0.5, 1))
    subscriptions = random_subscriptions(rng, list(topics), count)
    instances = rng.sample(range(1000), count)
    return Group(
        topics,
        [
            Member(
                member_id,
                subscription,
                group_instance_id=f"i{instance}" if rng.random() < static_share else None,
            )
            for member_id, subscription, instance in zip(
                random_member_ids(rng, count), subscriptions, instances, strict=True
            )
        ],
        assignor,
    )
