"""The oracle's groups as the model takes them."""

from kassign_spark.client.group_state import GroupState, Outcome
from tests.kafka.oracle import Assigned, Group, Member
from tests.oracles.protocol import Claims, decode_sticky_user_data
from tests.oracles.wire import ProtocolError


def to_state(group: Group) -> GroupState:
    claims = [_claims(member, group.assignor) for member in group.members]
    flat = [(i, *tp) for i, (owned, _) in enumerate(claims) for tp in owned]
    return GroupState(
        assignor=group.assignor,
        member_ids=[m.member_id for m in group.members],
        subscriptions=[m.topics for m in group.members],
        topics=list(group.topics),
        num_partitions=[n if isinstance(n, int) else len(n) for n in group.topics.values()],
        replica_racks=[None if isinstance(n, int) else n for n in group.topics.values()],
        member_racks=[m.rack_id for m in group.members],
        member_instances=[m.group_instance_id for m in group.members],
        generations=[generation for _, generation in claims],
        field_generations=[_number(m.generation) for m in group.members],
        claim_members=[m for m, _, _ in flat],
        claim_topics=[topic for _, topic, _ in flat],
        claim_partitions=[partition for _, _, partition in flat],
    )


def named(group: Group, outcome: Outcome) -> Assigned:
    """The outcome in the oracle's form, each member's list sorted."""
    layout = outcome.layout
    assigned = outcome.assigned or [[] for _ in group.members]
    return {
        member.member_id: sorted(
            (layout.topics[layout.topic_of[p]], layout.number_of[p]) for p in partitions
        )
        for member, partitions in zip(group.members, assigned, strict=True)
    }


def _claims(member: Member, assignor: str) -> tuple[list[tuple[str, int]], int]:
    if assignor != "sticky" or member.user_data is None:
        return list(member.owned), _number(member.generation)
    if not member.user_data:
        return [], -1
    try:
        result = decode_sticky_user_data(member.user_data)
    except ProtocolError:
        result = Claims((), None)
    return list(result.owned), _number(result.generation)


def _number(generation: int | None) -> int:
    return -1 if generation is None else generation
