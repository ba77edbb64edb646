"""The sticky assignors' pass over differing subscriptions (``GeneralAssignmentBuilder``).

A greedy search that repeats itself until nothing changes. Nothing bounds it: it may throw, or go on
for ever. Kafka's racks need no rule of their own while partitions are moved: a move inside a
rack happens only where the same move would happen without.
"""

from kassign_spark.client.balancing import Balancing
from kassign_spark.client.claims import Believed
from kassign_spark.client.hash_order import HashOrder
from kassign_spark.client.holdings import Holdings
from kassign_spark.client.racks import Racks
from kassign_spark.client.state import Claims, GroupState


def assign_general(
    state: GroupState,
    claims: Claims,
    believed: Believed,
    members: HashOrder,
    by_id: list[int],
    racks: Racks | None,
) -> tuple[list[list[int]], str | None]:
    """Keep claims, hand out the rest, then move partitions while that improves the balance.

    The arguments are as of ``assign_constrained``; ``claims`` are all of them.

    Returns:
        ids of partitions by position of the member, and why the client may answer something else.

    Raises:
        Thrown: the client ends with an exception.
        NeverEnds: it does not end.
    """
    layout, index = claims.layout, claims.layout.index
    # In each member's own order; one given twice is there twice.
    topics_of = [[index[name] for name in of if name in index] for of in state.subscriptions]
    holdings = Holdings(layout, topics_of, by_id)
    must_revoke = holdings.keep(believed.owner, racks)
    is_fresh = not any(holdings.sizes)
    pool = holdings.hand_out(racks)
    earlier = _earlier_claims(state, claims, believed.max_generation, members.order)
    before = [list(held) for held in holdings.held]
    balancing = Balancing(holdings, earlier, members, by_id)
    if not must_revoke:
        balancing.reassign(holdings.movable(pool))
    has_moved = balancing.reassign(holdings.movable(holdings.all_partitions))
    gained = balancing.score(list(map(len, before))) - balancing.score(holdings.sizes)
    # What began with claims is left as it was where the balance is no better.
    assigned = before if has_moved and gained <= 0 and not is_fresh else holdings.held
    tree = "a hash set of moved partitions became a tree, the order of which is not modelled"
    return assigned, tree if balancing.movements.met_tree else None


def _earlier_claims(
    state: GroupState, claims: Claims, max_generation: int, order: list[int]
) -> dict[int, int]:
    """Give the member that claims a partition from the latest generation below the highest."""
    found: dict[int, int] = {}
    for member in order:
        generation = state.generations[member]
        if generation < max_generation:
            for partition in claims.by_member[member]:
                if partition not in found or state.generations[found[partition]] < generation:
                    found[partition] = member
    return found
