"""Decide whether an event starts a rebalance in a classic group, why, when and how.

Sources: ``GroupMetadataManager`` of the broker (who joins, leaves, or comes back under its
``group.instance.id``: KIP-345), ``ConsumerCoordinator`` and ``AbstractCoordinator`` of the client
(heartbeats, poll interval, the leader's look at metadata). Assignor and protocol are chosen as
``plans.protocol_choice`` does over DataFrames, with the same sources.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kassign_spark.client.hash_order import bucket, capacity_for, java_hash
from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.plans.protocol_choice import DEFAULT_ASSIGNORS
from kassign_spark.simulation.members import (
    Event,
    Member,
    MemberChange,
    Texts,
    is_restart,
    takes_over,
)

MIXED = "mixed"
"""Eager and cooperative members in one group: amid the second bounce of KIP-429."""
_REFUSED = "the member is refused: no assignor is on every list (INCONSISTENT_GROUP_PROTOCOL)"
_CHANGES = {
    "topic_appears": "appears",
    "topic_disappears": "disappears",
    "topic_grows": "gets more partitions",
    "topic_is_recreated": "is made again with another number of partitions",
    "topic_changes_racks": "has replicas in other racks",
}


class Choice(NamedTuple):
    """What all members support.

    Attributes:
        assignor: None: no name is on every list, or there is no member.
        protocol: `eager`, `cooperative` or ``MIXED``; None: there is no member.
    """

    assignor: str | None = None
    protocol: str | None = None


class RebalanceCause(NamedTuple):
    """Whether there is a rebalance, the reason, and the longest delay until it begins, in ms."""

    rebalance: bool
    reason: str | None
    noticed_within_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The consequences of an event in a group.

    Attributes:
        cause: whether there is a rebalance, and why.
        is_reported: False for the first stage of a restart that nobody notices.
        refused: the member may not join.
        chosen: the assignor and protocol from now on.
    """

    cause: RebalanceCause
    is_reported: bool
    refused: bool
    chosen: Choice


def decide(event: Event, changed: list[MemberChange], lost: bool) -> Decision:
    """Decide for a group in which the event is possible, and makes this of its members.

    ``lost``: a member that comes back in time owns partitions of a topic that it has dropped.
    """
    before = [change.before for change in changed if not change.before.is_away]
    after = [change.after for change in changed if not change.after.is_away]
    had = choose(before)
    has = had if event["is_topic"] else choose(after)
    refused = bool(after) and has.assignor is None and any(c.comes for c in changed)
    if refused:
        cause = RebalanceCause(False, _REFUSED)
    elif not before and not after:
        cause = RebalanceCause(False, "the group has no members")
    elif event["is_topic"]:
        cause = _decide_topic(event, changed)
    elif event["kind"] == "subscription_changes":
        cause = _decide_subscriptions(changed, lost)
    elif takes_over(event):
        cause = _decide_take_over(takes_over(event), _decide_return(event, changed, had, has, lost))
    elif is_restart(event) and event["stage"] == 2:
        cause = _decide_return(event, changed, had, has, lost)
    else:
        cause = _decide_member(event, changed, before, after)
    went = any(change.goes for change in changed)
    return Decision(
        cause,
        is_reported=went or not is_restart(event) or event["stage"] == 2,
        refused=refused,
        chosen=had if refused or has.assignor is None else has,
    )


def _decide_topic(event: Event, changed: list[MemberChange]) -> RebalanceCause:
    topic = event["topic"]
    subscriptions: dict[int, Texts | None] = {}
    for change in changed:
        if not change.after.is_away:
            for names in (change.after.resolved, change.before.resolved):
                subscriptions[id(names)] = names
    if not any(topic in (names or ()) for names in subscriptions.values()):
        return RebalanceCause(False, f"no member subscribes to topic {topic}")
    if event["kind"] == "topic_is_recreated" and event["num_partitions"] == event["size_before"]:
        return RebalanceCause(
            False, f"topic {topic} is made again with as many partitions: clients know no ids"
        )
    if event["kind"] == "topic_changes_racks" and not any(c.after.rack for c in changed):
        return RebalanceCause(
            False, f"topic {topic} has replicas in other racks, and no member has a rack"
        )
    return RebalanceCause(
        True,
        f"topic {topic} {_CHANGES[event['kind']]}: the leader sees it when it refreshes its "
        "metadata",
        event["metadata_max_age_ms"],
    )


