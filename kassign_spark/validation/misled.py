"""Groups in which claims of partitions that do not exist mislead Kafka's client, inside a task."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.client.group_state import FAILING, GroupState
from kassign_spark.client.hash_order import sort_as_java
from kassign_spark.client.mixed_families import libraries
from kassign_spark.client.model import predict_group
from kassign_spark.client_libraries import JAVA
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.task_rows import MEMBER, OWNED, SUBSCRIBED, TaskTable
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.limits import PARTITIONS_OF_A_GROUP, PARTITIONS_OF_A_TOPIC

STICKY = ("sticky", "cooperative-sticky")
"""The assignors that look at claims."""


def misled_in_task(
    table: pa.Table, task_rows: TaskTable, owned: Longs
) -> tuple[Longs, list[str | None]]:
    """Ask the model of the client about groups whose members claim what does not exist.

    Args:
        table: the columns that ``tasks.found_arrow`` takes.
        task_rows: the same, read.
        owned: the rows of claims of members that are in their group.

    Returns:
        of each group that is misled (``client.missing``) a row, and what to say of it.
    """
    size, partition = (table[name].take(pa.array(owned)) for name in ("size", "partition"))
    is_beyond = pc.fill_null(pc.greater_equal(partition, size), False).to_numpy()
    suspects = np.unique(task_rows.group[owned[is_beyond]])
    rows: list[int] = []
    details: list[str | None] = []
    for group in suspects.tolist():
        of_group = np.flatnonzero(task_rows.group == group)
        state = _state(table.take(pa.array(of_group)).to_pylist())
        outcome = None if state is None else predict_group(state)
        if outcome is not None and outcome.is_misled:
            prefix = "Kafka's client throws: " if outcome.verdict in FAILING else ""
            rows.append(int(of_group[0]))
            details.append(f"{prefix}{outcome.detail}")
    return np.array(rows, np.int64), details


def is_sticky(assignor: pa.ChunkedArray, group: Longs) -> Flags:
    """Return for each row whether some row of its group names an assignor that looks at claims."""
    named = pc.fill_null(pc.is_in(assignor, value_set=pa.array(STICKY)), False).to_numpy()
    is_named: Flags = np.isin(group, np.unique(group[named]))
    return is_named


def _state(rows: Sequence[dict[str, Any]]) -> GroupState | None:
    """Read a group; None where its assignor does not look at claims, or rows have no meaning."""
    members = {row["member_id"]: row for row in rows if row["kind"] == MEMBER}
    assignor = min((row["assignor"] for row in members.values() if row["assignor"]), default="")
    is_usable = len(members) == sum(row["kind"] == MEMBER for row in rows)
    is_usable &= all(members) and all(row["group_type"] != CONSUMER for row in members.values())
    if assignor not in STICKY or not is_usable:
        return None
    names = list(members)
    order = [names[place] for place in sort_as_java(names)]
    order.sort(key=lambda name: _number(members[name]["member_seq"]))
    topics = {row["topic"]: row for row in rows if row["kind"] == SUBSCRIBED and row["is_known"]}
    sizes = [row["size"] for row in topics.values()]
    if max(sizes, default=0) > PARTITIONS_OF_A_TOPIC or sum(sizes) > PARTITIONS_OF_A_GROUP:
        return None
    place = {name: number for number, name in enumerate(order)}
    claims = [
        (place[row["member_id"]], row["topic"], row["partition"])
        for row in rows
        if row["kind"] == OWNED and row["member_id"] in place and row["partition"] is not None
    ]
    generations = [_number(members[name]["generation"]) for name in order]
    leading = (n for n, name in enumerate(order) if members[name]["is_leader"])
    leader = next(leading, None)
    families = [members[name]["client"] or JAVA for name in order]
    clients, member_clients = libraries(assignor, families, leader)
    seqs = {members[name]["member_seq"] for name in order}
    return GroupState(
        assignor=assignor,
        clients=clients,
        member_clients=member_clients,
        leader=leader,
        member_ids=order,
        subscriptions=[json.loads(members[name]["texts"] or "[]") for name in order],
        topics=list(topics),
        num_partitions=sizes,
        member_racks=[members[name]["rack_id"] for name in order],
        member_instances=[members[name]["group_instance_id"] for name in order],
        generations=generations,
        field_generations=generations,
        replica_racks=[json.loads(row["racks"] or "null") for row in topics.values()],
        is_order_known=None not in seqs and len(seqs) == len(order),
    ).with_claims(claims)


def _number(value: int | None) -> int:
    return -1 if value is None else value
