"""Seeded random groups of the sticky assignors, whose members claim what they own."""

import random

from tests.kafka.oracle import Group, Member
from tests.random_groups import random_member_ids, random_topics

NAMES = ("sticky", "cooperative-sticky")
_MEMBER_COUNTS = (1, 2, 3, 5, 8, 11, 12, 13, 24, 25, 48, 49)


def claiming_groups(count: int, *, seed: int) -> list[Group]:
    """Equal subscriptions; some claims are doubled, disputed or of older generations."""
    rng = random.Random(seed)
    return [_claiming_group(rng, rng.choice(NAMES)) for _ in range(count)]


def _claiming_group(rng: random.Random, assignor: str) -> Group:
    topics = random_topics(rng)
    subscription = rng.sample(list(topics), rng.randint(1, len(topics)))
    count = rng.choice(_MEMBER_COUNTS)
    ids = random_member_ids(rng, count)
    partitions = [(topic, p) for topic, n in topics.items() for p in range(n)]
    rng.shuffle(partitions)
    claims: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in ids}
    # Few owners: skewed; as many owners as members: about as the assignor leaves it.
    owners = rng.sample(ids, rng.choice((count, count, max(1, count // 2), 1)))
    for index, partition in enumerate(partitions):
        if rng.random() < 0.9:
            even = owners[index % len(owners)]
            claims[rng.choice((even, even, even, rng.choice(owners)))].append(partition)
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 6)):
            claims[rng.choice(ids)].append(rng.choice(partitions))
    joined = set(rng.sample(ids, rng.choice((0, 0, 1, count // 3))))
    generations = rng.choice(((5,), (5,), (4, 5), (3, 4, 5, None)))
    return Group(
        topics,
        [
            Member(
                member_id,
                subscription,
                [] if member_id in joined else claims[member_id],
                None if member_id in joined else rng.choice(generations),
                group_instance_id=f"i{rng.random()}" if rng.random() < 0.2 else None,
            )
            for member_id in ids
        ],
        assignor,
    )


def differing_groups(count: int, *, seed: int) -> list[Group]:
    """Groups of settled owners whose members have resubscribed here and there."""
    rng = random.Random(seed)
    groups = []
    for group in claiming_groups(count, seed=seed):
        members = []
        for m in group.members:
            topics = rng.sample(list(group.topics), rng.randint(0, len(group.topics)))
            topics = list(m.topics) if rng.random() < 0.5 else topics
            owned = [tp for tp in m.owned if tp[0] in topics]
            members.append(Member(m.member_id, topics, owned, m.generation))
        groups.append(Group(group.topics, members, group.assignor))
    return groups


def undisputed(group: Group) -> Group:
    """The group with one owner a partition, so that it is plain what can stay, under `sticky`."""
    taken: set[tuple[str, int]] = set()
    members = []
    for m in group.members:
        owned = [tp for tp in dict.fromkeys(m.owned) if tp not in taken]
        taken.update(owned)
        members.append(Member(m.member_id, m.topics, owned, 1))
    return Group(group.topics, members, "sticky")
