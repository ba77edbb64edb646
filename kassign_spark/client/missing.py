"""Describe what does not exist, and what clients make of it: topics, and claims of partitions.

A topic that is deleted and made again with fewer partitions leaves claims behind. Kafka's client
looks at the topic of a claim, not at its number (``AbstractStickyAssignor``), so it counts them as
owned. Claims of a topic that is gone altogether, or that nobody subscribes to, are left out; only
librdkafka's `cooperative-sticky` gives them back, to the last member that claims them.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from kassign_spark.client.group_state import FAILING, GroupState, Layout, Outcome
from kassign_spark.display import first_names

_MOST_TOPICS = 5
"""Topics of a group that a detail names."""
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


def give_back(state: GroupState, outcome: Outcome) -> Outcome:
    """Add to librdkafka's answer the claims that go back; the layout gets ids for them last."""
    layout = outcome.layout
    members = range(len(state.member_ids))
    planned = {
        (layout.topics[layout.topic_of[p]], layout.number_of[p])
        for partitions in (*outcome.assigned, outcome.withheld)
        for p in partitions
    }
    claimant = {(topic, number): member for member, topic, number in state.claims()}
    back = sorted(claimant.keys() - planned)
    if not back:
        return outcome
    topics = [*layout.topics, *sorted({topic for topic, _ in back} - layout.index.keys())]
    index = {topic: number for number, topic in enumerate(topics)}
    first = len(layout.topic_of)
    extended = replace(
        layout,
        topics=topics,
        counts=[*layout.counts, *[0] * (len(topics) - len(layout.topics))],
        topic_of=[*layout.topic_of, *(index[topic] for topic, _ in back)],
        number_of=[*layout.number_of, *(number for _, number in back)],
        missing=layout.missing.union(range(first, first + len(back))),
        index=index,
    )
    assigned = [
        [*outcome.assigned[m], *(first + n for n, each in enumerate(back) if claimant[each] == m)]
        for m in members
    ]
    return outcome._replace(assigned=assigned, layout=extended)


def describe_left_out(topics: Iterable[tuple[str, int]], *, is_idle: bool) -> str | None:
    """Describe the topics that a group subscribes to in vain; None if there are none.

    Args:
        topics: names of the topics left out, each with how many of its partitions members own.
        is_idle: whether the group gets nothing.
    """
    names = sorted(topics)
    reason = _describe_topics(names) if names else None
    return (
        f"the group gets nothing: {reason or 'no member subscribes to a topic'}"
        if is_idle
        else reason
    )


def _describe_topics(topics: list[tuple[str, int]]) -> str:
    """Name the topics, the first ones; and say what members own of them."""
    shown = first_names([topic for topic, _ in topics], _MOST_TOPICS)
    owned = sum(count for _, count in topics)
    hidden = (
        f"; members own {owned:,} of their partitions, so they were deleted, or the snapshot may "
        "not describe them, and then Kafka assigns them"
        if owned
        else ""
    )
    return f"left out, unknown to the table topics or without partitions: {shown}{hidden}"
