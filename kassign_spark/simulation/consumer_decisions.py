"""Decide the effect of an event on a group of the new protocol, its reason and its delay.

Sources: ``GroupMetadataManager`` of Kafka 4.4.0 (who raises the epoch), KIP-848, KIP-1092 (how a
consumer closes), KIP-1263 (the assignment interval).
"""

from collections.abc import Callable
from dataclasses import dataclass

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.coordinator.life import GroupMember, TopicState, topic_state
from kassign_spark.simulation.members import Event, Member, MemberChange, is_restart, takes_over
from kassign_spark.simulation.rebalance_timeline import RebalanceTimeline, draw_id, is_kafka_id
from kassign_spark.simulation.simulated_group import Group

Act = Callable[[RebalanceTimeline], bool]
"""Changes a timeline, and returns whether the group's epoch rises."""
_REGEX_PAUSE_MS = 10_000
"""Regexes of a group are resolved again at the earliest so long after the last time."""


@dataclass(frozen=True, slots=True)
class Acts:
    """The effect of an event.

    Attributes:
        acts: one after the other.
        reason: why the epoch rises, or not.
        noticed_ms: the longest until it does, or would.
        own: the member in whose own heartbeat the target can be computed.
        is_reported: False for an act that the next stage reports.
        is_lost: what a member has is lost, not revoked.
    """

    acts: list[Act]
    reason: str
    noticed_ms: int = 0
    own: str | None = None
    is_reported: bool = True
    is_lost: bool = False


def value(group: Group, event: Event, name: str) -> int:
    """Return a timeout: the event's own, or the group's, or what holds for all."""
    is_own = name in (event.get("own_timeouts") or ())
    setting: int = event[name]
    return setting if is_own else group.settings.get(name, setting)


def problem_of_consumers(group: Group, event: Event, changed: list[MemberChange]) -> str | None:
    """Explain why an event is not possible in a group of the new protocol; None: it is."""
    votes = event["assignors"]
    if votes is not None and (len(votes) > 1 or votes[0] not in COORDINATOR_ASSIGNORS):
        names = ", ".join(sorted(COORDINATOR_ASSIGNORS))
        return f"a consumer of the new protocol names one of {names}"
    dynamic = any(change.is_target and change.before.instance is None for change in changed)
    if is_restart(event) and event["stop"] == "crash" and dynamic:
        return (
            "a dynamic member that crashes stays until its session ends: give two events, "
            "member_joins with another member_id and member_crashes"
        )
    return None


def acts_of(group: Group, event: Event, changed: list[MemberChange]) -> Acts:
    """Return what an event comes to in a group in which it is possible."""
    kind = event["kind"]
    if kind == "group_settings_change":
        return Acts([], "the group's settings hold from its members' next heartbeats on")
    if event["is_topic"]:
        return _decide_topic(group, event, changed)
    if kind == "subscription_changes":
        return _decide_subscriptions(group, event, changed)
    (change,) = [change for change in changed if change.is_target]
    if is_restart(event):
        return _decide_restart(group, event, change)
    if takes_over(event) is not None:
        return _decide_take_over(group, event, change)
    if kind == "member_joins":
        act = _join(group, event, change.after)
        return Acts([act], _why_join(change.after), own=change.after.member_id)
    return _decide_going(group, event, change.before)


def to_group_member(member: Member, member_id: str) -> GroupMember:
    """Return a member as the coordinator knows it."""
    return GroupMember(
        member_id,
        member.instance,
        tuple(member.resolved or ()),
        member.regex,
        member.assignors[0] if member.assignors else None,
    )


def topics_of(group: Group) -> dict[str, TopicState]:
    """Return the topics that are there, as the coordinator knows them."""
    states = {}
    for name, topic in group.topics.items():
        racks = None if topic.racks is None else [sorted(r or ()) for r in topic.racks]
        state = topic_state(name, topic.size, topic.topic_id, racks)
        if topic.made:
            state = state._replace(key=draw_id("topic", name, topic.made))
        states[name] = state
    return states


