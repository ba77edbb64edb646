"""Events that are not possible in the state that they meet."""

import json
from collections import Counter

from kassign_spark.inputs.linear import UNENDING, may_not_end
from kassign_spark.inputs.rules import NO_PATTERN
from kassign_spark.simulation.consumer_decisions import problem_of_consumers
from kassign_spark.simulation.members import Event, MemberChange, is_restart, takes_over
from kassign_spark.simulation.simulated_group import Group


def problem_of_topic(event: Event, size: int | None) -> str | None:
    """Explain why an event of a topic is not possible, or None; no size: no such topic."""
    kind, topic = event["kind"], f"topic {quote_name(event['topic'])}"
    if not event["is_hosted"]:
        return f"no group is in cluster {_to_json(event['cluster_id'])}"
    if kind == "topic_appears":
        return None if size is None else f"{topic} is there already, with {size} partitions"
    if size is None:
        return f"{topic} does not exist"
    racks = event["replica_racks"]
    if racks is not None and len(racks) > size:
        return f"{topic} has {size} partitions, and replica_racks names {len(racks)}"
    if kind == "topic_grows" and event["num_partitions"] <= size:
        return (
            f"{topic} has {size} partitions and cannot get {event['num_partitions']}: "
            "their number only grows"
        )
    return None


def problem_of_group(event: Event, of_group: Group, changed: list[MemberChange]) -> str | None:
    """Explain why an event with these changes is not possible in its group, or None."""
    group, member = (
        f"group {quote_name(of_group.group_id)}",
        f"member {quote_name(event['member_id'])}",
    )
    joins = event["kind"] == "member_joins"
    present = [change.after for change in changed if not change.after.is_away]
    foreign = (
        problem_of_consumers(of_group, event, changed)
        if of_group.consumer
        else _problem_of_other(event)
    )
    if foreign is not None:
        return f"{group}: {foreign}" if changed else f"{group} does not exist"
    is_unassigned = any(change.is_new and change.after.assignors is None for change in changed)
    if not changed or (joins and len(changed) == 1 and changed[0].is_new and is_unassigned):
        needs = ": a new group needs topics or topics_pattern, and assignors" if joins else ""
        return f"{group} does not exist{needs}"
    was_here = any(change.is_target and not change.before.is_away for change in changed)
    if joins and was_here and takes_over(event) is None:
        return f"{member} is in {group} already"
    comes_back = is_restart(event) and event["stage"] == 2
    if event["member_id"] is not None and not joins and not comes_back and not was_here:
        was_away = any(change.is_target for change in changed)
        return f"{group} has no {member}" + (" any more: it went before" if was_away else "")
    if len({change.after.member_id for change in changed}) < len(changed):
        return f"new_member_id is another member of {group}"
    instances = Counter(member.instance for member in present if member.instance is not None)
    shared = [name for name, count in instances.items() if count > 1]
    if shared:
        return f"group.instance.id {min(shared)} is another member's of {group}: " + (
            "the broker refuses the newcomer (UNRELEASED_INSTANCE_ID)"
            if of_group.consumer
            else "the broker gives the newcomer its place and fences it (FENCED_INSTANCE_ID), and "
            "two that both go on fence each other (member_restarts asks for one of them)"
        )
    unresolved = [member.pattern for member in present if member.resolved is None]
    if patterns := [pattern for pattern in unresolved if pattern is not None]:
        pattern = max(patterns)
        problem = UNENDING if may_not_end(pattern) else NO_PATTERN
        return f"topics_pattern {quote_name(pattern)}: {problem}"
    if unresolved:
        return f"the members of {group} do not all subscribe alike: give topics or topics_pattern"
    if is_unassigned and not of_group.consumer:
        return f"the members of {group} do not all list the same assignors: give them"
    return None


def _problem_of_other(event: Event) -> str | None:
    """Return the problem of an event that a classic group cannot have."""
    names = [name for name in ("topics_regex", "stop", "computed_before_ms") if event[name]]
    if event["kind"] == "group_settings_change":
        return "is classic: only groups of the new protocol have settings of their own"
    if names:
        return f"is classic: {names[0]} is for groups of the new protocol"
    if event["assignors"] is not None and "uniform" in event["assignors"]:
        return "is classic: uniform is an assignor of the new protocol"
    return None


def quote_name(name: str | None) -> str:
    """Show a name as messages do."""
    return json.dumps(name or "", ensure_ascii=False)


def _to_json(name: str) -> str:
    return json.dumps([name], ensure_ascii=False)
