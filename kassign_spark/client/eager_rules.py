"""`range` and `roundrobin` as other libraries than Java's compute them.

The rules are compared with the libraries themselves (``tests/clients``).
"""

from itertools import cycle

from kassign_spark.client.group_state import (
    INEXACT,
    OK,
    THROWS,
    UNDEFINED,
    GroupState,
    Layout,
    Outcome,
    readers_of_topics,
)
from kassign_spark.client.members_in_order import members_in_order
from kassign_spark.client.range_racks import assign_range
from kassign_spark.client_libraries import (
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    SARAMA,
)

_NO_ORDER = (
    "librdkafka compares static members by group.instance.id and any others by member id, and "
    "that is no order of these members: make no instance id the beginning of another"
)
_KEY_ERROR = (
    "KeyError: the roundrobin of kafka-python 2.3 and later fails as soon as the next member does "
    "not subscribe to the topic; let all members subscribe alike, or use range"
)
_NO_TOPICS = "sarama's roundrobin fails where no member subscribes to a topic"
_UNKNOWN_LEADER = (
    "kafkajs' leader assigns its own topics in its own order, and is_leader is not known"
)
_UNKNOWN_ORDER = (
    "kafka-python looks at the order of members in JoinGroup, and member_seq is not known"
)


def predict_eager(state: GroupState, layout: Layout) -> Outcome:
    """Return the answer for `roundrobin`, or for the `range` of a client that is not Java's."""
    order = members_in_order(state.client, state.member_ids, state.member_instances)
    if order is None:
        return Outcome(UNDEFINED, _NO_ORDER, [], {}, layout)
    if state.client == KAFKAJS:
        return _deal_topics_of_leader(state, layout, order)
    if state.assignor == "range":
        assigned: list[list[int]] | None = _assign_ranges(state, layout, order)
    elif state.client == KAFKA_GO:
        assigned = _deal_each_topic(state, layout, order)
    else:
        assigned = _deal_in_turn(state, layout, order)
    if assigned is None:
        reason = _NO_TOPICS if state.client == SARAMA else _KEY_ERROR
        return Outcome(THROWS, reason, [], {}, layout)
    unsure = _unsure_of_runs(state)
    return Outcome(INEXACT if unsure else OK, unsure, assigned, {}, layout)


def _unsure_of_runs(state: GroupState) -> str | None:
    """Return why kafka-python's answer is unsure: it may part a mix of static and other members."""
    kinds = {instance is None for instance in state.member_instances}
    is_mixed = state.client == KAFKA_PYTHON and len(kinds) > 1
    return _UNKNOWN_ORDER if is_mixed and not state.is_order_known else None


def _assign_ranges(state: GroupState, layout: Layout, order: list[int]) -> list[list[int]]:
    if state.client == LIBRDKAFKA:
        return assign_range(state, layout, order)
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    for topic, readers in enumerate(readers_of_topics(state, layout, order)):
        if state.client == KAFKA_PYTHON:  # its runs are those among the topic's own readers
            readers = _readers_in_runs(state, readers_of=layout.topics[topic])
        first, count, size = layout.starts[topic], layout.counts[topic], len(readers)
        for place, member in enumerate(readers):
            if state.client == KAFKA_GO:
                begin, end = place * count // size, (place + 1) * count // size
            else:
                share, longer = divmod(count, size)
                begin = place * share + min(place, longer)
                end = begin + share + (place < longer)
            assigned[member] += range(first + begin, first + end)
    return assigned


def _readers_in_runs(state: GroupState, *, readers_of: str) -> list[int]:
    places = [p for p, topics in enumerate(state.subscriptions) if readers_of in topics]
    order = members_in_order(
        state.client,
        [state.member_ids[place] for place in places],
        [state.member_instances[place] for place in places],
    )
    return [places[place] for place in order or ()]


def _deal_each_topic(state: GroupState, layout: Layout, order: list[int]) -> list[list[int]]:
    """Deal each topic anew: kafka-go's `roundrobin`."""
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    for topic, readers in enumerate(readers_of_topics(state, layout, order)):
        for number, partition in enumerate(layout.existing(topic)):
            assigned[readers[number % len(readers)]].append(partition)
    return assigned


def _deal_in_turn(state: GroupState, layout: Layout, order: list[int]) -> list[list[int]] | None:
    """Deal to the members in turn, skipping those that do not subscribe; None: it throws."""
    partitions = [p for topic in range(len(layout.topics)) for p in layout.existing(topic)]
    if state.client == SARAMA:
        if not any(state.subscriptions):
            return None
        partitions.sort(key=layout.name)  # as text: 10 comes before 2
    subscribed = [set(topics) for topics in state.subscriptions]
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    ring = cycle(order)
    for partition in partitions:
        topic = layout.topics[layout.topic_of[partition]]
        member = next(ring)
        while topic not in subscribed[member]:
            if state.client == KAFKA_PYTHON:
                return None
            member = next(ring)
        assigned[member].append(partition)
    return assigned


def _deal_topics_of_leader(state: GroupState, layout: Layout, order: list[int]) -> Outcome:
    """Deal the leader's topics with one counter; members drop what they do not subscribe to."""
    leader = state.leader
    is_known = leader is not None or len({tuple(topics) for topics in state.subscriptions}) == 1
    subscribed = [set(topics) for topics in state.subscriptions]
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    ring = cycle(order)
    for topic in state.subscriptions[leader or 0]:
        number = layout.index.get(topic)
        if number is not None:
            for partition in layout.existing(number):
                member = next(ring)
                if topic in subscribed[member]:
                    assigned[member].append(partition)
    if is_known:
        return Outcome(OK, None, assigned, {}, layout)
    return Outcome(INEXACT, _UNKNOWN_LEADER, assigned, {}, layout)
