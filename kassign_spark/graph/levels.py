"""Why a group is as uneven as it is: the levels of its members, from the most loaded down.

Take any best assignment, and draw an arc from each member to whoever may take a partition that it
holds. The *height* of a member is the largest load from which a path leads to it. No path leads to
a load that is lower by two or more (that is what best means), so a height is the member's load or
one more. Members of one height in one part (connected component) are a *level*. What follows:

- A class that is held at height h has no subscriber below h: an arc leads from the holder to each.
  So what the levels down to any one hold can be read by their members only, n of them. If those
  topics have S partitions, some member has at least ceil(S / n), whatever any assignor does.
- In the highest level all loads are h or h - 1, and one is h. So ceil(S / n) = h there: no assignor
  gives less than that maximum, and the best assignment has it.
- A member below height h subscribes to no class that is held at h or above. So the members of the
  lowest level can read nothing but what they hold together, and some member has at most
  floor(S / n), which is the least load of the best assignment.
- Of a level between, the same holds when those above have no more than they must.

Heights are the same whichever best assignment is taken (the canonical partition of decreasingly
minimal allocations: A. Frank and K. Murota, "Decreasing minimization on M-convex sets", 2022).
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.engine.segments import Longs, Segments
from kassign_spark.engine.task import settle
from kassign_spark.graph.class_batch import ClassGraph
from kassign_spark.groups.numbers import dense, place_in_run


class Levels(NamedTuple):
    """Heights of members and classes.

    Attributes:
        height_of_member: 0 for a member that can take nothing.
        height_of_class: that of whoever holds it.
        level_of_member: counted from 0 within the part, the highest first; -1 without a part.
        level_of_class: the level of each class.
    """

    height_of_member: Longs
    height_of_class: Longs
    level_of_member: Longs
    level_of_class: Longs


def levels(graph: ClassGraph) -> Levels:
    """Find the levels of all groups side by side.

    Raises:
        AssertionError: the balance found is not the best, which would be a bug.
    """
    class_count, member_count = len(graph.supply), len(graph.group_of_member)
    # settle wants members numbered without gaps.
    having_edges, member_of = np.unique(graph.member_of, return_inverse=True)
    none = np.zeros(len(member_of), np.int64)
    turn = place_in_run(graph.group_of_class)
    assigned = settle(graph.class_of, member_of, none, graph.supply, turn)
    by_class = Segments(graph.class_of, class_count)
    by_member = Segments(graph.member_of, member_count)
    load = by_member.sum(assigned)
    height = _highest_source(graph, by_class, by_member, load, assigned)
    assert (height - load <= 1).all(), "not the best balance"
    level = np.full(member_count, -1)
    _, part = dense(graph.group_of_member[having_edges], graph.part_of_member[having_edges])
    first, of_height = dense(part, -height[having_edges])
    level[having_edges] = place_in_run(part[first])[of_height]
    height_of_class = by_class.least(height[graph.member_of])
    return Levels(height, height_of_class, level, -by_class.least(-level[graph.member_of]))


def _highest_source(
    graph: ClassGraph, by_class: Segments, by_member: Segments, load: Longs, assigned: Longs
) -> Longs:
    """Return the largest load from which a path of arcs leads to each member."""
    holds = assigned > 0
    lowered = -load
    while True:
        of_class = by_class.least(np.where(holds, lowered[graph.member_of], 0))
        reached = np.minimum(lowered, by_member.least(of_class[graph.class_of]))
        if np.array_equal(reached, lowered):
            return -lowered
        lowered = reached
