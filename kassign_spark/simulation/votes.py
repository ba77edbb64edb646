"""The assignor and the protocol of a group inside a task, from its members' lists.

What ``rebalancing.choice`` does over DataFrames, with the same sources.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kassign_spark.client.hash_order import bucket, capacity_for, java_hash
from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.plans.choice import DEFAULT_ASSIGNORS
from kassign_spark.simulation.members import Member, Texts

MIXED = "mixed"
"""Eager and cooperative members in one group: amid the second bounce of KIP-429."""


class Choice(NamedTuple):
    """What members have in common.

    Attributes:
        assignor: None: no name is on every list, or there is no member.
        protocol: `eager`, `cooperative` or ``MIXED``; None: there is no member.
    """

    assignor: str | None = None
    protocol: str | None = None


def choose(members: Sequence[Member]) -> Choice:
    """Choose for the members that are in the group."""
    lists = Counter(member.assignors or DEFAULT_ASSIGNORS for member in members)
    if not lists:
        return Choice()
    protocols = {COOPERATIVE if not is_eager(names) else EAGER for names in lists}
    protocol = protocols.pop() if len(protocols) == 1 else MIXED
    candidates = set.intersection(*(set(names) for names in lists))
    if not candidates:
        return Choice(None, protocol)
    votes: Counter[str] = Counter()
    for names, count in lists.items():
        votes[next(name for name in names if name in candidates)] += count
    capacity = capacity_for(len(votes))

    def rank(name: str) -> tuple[int, int, str]:
        return -votes[name], bucket(java_hash(name), capacity), name

    return Choice(min(candidates, key=rank), protocol)


def is_eager(assignors: Texts) -> bool:
    """Whether a member that lists these is eager: one that knows no other protocol is enough."""
    return not set(assignors) <= COOPERATIVE_ASSIGNORS
