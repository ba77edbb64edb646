"""Measure loads of members by weight and capacity, group by group.

Weights are scaled by one power of two a group and rounded to whole numbers, as plans by weight do:
sums are exact, and so the same in any order.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.weighted.problem import Doubles
from kassign_spark.groups.numbers import Flags, Longs, find, key
from kassign_spark.groups.task_rows import TaskTable, rows
from kassign_spark.plans.weight_rows import shared_and_own
from kassign_spark.schemas import GROUP_KEY

WEIGHT = 4
"""A kind of rows beside those of ``task_rows``: a partition's weight."""
VALUE = {"value": "double"}
"""Columns that these rows, and so all others of a table, have in addition."""

WEIGHED = dict.fromkeys(
    ("total_weight", "max_load", "mean_load", "load_skew", "moved_weight"), "double"
)
MISSING = "missing_weights"
"""Beside the columns of ``WEIGHED``: how many assigned partitions have no weight."""

_SUM_BITS = 50


class Weighing(NamedTuple):
    """The options for weights.

    Attributes:
        weights: ``schemas.WEIGHTS``, conforming.
        missing: the weight of partitions without, in groups that have some; None: count them.
        base: added to every weight.
    """

    weights: DataFrame
    missing: float | None
    base: float


class AssignedHoldings(NamedTuple):
    """The holdings of members, in numbers of a task's table.

    Attributes:
        member_rows: rows of members.
        row_member: of each of them, its number among all members.
        group_of: of each of them, the place of its group among those shown.
        assigned_rows: rows of assigned partitions.
        holder: of each of them, the number of its member; -1: none.
        is_moved: of each of them, whether another member had the partition.
        shown: the groups that are shown.
    """

    member_rows: Longs
    row_member: Longs
    group_of: Longs
    assigned_rows: Longs
    holder: Longs
    is_moved: Flags
    shown: Longs


def weighed_rows(table: DataFrame, assigned: DataFrame, weights: DataFrame) -> DataFrame:
    """Add weights to a tasks' table of ``task_rows.rows`` whose rows have a column value.

    Args:
        table: the other rows; value is the capacity of a member.
        assigned: ``schemas.ASSIGNMENT``, conforming: weights that serve all groups are given to
            those that are assigned partitions of the topic.
        weights: ``schemas.WEIGHTS``, conforming.
    """
    reading = assigned.select(*GROUP_KEY, "topic").distinct()
    for is_own, frame in enumerate(shared_and_own(weights, reading)):
        valued = frame.withColumns({"value": F.col("weight"), "size": F.lit(is_own)})
        table = table.unionByName(rows(valued, WEIGHT, **VALUE))
    return table


def weigh(
    table: pa.Table,
    read: TaskTable,
    holdings: AssignedHoldings,
    *,
    missing: float | None,
    base: float,
) -> dict[str, pa.Array]:
    """Measure the loads of all groups shown: the columns of ``WEIGHED``, and ``MISSING``.

    ``table`` has the rows of ``weighed_rows``, ``read`` the same in numbers; ``missing`` and
    ``base`` are as in ``Weighing``.
    """
    value, own = table["value"].to_numpy(), table["size"].to_numpy()
    weighed = read.rows_of(WEIGHT)
    weighed = weighed[read.slot[weighed] >= 0]
    of_slot = np.full(int(read.slot.max(initial=-1)) + 1, np.nan)
    for is_own in (0, 1):  # a row of the group alone comes last, and wins
        some = weighed[own[weighed] == is_own]
        of_slot[read.slot[some]] = value[some]
    has_weights = np.isin(holdings.shown, read.group[weighed])
    groups = len(holdings.shown)

    is_known = (holdings.holder >= 0) & (read.slot[holdings.assigned_rows] >= 0)
    assigned, holder = holdings.assigned_rows[is_known], holdings.holder[is_known]
    group_of_member = np.empty(int(holdings.row_member.max(initial=-1)) + 1, np.int64)
    group_of_member[holdings.row_member] = holdings.group_of
    group = group_of_member[holder]
    weight = of_slot[read.slot[assigned]]
    lacks = np.isnan(weight)
    weight = np.where(lacks, 0.0 if missing is None else missing, weight) + base
    whole, power = _whole(weight, group, groups)

    capacity = np.ones(len(group_of_member))
    stated = value[holdings.member_rows]
    capacity[holdings.row_member] = np.where(np.isnan(stated), 1.0, stated)
    load = np.bincount(holder, whole, len(capacity)) / capacity
    most = np.zeros(groups)
    np.maximum.at(most, group_of_member, load)
    total = np.bincount(group, whole, groups)
    serves = _serves(read, holdings, len(capacity))
    room = np.bincount(group_of_member[serves], capacity[serves], groups)
    mean = np.divide(total, room, out=np.zeros(groups), where=room > 0)
    moved = np.bincount(group, np.where(holdings.is_moved[is_known], whole, 0.0), groups)
    measures = {
        "total_weight": total / power,
        "max_load": most / power,
        "mean_load": mean / power,
        "load_skew": np.divide(most, mean, out=np.full(len(mean), np.nan), where=mean > 0),
        "moved_weight": moved / power,
    }
    lacking = np.bincount(group, lacks, groups).astype(np.int64)
    columns = {
        name: pa.array(column, mask=~has_weights | np.isnan(column))
        for name, column in measures.items()
    }
    columns[MISSING] = pa.array(np.where(has_weights & (missing is None), lacking, 0))
    return columns


def _whole(weight: Doubles, group: Longs, groups: int) -> tuple[Doubles, Doubles]:
    """Return whole numbers, whose sums are exact, and the factor of each group."""
    most = np.zeros(groups)
    np.maximum.at(most, group, weight)
    count = np.bincount(group, minlength=groups)
    bits = np.frexp(most)[1].astype(np.int64) + np.frexp(count.astype(float))[1]
    power = np.ldexp(1.0, np.clip(_SUM_BITS - bits, -1000, 1000))
    power[most <= 0] = 1.0
    return np.rint(weight * power[group]), power


def _serves(read: TaskTable, holdings: AssignedHoldings, members: int) -> Flags:
    """Return whether members subscribe to a topic of which something is assigned."""
    assigned = np.unique(
        key(read.group[holdings.assigned_rows], read.topic[holdings.assigned_rows])
    )
    row = holdings.member_rows[read.listed.row]
    subscriptions: npt.NDArray[np.int64] = key(read.group[row], read.topic_of_list)
    serves = np.zeros(members, bool)
    serves[holdings.row_member[read.listed.row[find(assigned, subscriptions) >= 0]]] = True
    return serves
