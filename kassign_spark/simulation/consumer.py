"""Events in groups of the new protocol: epochs, targets, and the heartbeats that lead to them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kassign_spark.coordinator.life import NOTHING, CoordinatedGroup, TargetList
from kassign_spark.coordinator.next_target import TargetOutcome
from kassign_spark.coordinator.reconcile import Pairs, action_numbers, actions_in
from kassign_spark.groups.numbers import Longs
from kassign_spark.inputs.rules import CONSUMER, STATIC_AWAY
from kassign_spark.plans.rebalance_rounds import REVOKED, RebalanceSteps
from kassign_spark.simulation.consumer_decisions import (
    Acts,
    acts_of,
    draws_id,
    to_group_member,
    topics_of,
    value,
)
from kassign_spark.simulation.members import Event, Member, MemberChange, is_restart
from kassign_spark.simulation.rebalance_timeline import RebalanceTimeline, pairs_of
from kassign_spark.simulation.simulated_group import Group, Naming, OwnedCodes
from kassign_spark.simulation.simulated_rows import LOST

DRAWS = 4
"""Other draws of member ids that an outcome is held against."""
MOST_DRAWN = 100_000
"""A group of more partitions is followed under one draw only."""


def happen(
    group: Group, event: Event, changed: list[MemberChange], naming: Naming, columns: dict[str, Any]
) -> tuple[dict[str, Any], RebalanceSteps] | None:
    """Apply a possible event to a group of the new protocol.

    Returns:
        The row of the event (``columns``, ``simulated_rows.HAPPENED`` and the columns of rounds)
        and the rows of its rounds; None where the next stage reports it.
    """
    acts = acts_of(group, event, changed)
    fresh = draws_id(event, changed) if acts.is_reported else []
    if fresh and len(group.timelines) == 1 and group.partition_count() <= MOST_DRAWN:
        group.timelines += [group.timelines[0].copy(salt) for salt in range(1, DRAWS + 1)]
    group.drawn.update(fresh)
    if event["kind"] == "group_settings_change":
        group.settings.update({n: event[n] for n in event.get("own_timeouts") or ()})
    last = group.timelines[0]
    since, rest = event["computed_before_ms"], 0
    if since is not None:  # the assignment interval may not be over
        rest = max(0, value(group, event, "assignment_interval_ms") - int(since))
    runs = []
    for timeline in group.timelines:
        if not group.pending:
            timeline.before = dict(timeline.owned)
        runs.append(_run(group, timeline, acts, rest))
    rises, outcome, in_own = runs[0]
    group.pending = set() if acts.is_reported else _pending(acts, event, changed)
    group.members = [
        after if after.is_away else replace(after, generation=last.life.group_epoch)
        for after in (change.after for change in changed)
    ]
    if not acts.is_reported:
        return None
    steps, rounds = _steps(last, naming, acts, is_computed=outcome is not None)
    interval = value(group, event, "heartbeat_interval_ms")
    verdict, detail = _verdict(group, outcome)
    wait = 0 if in_own or (event["is_topic"] and not rest) else interval
    for timeline in group.timelines:
        timeline.owned = timeline.targets()
    is_empty = not last.life.members
    reason = acts.reason + ("; the group is empty now" if is_empty else "")
    if event["is_topic"] and not rises:
        reason = f"no member subscribes to topic {event['topic']}: the epoch stays"
    row = columns | {
        "rebalance": rises,
        "reason": reason,
        "assignor": last.life.choice() if not is_empty else None,
        "protocol": CONSUMER,
        "noticed_within_ms": acts.noticed_ms if rises else None,
        "joined_within_ms": None,
        "group_epoch": last.life.group_epoch,
        "computed_within_ms": acts.noticed_ms + rest + wait if outcome is not None else None,
        "settled_within_ms": interval * min(rounds, 2) if outcome is not None else None,
        "verdict": verdict,
        "detail": detail,
    }
    return row, steps


def refuse_newcomer(group: Group, columns: dict[str, Any], holder: Member) -> dict[str, Any]:
    """Return the row of a member that takes over a present one's instance id: nothing changes."""
    life = group.timelines[0].life
    return columns | {
        "rebalance": False,
        "reason": f"group.instance.id {holder.instance} is that of {holder.member_id}, so the "
        "broker refuses the newcomer (UNRELEASED_INSTANCE_ID, fatal for the consumer)",
        "assignor": life.choice(),
        "protocol": CONSUMER,
        "group_epoch": life.group_epoch,
    }


def begin(group: Group, naming: Naming) -> RebalanceTimeline:
    """Return a group before the first event: settled, at the greatest epoch of its members."""
    members = group.here()
    seqs = [member.seq for member in members]
    is_known = None not in seqs and len(set(seqs)) == len(seqs)
    if is_known:
        members = sorted(members, key=lambda member: member.seq or 0)
    life = CoordinatedGroup(topics=topics_of(group), is_order_known=is_known)
    life.table.admit(
        replace(to_group_member(m, m.member_id), is_away=m.generation == STATIC_AWAY)
        for m in members
    )
    life.has_new_regex = True
    life.resolve_regexes(_resolving(group))
    life.assignment_epoch = life.group_epoch = max([1, *(m.generation or 1 for m in members)])
    names = [member.member_id for member in members]
    owned = _group_by_member(group.owned, life, naming, is_ordered=False)
    has_target = len(group.target.member) > 0
    target = (
        _group_by_member(group.target, life, naming, group.target_is_ordered)
        if has_target
        else owned
    )
    life.targets = {name: target[name] for name in names if name in target}
    ids = {name: name for name in names}
    return RebalanceTimeline(0, life, ids, {name: owned.get(name, NOTHING) for name in names})


