"""Events and what follows from them, for all groups of a task: the nth events side by side."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import KAFKAS, RANGE, STICKY, part_of
from kassign_spark.client.group_state import FAILING
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.inputs.rules import STATIC_AWAY
from kassign_spark.limits import PARTITIONS_OF_A_GROUP
from kassign_spark.plans.exact import misled_groups
from kassign_spark.plans.rebalance_rounds import (
    REVOKED,
    RebalanceRounds,
    RebalanceSteps,
    claims_of_owners,
    follow,
    steps_of_claims,
)
from kassign_spark.simulation.consumer import begin, happen, refuse_newcomer
from kassign_spark.simulation.decisions import MIXED, Choice, Decision, decide, is_eager
from kassign_spark.simulation.group_reading import read_groups
from kassign_spark.simulation.members import Event, MemberChange, change_members, instance_holder
from kassign_spark.simulation.problems import problem_of_group, problem_of_topic, quote_name
from kassign_spark.simulation.simulated_group import (
    NOTHING,
    Group,
    Naming,
    OwnedCodes,
    batch_of,
    owned_of,
)
from kassign_spark.simulation.simulated_rows import LOST, Step, simulated_rows


class _Following(NamedTuple):
    """A group that rebalances: its place in the step, and how it does."""

    place: int
    group: Group
    chosen: Choice


def simulate_arrow(
    table: pa.Table, *, racks_before_moves: bool = False, max_rounds: int = 1_000
) -> Iterator[pa.Table]:
    """Simulate the groups of a task, rows of ``fold.fold_events``.

    Returns:
        The columns of ``HAPPENED``, in pieces. A group with an event that is not possible ends
        there, with one row that says why.
    """
    groups, naming = read_groups(table)
    last = max((len(group.events) for group in groups), default=0)
    options = {"racks_before_moves": racks_before_moves, "max_rounds": max_rounds}
    yield from simulated_rows(
        (take_step(groups, step, naming, **options) for step in range(last)), naming
    )


def take_step(groups: list[Group], place: int, naming: Naming, **options: Any) -> Step:
    """Apply the events at one place of all groups, and ``follow`` what they start."""
    step = Step()
    following: list[_Following] = []
    for group in groups:
        if place < len(group.events):
            _take(group, group.events[place], naming, step, following)
    _follow(following, naming, step, options)
    return step


def _take(
    group: Group, event: Event, naming: Naming, step: Step, following: list[_Following]
) -> None:
    """Apply an event to a group; the rounds that follow change what it owns."""
    if group.consumer and not group.timelines:
        if (problem := _too_large(group)) is not None:
            _stop(group, event, step, problem)
            return
        group.timelines = [begin(group, naming)]
    if event["is_topic"]:
        topic = group.topics.get(event["topic"])
        # For a group that does not exist yet, others of its cluster show what happens.
        if group.members or not event["is_hosted"]:
            problem = problem_of_topic(event, None if topic is None else topic.size)
            if problem is not None:
                _stop(group, event, step, problem)
                return
        event = {**event, "size_before": None if topic is None else topic.size}
        group.change_topic(event)
        if not group.members:
            return
    holder = instance_holder(group.members, event)
    if holder is not None and group.consumer and holder.generation != STATIC_AWAY:
        step.tell(
            refuse_newcomer(group, _event_columns(group, event), holder), RebalanceSteps.join([])
        )
        return
    if holder is not None:
        event = {**event, "instance_holder": holder.member_id}
    changed = change_members(group.members, event, group.resolve)
    problem = problem_of_group(event, group, changed)
    if problem is not None:
        _stop(group, event, step, problem)
        return
    if group.consumer:
        if (problem := _too_large(group)) is not None:
            _stop(group, event, step, problem)
            return
        happened = happen(group, event, changed, naming, _event_columns(group, event))
        if happened is not None:
            step.tell(*happened)
        return
    decision = decide(event, changed, _lost(group, changed, naming))
    released = _carry(group, event, changed, decision, naming)
    rebalance, chosen = decision.cause.rebalance, decision.chosen
    if not decision.is_reported:
        if rebalance:
            # Nobody notices, but those who stay come to be of one generation all the same.
            group.next_generation()
        return
    place = len(step.happened)
    row = _event_columns(group, event) | {
        "rebalance": rebalance,
        "reason": decision.cause.reason,
        "assignor": chosen.assignor,
        "protocol": chosen.protocol,
        "noticed_within_ms": decision.cause.noticed_within_ms,
        "joined_within_ms": event["max_poll_interval_ms"] if rebalance else None,
    }
    step.tell(row, released)
    if rebalance and not group.here():
        group.owned = NOTHING
    elif rebalance and (problem := _too_large(group)) is not None:
        row["problem"] = problem
        group.events = []
    elif rebalance:
        following.append(_Following(place, group, chosen))


def _too_large(group: Group) -> str | None:
    """Explain that a group reads more partitions than are followed, or None."""
    if (count := group.partition_count()) <= PARTITIONS_OF_A_GROUP:
        return None
    return (
        f"group {quote_name(group.group_id)} reads {count:,} partitions; simulate follows "
        f"groups of at most {PARTITIONS_OF_A_GROUP:,}: leave it out"
    )


def _event_columns(group: Group, event: Event) -> dict[str, Any]:
    names = ("cluster_id", "event", "stage", "kind", "line")
    return {"group_id": group.group_id, **{name: event[name] for name in names}}


def _stop(group: Group, event: Event, step: Step, problem: str) -> None:
    """Stop a group: no further event happens to it."""
    step.happened.append(_event_columns(group, event) | {"problem": problem})
    group.events = []


def _lost(group: Group, changed: list[MemberChange], naming: Naming) -> bool:
    """Return whether a member that returns in time owns what its new subscription leaves out."""
    for change in changed:
        if change.comes and not change.before.is_away and change.after.resolved is not None:
            code = naming.members.of[change.before.member_id]
            topics = group.owned.topic[group.owned.member == code]
            if not np.isin(topics, naming.topics.of_list(change.after.resolved)).all():
                return True
    return False


def _carry(
    group: Group, event: Event, changed: list[MemberChange], decision: Decision, naming: Naming
) -> RebalanceSteps:
    """Update a group's members after an event; return what leaving ones give up: round 0."""
    owned, code = group.owned, naming.members.of
    goes = np.zeros(len(owned.member), bool)
    renamed = owned.member.copy()
    group.members = []
    for change in changed:
        member = change.after
        before = code[change.before.member_id]
        comes_anew = change.comes and not change.before.is_away
        if change.goes or (comes_anew and decision.cause.rebalance):
            goes |= owned.member == before
        if member.member_id != change.before.member_id:
            renamed[owned.member == before] = code[member.member_id]
        if decision.refused and change.comes:
            member = replace(member, is_away=True)
        if decision.chosen.assignor not in (None, member.assignor):
            member = replace(member, assignor=decision.chosen.assignor)
        group.members.append(member)
    carried = OwnedCodes(renamed, owned.topic, owned.partition)
    group.owned, gone = carried.where(~goes), carried.where(goes)
    is_lost = event["kind"] in ("member_crashes", "member_polls_too_late")
    same = np.ones(len(gone.member), np.int64)
    return RebalanceSteps(same * 0, *gone, same * (LOST if is_lost else REVOKED))


