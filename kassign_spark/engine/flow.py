"""Supersteps of a part: distances, and pushes along cheapest paths. ``costs`` explains them."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kassign_spark.engine.costs import UNREACHABLE
from kassign_spark.engine.edges import Edges, Flags
from kassign_spark.engine.packed import pack, unpack
from kassign_spark.engine.segments import Integers, Longs, shares_in_order, totals

_NOWHERE = 2 * UNREACHABLE
"""A distance that nothing is at."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass
class Flow:
    """Edges that are being settled, what is assigned along them, and what a push may change.

    Attributes:
        move: what a move adds to a distance.
        assigned: partitions of the class that the member holds, for each edge.
        open: partitions of each class that have no place.
        part: of each class.
        class_distance: of each class to the nearest place.
        takes: rows along which open partitions may step.
        can_take: how many may, for each of these rows.
        takes_of_class: how many rows of ``takes`` each class has.
        gives: rows along which partitions may be pushed out.
        can_give: how many may, for each of these rows.
        offers: positions in ``takes`` of the offers that were made last.
        offered: partitions of each offer.
    """

    edges: Edges
    move: int
    assigned: Integers
    open: Longs
    part: Longs
    class_distance: Longs = field(default_factory=_NO_ROWS.copy)
    takes: Integers = field(default_factory=_NO_ROWS.copy)
    can_take: Integers = field(default_factory=_NO_ROWS.copy)
    takes_of_class: Longs = field(default_factory=_NO_ROWS.copy)
    gives: Integers = field(default_factory=_NO_ROWS.copy)
    can_give: Integers = field(default_factory=_NO_ROWS.copy)
    offers: Integers = field(default_factory=_NO_ROWS.copy)
    offered: Integers = field(default_factory=_NO_ROWS.copy)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"assigned": pack(self.assigned)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, assigned=unpack(state["assigned"]))

    def relax(self, distance: Longs, part_count: int) -> tuple[Longs, Flags, Flags, Longs]:
        """Shorten the distances of members as far as the edges of this block can.

        Returns:
            The distances; for each part whether one of its open partitions can step, and whether
            it has any; for each member how many partitions it may push out.
        """
        edges = self.edges
        unowned = np.flatnonzero(self.assigned < edges.owned)
        holds = np.flatnonzero(self.assigned)
        holder, held_class = edges.member_of[holds], edges.class_of[holds]
        give = np.where(self.assigned[holds] > edges.owned[holds], 1 - self.move, 1)
        if edges.surcharge is not None:
            give -= edges.surcharge[holds]
        while True:
            of_class = self._class_distances(distance, unowned)
            through = of_class[held_class] + give
            nearer = np.flatnonzero(through < np.minimum(distance, UNREACHABLE // 2)[holder])
            if not len(nearer):
                break
            distance = distance.copy()
            np.minimum.at(distance, holder[nearer], through[nearer])
        self.class_distance = of_class
        is_open, is_moving, is_stuck = self.open > 0, *np.zeros((2, part_count), bool)
        is_moving[self.part[is_open & (of_class < UNREACHABLE)]] = True
        is_stuck[self.part[is_open]] = True
        self.gives = holds[(of_class[held_class] < UNREACHABLE) & (distance[holder] == through)]
        moved = self.assigned[self.gives] - edges.owned[self.gives]
        self.can_give = np.where(moved > 0, moved, self.assigned[self.gives])
        can_give = totals(edges.member_of[self.gives], self.can_give, len(distance))
        return distance, is_moving, is_stuck, can_give

    def _reach(self, distance: Longs) -> Longs:
        """Return the distance from each edge's member, with the edge's surcharge."""
        reach = distance[self.edges.member_of]
        if self.edges.surcharge is not None:
            reach += self.edges.surcharge
        return reach

    def _class_distances(self, distance: Longs, unowned: Longs) -> Longs:
        reach = self._reach(distance)
        nearest = self.edges.least(reach) + self.move + 1
        # To take back what it owns is no move for a member.
        np.minimum.at(nearest, self.edges.class_of[unowned], reach[unowned] + 1)
        return np.where(nearest > UNREACHABLE // 2, UNREACHABLE, nearest)

    def aim(self, distance: Longs) -> tuple[()]:
        """Find the edges on cheapest paths, now that the distances of members are final."""
        edges, of_class = self.edges, self.class_distance
        target = np.where(of_class < UNREACHABLE, of_class, _NOWHERE) - 1
        reach = self._reach(distance)
        is_cheapest = reach == np.repeat(target - self.move, edges.sizes)
        unowned = np.flatnonzero(self.assigned < edges.owned)
        is_cheapest[unowned] = reach[unowned] == target[edges.class_of[unowned]]
        del reach
        self.takes = np.flatnonzero(is_cheapest).astype(np.int32)
        self.takes_of_class = np.bincount(edges.class_of[self.takes], minlength=len(self.open))
        free_of_cost = edges.owned[self.takes] - self.assigned[self.takes]
        any_number = np.iinfo(free_of_cost.dtype).max
        self.can_take = np.where(free_of_cost > 0, free_of_cost, any_number)
        return ()

    def push(self, accepts: Longs, take_limit: Longs | None, give_limit: Longs | None) -> Longs:
        """Move what was offered before as far as members agreed, then make new offers.

        Each class shares its open partitions evenly among the members that accept some. Who comes
        first gets the odd one; who that is differs from class to class, so that classes with the
        same few subscribers do not all turn to the same one.

        Args:
            accepts: how many partitions each member still accepts.
            take_limit: how many of the offers of this block each member takes; None: no offers.
            give_limit: how many partitions each member pushes out along edges of this block.

        Returns:
            How many partitions are offered to each member.
        """
        if take_limit is not None and give_limit is not None:
            self._step(take_limit, give_limit)
        edges = self.edges
        live = np.flatnonzero((self.open > 0).repeat(self.takes_of_class))
        live = live[(accepts > 0)[edges.member_of[self.takes[live]]] & (self.can_take[live] > 0)]
        self.offers = self.offered = live[:0]
        if not len(live):
            return np.zeros_like(accepts)
        class_of = edges.class_of[self.takes[live]]
        takers = np.bincount(class_of, minlength=len(self.open))
        divisor = np.maximum(takers, 1)
        first_place = edges.turn % divisor - (np.cumsum(takers) - takers)
        place = np.arange(len(live)) + first_place.repeat(takers)
        place -= (place >= takers.repeat(takers)) * takers.repeat(takers)
        share = (self.open // divisor).repeat(takers)
        share += place < (self.open % divisor).repeat(takers)
        offers = np.flatnonzero(share)
        self.offers = live[offers]
        member = edges.member_of[self.takes[self.offers]]
        at_most = np.minimum(self.can_take[self.offers], accepts[member])
        self.offered = np.minimum(share[offers], at_most)
        return totals(member, self.offered, len(accepts))

    def _step(self, take_limit: Longs, give_limit: Longs) -> None:
        edges, rows = self.edges, self.takes[self.offers]
        taken = shares_in_order(edges.member_of[rows], self.offered, take_limit)
        shares = shares_in_order(edges.member_of[self.gives], self.can_give, give_limit)
        kind = self.assigned.dtype
        self.assigned[rows] += taken.astype(kind)
        self.assigned[self.gives] -= shares.astype(kind)
        self.can_take[self.offers] -= taken.astype(kind)
        self.can_give = self.can_give - shares
        self.open = self.open + edges.by_class(self.gives, shares) - edges.by_class(rows, taken)

    def subset(self, rows: Flags) -> "tuple[Flow, Flags]":
        """Keep these rows, which must be whole parts; also return their classes."""
        edges, classes = self.edges.subset(rows)
        kept = rows[self.gives]
        flow = replace(
            self,
            edges=edges,
            assigned=self.assigned[rows],
            open=self.open[classes],
            part=self.part[classes],
            class_distance=self.class_distance[classes],
            gives=(np.cumsum(rows) - 1)[self.gives[kept]],
            can_give=self.can_give[kept],
        )
        return flow, classes
