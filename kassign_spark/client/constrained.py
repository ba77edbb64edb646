"""The sticky assignors' pass over equal subscriptions (``ConstrainedAssignmentBuilder``)."""

from kassign_spark.client.claim_rules import Believed
from kassign_spark.client.group_state import Layout, Thrown
from kassign_spark.client.hash_order import HashOrder
from kassign_spark.client.rack_bits import Racks


def assign_constrained(
    layout: Layout, believed: Believed, members: HashOrder, by_id: list[int], racks: Racks | None
) -> tuple[list[list[int]], dict[int, int], str | None]:
    """Keep claims up to the quota, then deal the rest.

    ``members`` have the hash map's order, ``by_id`` that of their ids; ``racks`` is None where they
    are not in use.

    Returns:
        ids of partitions by position of the member; partitions that change their owner, with their
        new one; ``by_order`` as in ``Believed``.

    Raises:
        Thrown: claims of partitions that do not exist leave the client without room.
    """
    filling = _Filling(layout, believed, len(members.order), racks)
    by_order = filling.keep_owned(members)
    filling.deal(by_id)
    return filling.assigned, filling.moving, by_order


class _Filling:
    """Members on their way to their quotas."""

    def __init__(
        self, layout: Layout, believed: Believed, member_count: int, racks: Racks | None
    ) -> None:
        self.layout, self.believed, self.racks = layout, believed, racks
        self.low, self.larger_count = divmod(layout.partition_count, member_count)
        self.high = self.low + (self.larger_count > 0)
        self.over = 0
        self.assigned: list[list[int]] = [[] for _ in range(member_count)]
        self.under: list[int] = []
        self.exact: list[int] = []
        self.revoked_from: dict[int, int] = {}
        self.moving: dict[int, int] = {}

    def keep_owned(self, members: HashOrder) -> str | None:
        """Keep members' claims up to their quota; return whether a bucket's order decided."""
        owned: list[list[int]] = [[] for _ in self.assigned]
        disputed, racks = self.believed.disputed, self.racks
        for partition, member in self.believed.owner.items():
            if racks is not None and racks.mismatch(member, partition):
                self.revoked_from[partition] = member
            elif partition not in disputed:
                owned[member].append(partition)
        last_over = None
        by_order = None
        for member in members.order:
            partitions = owned[member]
            count = len(partitions)
            if count < self.low:
                self.assigned[member] = partitions
                self.under.append(member)
            elif count >= self.high and self.over < self.larger_count:
                self._keep_first(member, partitions, self.high)
                self.over += 1
                last_over = member
                if self.over == self.larger_count:
                    self.exact.clear()
            else:
                self._keep_first(member, partitions, self.low)
                if self.over < self.larger_count:
                    self.exact.append(member)
                elif (
                    last_over is not None
                    and count >= self.high
                    and members.buckets[last_over] == members.buckets[member]
                ):
                    by_order = "members of one bucket compete for the right to keep one more"
        return by_order

    def _keep_first(self, member: int, own: list[int], count: int) -> None:
        """Keep the claims that come first by number, then topic."""
        if len(own) > count:
            own.sort()
            own.sort(key=self.layout.number_of.__getitem__)
            for partition in own[count:]:
                self.revoked_from[partition] = member
            del own[count:]
        self.assigned[member] = own

    def deal(self, by_id: list[int]) -> None:
        """Deal what nobody kept: to members below their quota, then one more each."""
        place = {member: rank for rank, member in enumerate(by_id)}
        self.under.sort(key=place.__getitem__)
        self.exact.sort(key=place.__getitem__)
        pool = self._pool()
        if self.racks is not None:
            pool = self._deal_matching(pool, self.racks)
        self._deal_rest(pool)
        if self.under and (
            self.over != self.larger_count
            or any(len(self.assigned[member]) != self.low for member in self.under)
        ):
            raise Thrown("IllegalStateException", "partitions ran out before members were full")

    def _pool(self) -> list[int]:
        """Return partitions that nobody kept, by topic and number.

        The client compares two sorted lists; a kept partition that does not exist is never met in
        the other list, so that everything after it counts as kept by nobody.
        """
        missing = self.layout.missing
        kept = bytearray(len(self.layout.topic_of))
        for partitions in self.assigned:
            for partition in partitions:
                kept[partition] = 1
        end = min((p for p in missing if kept[p]), default=len(kept))
        return [
            p for p, is_kept in enumerate(kept) if (not is_kept or p > end) and p not in missing
        ]

    def _give(self, partition: int, member: int) -> int:
        """Give a partition; return the member's number of partitions."""
        partitions = self.assigned[member]
        partitions.append(partition)
        if (
            self.revoked_from.get(partition, member) != member
            or partition in self.believed.disputed
        ):
            self.moving[partition] = member
        return len(partitions)

    def _deal_matching(self, pool: list[int], racks: Racks) -> list[int]:
        """Deal partitions to members in their racks; return those without such a member."""
        count_of = {
            rack_bits: sum(1 for rack in racks.of_member if rack & rack_bits)
            for rack_bits in set(racks.of_partition)
        }
        pool.sort(key=lambda partition: count_of[racks.of_partition[partition]])
        under, exact = self.under, self.exact
        rest = []
        turn = 0
        for partition in pool:
            rack_bits = racks.of_partition[partition]
            turns = [*range(turn, len(under)), *range(turn)]
            place = next((i for i in turns if racks.of_member[under[i]] & rack_bits), None)
            if place is not None:
                member = under[place]
                turn = place
                if self._give(partition, member) == self.low:
                    del under[place]
                    if self.low < self.high and self.over < self.larger_count:
                        exact.append(member)
                else:
                    turn += 1
                turn = turn % len(under) if under else 0
                continue
            place = next((i for i, m in enumerate(exact) if racks.of_member[m] & rack_bits), None)
            if place is None:
                rest.append(partition)
                continue
            member = exact[place]
            if self._give(partition, member) == self.high:
                del exact[place]
                self.over += 1
                if self.over == self.larger_count:
                    exact.clear()
        return rest

    def _deal_rest(self, pool: list[int]) -> None:
        under, exact = self.under, self.exact
        cursor = 0
        for partition in pool:
            if under:
                if cursor == len(under):
                    cursor = 0
                member = under[cursor]
                cursor += 1
            elif exact:
                member = exact.pop(0)
            else:
                raise Thrown(
                    "IllegalStateException", "no member has room for " + self.layout.name(partition)
                )
            size = self._give(partition, member)
            if size == self.low:
                cursor -= 1
                del under[cursor]
                exact.append(member)
            elif size == self.high:
                self.over += 1
