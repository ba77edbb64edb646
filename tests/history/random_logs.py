"""Seeded histories: members come, go, crash, restart, resubscribe; topics grow; gaps."""

import random
from dataclasses import replace

from tests.history.logs import Client, Made, Partition

_TOPICS = ("t", "u", "v")


class _Life:
    """One group and its clock."""

    def __init__(self, made: Made, group: str, rng: random.Random, *, new: bool) -> None:
        self.made, self.group, self.rng, self.new = made, group, rng, new
        self.now = float(rng.randrange(50))
        self.number = rng.choice([0, 1, 5])
        self.sizes = {topic: rng.randrange(1, 5) for topic in _TOPICS[:2]}
        self.members: dict[str, Client] = {}
        self.born = 0
        self.assignor = rng.choice(["range", "cooperative-sticky", "mine"])
        self.withheld: list[Partition] = []
        self.commits_every = rng.choice([0, 5, 7, 30])

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if not self.new and self.rng.random() < 0.2:
                self._bounce(list(self.members))
            for _ in range(self.rng.choice([1, 1, 1, 2])):
                self._change()
            self._write()
            self._commit(self.rng.choice([1, 3, 20, 60, 120, 400]))

    def _change(self) -> None:
        rng, names = self.rng, list(self.members)
        event = rng.choice(["join", "join", "leave", "again", "resubscribe", "grow", "none",
                           "assignor", "skip", "delete"])  # fmt: skip
        if event == "join" or not names:
            self._join(f"c{rng.randrange(4)}")
        elif event == "leave":
            name = rng.choice(names)
            if rng.random() < 0.5:
                self._commit(rng.choice([50, 310]), silent=name)
            self._go(name)
        elif event == "again":
            name = rng.choice(names)
            member = self.members[name]
            self._go(name)
            if rng.random() < 0.5:
                self._write()
                self.now += rng.choice([2, 100, 700])
            self._join(member.client or "c", instance=member.instance)
        elif event == "resubscribe":
            name = rng.choice(names)
            topics = tuple(rng.sample(_TOPICS, rng.randrange(1, 4)))
            self._set(name, replace(self.members[name], topics=topics))
        elif event == "grow":
            topic = rng.choice(_TOPICS)
            self.sizes[topic] = self.sizes.get(topic, 0) + 1
        elif event == "assignor" and not self.new:
            self.assignor = rng.choice(["range", "sticky", "cooperative-sticky"])
        elif event == "skip" and rng.random() < 0.3:
            self.number += rng.randrange(1, 3)
        elif event == "delete" and rng.random() < 0.3:
            for name in names:
                self._go(name)
            self._write()
            self.made.deleted(self.group, "consumer" if self.new else "classic", self.now)
            self.number = 0

    def _bounce(self, names: list[str]) -> None:
        """A static member comes back in time: the generation is written again."""
        static = [name for name in names if self.members[name].instance]
        if static and self.number:
            member = self.members.pop(static[0])
            self.members[f"{member.client}-{self.born}"] = member
            self.born += 1
            self.made.classic(self.group, self.number, self.now, self.members, self.assignor)

    def _join(self, client: str, instance: str | None = None) -> None:
        name = f"{client}-{self.born}"
        taken = {member.instance for member in self.members.values()}
        if instance is None and self.rng.random() < 0.3:
            instance = f"i{self.rng.randrange(4)}"
        self.born += 1
        member = Client(
            topics=("t", "u"),
            client=client,
            host=self.rng.choice(["/10.0.0.1", "/10.0.0.2"]),
            instance=None if instance in taken else instance,
            session=self.rng.choice([10_000, 45_000, None]) if self.new else 45_000,
            assignor=self.rng.choice([None, "range", "uniform"]) if self.new else None,
        )
        self._set(name, member)

    def _set(self, name: str, member: Client) -> None:
        self.members[name] = member
        if self.new:
            self.made.member(self.group, name, self.now, member)

    def _go(self, name: str) -> None:
        del self.members[name]
        if self.new:
            if self.rng.random() < 0.5:
                self.made.member(self.group, name, self.now, None)
                self.made.target(self.group, name, self.now, None)
            else:
                self.made.target(self.group, name, self.now, None)
                self.made.member(self.group, name, self.now, None)

    def _write(self) -> None:
        rng = self.rng
        self.now += rng.choice([0.2, 3, 10])
        self.number += 1
        assigned: dict[str, list[Partition]] = {name: [] for name in self.members}
        withheld = []
        for topic, size in self.sizes.items():
            takers = [name for name, member in self.members.items() if topic in member.topics]
            for partition in range(size if takers else 0):
                if self.assignor == "cooperative-sticky" and rng.random() < 0.1:
                    withheld.append((topic, partition))
                elif rng.random() < 0.8:
                    assigned[takers[partition % len(takers)]].append((topic, partition))
                else:
                    assigned[rng.choice(takers)].append((topic, partition))
        if self.new:
            self.made.epoch(self.group, self.number, self.now)
            for name, member in self.members.items():
                if sorted(member.owned) != sorted(assigned[name]) or rng.random() < 0.1:
                    self.made.target(self.group, name, self.now, assigned[name])
            self.made.computes(self.group, self.number, self.now)
        for name, member in self.members.items():
            self.members[name] = replace(member, owned=assigned[name])
        if not self.new:
            self.made.classic(self.group, self.number, self.now, self.members, self.assignor)

    def _commit(self, seconds: float, silent: str | None = None) -> None:
        end = self.now + seconds
        if not self.commits_every:
            self.now = end
        while self.now < end:
            for name, member in self.members.items():
                for topic, partition in member.owned if name != silent else ():
                    if self.rng.random() < 0.9:
                        self.made.commit(self.group, topic, partition, self.now)
            self.now += self.commits_every
        self.now = end


def random_log(seed: int, groups: int = 20, steps: int = 12, *, new: bool = True) -> Made:
    """A third of the groups are of the new protocol, unless there are to be none."""
    made, rng = Made(), random.Random(seed)
    for number in range(groups):
        _Life(made, f"g{number:02}", rng, new=new and number % 3 == 2).run(steps)
    return made
