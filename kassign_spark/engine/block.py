"""A block: the edges of a range of topic classes. What a class needs is in one block.

What concerns a member is a vector of one number per member, of which each block knows its own part.
``program`` combines the parts and hands them to all blocks. A *superstep* is: every block does the
same commands, each on its edges, and answers the last one.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kassign_spark.engine.commands import Answer
from kassign_spark.engine.costs import MOVE
from kassign_spark.engine.edges import Edges, Flags
from kassign_spark.engine.flow import Flow
from kassign_spark.engine.packed import pack, unpack
from kassign_spark.engine.segments import Integers, Longs, shares_in_order, totals


class Sums(NamedTuple):
    """The share of a block in the totals of parts and members.

    Attributes:
        supply: partitions of the classes of each part.
        owned: partitions that each member owns and can keep free of any cost.
        rows: edges of each member.
    """

    supply: Longs
    owned: Longs
    rows: Longs


class Block:
    """The state of a block.

    Attributes:
        result: partitions of the class that the member gets, for each edge; 0 until it is settled.
    """

    def __init__(self, edges: Edges, move: int = MOVE) -> None:
        self.result: Integers = np.zeros_like(edges.owned)
        self._unsettled: Longs | None = None  # rows of the result; None: all
        self._edges = edges
        self._move = move
        self._flows: list[Flow] = []  # each after the first of a part of the one before
        self._narrowed: list[tuple[Flags, Flags]] = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"result": pack(self.result)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, result=unpack(state["result"]))

    @property
    def unsettled_count(self) -> int:
        """Return the number of edges that are not settled yet."""
        return len(self._edges)

    @property
    def open_count(self) -> int:
        """Return the number of partitions without a place, in parts that are being settled."""
        inside = [classes for _, classes in self._narrowed]
        beside = zip(self._flows, inside, strict=False)
        count = sum(int(flow.open[~classes].sum()) for flow, classes in beside)
        return count + sum(int(flow.open.sum()) for flow in self._flows[-1:])

    def label(self, label: Longs) -> Answer:
        """Lower the labels of members to the least that the edges of this block join them with."""
        edges = self._edges
        while True:
            of_member = label[edges.member_of]
            of_class = np.repeat(edges.least(of_member), edges.sizes)
            higher = np.flatnonzero(of_class < of_member)
            if not len(higher):
                return (label,)
            lower = label.copy()
            np.minimum.at(lower, edges.member_of[higher], of_class[higher])
            label = lower[lower]

    def sum_up(self, part: Longs) -> Sums:
        """Sum up by part and by member; ``part`` is of each member."""
        edges, count = self._edges, len(part)
        class_part = part[edges.first_members()]
        owning = self._owning()
        return Sums(
            totals(class_part, edges.supply, int(part.max(initial=-1)) + 1),
            totals(edges.member_of[owning], edges.owned[owning], count),
            np.bincount(edges.member_of, minlength=count),
        )

    def _owning(self) -> Longs:
        """Return the edges whose member owns partitions that it may keep at no cost."""
        owning = np.flatnonzero(self._edges.owned)
        surcharge = self._edges.surcharge
        return owning if surcharge is None else owning[surcharge[owning] == 0]

    def start(self, number: Longs, part: Longs, keeps: Longs) -> Answer:
        """Start parts: members keep what they own within a limit, lowest class first.

        Args:
            number: the new number of each member, by its old one.
            part: part of each member.
            keeps: how many partitions of the classes of this block each member keeps at most.
        """
        edges = self._edges = replace(
            self._edges, member_of=number.astype(np.int32)[self._edges.member_of]
        )
        owning = self._owning()
        owned = edges.owned[owning]
        kept = shares_in_order(edges.member_of[owning], owned, keeps)
        assigned = np.zeros_like(edges.owned)
        assigned[owning] = kept
        open_ = edges.supply - edges.by_class(owning, kept)
        assert (open_ >= 0).all(), "more partitions are owned than there are: one has two owners"
        of_class = part[edges.first_members()]
        self._flows = [Flow(edges, self._move, assigned, open_, of_class)]
        return ()

    def relax(self, distance: Longs, part_count: int) -> Answer:
        """See ``Flow.relax``."""
        return self._flows[-1].relax(distance, part_count)

    def aim(self, distance: Longs) -> Answer:
        """See ``Flow.aim``."""
        return self._flows[-1].aim(distance)

    def push(
        self, accepts: Longs, take_limit: Longs | None = None, give_limit: Longs | None = None
    ) -> Answer:
        """See ``Flow.push``."""
        return (self._flows[-1].push(accepts, take_limit, give_limit),)

    def narrow(self, number: Longs, part: Longs) -> Answer:
        """Keep some parts only, with new numbers of their members (-1: in none of them)."""
        member_of = number.astype(np.int32)[self._flows[-1].edges.member_of]
        rows = member_of >= 0
        flow, classes = self._flows[-1].subset(rows)
        flow.edges.member_of = member_of[rows]
        flow.part = part[flow.edges.first_members()]
        self._flows.append(flow)
        self._narrowed.append((rows, classes))
        return ()

    def widen(self) -> Answer:
        """Return to all parts that there were before ``narrow``."""
        inner, (rows, classes) = self._flows.pop(), self._narrowed.pop()
        self._flows[-1].assigned[rows] = inner.assigned
        self._flows[-1].open[classes] = inner.open
        return ()

    def cut(self, level: Longs, is_settled: Flags, part: Longs) -> Answer:
        """Drop settled edges, and those from a class to a higher level than its lowest; sum up.

        Args:
            level: of each member.
            is_settled: whether each member's loads and moves are final.
            part: new part of each member.
        """
        edges, assigned = self._edges, self._flows.pop().assigned
        level_of = level[edges.member_of]
        stays = level_of == np.repeat(edges.least(level_of), edges.sizes)
        assert not assigned[~stays].any()
        done = stays & is_settled[edges.member_of]
        rest = stays & ~done
        if self._unsettled is None:
            self.result[done] = assigned[done]
            self._unsettled = np.flatnonzero(rest)
        else:
            self.result[self._unsettled[done]] = assigned[done]
            self._unsettled = self._unsettled[rest]
        self._edges, _ = edges.subset(rest)
        return self.sum_up(part)
