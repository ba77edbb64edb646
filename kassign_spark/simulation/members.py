"""The members of a group between two events, and what an event does to them.

Inside a task, in plain Python: what an event does depends on what the one before it left, and the
members of a group are few beside its partitions, which stay arrays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.simulation.events import RESTARTS

Event = Mapping[str, Any]
"""The columns of ``events.EVENTS``, and stage: 2 where a restarted member comes back, else 1."""

Texts = tuple[str, ...]
SUBSCRIBES = ("topics", "topics_pattern", "topics_regex")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Member:
    """A present or former member of a group.

    Attributes:
        member_id, instance, rack, topics, pattern, generation, seq, assignor: as of
            ``schemas.MEMBERS``, the subscription as declared; assignor is the group's.
        assignors: its list.
        resolved: the topics that it subscribes to now; None: its pattern is none.
        is_away: it was in the group, and is not now.
        regex: that the broker resolves; adds to its topics (groups of the new protocol).
        client, is_leader: as of ``schemas.MEMBERS``.
    """

    member_id: str
    instance: str | None
    rack: str | None
    topics: Texts | None
    pattern: str | None
    generation: int | None
    seq: int | None
    assignor: str | None
    assignors: Texts | None
    resolved: Texts | None
    is_away: bool = False
    regex: str | None = None
    client: str | None = None
    is_leader: bool = False


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The change of a member in an event.

    Attributes:
        before: the member before it; one that is new is away.
        after: after it, were the event to have its way.
        is_target: the event names the member.
        is_new: it was never in the group.
        goes: it leaves the group.
        comes: it joins, as a consumer that knows nothing of before.
        switches: it comes because it changes between a list and a pattern.
    """

    before: Member
    after: Member
    is_target: bool = False
    is_new: bool = False
    goes: bool = False
    comes: bool = False
    switches: bool = False


def is_restart(event: Event) -> bool:
    """Return whether the event is the restart of a member."""
    return event["kind"] in RESTARTS


def instance_holder(members: list[Member], event: Event) -> Member | None:
    """Return the member whose ``group.instance.id`` a newcomer takes over, or None."""
    if event["kind"] != "member_joins" or event["group_instance_id"] is None:
        return None
    if any(member.member_id == event["member_id"] for member in members):
        return None
    present = [member for member in members if not member.is_away]
    return next((m for m in present if m.instance == event["group_instance_id"]), None)


def change_members(
    members: list[Member], event: Event, resolve: Callable[[Member], Member]
) -> list[MemberChange]:
    """Remove, add and resubscribe members, including those that are away.

    An event of a topic changes no more than what patterns match: ``resolve`` gives a member the
    topics that it subscribes to now.
    """
    joins = event["kind"] == "member_joins" and takes_over(event) is None
    changed = [_change(member, event, resolve) for member in members]
    if joins and all(member.member_id != event["member_id"] for member in members):
        changed.append(_change(_joiner(members, event), event, resolve, is_new=True))
    return changed


def takes_over(event: Event) -> str | None:
    """Return the member with the newcomer's ``group.instance.id``, whose place it takes."""
    held_by: str | None = event.get("instance_holder")
    return held_by


_GOING = ("member_leaves", "member_crashes", "member_polls_too_late")


def _change(
    member: Member, event: Event, resolve: Callable[[Member], Member], *, is_new: bool = False
) -> MemberChange:
    kind, is_back = event["kind"], is_restart(event) and event["stage"] == 2
    names = (member.member_id, None if kind == "member_joins" else member.instance)
    member_id = takes_over(event) or event["member_id"]
    is_target = member_id is not None and member_id in names
    resubscribing = kind == "subscription_changes" and not member.is_away
    resubscribing = resubscribing and (event["member_id"] is None or is_target)
    if not is_target and not resubscribing:
        return MemberChange(member, resolve(member))
    # The group waits for a static member that is back in time.
    is_in_time = (event["downtime_ms"] or 0) < event["session_timeout_ms"]
    is_awaited = member.instance is not None and is_in_time
    is_going = is_restart(event) and not is_back and not is_awaited
    goes = is_target and not member.is_away and (is_going or kind in _GOING)
    comes = is_target and (kind == "member_joins" or is_back)
    gives = any(event[name] is not None for name in SUBSCRIBES)
    resubscribes = gives and (resubscribing or (comes and not is_new))
    # A consumer has to unsubscribe in between: a dynamic one leaves by that, and joins anew.
    to_pattern = event["topics_pattern"] is not None
    switches = gives and resubscribing and to_pattern != (member.pattern is not None)
    comes = comes or switches
    after = replace(member, is_away=True) if goes else member
    if comes:
        columns = {"assignors": "assignors", "rack": "rack_id", "instance": "group_instance_id"}
        after = replace(
            after,
            member_id=event["member_id"]
            if takes_over(event)
            else event["new_member_id"] or member.member_id,
            is_away=False,
            generation=None if member.is_away else member.generation,
            **{own: event[name] for own, name in columns.items() if event[name] is not None},
        )
    if resubscribes:
        regex = event["topics_regex"]
        topics = event["topics"] if regex is None else event["topics"] or ()
        after = replace(after, topics=topics, pattern=event["topics_pattern"], regex=regex)
    return MemberChange(member, resolve(after), is_target, is_new, goes, comes, switches)


def _joiner(members: list[Member], event: Event) -> Member:
    """Return a member that is new to its group; what the event leaves out is as all others have it.

    Where the others differ, or there are none, it is None; an empty group keeps its assignor.
    """
    present = [member for member in members if not member.is_away]
    own = any(event[name] is not None for name in SUBSCRIBES)
    regex = event["topics_regex"] if own else _find_shared([member.regex for member in present])
    topics = event["topics"] if own else _find_shared([member.topics for member in present])
    group_assignor = min((m.assignor for m in members if m.assignor is not None), default=None)
    assignors: Texts | None = event["assignors"]
    if assignors is None:
        assignors = _find_shared([member.assignors for member in present])
    if assignors is None and members and not present and group_assignor is not None:
        assignors = (group_assignor,)
    last_seq = max((member.seq for member in members if member.seq is not None), default=None)
    return Member(
        member_id=event["member_id"],
        instance=event["group_instance_id"],
        rack=event["rack_id"],
        topics=() if topics is None and regex is not None else topics,
        pattern=event["topics_pattern"]
        if own
        else _find_shared([member.pattern for member in present]),
        generation=None,
        seq=None if last_seq is None else min(last_seq + 1, INT_MAX),
        assignor=group_assignor or (assignors[0] if assignors else None),
        assignors=assignors,
        resolved=(),
        is_away=True,
        regex=regex,
        client=_find_shared([member.client for member in present]),
    )


def _find_shared(values: list[_Value | None]) -> _Value | None:
    """Return the value that all have; None if they differ."""
    first = values[0] if values else None
    return first if all(value is first or value == first for value in values) else None