def _follow(
    following: list[_Following], naming: Naming, step: Step, options: dict[str, Any]
) -> None:
    """Follow the rebalances of groups; each is left with what its members own in the end."""
    for is_mixed in (False, True):
        some = [acting for acting in following if (acting.chosen.protocol == MIXED) == is_mixed]
        if not some:
            continue
        groups = [acting.group for acting in some]
        batch, claims, members = batch_of(groups, naming)
        answered = _note_misled(some, batch, claims, step)
        if not answered:
            continue
        if len(answered) < len(some):
            some, groups = answered, [acting.group for acting in answered]
            batch, claims, members = batch_of(groups, naming)
        assignor = _assignors(some)
        if is_mixed:
            eager = np.array([is_eager(member.assignors or ()) for member in members])
            followed = follow_mixed(batch, claims, assignor, eager, **options)
        else:
            cooperative = np.array([acting.chosen.protocol == COOPERATIVE for acting in some])
            followed = follow(batch, claims, assignor, cooperative, **options)
        places = np.array([acting.place for acting in some])
        step.place.append(places[batch.member_group[followed.steps.member]])
        step.rows.append(replace(followed.steps, member=batch.member_name[followed.steps.member]))
        for group, owned in zip(groups, owned_of(batch, followed.owner), strict=True):
            group.owned = owned
            group.next_generation()


