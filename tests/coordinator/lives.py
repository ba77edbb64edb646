"""Seeded lives of groups told twice: to the broker's own coordinator, and to our model of it."""

import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kassign_spark.coordinator.assignor_votes import choose_assignor
from kassign_spark.coordinator.life import (
    NOTHING,
    CoordinatedGroup,
    GroupMember,
    TargetList,
    TopicState,
)
from kassign_spark.coordinator.reconcile import NEVER, Pairs, reconcile
from tests.kafka.coordinator import (
    ASSIGNMENT_INTERVAL_MS,
    Script,
    random_member_id,
    random_topic_id,
)

KINDS = (
    *("join", "join by regex", "leave", "crash", "restart", "static restart"),
    *("static restart with topics", "static restart with a vote", "expire", "vote", "settings"),
    *("resubscribe", "reorder", "regex", "drop regex", "grow", "delete", "recreate", "create"),
    *("create another", "racks", "delete another"),
)
_REGEXES = ("t.*", "pay-.*", ".*", "no-such", "(orders|t)[0-9]")
_REFRESH_MS, _SESSION_MS = 11_000, 46_000
"""Longer than the assignment interval and the pause between resolutions; than a session."""


@dataclass(frozen=True)
class Seen:
    """What the model said at one moment, and which answer of the script it is about."""

    kind: str
    answer: int
    values: dict[str, Any]
    verdict: str


@dataclass
class Life:
    """A group, told to both."""

    rng: random.Random
    voting: bool
    script: Script = field(default_factory=Script)
    group: CoordinatedGroup = field(default_factory=CoordinatedGroup)
    seen: list[Seen] = field(default_factory=list)
    verdict: str = "ok"
    owned: dict[str, TargetList] = field(default_factory=dict)
    now: int = 0
    computed_at: int = -_REFRESH_MS
    is_ahead: bool = False

    def sleep(self, ms: int) -> None:
        self.now += ms
        self.script.sleep(ms)

    def may_compute(self) -> bool:
        """Whether the assignment interval is over."""
        return self.now - self.computed_at >= ASSIGNMENT_INTERVAL_MS

    def resolve(self, regex: str) -> tuple[str, ...]:
        return tuple(name for name in self.group.topics if re.fullmatch(regex, name))

    def set_topics(self, topics: dict[str, TopicState]) -> None:
        self.script.topics({name: (t.key, t.size, t.racks or []) for name, t in topics.items()})
        self.group.change_topics(topics)

    def here(self) -> list[str]:
        return [member.member_id for member in self.group.members]

    def subscribed(self, member_id: str, listed: TargetList) -> TargetList:
        """What is left of a list when a member has been told to drop what it does not ask for."""
        group = self.group
        member = next(member for member in group.members if member.member_id == member_id)
        names = {*member.topics, *group.resolved.get(member.regex or "", ())}
        keys = {topic.key for name, topic in group.topics.items() if name in names}
        kept = np.array([group.keys[code] in keys for code in listed.topics.tolist()], bool)
        return TargetList(listed.topics[kept], listed.partitions[kept])

    def narrow(self, member: str) -> None:
        """A member that asks for less is told so in the same answer, whatever its target."""
        self.owned[member] = self.subscribed(member, self.owned.get(member, NOTHING))

    def target(self, member: str) -> list[tuple[str, int]]:
        return self.pairs(self.group.targets.get(member, NOTHING))

    def pairs(self, listed: TargetList) -> list[tuple[str, int]]:
        numbers = zip(listed.topics.tolist(), listed.partitions.tolist(), strict=True)
        return [(self.group.keys[topic], number) for topic, number in numbers]

    def look(self, moment: str, kind: str, **values: Any) -> None:
        """Have both say what is now; a description leaves out topics that are deleted."""
        group = self.group
        there = {topic.key for topic in group.topics.values()}
        if choose_assignor([member.vote for member in group.members]).undecided:
            self.verdict = "never_settles"
        state = {
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "members": self.here(),
            "targets": {
                member: [of for of in self.target(member) if of[0] in there]
                for member in self.here()
            },
            **values,
        }
        self.seen.append(Seen(f"{kind}, {moment}", self.script.describe(), state, self.verdict))

    def compute(self, speaker: str | None = None) -> None:
        group = self.group
        if group.group_epoch > group.assignment_epoch and group.members:
            self.computed_at, self.is_ahead = self.now, True
            verdict = group.compute(speaker).verdict
            self.verdict = self.verdict if verdict == "ok" else verdict

    def settle(self, kind: str) -> None:
        """Past the interval a heartbeat computes; then all move to the target."""
        rng, script, group = self.rng, self.script, self.group
        here = sorted(self.here())
        if not here:
            return
        is_new = not self.is_ahead
        script.round(here, confirm=True)
        self.sleep(_REFRESH_MS)
        first = rng.choice(here)
        script.heartbeat(first)
        self.compute()
        self.look("computed", kind)
        rng.shuffle(here)
        script.round([member for member in here if member != first])
        # Who computed in the event's own heartbeat is ahead of the others.
        self.look("told", kind, **({"states": self.states()} if is_new else {}))
        self.arrive(here)
        if group.resolve_regexes(self.resolve):
            self.sleep(_REFRESH_MS)
            script.heartbeat(first)
            self.compute()
            self.look("resolved and computed", kind)
            script.round(here)
            self.arrive(here)
        states = dict.fromkeys(here, "STABLE")
        epochs = dict.fromkeys(here, group.assignment_epoch)
        self.owned = {m: self.subscribed(m, group.targets.get(m, NOTHING)) for m in here}
        owned = {member: sorted(self.pairs(listed)) for member, listed in self.owned.items()}
        self.look("settled", kind, states=states, epochs=epochs, owned=owned)
        self.is_ahead = False

    def arrive(self, here: list[str]) -> None:
        self.script.round(here, confirm=True)
        self.script.round(here)
        self.script.round(here, confirm=True)

    def states(self) -> dict[str, str]:
        """The members' states after everybody's first heartbeat."""
        group = self.group
        ids = self.here()
        codes: dict[tuple[int, int], int] = {}

        def pairs(lists: dict[str, TargetList]) -> Pairs:
            rows = [
                (place, codes.setdefault(pair, len(codes)))
                for place, member in enumerate(ids)
                if member in lists
                for pair in zip(lists[member].topics, lists[member].partitions, strict=True)
            ]
            return Pairs(*np.array(rows, np.int64).reshape(-1, 2).T)

        steps = reconcile(pairs(self.owned), pairs(group.targets), np.zeros(len(ids), bool))
        waits = ~steps.is_held & ((steps.changed_in > 1) | (steps.changed_in == NEVER))
        waiting = set(steps.members[waits].tolist())
        return {
            member: "UNREVOKED_PARTITIONS"
            if steps.arrived_in[place] > 1
            else "UNRELEASED_PARTITIONS"
            if place in waiting
            else "STABLE"
            for place, member in enumerate(ids)
        }


