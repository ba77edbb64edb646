"""What a restart moves: a member leaves, and comes back under another id.

That is what a member without ``group.instance.id`` does. One that has it keeps its partitions where
it comes back within ``session.timeout.ms`` (KIP-345).
"""

import numpy as np

from kassign_spark.groups.numbers import Longs
from kassign_spark.plans.rounds import held_claims
from kassign_spark.whatif.candidates import Known
from kassign_spark.whatif.changes import NOTHING, Changes, apply_changes
from kassign_spark.whatif.evenness import evaluate


def restart_moves(known: Known, owner: Longs) -> tuple[Longs, Longs]:
    """Restart the most loaded dynamic member of each group, from what its assignor has given.

    Args:
        known: the groups.
        owner: of each partition, before the restart.

    Returns:
        of each group the member, -1 where none is restarted: all are static, or it is alone, or
        nobody else reads some topic; and how many partitions move, when it leaves and when it comes
        back together.
    """
    batch = known.batch
    member = _restarted(known)
    moved = np.zeros(batch.group_count, np.int64)
    groups = np.flatnonzero(member >= 0)
    if not len(groups):
        return member, moved
    copies = np.arange(len(groups))
    leaves = Changes(groups, known.assignor[groups], dropped=copies, dropped_member=member[groups])
    held = held_claims(batch, np.arange(len(owner)), owner)
    without = apply_changes(batch, held, leaves)
    left, owner_meanwhile = evaluate(without.batch, without.claims, leaves.assignor)
    returns = Changes(
        groups,
        leaves.assignor,
        dropped=copies,
        dropped_member=member[groups],
        added=copies,
        added_like=member[groups],
    )
    again = apply_changes(batch, held.where(NOTHING), returns)
    # Members but for the new one, and partitions, are in the same order as before.
    others = np.flatnonzero(~again.is_new)
    slots = np.arange(len(owner_meanwhile))
    claims = held_claims(again.batch, slots, others[owner_meanwhile])
    back, _ = evaluate(again.batch, claims, leaves.assignor)
    moved[groups] = left.moved + back.moved
    return member, moved


def _restarted(known: Known) -> Longs:
    """The most loaded dynamic member of each group that can be spared; the first by name."""
    batch = known.batch
    readers = batch.subscribers
    alone = np.zeros(len(batch.member_group), bool)
    alone[readers.member[readers.first[readers.size == 1]]] = True
    can = np.flatnonzero((batch.instance == 0) & (known.before.load > 0))
    can = can[np.lexsort((can, -known.before.load[can], batch.member_group[can]))]
    groups, first = np.unique(batch.member_group[can], return_index=True)
    member = np.full(batch.group_count, -1)
    member[groups] = can[first]
    return np.where(alone[member], -1, member)
