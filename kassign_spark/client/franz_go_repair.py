"""Rotations that undo needless moves, as franz-go looks for them (``repair.go``, 1.22).

Topics with the same readers are a row; a cell is how many partitions of a row a member holds, and
what it holds beyond what it came with is its price. A rotation takes one from some cells and gives
one to others. It leaves the sorted sizes as they are; the library looks for those that lower the
price until there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_NEVER = 1 << 62
_NONE = -1


@dataclass
class _Cell:
    row: int
    member: int
    count: int = 0
    came_with: int = 0

    def price_of_one_more(self) -> int:
        return int(self.count >= self.came_with)

    def price_of_one_less(self) -> int:
        if not self.count:
            return _NEVER
        return -1 if self.count > self.came_with else 0

    def room(self, step: int) -> int:
        """Return how many can come or go at the same price."""
        if step > 0:
            return self.came_with - self.count if self.count < self.came_with else _NEVER
        return self.count - self.came_with if self.count > self.came_with else self.count


def repair_plan(
    readers_of: Sequence[Sequence[int]],
    partitions_of: Sequence[Sequence[int]],
    plan: list[list[int]],
    original: dict[int, int],
) -> list[list[int]]:
    """Rotate a plan until no rotation lowers its price.

    Args:
        readers_of: each topic's members, ascending.
        partitions_of: each topic's partitions.
        plan: partitions by member.
        original: who came with each partition; of others nobody did.

    Returns:
        partitions by member.
    """
    rows: dict[tuple[int, ...], int] = {}
    row_of_topic = [rows.setdefault(tuple(readers), len(rows)) for readers in readers_of]
    row_of = {p: row for row, each in zip(row_of_topic, partitions_of, strict=True) for p in each}
    cells, cell_at = _table(rows, row_of, plan, original)
    loads = [*map(len, plan)]
    has_moved = False
    while rotations := _find_rotations(cells, len(rows), loads):
        has_moved = True
        for rotation, shifts_load in rotations:
            count = 1 if shifts_load else min(cells[cell].room(step) for cell, step in rotation)
            for cell, step in rotation:
                cells[cell].count += step * count
                loads[cells[cell].member] += step * count
    is_crossed = any(
        original.get(p, member) != member for member, own in enumerate(plan) for p in own
    )
    return _dealt(cells, cell_at, row_of, plan, original) if has_moved or is_crossed else plan


def _table(
    rows: dict[tuple[int, ...], int],
    row_of: dict[int, int],
    plan: list[list[int]],
    original: dict[int, int],
) -> tuple[list[_Cell], dict[tuple[int, int], int]]:
    """Make the cells of rows that have partitions, member by member, and find each."""
    slots = sorted((member, row) for readers, row in rows.items() for member in readers)
    held_rows = {row_of[p] for partitions in plan for p in partitions}
    cells = [_Cell(row, member) for member, row in slots if row in held_rows]
    cell_at = {(cell.row, cell.member): place for place, cell in enumerate(cells)}
    for member, partitions in enumerate(plan):
        for partition in partitions:
            cells[cell_at[row_of[partition], member]].count += 1
    for partition, member in original.items():
        cells[cell_at[row_of[partition], member]].came_with += 1
    return cells, cell_at


def _find_rotations(
    cells: list[_Cell], row_count: int, loads: list[int]
) -> list[tuple[list[tuple[int, int]], bool]]:
    """Find rotations that lower the price and share no node: Bellman-Ford from all nodes at once.

    Nodes are rows, members, and the levels of load; a load shifts to a member one level below.

    Returns:
        of each the cells with what they gain, and whether it shifts a load.
    """
    first_level = row_count + len(loads)
    levels: dict[int, int] = {}
    for load in loads:
        if load > 0 and load not in levels:
            levels[load] = first_level + len(levels)
    node_count = first_level + len(levels)
    distance = [0] * node_count
    cell_to, node_before = [_NONE] * node_count, [_NONE] * node_count

    def relax(target: int, length: int, cell: int, source: int) -> bool:
        if length >= distance[target]:
            return False
        distance[target], cell_to[target], node_before[target] = length, cell, source
        return True

    for _ in range(node_count):
        has_changed = False
        for place, cell in enumerate(cells):
            row, member = cell.row, row_count + cell.member
            has_changed |= relax(member, distance[row] + cell.price_of_one_more(), place, row)
            has_changed |= relax(row, distance[member] + cell.price_of_one_less(), place, member)
        for number, load in enumerate(loads):
            member = row_count + number
            above = levels.get(load + 1, _NONE)
            if above != _NONE:
                has_changed |= relax(above, distance[member], _NONE, member)
            if load > 0:
                has_changed |= relax(member, distance[levels[load]], _NONE, levels[load])
        if not has_changed:
            return []
        if roots := _on_cycles(node_before):
            return [_rotation(root, row_count, first_level, cell_to, node_before) for root in roots]
    return []


def _on_cycles(node_before: list[int]) -> list[int]:
    """Return a node of every cycle of predecessors."""
    seen_from = [_NONE] * len(node_before)
    roots = []
    for start in range(len(node_before)):
        if seen_from[start] != _NONE:
            continue
        node = start
        while node != _NONE and seen_from[node] == _NONE:
            seen_from[node] = start
            node = node_before[node]
        if node != _NONE and seen_from[node] == start:
            roots.append(node)
    return roots


def _rotation(
    root: int, row_count: int, first_level: int, cell_to: list[int], node_before: list[int]
) -> tuple[list[tuple[int, int]], bool]:
    steps, shifts_load, node = [], False, root
    while True:
        if node >= first_level:
            shifts_load = True
        elif cell_to[node] != _NONE:
            steps.append((cell_to[node], 1 if node >= row_count else -1))
        node = node_before[node]
        if node == root:
            return steps, shifts_load


def _dealt(
    cells: list[_Cell],
    cell_at: dict[tuple[int, int], int],
    row_of: dict[int, int],
    plan: list[list[int]],
    original: dict[int, int],
) -> list[list[int]]:
    """Deal partitions by the table: first members take back what they came with."""
    left = [cell.count for cell in cells]
    piles: dict[int, list[int]] = {}
    dealt: list[list[int]] = [[] for _ in plan]
    for partitions in plan:
        for partition in partitions:
            place = cell_at.get((row_of[partition], original.get(partition, _NONE)), _NONE)
            if place != _NONE and left[place] > 0:
                left[place] -= 1
                dealt[original[partition]].append(partition)
            else:
                piles.setdefault(row_of[partition], []).append(partition)
    for cell, count in zip(cells, left, strict=True):
        if count:
            dealt[cell.member] += piles[cell.row][:count]
            del piles[cell.row][:count]
    return dealt