def _assignors(following: list[_Following]) -> Longs:
    return np.array([KAFKAS.index(acting.chosen.assignor) for acting in following], np.int64)


def _note_misled(
    following: list[_Following], batch: Batch, claims: Claims, step: Step
) -> list[_Following]:
    """Note groups whose claims mislead the client; leave out those that throw.

    Those keep their claims: the next rebalance meets them again. Their eager members have given up
    all they had.
    """
    assignor = _assignors(following)
    # Under the eager protocol `cooperative-sticky` does not know what members owned.
    sends_claims = np.array([acting.chosen.protocol != EAGER for acting in following]) | (
        assignor == STICKY
    )
    misled = misled_groups(batch, claims, batch.generation, np.where(sends_claims, assignor, RANGE))
    answered = []
    for number, acting in enumerate(following):
        verdict, detail = misled.get(number, (None, None))
        step.happened[acting.place] |= {"verdict": verdict, "detail": detail}
        if verdict not in FAILING:
            answered.append(acting)
        elif acting.chosen.protocol == EAGER:
            owned = acting.group.owned
            same = np.ones(len(owned.member), np.int64)
            step.place.append(same * acting.place)
            step.rows.append(RebalanceSteps(same, *owned, same * REVOKED))
    return answered


def follow_mixed(
    batch: Batch,
    claims: Claims,
    assignor: Longs,
    is_eager: Flags,
    *,
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
) -> RebalanceRounds:
    """Follow groups in which eager members give up everything before each round.

    The assignor is a cooperative one, as cooperative members list no other. It sees what the
    cooperative members own; of the eager ones it knows nothing (``ConsumerCoordinator`` clears
    their owned partitions). A round follows while cooperative members have to give something up.

    The arguments are those of ``rebalance_rounds.follow``, but for ``is_eager``, which is of each
    member.
    """
    claims = claims.where(claims.member >= 0)
    # Which members, slots and groups of the batch that was given those of the round are.
    members, slots, groups = (
        np.arange(len(rows)) for rows in (batch.member_group, batch.slot_group, batch.group)
    )
    parts: list[RebalanceSteps] = []
    owner = np.full(len(slots), -1)
    rounds = np.zeros(len(groups), np.int64)
    settles = np.zeros(len(groups), bool)
    for number in range(1, max_rounds + 1):
        gives_all = is_eager[claims.member]
        followed = follow(
            batch,
            claims.where(~gives_all),
            assignor,
            np.ones(len(groups), bool),
            racks_before_moves=racks_before_moves,
            max_rounds=1,
        )
        parts += [
            replace(step, round=np.full(len(step.round), number), member=members[step.member])
            for step in (followed.steps, steps_of_claims(claims.where(gives_all), number, REVOKED))
        ]
        has = np.flatnonzero(followed.owner >= 0)
        owner[slots] = -1
        owner[slots[has]] = members[followed.owner[has]]
        rounds[groups] = number
        settles[groups] = followed.settles
        revoked = followed.steps.action == REVOKED
        revoked &= batch.subscribes(followed.steps.member, followed.steps.topic)
        again = np.zeros(len(groups), bool)
        again[batch.member_group[followed.steps.member[revoked]]] = True
        if not again.any():
            break
        kept = has[again[batch.slot_group[has]]]
        claims = claims_of_owners(batch, kept, followed.owner[kept])
        batch, of_members, of_slots = batch.part(again)
        claims = part_of(claims, again, of_members, of_slots)
        # All have come through the round, and so are of one generation.
        batch = replace(batch, generation=np.full(len(of_members), number))
        members, slots, groups = members[of_members], slots[of_slots], groups[again]
        is_eager, assignor = is_eager[of_members], assignor[again]
    return RebalanceRounds(RebalanceSteps.join(parts), rounds, owner, settles)
