"""Find how claims of partitions that do not exist change the answer of the sticky assignors.

A topic that is deleted and made again with fewer partitions leaves such claims behind. The client
looks at the topic of a claim, not at its number (``AbstractStickyAssignor``), so it counts them as
owned. Claims of a topic that is gone altogether, or that nobody subscribes to, are left out.
"""

from collections import Counter

from kassign_spark.client.group_state import FAILING, GroupState, Layout, Outcome

WHAT_HELPS = (
    "stop all members that claim such partitions before the first of them starts again: "
    "a member that starts claims nothing"
)


def with_cause(state: GroupState, outcome: Outcome, without: Outcome) -> Outcome:
    """Explain how claims of missing partitions changed an answer, where they did.

    ``without`` is the answer to the same group without such claims. Where they matter, the client
    throws, or a member is given a partition that does not exist or that another one has as well:
    those that the client drops because a member has too many do no harm.
    """
    effect = _failure(outcome, without) or _wrong_partition(state, outcome)
    if effect is None:
        return outcome
    parts = [outcome.detail, effect, _describe_claims(state, outcome.layout), WHAT_HELPS]
    return outcome._replace(detail="; ".join(filter(None, parts)), is_misled=True)


def _failure(outcome: Outcome, without: Outcome) -> str | None:
    """Return the detail for a group that the client can answer only without such claims."""
    is_caused = outcome.verdict in FAILING and without.verdict not in FAILING
    return "claims of partitions that do not exist lead to this" if is_caused else None


def _wrong_partition(state: GroupState, outcome: Outcome) -> str | None:
    """Name the first partition that is given though it is missing, or given twice."""
    layout, members = outcome.layout, state.member_ids
    for member, partitions in zip(members, outcome.assigned, strict=False):
        missing = layout.missing.intersection(partitions)
        if missing:
            return f"{member} is given {layout.name(min(missing))}, which does not exist"
    times = Counter(partition for of_member in outcome.assigned for partition in of_member)
    twice = [partition for partition, count in times.items() if count > 1]
    return f"{layout.name(min(twice))} is given to two members" if twice else None


def _describe_claims(state: GroupState, layout: Layout) -> str:
    """Name the first of the claims, and count the others."""
    sizes = dict(zip(layout.topics, layout.counts, strict=True))
    missing = sorted(
        (topic, partition, state.member_ids[member])
        for member, topic, partition in state.claims()
        if topic in sizes and partition >= sizes[topic]
    )
    topic, partition, member = missing[0]
    more = f" and there are {len(missing) - 1:,} more such claims" if len(missing) > 1 else ""
    return (
        f"{member} claims {topic}-{partition}, though topic {topic} has only "
        f"{sizes[topic]:,} partition{'s' * (sizes[topic] != 1)}{more}"
    )
