"""Groups whose members run several libraries: whose subscriptions the leader cannot read.

kafka-go writes version 1 without the owned partitions that belong to it, and cannot read them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from kassign_spark.client.group_state import GroupState
from kassign_spark.client_libraries import (
    AIOKAFKA,
    ASSIGNORS_OF_CLIENT,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    SARAMA,
)

_WITHOUT_OWNED = (KAFKA_GO, KAFKA_PYTHON, AIOKAFKA, KAFKAJS)
"""Libraries whose subscriptions have no owned partitions, under `range` and `roundrobin`."""
_EMPTY_USER_DATA = (KAFKA_PYTHON, AIOKAFKA)
"""Libraries whose members send empty user data under `sticky` until they have got something."""
_ADVICE = "let one library run in all members of the group"


def libraries(
    assignor: str, families: Sequence[str], leader: int | None
) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the libraries that may lead a group, and the one that each member runs.

    Of ``GroupState`` these are clients and member_clients. What a library has not is asked of
    Java's, as if all members ran that.
    """
    running = [*dict.fromkeys(families)] if leader is None else [families[leader]]
    having = [library if assignor in ASSIGNORS_OF_CLIENT[library] else JAVA for library in running]
    return tuple(dict.fromkeys(having)), families if having == running else ()


class Reading(NamedTuple):
    """What the leader reads.

    Attributes:
        state: the group without what it cannot read.
        failure: why it fails; None: it does not.
        detail: what it leaves out; None: nothing.
    """

    state: GroupState
    failure: str | None = None
    detail: str | None = None


def read_by_leader(state: GroupState) -> Reading:
    """Return what the leader, whose library is known, reads of its members."""
    families = state.member_clients
    short = [place for place, family in enumerate(families) if family == KAFKA_GO]
    if state.client == KAFKA_GO:
        long = sorted({*families}.difference(_WITHOUT_OWNED))
        sentence = f"kafka-go cannot read the subscriptions of {' and '.join(long)}; {_ADVICE}"
        return Reading(state, sentence if long else None)
    if short and state.client in (JAVA, KAFKA_PYTHON):
        return Reading(state, f"{state.client} cannot read kafka-go's subscriptions; {_ADVICE}")
    if short and state.client == LIBRDKAFKA:
        sentence = (
            f"librdkafka cannot read kafka-go's subscriptions: its members get nothing; {_ADVICE}"
        )
        return Reading(_without(state, short), detail=sentence)
    if state.client == SARAMA and state.assignor == "sticky":
        fresh = {*range(len(families))}.difference(state.claim_members)
        empty = sorted({families[place] for place in fresh}.intersection(_EMPTY_USER_DATA))
        sentence = f"sarama cannot read the empty user data of new members of {' and '.join(empty)}"
        return Reading(state, f"{sentence}; {_ADVICE}" if empty else None)
    return Reading(state)


def _without(state: GroupState, places: Sequence[int]) -> GroupState:
    subscriptions = [*state.subscriptions]
    for place in places:
        subscriptions[place] = ()
    left = [claim for claim in state.claims() if claim[0] not in places]
    return replace(state.with_claims(left), subscriptions=subscriptions)
