"""Seeded random groups whose members' subscriptions differ, in the shapes that can go wrong."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from kassign_spark.schemas import OWNED


@dataclass(frozen=True)
class MixedGroup:
    """One group: topics and their partition counts, subscriptions, and who owns what."""

    name: str
    partitions: dict[str, int]
    subscriptions: dict[str, tuple[str, ...]]
    owned: dict[tuple[str, int], str] = field(default_factory=dict)

    def subscribers(self, topic: str) -> list[str]:
        return [member for member, topics in self.subscriptions.items() if topic in topics]

    def valid_owned(self) -> dict[tuple[str, int], str]:
        """Those owned partitions that exist and whose owner may keep them."""
        return {
            (topic, partition): member
            for (topic, partition), member in self.owned.items()
            if partition < self.partitions.get(topic, 0)
            and topic in self.subscriptions.get(member, ())
        }

    def counts(self) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
        """Supply a topic and owned partitions a (topic, subscriber): what the oracle takes."""
        supply = {topic: n for topic, n in self.partitions.items() if self.subscribers(topic)}
        owned = {(topic, member): 0 for topic in supply for member in self.subscribers(topic)}
        for (topic, _), member in self.valid_owned().items():
            owned[topic, member] += 1
        return supply, owned


SHAPES = ("random", "chain", "star", "disconnected", "lonely topics", "empty subscriptions", "few")
CHANGES = ("fresh", "left", "joined", "resubscribed", "grown", "shuffled", "several")


def mixed_groups(count: int, seed: int, largest: int = 9) -> list[MixedGroup]:
    """``count`` groups; every shape meets every change in turn."""
    rng = random.Random(seed)
    groups = []
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        change = CHANGES[number // len(SHAPES) % len(CHANGES)]
        group = _shaped(shape, rng, largest)
        if change != "fresh":
            group = replace(group, owned=_greedy(group, rng))
            group = _changed(change, group, rng)
        groups.append(replace(group, name=f"g{number:05d} {shape}, {change}"))
    return groups


def _shaped(shape: str, rng: random.Random, largest: int) -> MixedGroup:
    members = [f"m{i}" for i in range(rng.randint(1 if shape == "few" else 2, largest))]
    topics = [f"t{i}" for i in range(rng.randint(1 if shape == "few" else 2, largest))]
    partitions = {topic: rng.choice((0, 1, 1, 2, 3, 5, 8, 13)) for topic in topics}
    density = rng.choice((0.2, 0.4, 0.6, 0.9))
    subscriptions: dict[str, tuple[str, ...]] = {}
    for place, member in enumerate(members):
        if shape == "chain":
            reads = {place % len(topics), (place + 1) % len(topics)}
        elif shape == "star":
            reads = {0, 1 + place % max(1, len(topics) - 1)} if place else set(range(len(topics)))
        elif shape == "disconnected":
            reads = {t for t in range(len(topics)) if t % 3 == place % 3 and rng.random() < 0.8}
        elif shape == "lonely topics":
            reads = {t for t in range(len(topics)) if t == place or (t % 2 and rng.random() < 0.4)}
        elif shape == "empty subscriptions":
            reads = (
                set() if place % 3 == 0 else {t for t in range(len(topics)) if rng.random() < 0.5}
            )
        else:
            reads = {t for t in range(len(topics)) if rng.random() < density}
        subscriptions[member] = tuple(topics[t] for t in sorted(reads) if t < len(topics))
    return MixedGroup("", partitions, subscriptions)


def _greedy(group: MixedGroup, rng: random.Random) -> dict[tuple[str, int], str]:
    """A plausible earlier assignment: each partition to a subscriber with few of them."""
    loads = dict.fromkeys(group.subscriptions, 0)
    owned = {}
    for topic, count in group.partitions.items():
        for partition in range(count):
            subscribers = group.subscribers(topic)
            if subscribers:
                owner = min(subscribers, key=lambda member: (loads[member], rng.random()))
                loads[owner] += 1
                owned[topic, partition] = owner
    return owned


def _changed(change: str, group: MixedGroup, rng: random.Random) -> MixedGroup:
    topics = list(group.partitions)
    subscriptions = dict(group.subscriptions)
    if change == "left":
        for gone in rng.sample(sorted(subscriptions), k=min(2, len(subscriptions) - 1)):
            del subscriptions[gone]
    elif change == "joined":
        for number in range(rng.randint(1, 3)):
            reads = sorted(topic for topic in topics if rng.random() < 0.5)
            subscriptions[f"joined{number}"] = tuple(reads)
    elif change == "resubscribed":
        for member in rng.sample(sorted(subscriptions), k=min(2, len(subscriptions))):
            subscriptions[member] = tuple(topic for topic in topics if rng.random() < 0.5)
    elif change == "grown":
        grown = {t: n + rng.choice((0, 0, 1, 4)) for t, n in group.partitions.items()}
        return replace(group, partitions={**grown, "new": rng.randint(1, 4)})
    elif change == "shuffled":
        owned = {
            (topic, partition): rng.choice(group.subscribers(topic))
            for topic, partition in group.owned
            if rng.random() < 0.9
        }
        return replace(group, owned=owned)
    else:
        for step in ("left", "joined", "resubscribed", "grown"):
            group = _changed(step, group, rng)
        return group
    return replace(group, subscriptions=subscriptions)


def to_tables(
    spark: SparkSession, groups: Sequence[MixedGroup]
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Members, topics and owned of all groups; each is alone in a cluster of its own name.

    Topics belong to a cluster, and every group has sizes of its own.
    """
    members = [
        (group.name, group.name, member, list(topics))
        for group in groups
        for member, topics in group.subscriptions.items()
    ]
    topics = [
        (group.name, topic, count) for group in groups for topic, count in group.partitions.items()
    ]
    owned = [
        (group.name, group.name, member, topic, partition)
        for group in groups
        for (topic, partition), member in group.owned.items()
    ]
    return (
        spark.createDataFrame(
            members, "cluster_id string, group_id string, member_id string, topics array<string>"
        ),
        spark.createDataFrame(topics, "cluster_id string, topic string, num_partitions int"),
        spark.createDataFrame(owned, OWNED.columns),
    )
