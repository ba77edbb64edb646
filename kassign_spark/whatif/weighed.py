"""Measure assignors by load: the weight that members have in the end, beside its bound."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.bounds import load_bounds
from kassign_spark.assignors.weighted.planner import batches
from kassign_spark.assignors.weighted.problem import Doubles, stack
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.plans.weighted_groups import WeightOptions, read_groups

PROBLEM = "problem"
"""The column that says what is missing of weights."""


class Weighed(NamedTuple):
    """Weights of the groups of a task.

    Attributes:
        weight: of each slot, whole numbers.
        capacity: of each member.
        group_of: of each member its group.
        power: of each group, by what weights were multiplied.
        fair: of each group, the load if weight were a liquid and all subscriptions equal.
        bound: of each group, no assignment has a lower greatest load.
        is_weighed: of each group, whether anything has weight.
        problem: of each group; null: none.
    """

    weight: Doubles
    capacity: Doubles
    group_of: Longs
    power: Doubles
    fair: Doubles
    bound: Doubles
    is_weighed: Flags
    problem: list[str | None]

    def measure(self, member: Longs, slot: Longs, is_moved: Flags) -> dict[str, pa.Array]:
        """Return the columns of ``compare`` about weights for these owners, each slot once."""
        exists = slot >= 0
        member, slot, is_moved = member[exists], slot[exists], is_moved[exists]
        weight, groups = self.weight[slot], len(self.power)
        load = np.bincount(member, weight, len(self.capacity)) / self.capacity
        most = np.zeros(groups)
        np.maximum.at(most, self.group_of, load)
        moved = np.bincount(self.group_of[member], np.where(is_moved, weight, 0.0), groups)
        skew = np.divide(most, self.fair, out=np.zeros(groups), where=self.is_weighed)
        columns = {
            "max_load": most / self.power,
            "load_skew": skew,
            "load_bound": self.bound / self.power,
            "moved_weight": moved / self.power,
        }
        return {name: pa.array(c, mask=~self.is_weighed) for name, c in columns.items()}


def read_weighed(table: pa.Table, options: WeightOptions) -> Weighed:
    """Read the weights of the groups of a task, and find the bounds on their loads.

    The rows are those of ``weight_rows.fold_weights``; nothing is kept together.
    """
    batch, reads = read_groups(table, options)
    count = batch.group_count
    weight, capacity = np.zeros(int(batch.first_slot[-1])), np.ones(len(batch.member_group))
    power, fair, bound = np.ones(count), np.zeros(count), np.zeros(count)
    weighed = [(r, r.group) for r in reads if r.group is not None and (r.group.weight > 0).any()]
    for read, group in weighed:
        weight[read.item_slot] = group.weight[read.item_of]
        capacity[read.members] = group.capacity
        power[read.number] = group.power
        fair[read.number] = group.fair_load()
    for rows in batches([group for _, group in weighed]):
        loads = load_bounds(stack([weighed[row][1] for row in rows])).load
        bound[[weighed[row][0].number for row in rows]] = loads
    is_weighed = np.zeros(count, bool)
    is_weighed[[read.number for read, _ in weighed]] = True
    problem = [read.problem or None for read in reads]
    return Weighed(weight, capacity, batch.member_group, power, fair, bound, is_weighed, problem)
