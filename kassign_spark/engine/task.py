"""The engine inside a task: one block, many whole groups in it, settled side by side."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.engine.block import Answer, Block, Command
from kassign_spark.engine.costs import MOVE
from kassign_spark.engine.edges import compact_edges
from kassign_spark.engine.program import find_components, settle_blocks
from kassign_spark.engine.segments import Longs


class InProcess:
    """Blocks in this process."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    def step(self, commands: list[Command]) -> list[Answer]:
        """Have every block do the commands."""
        return [block.run(commands, number) for number, block in enumerate(self.blocks)]


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


def settle_arrow(table: pa.Table) -> pa.Table:
    """``settle`` for a table of edges; its groups are independent of each other.

    Args:
        table: cluster_id string, group_id string, class int, member int, supply bigint,
            owned bigint; whole groups, rows in any order.

    Returns:
        The same rows without ``supply``, with assigned bigint; rows in another order.
    """
    group = np.zeros(table.num_rows, np.int64)
    for name in ("cluster_id", "group_id"):
        codes = pc.dictionary_encode(table[name]).combine_chunks()
        group = group * max(len(codes.dictionary), 1) + codes.indices.to_numpy()
    names = ("class", "member", "supply", "owned")
    class_, member, supply, owned = (table[name].to_numpy() for name in names)
    order = np.lexsort((member, class_, group))
    group, class_, member = (of[order].astype(np.int64) for of in (group, class_, member))
    first = (np.diff(group, prepend=-1) != 0) | (np.diff(class_, prepend=-1) != 0)
    _, member_of = np.unique(group << 32 | member, return_inverse=True)
    class_of, supply = np.cumsum(first) - 1, supply[order][first]
    assigned = settle(class_of, member_of, owned[order], supply, class_[first])
    sorted_table = table.take(pa.array(order)).drop_columns(["supply"])
    return sorted_table.append_column("assigned", pa.array(assigned))