def _group_by_member(
    owned: OwnedCodes, life: CoordinatedGroup, naming: Naming, is_ordered: bool
) -> dict[str, TargetList]:
    """Group rows by member, as lists of codes."""
    members, topics = naming.members.strings, naming.topics.strings
    lists = {}
    code = np.zeros(len(topics) + 1, np.int64)
    for topic in np.unique(owned.topic).tolist():
        name = topics[topic - 1].as_py()
        topic_of_name = life.topics.get(name)
        code[topic] = life.code(name if topic_of_name is None else topic_of_name.key)
    order = np.argsort(owned.member, kind="stable")
    member, firsts = np.unique(owned.member[order], return_index=True)
    for code_of_member, rows in zip(
        member.tolist(), np.split(order, firsts[1:]), strict=bool(len(member))
    ):
        name = members[code_of_member - 1].as_py()
        lists[name] = TargetList(code[owned.topic[rows]], owned.partition[rows], is_ordered)
    return lists


def _resolving(group: Group) -> Any:
    return lambda regex: tuple(n for n in group.regexes.get(regex, ()) if n in group.topics)


def _run(
    group: Group, timeline: RebalanceTimeline, acts: Acts, rest: int
) -> tuple[bool, TargetOutcome | None, bool]:
    """Apply the acts of an event; compute where the epoch rises, twice where a regex follows.

    Returns:
        Whether the epoch rises, the last target, and whether it came of the member's own heartbeat.
    """
    life, outcome, rises = timeline.life, None, False
    for act in acts.acts:
        rises |= act(timeline)
    if not acts.is_reported:
        return rises, None, False
    in_own = rises and acts.own is not None and rest == 0
    if life.group_epoch > life.assignment_epoch and life.members:
        outcome = timeline.compute(acts.own if in_own else None)
    if life.resolve_regexes(_resolving(group)):
        rises, outcome, in_own = True, timeline.compute(None), False
    return rises, outcome, in_own


def _pending(acts: Acts, event: Event, changed: list[MemberChange]) -> set[str]:
    """Return members that are to come back before the next target is computed."""
    if not (is_restart(event) and acts.acts):
        return set()
    targets = [change.before.member_id for change in changed if change.is_target]
    return {event["new_member_id"] or name for name in targets}


def _steps(
    timeline: RebalanceTimeline, naming: Naming, acts: Acts, *, is_computed: bool
) -> tuple[RebalanceSteps, int]:
    """Return the rounds of heartbeats; and what members give up that go: round 0."""
    code, code_of_topic = naming.members.of, naming.topics.of
    # Of each code of a topic's id the code of its name.
    topics = np.array(
        [code_of_topic[timeline.names.get(key, key)] for key in timeline.life.keys], np.int64
    )

    def rows(names: list[str], pairs: Pairs, number: int, action: int | Longs) -> RebalanceSteps:
        of_topic, partition = pairs.partitions >> 32, pairs.partitions & 0xFFFF_FFFF
        member = np.array([*(code[name] for name in names), 0], np.int64)[pairs.members]
        same = np.ones(len(member), np.int64)
        return RebalanceSteps(same * number, member, topics[of_topic], partition, same * action)

    gone = sorted(timeline.before.keys() - timeline.owned.keys())
    parts = [rows(gone, pairs_of(timeline.before, gone), 0, LOST if acts.is_lost else REVOKED)]
    followed, names = timeline.reconcile()
    if not is_computed and not followed.round_count:
        return RebalanceSteps.join(parts), 0
    count = max(followed.round_count, 1)
    for number in range(1, count + 1):
        actions = actions_in(followed, number)
        has_action = actions != ""
        pairs = Pairs(followed.members[has_action], followed.partitions[has_action])
        parts.append(rows(names, pairs, number, action_numbers(actions[has_action])))
    return RebalanceSteps.join(parts), count


def _verdict(group: Group, outcome: TargetOutcome | None) -> tuple[str | None, str | None]:
    """Return how certain the target is, and what in it depends on ids that are not drawn yet."""
    if outcome is None:
        return None, None
    if not group.drawn or outcome.verdict == "never_settles":
        return outcome.verdict, outcome.detail
    sentence = describe_draws(group.drawn, group.timelines)
    reasons = [sentence] if outcome.detail is None else [outcome.detail, sentence]
    return "inexact" if outcome.verdict == "inexact" else "drawn", "; ".join(reasons)


def describe_draws(drawn: Collection[str], timelines: Sequence[RebalanceTimeline]) -> str:
    """Return what in a target depends on ids, and what is the same for all draws."""
    names = ", ".join(sorted(drawn)[:3]) + (", ..." if len(drawn) > 3 else "")
    sentence = f"ids are drawn: of {names}"
    spreads = [timeline.spread() for timeline in timelines]
    first, *others = spreads
    if not others:
        sentence += "; the group is too large to try others, so who gets which partition is open"
    elif all(other.owners == first.owners for other in others):
        sentence += f"; with {len(others)} other draws nothing changes"
    else:
        counts = (
            "the members' counts, whoever has them, are the same"
            if all(other.loads == first.loads for other in others)
            else "the members' counts differ as well"
        )
        least, most = (f(s.moved for s in spreads) for f in (min, max))
        moves = f"{least}" if least == most else f"{least} to {most}"
        sentence += f"; with {len(others)} other draws {counts}, {moves} move, others get them"
    return sentence
