"""The engine inside a task: one block, many whole groups in it, settled side by side."""

import numpy as np

from kassign_spark.engine.block import Block
from kassign_spark.engine.commands import InProcess
from kassign_spark.engine.costs import MOVE
from kassign_spark.engine.edges import compact_edges
from kassign_spark.engine.program import find_components, settle_blocks
from kassign_spark.engine.segments import Longs


def settle(
    class_of: Longs,
    member_of: Longs,
    owned: Longs,
    supply: Longs,
    turn: Longs,
    *,
    surcharge: Longs | None = None,
    move: int = MOVE,
) -> Longs:
    """Assign all partitions: balance best, then cost least: moves, and surcharges if there are any.

    Args:
        class_of: for each edge its class, dense from 0; edges are sorted by class, then member.
        member_of: for each edge its member, dense from 0; members of all groups.
        owned: for each edge how many of the class's partitions the member owns.
        supply: partitions of each class.
        turn: for each class its number within its group.
        surcharge: for each edge what one partition there costs, moved or not; None: nothing.
        move: what a move costs; ``MAJOR`` or ``MINOR`` where surcharges are the other one.

    Returns:
        For each edge how many partitions of the class the member gets.
    """
    edges = compact_edges(class_of, member_of, owned, supply, turn, surcharge)
    block = Block(edges, move)
    del edges  # The block drops what it has settled.
    settle_blocks(InProcess([block]), int(member_of.max(initial=-1)) + 1)
    return block.result.astype(np.int64)


def components(class_of: Longs, member_of: Longs, member_count: int) -> Longs:
    """Name connected components of the members of edges that are sorted as ``settle`` wants.

    Returns:
        For each member the least member of its component.
    """
    none = np.zeros(len(class_of), np.int64)
    classes = np.zeros(int(class_of.max(initial=-1)) + 1, np.int64)
    edges = compact_edges(class_of, member_of, none, classes, classes)
    return find_components(InProcess([Block(edges)]), member_count)
