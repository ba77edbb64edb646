"""The constrained pass inside a task: many whole groups, all members of each subscribe alike."""

from kassign_spark.assignors.slices import Slice, SliceClaims, SliceGroups, settle_slices
from kassign_spark.engine.commands import InProcess
from kassign_spark.groups.batch import Batch, BatchAssignment, Claims
from kassign_spark.groups.claims import resolve
from kassign_spark.groups.numbers import Longs, rows_by


def assign_equal(batch: Batch, claims: Claims, generation: Longs) -> BatchAssignment:
    """Assign all partitions of groups whose members subscribe alike.

    Claims are on partitions that exist; ``generation`` is of each member, in which it owned those.
    """
    groups = SliceGroups(batch.member_group, batch.hash_rank, batch.topic_group, batch.size)
    whole = Slice(groups, hold_claims(batch, claims, generation))
    settle_slices(InProcess([whole]))
    return BatchAssignment(whole.owner, whole.is_moving)


def hold_claims(batch: Batch, claims: Claims, generation: Longs) -> SliceClaims:
    """Resolve claims on partitions that exist to one owner a partition."""
    prevails, disputed = resolve(
        claims.slot, batch.hash_rank[claims.member], generation[claims.member]
    )
    claimed, claimant = claims.slot[prevails], claims.member[prevails]
    by_member = rows_by(claimant, batch.slot_partition[claimed], claimed)
    return SliceClaims(claimed[by_member], claimant[by_member], disputed)