def _decide_subscriptions(changed: list[MemberChange], lost: bool) -> RebalanceCause:
    switching = [change for change in changed if change.switches]
    if any(change.after.instance is None for change in switching):
        return RebalanceCause(
            True,
            "a consumer that changes between a list and a pattern has to unsubscribe: it leaves, "
            "and joins again",
            0,
        )
    if switching and lost:
        return RebalanceCause(
            True, "a static member joins again: its assignment has a topic that it has dropped", 0
        )
    if switching:
        return RebalanceCause(
            False,
            "a static member that changes between a list and a pattern gets its old assignment",
        )
    if any(_differs(change) for change in changed):
        return RebalanceCause(True, "a member's subscription changes", 0)
    return RebalanceCause(False, "the members subscribe to the same topics as before")


def _differs(change: MemberChange) -> bool:
    after, before = change.after.resolved, change.before.resolved
    if change.after.is_away or after is before:
        return False
    return after is None or before is None or sorted(after) != sorted(before)


def _decide_return(
    event: Event, changed: list[MemberChange], had: Choice, has: Choice, lost: bool
) -> RebalanceCause:
    if any(change.is_target and change.before.is_away for change in changed):
        return RebalanceCause(True, "the member joins again", _delay(event, changed))
    if had.assignor != has.assignor:
        return RebalanceCause(
            True,
            "a static member is back in time, but the chosen assignor changes from "
            f"{had.assignor} to {has.assignor}",
            0,
        )
    if lost:
        return RebalanceCause(
            True,
            "a static member is back in time, but its assignment has a topic that it no longer "
            "subscribes to: it joins again",
            0,
        )
    return RebalanceCause(
        False, "a static member is back within its session timeout: it gets its old assignment"
    )


def _decide_take_over(holder: str | None, back: RebalanceCause) -> RebalanceCause:
    """Decide about a newcomer with a present member's instance id; ``back``: the same member."""
    reason = (
        f"the newcomer has the group.instance.id of {holder}, takes its place and its assignment, "
        "and that one is fenced (FENCED_INSTANCE_ID): started again, it takes them back, and so on"
    )
    if not back.rebalance:
        return back._replace(reason=reason)
    return back._replace(reason=f"{reason}; {back.reason}")


def _decide_member(
    event: Event, changed: list[MemberChange], before: list[Member], after: list[Member]
) -> RebalanceCause:
    """Decide about a member that joins, leaves, is dropped, or goes to restart."""
    kind, session = event["kind"], event["session_timeout_ms"]
    is_static = any(c.is_target and c.after.instance is not None for c in changed)
    emptied = "" if after else "; the group is empty now"
    if kind == "member_joins":
        return RebalanceCause(True, "a new member joins", _delay(event, changed))
    if kind == "member_crashes":
        reason, noticed = "its heartbeats stop: dropped after the session timeout", session
    elif kind == "member_leaves" and is_static:
        reason = "a static member does not leave on closing: dropped after the session timeout"
        noticed = session
    elif kind == "member_leaves":
        reason, noticed = "a dynamic member leaves", 0
    elif kind == "member_polls_too_late" and is_static:
        reason = (
            "max.poll.interval.ms passed: a static member stops its heartbeats, and is dropped "
            "after the session timeout"
        )
        noticed = event["max_poll_interval_ms"] + session
    elif kind == "member_polls_too_late":
        reason = "max.poll.interval.ms passed: a dynamic member leaves"
        noticed = event["max_poll_interval_ms"]
    elif is_static:
        reason, noticed = "a static member is away longer than its session timeout", session
    else:
        reason, noticed = "a dynamic member leaves to restart", 0
    return RebalanceCause(True, reason + emptied, noticed)


def _delay(event: Event, changed: list[MemberChange]) -> int:
    """Return how long an empty group waits for more members."""
    is_empty = all(change.before.is_away for change in changed)
    return int(event["initial_rebalance_delay_ms"]) if is_empty else 0


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
    """Return whether a member with these assignors is eager: one eager assignor is enough."""
    return not set(assignors) <= COOPERATIVE_ASSIGNORS
