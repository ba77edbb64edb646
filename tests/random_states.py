"""Seeded random groups in the middle of their lives: racks, and claims of every kind of age."""

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.kafka.oracle import Group, Member
from tests.oracles.protocol import Claims, encode_sticky_user_data
from tests.random_groups import random_member_ids, random_subscriptions, random_topics

_RACKS = "abcd"

Partition = tuple[str, int]


def random_states(
    count: int,
    *,
    seed: int,
    assignors: Sequence[str],
    hostile_share: float = 0.5,
    user_data: bool = False,
) -> list[Group]:
    """Groups with claims, half of them with racks; ``seed`` alone decides.

    Args:
        count: how many.
        seed: of the random numbers.
        assignors: to choose from.
        hostile_share: of groups whose claims no healthy group has: disputed, doubled, stale or of
            partitions that do not exist.
        user_data: whether some members of `sticky` groups send user data at odds with their
            subscription's own generation.
    """
    rng = random.Random(seed)
    return [
        _state(rng, rng.choice(assignors), rng.random() < hostile_share, user_data)
        for _ in range(count)
    ]


def exact_racked_states(tried: int, *, seed: int) -> list[Group]:
    """Those of random states that have racks, and to which ``assign`` gives the client's answer."""
    names = ("range", "sticky", "cooperative-sticky")
    states = random_states(tried, seed=seed, assignors=names, hostile_share=0.4)
    return [
        group
        for group in states
        if _is_exact(group) and any(not isinstance(n, int) for n in group.topics.values())
    ]


def _is_exact(group: Group) -> bool:
    """Whether ``assign`` promises the client's own answer."""
    if group.assignor == "range":
        return True
    lists = [m.topics for m in group.members]
    alike = all(set(topics) == set(lists[0]) and len(topics) == len(lists[0]) for topics in lists)
    sizes = {t: n if isinstance(n, int) else len(n) for t, n in group.topics.items()}
    exist = all(p < sizes.get(t, 0) for m in group.members for t, p in m.owned)
    return alike and len(set(lists[0])) == len(lists[0]) and exist


def _state(rng: random.Random, assignor: str, is_hostile: bool, user_data: bool) -> Group:
    topics = random_topics(rng)
    count = rng.choice((1, 2, 3, rng.randint(2, 6), rng.randint(2, 12), rng.randint(2, 40)))
    subscriptions = random_subscriptions(rng, list(topics), count)
    has_racks = rng.random() < 0.5
    racks = _RACKS[: rng.randint(1, 4)] if has_racks else ""
    instances = rng.sample(range(1000), count)
    static_share = rng.choice((0, 0, 1, 0.5))
    claims = _settled_claims(rng, topics, subscriptions)
    generation = rng.choice((0, 1, rng.randint(2, 40)))
    generations: list[int | None] = [generation] * count
    if rng.random() < 0.15:
        claims, generations = [[] for _ in range(count)], [None] * count
    elif is_hostile:
        _spoil(rng, topics, claims, generations)
    members = [
        Member(
            member_id,
            subscription,
            owned,
            of,
            f"i{instance}" if rng.random() < static_share else None,
            rng.choice((*racks, *racks, "elsewhere", "", None)) if has_racks else None,
        )
        for member_id, subscription, owned, of, instance in zip(
            random_member_ids(rng, count),
            subscriptions,
            claims,
            generations,
            instances,
            strict=True,
        )
    ]
    if user_data and assignor == "sticky" and rng.random() < 0.5:
        members = [_with_user_data(rng, m) for m in members]
    if not has_racks:
        return Group(topics, members, assignor)
    replicas = rng.choice((0, 1, 2, 2, 3))
    return Group(
        {topic: _replica_racks(rng, size, racks, replicas) for topic, size in topics.items()},
        members,
        assignor,
    )


def _replica_racks(
    rng: random.Random, size: int, racks: str, replicas: int
) -> list[list[str | None]]:
    if rng.random() < 0.1:
        return [list(racks)] * size
    replicas = min(replicas, len(racks))
    known: list[str | None] = [*racks]
    if rng.random() < 0.1:
        known.append(None)
    return [rng.sample(known, replicas) for _ in range(size)]