def lives(count: int, *, seed: int, events: int = 10) -> list[Life]:
    """Groups of a few to 40 members, each through events of all kinds."""
    rng = random.Random(seed)
    return [_life(rng, events) for _ in range(count)]


def _life(rng: random.Random, events: int) -> Life:
    most = rng.choice((3, 10, 60))
    names = [f"{rng.choice(('orders', 'pay-', 't', 'a.b_'))}{i}" for i in range(rng.randint(1, 12))]
    life = Life(rng, voting=rng.random() < 0.3)
    life.set_topics({name: _topic(rng, most) for name in names})
    alike = rng.random() < 0.6
    static = rng.choice((0.3, 0.6, 1))
    for _ in range(rng.choice((1, 2, rng.randint(2, 8), rng.randint(2, 40)))):
        _join(life, alike, static)
    life.settle("fresh")
    for _ in range(events):
        kind = rng.choice(KINDS)
        if not life.group.members:
            kind = "join"
        members = life.group.members
        if rng.random() < 0.5 or not members or any(member.regex for member in members):
            life.sleep(_REFRESH_MS)
        if _happens(life, kind, alike, static):
            life.look("noticed", kind)
            life.settle(kind)
    return life


def _topic(rng: random.Random, most: int) -> TopicState:
    topic_id = random_topic_id(rng)
    racks = [sorted(rng.sample("abc", 2)) for _ in range(rng.randint(1, most))]
    return TopicState(len(racks), topic_id, topic_id, racks)


def _names(life: Life, alike: bool) -> tuple[str, ...]:
    rng, names = life.rng, sorted(life.group.topics)
    listing = [(m.member_id, m.topics) for m in life.group.members if m.topics]
    if alike and listing:
        return min(listing)[1]
    if not names:
        return ("missing",)
    chosen = names if alike else rng.sample(names, rng.randint(1, len(names)))
    chosen = [*chosen, "missing"] if rng.random() < 0.3 else list(chosen)
    rng.shuffle(chosen)
    return tuple(chosen)


def _subscription(member: GroupMember) -> dict[str, Any]:
    subscription: dict[str, Any] = {"topics": list(member.topics), "regex": member.regex or ""}
    if member.instance_id is not None:
        subscription["instance"] = member.instance_id
    if member.vote is not None:
        subscription["assignor"] = member.vote
    return subscription


def _join(life: Life, alike: bool, static: float, **settings: Any) -> None:
    rng = life.rng
    instance = f"i{rng.randrange(10**6)}" if rng.random() < static else None
    vote = rng.choice(("uniform", "range", None)) if life.voting else None
    member = GroupMember(random_member_id(rng), instance, _names(life, alike), None, vote)
    member = replace(member, **settings)
    rises = life.group.join(member)
    life.script.heartbeat(member.member_id, **_subscription(member))
    if rises and life.may_compute():
        life.compute(member.member_id)
    life.group.resolve_regexes(life.resolve)


