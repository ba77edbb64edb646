"""``balance`` inside single tasks: loads, moves, racks and the certificate of many groups at once.

The groups of a task come as rows of one table, of three kinds, and every count is numpy over all
of them.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.numbers import Flags, Longs, find, key
from kassign_spark.groups.rows import run_in_tasks
from kassign_spark.groups.task_rows import (
    ASSIGNED,
    MEMBER,
    OWNED,
    TaskTable,
    count,
    encode_together,
    flatten_lists,
    member_places,
    one_piece,
    rows,
    subscribe_alike,
)
from kassign_spark.groups.task_rows import read as read_rows
from kassign_spark.measures.optimality import judge
from kassign_spark.measures.weighted_loads import (
    MISSING,
    VALUE,
    WEIGHED,
    AssignedHoldings,
    Weighing,
    weigh,
    weighed_rows,
)
from kassign_spark.schemas import BALANCE, CLUSTER_ID
from kassign_spark.spark.spark_versions import union_by_name

MEASURED = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in BALANCE.columns)
"""The columns of ``schemas.BALANCE``; a group_id that was null stays so."""


def balance_in_tasks(
    assigned: DataFrame,
    members: DataFrame,
    owned: DataFrame | None,
    racks: DataFrame | None,
    tasks: int,
    weighing: Weighing | None = None,
) -> DataFrame:
    """Measure whole groups, many of them in each task; runs no job.

    The tables are conforming, the patterns of members resolved, ``racks`` as ``racks.fold_racks``
    gives them.

    Returns:
        ``MEASURED``, and with ``weighing`` the columns of ``WEIGHED`` and ``MISSING``; kept_count,
        moved_count, moved_weight and cross_rack_count are 0 where ``owned`` and ``racks`` are None.
    """
    assigned_rows = assigned
    if racks is not None:
        of_partition = F.expr("get(replica_racks, try_cast(partition as int))")
        assigned_rows = assigned.join(racks, on=[CLUSTER_ID, "topic"], how="left").withColumn(
            "texts", F.array_compact(of_partition)
        )
    member_rows = members.withColumns({"texts": F.col("topics"), "value": F.col("capacity")})
    kinds = [(member_rows, MEMBER), (assigned_rows, ASSIGNED)] + (
        [] if owned is None else [(owned, OWNED)]
    )
    value = {} if weighing is None else VALUE
    table = union_by_name((rows(frame, kind, **value) for frame, kind in kinds))
    if weighing is None:
        return run_in_tasks(table, one_piece(measure_arrow), MEASURED, tasks)
    table = weighed_rows(table, assigned, weighing.weights)
    kernel = partial(measure_arrow, missing=weighing.missing, base=weighing.base)
    further = ", ".join(f"{name} {kind}" for name, kind in WEIGHED.items())
    schema = f"{MEASURED}, {further}, {MISSING} bigint"
    return run_in_tasks(table, one_piece(kernel), schema, tasks)


def measure_arrow(table: pa.Table, *, missing: float | None = None, base: float = 0.0) -> pa.Table:
    """Measure all groups that have a row of kind MEMBER.

    Args:
        table: cluster_id string, group_id string, kind tinyint, member_id string, topic string,
            partition bigint, rack_id string, texts array<string>: the topics of a member, and the
            known racks of an assigned partition; whole groups, rows in any order. With weights
            also value double, as ``weighted_loads.weighed_rows`` gives it.
        missing: as ``base``, see ``Weighing``.
        base: see ``Weighing``.

    Returns:
        ``MEASURED``; with weights also ``WEIGHED`` and ``MISSING``.
    """
    read = read_rows(table)
    member_rows, assigned_rows, owned_rows = map(read.rows_of, (MEMBER, ASSIGNED, OWNED))
    group, member = read.group, read.member
    shown, first, group_of = np.unique(group[member_rows], return_index=True, return_inverse=True)
    member_keys, row_member = np.unique(
        key(group[member_rows], member[member_rows]), return_inverse=True
    )
    holder = member_places(read, member_keys, assigned_rows)
    load = np.bincount(holder[holder >= 0], minlength=len(member_keys))[row_member]
    members = np.bincount(group_of, minlength=len(shown))
    by_group = load[np.argsort(group_of, kind="stable")]
    begins = np.cumsum(members) - members
    total, squares = (np.add.reduceat(loads, begins) for loads in (by_group, by_group * by_group))
    least, most = (reduction.reduceat(by_group, begins) for reduction in (np.minimum, np.maximum))

    owners = _owners(read, assigned_rows, owned_rows)
    holdings = AssignedHoldings(
        member_rows, row_member, group_of, assigned_rows, holder, owners.is_moved, shown
    )
    kept, moved, crossing = (
        count(find(shown, group[assigned_rows[flags]]), len(shown))
        for flags in (owners.is_kept, owners.is_moved, _crosses(table, read, holdings))
    )
    alike, _ = subscribe_alike(group_of, read.listed, read.topic_of_list, len(shown))
    has_rows, proven = _prove(read, holdings, owners, member_keys)
    weighed = {}
    if "value" in table.column_names:
        weighed = weigh(table, read, holdings, missing=missing, base=base)
    return pa.table(
        {
            **read.group_columns(member_rows[first]),
            "member_count": pa.array(members.astype(np.int32)),
            "partition_count": pa.array(total),
            "min_assigned": pa.array(least),
            "max_assigned": pa.array(most),
            "mean_assigned": pa.array(total / members),
            "stddev_assigned": pa.array(np.sqrt(members * squares - total * total) / members),
            "sum_of_squares": pa.array(squares),
            "kept_count": pa.array(kept),
            "moved_count": pa.array(moved),
            "subscription_type": pa.array(["heterogeneous", "homogeneous"]).take(
                pa.array(alike.astype(np.int64))
            ),
            "cross_rack_count": pa.array(crossing),
            **{
                name: pa.array(values[shown], mask=~has_rows[shown])
                for name, values in proven.items()
            },
            **weighed,
        }
    )


class _PartitionOwners(NamedTuple):
    """For each assigned row: whether it stays or moves, and the only owner of its partition.

    Of several owners it is one that has the partition still, else the first by name; 0: none.
    """

    is_kept: Flags
    is_moved: Flags
    owner: Longs


def _owners(read: TaskTable, assigned: Longs, owned: Longs) -> _PartitionOwners:
    owned = owned[(read.slot[owned] >= 0) & (read.member[owned] > 0)]
    slot, member = read.slot[assigned], read.member[assigned]
    claims = np.unique(key(read.slot[owned], read.member[owned]))
    is_kept = find(claims, key(slot, member)) >= 0
    is_kept &= (slot >= 0) & (member > 0)
    nobody = np.iinfo(np.int64).max
    first, keeper = np.full((2, int(read.slot.max(initial=-1)) + 1), nobody)
    np.minimum.at(first, read.slot[owned], read.member[owned])
    np.minimum.at(keeper, slot[is_kept], member[is_kept])
    owner = np.append(np.where(keeper < nobody, keeper, first), nobody)[slot]
    owner = np.where(owner < nobody, owner, 0)
    return _PartitionOwners(is_kept, (owner > 0) & (member > 0) & ~is_kept, owner)


def _crosses(table: pa.Table, read: TaskTable, holdings: AssignedHoldings) -> Flags:
    """Return whether the partition of an assigned row has known racks and none is its member's."""
    row_member, assigned = holdings.row_member, holdings.assigned_rows
    of_rows = table["rack_id"].take(pa.array(holdings.member_rows))
    racks = flatten_lists(table["texts"], assigned)
    rack_id, rack = encode_together(of_rows, racks.text)
    has_rack = pc.fill_null(pc.binary_length(of_rows), 0).to_numpy() > 0
    of_member = np.zeros(len(row_member) + 1, np.int64)  # the last one: of nobody
    np.maximum.at(of_member, row_member, np.where(has_rack, rack_id.code, 0))
    holder_rack = of_member[holdings.holder]
    has_racks, same = np.zeros((2, len(assigned)), bool)
    has_racks[racks.row] = True
    same[racks.row[rack == holder_rack[racks.row]]] = True
    return has_racks & ~same & (holder_rack > 0) & (read.slot[assigned] >= 0)


