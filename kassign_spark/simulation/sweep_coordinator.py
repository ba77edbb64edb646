"""A variant of a group of the new protocol: other members, larger topics, one computation."""

from typing import Any

import numpy as np

from kassign_spark.coordinator.reconcile import REVOKED, actions_in
from kassign_spark.simulation.consumer import DRAWS, MOST_DRAWN, begin, says_of_draws
from kassign_spark.simulation.consumer_decisions import of_coordinator, topics_of
from kassign_spark.simulation.course import Course, draw_id
from kassign_spark.simulation.state import Group, Naming


def sweep_coordinator(group: Group, other: Group, naming: Naming) -> dict[str, Any]:
    """Compute a variant: the columns of a sweep that tell of the outcome.

    Args:
        group: as it is.
        other: as it would be; members that ``group`` lacks draw their ids.
        naming: of both.
    """
    here = {member.member_id for member in group.members}
    stay = {member.member_id for member in other.members}
    fresh = [member for member in other.members if member.member_id not in here]
    first = begin(group, naming)
    first.before = dict(first.held)
    courses = [first]
    if fresh and other.partition_count() <= MOST_DRAWN:
        courses += [first.copy(salt) for salt in range(1, DRAWS + 1)]
    topics = topics_of(other)
    for course in courses:
        course.leave(sorted(here - stay))
        course.change_topics(topics)
        for member in fresh:
            key = (group.cluster_id, group.group_id, member.member_id, course.salt)
            course.join(member.member_id, of_coordinator(member, draw_id(*key)))
    outcomes = [
        course.compute(None) if course.life.group_epoch > course.life.assignment_epoch else None
        for course in courses
    ]
    outcome = outcomes[0]
    says = [] if outcome is None or outcome.detail is None else [outcome.detail]
    if fresh:
        says.append(says_of_draws([member.member_id for member in fresh], courses))
    return _measured(first) | {
        "settles": outcome is None or outcome.verdict != "never_settles",
        "detail": "; ".join(says) or None,
    }


def _measured(course: Course) -> dict[str, Any]:
    followed, _ = course.reconcile()
    loads = course.spread().loads
    paused = 0
    for number in range(1, followed.round_count + 1):
        paused += int(np.count_nonzero(actions_in(followed, number) == REVOKED))
    return {
        "partition_count": sum(loads),
        "min_assigned": loads[0],
        "max_assigned": loads[-1],
        "idle_count": loads.count(0),
        "moved_count": course.spread().moved,
        "paused_count": paused,
        "rounds": followed.round_count,
    }