def _join(group: Group, event: Event, member: Member) -> Act:
    name = member.member_id
    return lambda timeline: timeline.join(
        name, to_group_member(member, _id(group, event, name, timeline))
    )


def _leave(name: str) -> Act:
    return lambda timeline: timeline.leave([name])


def _id(group: Group, event: Event, name: str, timeline: RebalanceTimeline) -> str:
    if is_kafka_id(name) and name not in group.drawn:
        return name
    return draw_id(group.cluster_id, group.group_id, name, event["event"], timeline.salt)


def draws_id(event: Event, changed: list[MemberChange]) -> list[str]:
    """Return the names of members whose clients draw an id in this event."""
    fresh = [c for c in changed if c.comes and (not c.switches or c.after.instance is None)]
    restarted = is_restart(event) and event["new_member_id"] is None
    return [c.after.member_id for c in fresh if restarted or not is_kafka_id(c.after.member_id)]


def _why_join(member: Member) -> str:
    if member.resolved:
        return "a new member joins"
    if member.regex is not None:
        return (
            "a new member joins with a regex: it gets nothing before the broker has resolved it, "
            f"at the earliest {_REGEX_PAUSE_MS // 1000} s after the group's last resolution"
        )
    return "a new member joins with an empty list of topics"


def _decide_going(group: Group, event: Event, member: Member) -> Acts:
    kind, poll = event["kind"], int(event["max_poll_interval_ms"])
    session = value(group, event, "session_timeout_ms")
    stop = event["stop"] or "close"
    is_static = member.instance is not None
    is_crash = kind == "member_crashes" or stop == "crash"
    if is_crash:
        reason, noticed = "its heartbeats stop: fenced after the session timeout", session
    elif kind == "member_polls_too_late" and is_static:
        reason = (
            "max.poll.interval.ms passed: a static member leaves with the epoch -2, nobody reads "
            "its partitions until the session timeout has passed as well"
        )
        noticed = poll + session
    elif kind == "member_polls_too_late":
        reason = "max.poll.interval.ms passed: the member leaves, and joins again at its next poll"
        noticed = poll
    elif is_static and stop != "leave_group":
        reason = (
            "a static member leaves with the epoch -2 and keeps its target: nobody reads its "
            "partitions before it is fenced after the session timeout"
        )
        noticed = session
    elif stop == "remain_in_group":
        reason = "the consumer closes without leaving: fenced after the session timeout"
        noticed = session
    else:
        reason, noticed = f"a {'static' if is_static else 'dynamic'} member leaves", 0
    is_lost = is_crash or kind == "member_polls_too_late"
    return Acts([_leave(member.member_id)], reason, noticed, is_lost=is_lost)


def _decide_restart(group: Group, event: Event, change: MemberChange) -> Acts:
    member, downtime = change.before, int(event["downtime_ms"] or 0)
    session = value(group, event, "session_timeout_ms")
    stop = event["stop"] or "close"
    is_back = event["stage"] == 2
    keeps = member.instance is not None and stop in ("close", "remain_in_group")
    if keeps and downtime < session:
        return (
            _decide_take_over(group, event, change) if is_back else Acts([], "", is_reported=False)
        )
    if is_back:
        reason = "the member joins again, as a new one"
        if change.after.member_id in group.pending:
            reason = (
                "a dynamic member restarts before anybody else's heartbeat computes a target: one "
                "computation serves both, and the newcomer takes what was left"
            )
        elif stop == "crash" and downtime < session:
            reason = (
                "the instance id was in use (UNRELEASED_INSTANCE_ID, fatal for the consumer) until "
                "the session timeout had passed; started again after that, it joins as a new one"
            )
        return Acts([_join(group, event, change.after)], reason, own=change.after.member_id)
    acts = [_leave(member.member_id)]
    if stop == "crash":
        reason = "its heartbeats stop, and its instance id stays in use: fenced after the session "
        return Acts(acts, f"{reason}timeout", session, is_lost=True)
    if keeps:
        reason = "a static member is away longer than its session timeout: fenced"
        return Acts(acts, reason, session)
    if stop == "remain_in_group":
        reason = (
            "the consumer closes without leaving, and comes back under another id: fenced after "
        )
        return Acts(acts, f"{reason}the session timeout", session)
    if is_free(group, event):
        return Acts(acts, "", is_reported=False)
    return Acts(acts, "a member leaves to restart, and others get what it had")