def _prove(
    read: TaskTable, holdings: AssignedHoldings, owners: _PartitionOwners, member_keys: Longs
) -> tuple[Flags, dict[str, Longs | Flags]]:
    """Fold partitions to counts of topics and subscribers, and judge those.

    Returns:
        whether a group is assigned anything, and the columns of ``MEASURED`` that are proven.
    """
    assigned, holder = holdings.assigned_rows, holdings.holder
    listed_member, listed_topic = holdings.row_member[read.listed.row], read.topic_of_list
    group_count = int(read.group.max(initial=-1)) + 1
    in_group = read.in_group[assigned]
    group = read.group[assigned][in_group]
    row_count = count(group, group_count)
    owned_count = count(group[owners.owner[in_group] > 0], group_count)
    kept_count = count(read.group[assigned][owners.is_kept], group_count)

    is_slot = read.slot[assigned] >= 0
    placed = assigned[is_slot]
    _, first = np.unique(read.slot[placed], return_index=True)
    slot_topic = key(read.group[placed], read.topic[placed])[first]
    topic_keys, supply = np.unique(slot_topic, return_counts=True)
    partition_count = count(read.group[placed][first], group_count)

    names_one = (listed_topic > 0) & ((member_keys & 0xFFFF_FFFF) > 0)[listed_member]
    member = listed_member[names_one]
    topic = find(topic_keys, key(member_keys[member] >> 32, listed_topic[names_one]))
    edges = np.unique(key(topic[topic >= 0], member[topic >= 0]))
    edge_topic, edge_member = edges >> 32, edges & 0xFFFF_FFFF

    def by_edge(topics: Longs, members: Longs) -> Longs:
        """Count rows of a topic and member; those of no edge are left out."""
        is_existing = (topics >= 0) & (members >= 0)
        edge = find(edges, key(topics[is_existing], members[is_existing]))
        return np.bincount(edge[edge >= 0], minlength=len(edges))

    assigned_count = by_edge(
        find(topic_keys, key(read.group[placed], read.topic[placed])), holder[is_slot]
    )
    owner = owners.owner[is_slot][first]
    owner = np.where(owner > 0, find(member_keys, key(slot_topic >> 32, owner)), -1)
    owned = by_edge(find(topic_keys, slot_topic), owner)

    edge_group = topic_keys[edge_topic] >> 32 if len(edges) else edge_topic
    judged = judge(edge_group, edge_topic, edge_member, supply[edge_topic], owned, assigned_count)
    eligible, most_kept, squares = np.zeros((3, group_count), np.int64)
    balanced = np.zeros(group_count, bool)
    eligible[judged.group], most_kept[judged.group] = judged.eligible_count, judged.most_kept_count
    squares[judged.group], balanced[judged.group] = judged.least_squares, judged.is_balanced
    is_balanced = balanced & (row_count == partition_count) & (row_count == eligible)
    return row_count > 0, {
        "is_balance_optimal": is_balanced,
        "is_optimal": is_balanced & (kept_count == most_kept),
        "least_moves": owned_count - most_kept,
        "least_sum_of_squares": squares,
    }
