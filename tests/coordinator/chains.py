"""Seeded lives of groups: each step changes something, then the coordinator computes a target."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.coordinator.described_states import Topics
from tests.kafka.coordinator import Script, random_member_id, random_topic_id

EVENTS = ("join", "leave", "grow", "resubscribe", "restart", "delete", "recreate", "create")


@dataclass(frozen=True)
class Computation:
    """One target of a chain: what was described before and after, by index of the script.

    ``first`` is the member in whose heartbeat it was computed; ``joined`` has it with its topics
    where that was its very first one. ``was_settled``: the group was let settle after the
    computation before. ``rounds``, where it was let settle after this one: that heartbeat, the
    others' regular ones, the confirmations, everybody's next ones, and a description.
    """

    script: Script
    event: str
    topics: Topics
    before: int
    after: int
    first: str
    was_settled: bool
    joined: tuple[str, str | None, list[str]] | None = None
    rounds: Sequence[int] = ()


@dataclass
class _Group:
    rng: random.Random
    script: Script
    assignor: str
    topics: dict[str, tuple[str, int]]
    members: dict[str, tuple[str | None, list[str]]] = field(default_factory=dict)
    is_settled: bool = True


def chains(count: int, *, seed: int, assignor: str, events: int = 8) -> list[list[Computation]]:
    """Groups of 1 to 40 members and 1 to 15 topics, each through a few events."""
    rng = random.Random(f"{seed} {assignor}")
    return [_chain(rng, assignor, events) for _ in range(count)]


def _chain(rng: random.Random, assignor: str, events: int) -> list[Computation]:
    most = rng.choice((3, 10, 60, 60))
    names = [f"{rng.choice(('orders', 'pay-', 't', 'a.b_'))}{i}" for i in range(rng.randint(1, 15))]
    topics = {name: (random_topic_id(rng), rng.randint(1, most)) for name in names}
    group = _Group(rng, Script(), assignor, topics)
    group.script.topics(group.topics)
    alike = rng.random() < 0.6
    static = rng.choice((0, 0, 0.5, 1))
    for _ in range(rng.choice((1, 2, rng.randint(2, 8), rng.randint(2, 40)))):
        _join(group, alike, static)
    result = [_compute(group, "fresh")]
    for _ in range(events):
        event = rng.choice(EVENTS)
        done, joined_now = _change(group, event, alike, static)
        if done:
            result.append(_compute(group, event, joined_now))
    return result


def _subscription(group: _Group, alike: bool) -> list[str]:
    names = sorted(group.topics)
    if alike and group.members:
        return list(next(iter(group.members.values()))[1])
    rng = group.rng
    chosen = names if alike else rng.sample(names, rng.randint(1, len(names)))
    if rng.random() < 0.1:
        chosen = [*chosen, "missing"]
    rng.shuffle(chosen)
    return chosen


def _join(group: _Group, alike: bool, static: float, instance: str | None = None) -> str:
    rng = group.rng
    member = random_member_id(rng)
    if instance is None and rng.random() < static:
        instance = f"i{rng.randrange(10**6)}"
    topics = _subscription(group, alike)
    group.members[member] = instance, topics
    settings = {"instance": instance, "topics": topics, "assignor": group.assignor}
    group.script.heartbeat(member, **settings)
    return member


def _change(group: _Group, event: str, alike: bool, static: float) -> tuple[bool, str | None]:
    """Let something happen; says whether it did, and who has yet to join."""
    rng, script, members = group.rng, group.script, group.members
    if event == "join":
        late = rng.random() < 0.5
        for _ in range(rng.choice((0, 0, 1, 3))):
            _join(group, alike, static)
        if not late:
            _join(group, alike, static)
            return True, None
        member = random_member_id(rng)
        members[member] = None, _subscription(group, alike)
        return True, member
    if event == "leave":
        if len(members) < 2:
            return False, None
        for member in rng.sample(sorted(members), rng.randint(1, max(1, len(members) // 3))):
            script.leave(member)
            del members[member]
    elif event == "resubscribe":
        changed = rng.sample(sorted(members), 1 if not alike else len(members))
        topics = rng.sample(sorted(group.topics), rng.randint(1, len(group.topics)))
        for member in changed:
            members[member] = members[member][0], topics
            script.heartbeat(member, topics=topics)
    elif event == "restart":
        statics = sorted(m for m, (instance, _) in members.items() if instance)
        if not statics:
            return False, None
        old = rng.choice(statics)
        instance, topics = members.pop(old)
        script.leave(old, -2)
        new = random_member_id(rng)
        members[new] = instance, topics
        script.heartbeat(new, instance=instance, topics=topics, assignor=group.assignor)
        _join(group, alike, 0)  # a restart alone computes nothing
    else:
        name = rng.choice(sorted(group.topics))
        topic_id, number = group.topics[name]
        if event == "grow":
            group.topics[name] = topic_id, number + rng.randint(1, 20)
        elif event == "recreate":
            group.topics[name] = random_topic_id(rng), rng.randint(1, 20)
        elif event == "create":
            group.topics["missing"] = random_topic_id(rng), rng.randint(1, 20)
        elif len(group.topics) > 1:
            del group.topics[name]
        else:
            return False, None
        script.topics(group.topics)
    return True, None


def _compute(group: _Group, event: str, joins: str | None = None) -> Computation:
    """Past the assignment interval, the next heartbeat computes; often all then settle."""
    rng, script = group.rng, group.script
    script.round(sorted(m for m in group.members if m != joins), confirm=True)
    script.sleep()
    before = script.describe()
    joined = None
    if joins:
        first = joins
        _, subscription = group.members[joins]
        joined = joins, None, subscription
        computing = script.heartbeat(joins, topics=subscription, assignor=group.assignor)
    else:
        first = rng.choice(sorted(group.members))
        computing = script.heartbeat(first)
    after = script.describe()
    rounds: tuple[int, ...] = ()
    if rng.random() < 0.8:
        order = sorted(group.members)
        rng.shuffle(order)
        answers = script.round([member for member in order if member != first])
        confirmed = script.round(order, confirm=True)
        rounds = (computing, answers, confirmed, script.round(order), script.describe())
    was_settled, group.is_settled = group.is_settled, bool(rounds)
    topics = dict(group.topics)
    return Computation(script, event, topics, before, after, first, was_settled, joined, rounds)


def kinds(computations: Sequence[Computation]) -> Counter[str]:
    return Counter(c.event + (" in a joiner's heartbeat" if c.joined else "") for c in computations)