def _settled_claims(
    rng: random.Random, topics: dict[str, int], subscriptions: Sequence[Sequence[str]]
) -> list[list[Partition]]:
    """Claims as a former assignment left them: some members are new, some topics were smaller."""
    claims: list[list[Partition]] = [[] for _ in subscriptions]
    joined_lately = rng.choice((0, 0, 0.1, 0.3))
    have_left = rng.choice((0, 0, 0.1, 0.3, 0.9))
    ignores_subscription = rng.choice((0, 0, 0, 0.1, 0.4))
    is_skewed = rng.random() < 0.3
    old = [m for m in range(len(claims)) if rng.random() >= joined_lately]
    for topic, size in topics.items():
        takers = [m for m in old if topic in subscriptions[m]]
        for partition in range(rng.choice((size, size, size, rng.randint(0, size)))):
            if rng.random() < have_left:
                continue
            if rng.random() < ignores_subscription and old:
                claims[rng.choice(old)].append((topic, partition))
            elif takers:
                least = min(takers, key=lambda m: len(claims[m]))
                claims[rng.choice(takers) if is_skewed else least].append((topic, partition))
    return claims


def _spoil(
    rng: random.Random,
    topics: dict[str, int],
    claims: list[list[Partition]],
    generations: list[int | None],
) -> None:
    """Do to the claims what crashes, lost generations and recreated topics do to them."""
    names = [*topics, "not.in.metadata"]
    stale_share, claim_share = rng.choice((0, 0.3, 0.6)), rng.choice((0, 0.1, 0.3))
    missing_share = rng.choice((0, 0, 0, 0.1))
    last = generations[0] or 0
    for member, owned in enumerate(claims):
        if rng.random() < stale_share:
            generations[member] = rng.choice((None, last - 1, last - 2, rng.randint(0, 40)))
        generation = generations[member]
        if generation is not None and generation < 0:
            generations[member] = None
        for other in rng.choice(claims), rng.choice(claims):
            owned += [tp for tp in other if rng.random() < claim_share]
        for topic in names:
            if rng.random() < missing_share:
                owned.append((topic, topics.get(topic, 0) + rng.randint(0, 3)))
        if rng.random() < 0.5:
            seen = dict.fromkeys(owned)
            owned[:] = list(seen)


def _with_user_data(rng: random.Random, member: Member) -> Member:
    """The member as `sticky` knows it, though its subscription says another generation."""
    claims = Claims(tuple(member.owned), member.generation)
    data = rng.choice(
        (encode_sticky_user_data(claims), encode_sticky_user_data(claims), None, b"", b"\0\0\1")
    )
    generation = rng.choice((member.generation, None, None, rng.randint(0, 40)))
    if data is None:
        return replace(member, owned=(), generation=None)
    return replace(member, generation=generation, user_data=data)


def variants(group: Group, count: int, *, seed: int) -> list[Group]:
    """Groups that differ from one with racks in one thing each."""
    rng = random.Random(seed)
    return [_variant(rng, group) for _ in range(count)]


def _variant(rng: random.Random, group: Group) -> Group:
    topics = {
        name: list(racks) for name, racks in group.topics.items() if not isinstance(racks, int)
    }
    members = list(group.members)
    chosen = rng.randrange(len(members))
    change = rng.choice(("grow", "rack", "rename", "resubscribe", "join"))
    if change == "grow":
        topics[rng.choice(list(topics))].append(rng.choice((["a"], ["b"], ["a", "b"])))
    elif change == "rack":
        members[chosen] = replace(members[chosen], rack_id=rng.choice((None, "a", "b", "z")))
    elif change == "rename":
        members[chosen] = replace(members[chosen], member_id=f"m{rng.randrange(10**6)}")
    else:
        subscription = rng.sample(list(topics), rng.randint(1, 2))
        if change == "resubscribe":
            members[chosen] = replace(members[chosen], topics=subscription)
        else:
            members.append(Member("joined", subscription, generation=members[0].generation))
    return Group(topics, members, group.assignor)