def _happens(life: Life, kind: str, alike: bool, static: float) -> bool:
    """Let something happen; whether it did."""
    rng, group, script = life.rng, life.group, life.script
    members = sorted(group.members, key=lambda member: member.member_id)
    statics = [member for member in members if member.instance_id is not None]
    anybody = rng.choice(members) if members else None
    if kind == "join":
        _join(life, alike, static)
    elif kind == "join by regex":
        names = () if rng.random() < 0.5 else _names(life, alike)
        _join(life, alike, static, topics=names, regex=rng.choice(_REGEXES))
    elif kind in ("leave", "crash", "restart"):
        most = 1 if kind == "restart" else max(1, len(members) // 3)
        for member in rng.sample(members, rng.randint(1, most)):
            if kind == "crash":
                script.silence(member.member_id)
            else:
                script.leave(member.member_id)
            group.leave([member.member_id])
            if kind == "restart":  # nobody else's heartbeat falls between
                back = replace(member, member_id=random_member_id(rng), instance_id=None)
                rises = group.join(back)
                script.heartbeat(back.member_id, **_subscription(back))
                if rises and life.may_compute():
                    life.compute(back.member_id)
                group.resolve_regexes(life.resolve)
        if kind == "crash":
            life.sleep(_SESSION_MS)
    elif kind.startswith("static restart") or kind == "expire":
        if not statics:
            return False
        member = rng.choice(statics)
        script.leave(member.member_id, -2)
        if kind == "expire":
            life.sleep(_SESSION_MS)
            group.leave([member.member_id])
            return True
        back = replace(member, member_id=random_member_id(rng))
        if kind.endswith("topics"):
            back = replace(back, topics=_names(life, alike=False))
        elif kind.endswith("vote"):
            back = replace(back, vote=rng.choice(("uniform", "range")))
        rises = group.take_over(member.member_id, back)
        life.owned[back.member_id] = life.owned.pop(member.member_id, NOTHING)
        life.narrow(back.member_id)
        script.heartbeat(back.member_id, **_subscription(back))
        if rises and life.may_compute():
            life.compute(back.member_id)
    elif kind in ("resubscribe", "reorder", "regex", "drop regex", "vote"):
        assert anybody is not None
        after = anybody
        if kind == "resubscribe":
            after = replace(after, topics=_names(life, alike=False))
        elif kind == "reorder":
            after = replace(after, topics=after.topics[::-1])
        elif kind == "regex":
            after = replace(after, regex=rng.choice(_REGEXES))
        elif kind == "drop regex":
            after = replace(after, regex=None)
        else:
            after = replace(after, vote=rng.choice(("uniform", "range")))
        rises = group.resubscribe(after)
        life.narrow(after.member_id)
        script.heartbeat(after.member_id, **_subscription(after))
        if rises and life.may_compute():
            life.compute(after.member_id)
        group.resolve_regexes(life.resolve)
    elif kind == "settings":
        script.change_settings(**{"consumer.session.timeout.ms": str(45_001 + rng.randrange(99))})
    else:
        topics = _other_topics(life, kind)
        if topics is None:
            return False
        before = group.group_epoch
        life.set_topics(topics)
        # The coordinator sees it in somebody's next heartbeat, the model says it at once.
        rises, group.group_epoch = group.group_epoch - before, before
        life.look("unnoticed", kind)
        group.group_epoch += rises
        first = rng.choice(members).member_id
        script.heartbeat(first)
        if life.may_compute():
            life.compute()
        group.resolve_regexes(life.resolve)
    return True


def _other_topics(life: Life, kind: str) -> dict[str, TopicState] | None:
    rng, group = life.rng, life.group
    topics = dict(group.topics)
    read = {name for member in group.members for name in member.topics}
    read |= {name for names in group.resolved.values() for name in names}
    of_group, others = sorted(read & topics.keys()), sorted(topics.keys() - read)
    if kind == "create another":
        topics[f"other{len(topics)}"] = _topic(rng, 5)
        return topics
    if kind == "create":
        if "missing" in topics:
            return None
        topics["missing"] = _topic(rng, 5)
        return topics
    some = others if kind == "delete another" else of_group
    if not some:
        return None
    name = rng.choice(some)
    topic = topics.pop(name)
    racks = list(topic.racks)  # type: ignore[call-overload]
    if kind == "grow":
        racks += [["a", "b"]] * rng.randint(1, 20)
        topics[name] = topic._replace(size=len(racks), racks=racks)
    elif kind == "racks":
        racks[0] = ["c", "d"]
        topics[name] = topic._replace(racks=racks)
    elif kind == "recreate":
        topics[name] = _topic(rng, 20)
    return topics
