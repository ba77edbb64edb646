"""A model of Kafka's Java client for one group, from the state to the assignment."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from kassign_spark.client import franz_go_sticky, sarama_sticky
from kassign_spark.client.claim_rules import believe
from kassign_spark.client.constrained import assign_constrained
from kassign_spark.client.eager_rules import predict_eager
from kassign_spark.client.general import assign_general
from kassign_spark.client.group_state import (
    DRAWN,
    INEXACT,
    NEVER_ENDS,
    OK,
    STARVES,
    THROWS,
    UNANSWERED,
    UNDEFINED,
    ClaimedIds,
    GroupState,
    Layout,
    NeverEnds,
    Outcome,
    Thrown,
    lay_out,
    withholding,
    without_missing,
)
from kassign_spark.client.hash_order import HashOrder, member_order, sort_as_java
from kassign_spark.client.lots import NotModelled, compare_draws, may_be_drawn
from kassign_spark.client.members_in_order import members_in_order
from kassign_spark.client.missing import give_back, with_cause
from kassign_spark.client.mixed_families import read_by_leader
from kassign_spark.client.older_sticky import Crashes, assign_older
from kassign_spark.client.rack_affinity import may_draw_by_rack, predict_rack_affinity
from kassign_spark.client.rack_bits import Racks, need_matching, number_racks
from kassign_spark.client.range_racks import assign_range
from kassign_spark.client_libraries import (
    DRAWS_LOTS,
    JAVA,
    KAFKA_GO,
    LIBRDKAFKA,
    RACK_AFFINITY,
    SARAMA,
)
from kassign_spark.display import plural

_NEEDS_TOPICS = {
    KAFKA_GO: (STARVES, "kafka-go gives nobody anything as long as a subscribed topic is missing"),
    SARAMA: (THROWS, "sarama's consumers fail as long as a subscribed topic is missing"),
}
"""What becomes of a group that subscribes to a topic which does not exist."""


def predict_group(state: GroupState) -> Outcome:
    """Follow the group's client: Java's is that of kafka-clients 3.8 and later.

    The group has a member at least.
    """
    if len(state.clients) > 1:
        return _ask_libraries(state)
    reading = read_by_leader(state)
    if reading.failure is not None:
        return Outcome(THROWS, reading.failure, [], {}, lay_out(state).layout)
    outcome = _predict(reading.state)
    if reading.detail is None:
        return outcome
    return outcome._replace(detail="; ".join(filter(None, (outcome.detail, reading.detail))))


def _predict(state: GroupState) -> Outcome:
    claims = lay_out(state)
    layout = claims.layout
    if state.client in _NEEDS_TOPICS:
        missing = sorted(set().union(*state.subscriptions).difference(state.topics))
        if missing:
            verdict, sentence = _NEEDS_TOPICS[state.client]
            return Outcome(verdict, f"{sentence}: {', '.join(missing)}", [], {}, layout)
    if state.assignor == RACK_AFFINITY:
        return predict_rack_affinity(state, layout)
    if state.assignor == "roundrobin" or (state.assignor == "range" and state.client != JAVA):
        return predict_eager(state, layout)
    if state.assignor == "range":
        order = members_in_order(JAVA, state.member_ids, state.member_instances)
        assert order is not None, "Java's comparison is an order"
        return Outcome(OK, None, assign_range(state, layout, order), {}, layout)
    if state.client != JAVA:
        return _sticky_of_another(state)
    outcome = _follow_sticky(state, claims)
    if not layout.missing:
        return outcome
    return with_cause(state, outcome, _predict(without_missing(state)))


def _ask_libraries(state: GroupState) -> Outcome:
    """Ask each library that may lead; if they differ, the answer is that of the first member's.

    Then the detail says of each how far it differs.
    """
    outcomes = [predict_group(replace(state, clients=(client,))) for client in state.clients]
    first = outcomes[0]
    if all(
        each.verdict == first.verdict
        and [*map(set, each.assigned)] == [*map(set, first.assigned)]
        and each.withheld == first.withheld
        for each in outcomes
    ):
        return first
    others = (
        f"{client} {_difference(first, outcome)}"
        for client, outcome in zip(state.clients[1:], outcomes[1:], strict=True)
    )
    sentence = (
        f"the leader is not known: this is {state.client}'s answer; {'; '.join(others)}; name the "
        "library with leader, or set is_leader of a member"
    )
    return first._replace(verdict=INEXACT, detail=sentence)


def _difference(first: Outcome, other: Outcome) -> str:
    """Describe another library's answer beside the first one's."""
    if other.verdict in UNANSWERED or first.verdict in UNANSWERED:
        return "gives the same" if other.verdict == first.verdict else f"answers {other.verdict}"
    count = sum(
        len({*own}.difference(before))
        for own, before in zip(other.assigned, first.assigned, strict=True)
    )
    return f"gives {plural(count, 'partition')} to other members" if count else "gives the same"


def _sticky_of_another(state: GroupState) -> Outcome:
    """Predict a sticky assignor of another library than Java's."""
    had_claims = bool(state.claim_members)
    existing = without_missing(state)
    if state.client in DRAWS_LOTS:
        return _answer_by_lot(existing, lay_out(existing), had_claims=had_claims)
    outcome = _follow_older(existing, had_claims=had_claims)
    is_answered = state.client == LIBRDKAFKA and outcome.verdict in (OK, INEXACT)
    return give_back(state, outcome) if is_answered else outcome