def is_free(group: Group, event: Event) -> bool:
    """Return whether no other member's heartbeat computes a target while a member restarts.

    Heartbeats of n others come every interval / n; within the assignment interval they compute
    nothing.
    """
    others = len(group.here()) - 1
    downtime = int(event["downtime_ms"] or 0)
    since = event["computed_before_ms"]
    interval = value(group, event, "assignment_interval_ms")
    if others == 0 or (since is not None and since + downtime < interval):
        return True
    return downtime < value(group, event, "heartbeat_interval_ms") // others


def _decide_take_over(group: Group, event: Event, change: MemberChange) -> Acts:
    before, after = change.before, change.after

    def act(timeline: RebalanceTimeline) -> bool:
        member = to_group_member(after, _id(group, event, after.member_id, timeline))
        return timeline.take_over(before.member_id, after.member_id, member)

    same = set(before.resolved or ()) == set(after.resolved or ()) and before.regex == after.regex
    reason = "a static member is back within its session timeout: it takes over its target"
    if not same:
        reason = "a static member is back in time, with another subscription"
    elif before.assignors != after.assignors:
        reason += "; its vote counts anew"
    return Acts([act], reason, own=after.member_id)


def _decide_subscriptions(group: Group, event: Event, changed: list[MemberChange]) -> Acts:
    acts: list[Act] = []
    member_id, reason = None, "the members subscribe to the same topics as before"
    for change in changed:
        before, after, name = change.before, change.after, change.before.member_id
        if after.is_away:
            continue
        if change.switches:
            acts += [_leave(name), _join(group, event, after)]
            reason = "a consumer that changes between a list and a pattern leaves, and joins again"
        elif set(before.resolved or ()) != set(after.resolved or ()) or before.regex != after.regex:
            member_id = member_id or name
            acts.append(_resubscribe(after))
            reason = "a member's subscription changes"
            if after.regex is not None and before.regex != after.regex:
                reason = "a member's regex changes: noticed when the broker has resolved it"
    return Acts(acts, reason, own=member_id)


def _resubscribe(member: Member) -> Act:
    name = member.member_id
    return lambda timeline: timeline.resubscribe(name, to_group_member(member, ""))


_TOPIC_CHANGES = {
    "topic_appears": "is created",
    "topic_disappears": "is deleted",
    "topic_grows": "gets more partitions",
    "topic_is_recreated": "is made again under its name: first all of it is taken",
    "topic_changes_racks": "has replicas in other racks, which neither assignor looks at",
}


def _decide_topic(group: Group, event: Event, changed: list[MemberChange]) -> Acts:
    topics = topics_of(group)
    acts: list[Act] = [lambda timeline: timeline.change_topics(topics)]
    noticed = value(group, event, "heartbeat_interval_ms")
    noticing = "the coordinator sees it in anybody's next heartbeat"
    by_client = [
        change.after
        for change in changed
        if not change.after.is_away and change.after.resolved != change.before.resolved
    ]
    acts += [_resubscribe(member) for member in by_client]
    if by_client:
        noticed = int(event["metadata_max_age_ms"])
        noticing = "consumers whose pattern it matches see it when they refresh their metadata"
    reason = f"topic {event['topic']} {_TOPIC_CHANGES[event['kind']]}: {noticing}"
    return Acts(acts, reason, noticed)
