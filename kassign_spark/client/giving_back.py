"""What librdkafka's `cooperative-sticky` gives back though nobody can be assigned it.

Partitions that are claimed and that are not in the plan at all, as their topic is gone or nobody
subscribes to it, go back to the last member that claims them.
"""

from dataclasses import replace

from kassign_spark.client.group_state import GroupState, Outcome


def give_back(state: GroupState, outcome: Outcome) -> Outcome:
    """Add to an answer what goes back; its layout gets ids for that, after all others."""
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