def _answer_by_lot(state: GroupState, claims: ClaimedIds, *, had_claims: bool) -> Outcome:
    """Predict a library that visits topics or partitions in an order that Go draws at random."""
    if state.client == SARAMA:
        things, withheld = "partitions", _moving
        answers = sarama_sticky.draw_answers(state, claims, had_claims=had_claims)
    else:
        things, withheld = "topics", partial(franz_go_sticky.withheld, state)
        answers = franz_go_sticky.draw_answers(state, claims)
    is_cooperative = state.assignor == "cooperative-sticky"
    drawn = ((each, withheld(claims, each) if is_cooperative else {}) for each in answers)
    sentence = f"{state.client} goes through {things} in an order that Go draws anew each time"
    try:
        return compare_draws(sentence, state, claims, drawn)
    except NotModelled:
        return Outcome(DRAWN, sentence, [[] for _ in state.member_ids], {}, claims.layout)
    except NeverEnds as never:
        return Outcome(NEVER_ENDS, str(never), [], {}, claims.layout)


def may_draw(state: GroupState, assigned: Sequence[Collection[tuple[str, int]]]) -> bool:
    """Return whether members may have got these partitions, topic and number, by lot."""
    if state.assignor == RACK_AFFINITY:
        return may_draw_by_rack(state, lay_out(state).layout, assigned)
    return may_be_drawn(predict_group(state), state, lay_out(without_missing(state)), assigned)


def _follow_older(state: GroupState, *, had_claims: bool) -> Outcome:
    claims = lay_out(state)
    try:
        assigned, moving, unsure = assign_older(state, claims, had_claims=had_claims)
    except Thrown as thrown:
        return Outcome(THROWS, str(thrown), [], {}, claims.layout)
    except NeverEnds as never:
        return Outcome(NEVER_ENDS, str(never), [], {}, claims.layout)
    except Crashes as crashes:
        return Outcome(UNDEFINED, str(crashes), [], {}, claims.layout)
    is_cooperative = state.assignor == "cooperative-sticky"
    return withholding(assigned, moving if is_cooperative else {}, unsure, claims.layout)


def _follow_sticky(state: GroupState, claims: ClaimedIds) -> Outcome:
    layout = claims.layout
    try:
        assigned, moving, unsure = _assign_sticky(state, claims)
    except Thrown as thrown:
        return Outcome(THROWS, str(thrown), [], {}, layout)
    except NeverEnds as never:
        return Outcome(NEVER_ENDS, str(never), [], {}, layout)
    return withholding(assigned, {} if state.assignor == "sticky" else moving, unsure, layout)


def follow_constrained(state: GroupState) -> Outcome:
    """Follow the pass of the sticky assignors over equal subscriptions, as `cooperative-sticky`.

    All members, one at least, subscribe to the same topics, however they list them, and claim only
    what exists.
    """
    claims = lay_out(state)
    assigned, moving, _ = _assign_sticky(state, claims, is_homogeneous=True)
    return withholding(assigned, moving, None, claims.layout)


def _racks_in_use(state: GroupState, layout: Layout) -> Racks | None:
    """Return the racks of a group of the sticky assignors where they can change anything."""
    racks = number_racks(state, layout)
    if racks is None:
        return None
    existing = [r for p, r in enumerate(racks.of_partition) if p not in layout.missing]
    return racks if need_matching(racks.of_member, existing) else None


def _assign_sticky(
    state: GroupState, claims: ClaimedIds, *, is_homogeneous: bool = False
) -> tuple[list[list[int]], dict[int, int], str | None]:
    """Return each member's partitions, those that change hands, and why this may not be so.

    With ``is_homogeneous`` subscriptions are the same, however they are listed.
    """
    layout = claims.layout
    members = member_order(state.member_ids)
    by_id = sort_as_java(state.member_ids)
    racks = _racks_in_use(state, layout)
    believed = believe(state, claims, members)
    by_order = believed.by_order
    if is_homogeneous or believed.is_homogeneous:
        assigned, moving, in_pass = assign_constrained(layout, believed, members, by_id, racks)
        by_order, unsure = by_order or in_pass, None
    else:
        assigned, unsure = assign_general(state, claims, believed, members, by_id, racks)
        moving = _moving(claims, assigned)
    return assigned, moving, unsure or _unsure_of_order(state, members, by_order)


def _moving(claims: ClaimedIds, assigned: list[list[int]]) -> dict[int, int]:
    """Return the new owners of partitions that another member still has to give up."""
    revoked: set[int] = set()
    added: dict[int, int] = {}
    for member, partitions in enumerate(assigned):
        owned = set(claims.by_member[member])
        added.update((p, member) for p in partitions if p not in owned)
        revoked |= owned.difference(partitions)
    return {partition: member for partition, member in added.items() if partition in revoked}


def _unsure_of_order(state: GroupState, members: HashOrder, by_order: str | None) -> str | None:
    if not members.is_reproduced:
        return "many member ids share a hash bucket, the order of which is not modelled"
    if by_order is not None and not state.is_order_known:
        return (
            f"the order of members in a hash bucket decides, and member_seq is unknown: {by_order}"
        )
    return None
