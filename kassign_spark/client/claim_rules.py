"""Decide which of the members' claims the sticky assignors believe (``AbstractStickyAssignor``)."""

from dataclasses import dataclass

from kassign_spark.client.group_state import ClaimedIds, GroupState
from kassign_spark.client.hash_order import HashOrder


@dataclass(slots=True)
class Believed:
    """The outcome of reading all claims.

    Attributes:
        owner: member by partition, of the claims that survive.
        disputed: partitions that two members claim in one generation.
        max_generation: the highest that any member names.
        is_homogeneous: whether all members subscribe to the same topics.
        by_order: None, or what was decided by the order of members in one bucket of a hash map.
    """

    owner: dict[int, int]
    disputed: set[int]
    max_generation: int
    is_homogeneous: bool
    by_order: str | None


def believe(state: GroupState, claims: ClaimedIds, members: HashOrder) -> Believed:
    """Read the claims of all members in the order of the hash map.

    A claimed partition goes to the member of the later generation. Of the earlier claimant, that
    generation is the one in its subscription's own field, whatever its user data say.
    """
    owner: dict[int, int] = {}
    claimant: dict[int, int] = {}
    disputed: set[int] = set()
    by_order = None
    for member in members.order:
        generation = state.generations[member]
        for partition in claims.by_member[member]:
            earlier = claimant.get(partition)
            if earlier is None:
                owner[partition] = claimant[partition] = member
                continue
            if earlier != member and members.buckets[earlier] == members.buckets[member]:
                ids = " and ".join(sorted((state.member_ids[earlier], state.member_ids[member])))
                by_order = f"both {ids} claim {claims.layout.name(partition)}"
            earlier_generation = state.field_generations[earlier]
            if generation == earlier_generation:
                disputed.add(partition)
                if owner.get(partition) == earlier:
                    del owner[partition]
                claimant[partition] = member
            elif generation > earlier_generation and earlier != member:
                owner[partition] = claimant[partition] = member
    is_homogeneous, decided_by = _compare_subscriptions(state, members)
    return Believed(
        owner, disputed, max(state.generations, default=-1), is_homogeneous, by_order or decided_by
    )


def _compare_subscriptions(state: GroupState, members: HashOrder) -> tuple[bool, str | None]:
    """Compare all lists with the first one that is not empty, as the client does.

    Lists of the same length with topics of that first one are the same; so a topic given twice
    makes a list differ, unless it is the first.
    """
    subscriptions = state.subscriptions
    reference: set[str] = set()
    is_homogeneous = True
    for member in members.order:
        topics = subscriptions[member]
        if not reference:
            reference = set(topics)
        elif len(topics) != len(reference) or not reference.issuperset(topics):
            is_homogeneous = False
            break
    odd = any(len(topics) == 0 or len(set(topics)) < len(topics) for topics in subscriptions)
    if odd and len(set(members.buckets)) < len(members.buckets):
        return is_homogeneous, "some subscription is empty or names a topic twice"
    return is_homogeneous, None
