"""Groups in which claims of partitions that do not exist mislead Kafka's client, inside a task."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import numbers_of
from kassign_spark.client.group_state import FAILING
from kassign_spark.groups import read, task_rows
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.limits import PARTITIONS_OF_A_GROUP, PARTITIONS_OF_A_TOPIC
from kassign_spark.plans.exact import misled_groups

STICKY = ("sticky", "cooperative-sticky")
"""The assignors that look at claims."""
_DEFAULTS = {"cluster_id": "", "number": -1, "place": -1, "list_number": 0}


def misled_in_task(
    table: pa.Table, rows: task_rows.TaskTable, owned: Longs
) -> tuple[Longs, list[str | None]]:
    """Find groups whose members claim what does not exist, and whose client is misled by that.

    Args:
        table: the columns that ``tasks.problems_arrow`` takes.
        rows: the same, read.
        owned: the rows of claims of members that are in their group.

    Returns:
        of each group that is misled (``exact.misled_groups``) a row, and what to say of it.
    """
    size, partition = (table[name].take(pa.array(owned)) for name in ("size", "partition"))
    is_beyond = pc.fill_null(pc.greater_equal(partition, size), False).to_numpy()
    places: list[int] = []
    group_rows: list[dict[str, Any]] = []
    for group in np.unique(rows.group[owned[is_beyond]]).tolist():
        of_group = np.flatnonzero(rows.group == group)
        # Numbered in place of its name, which finds its row again.
        settings = _DEFAULTS | {"group_id": str(len(places))}
        places.append(int(of_group[0]))
        for row in _group_rows(table.take(pa.array(of_group)).to_pylist()):
            group_rows.append(settings | {key: v for key, v in row.items() if v is not None})
    if not group_rows:
        return np.zeros(0, np.int64), []
    batch, claims = read.read_batch(pa.Table.from_pylist(group_rows, read.ROWS))
    numbers = [int(name) for name in batch.group_names.take(pa.array(batch.group - 1)).to_pylist()]
    misled = misled_groups(batch, claims, batch.generation, numbers_of(batch, None))
    details = [
        f"Kafka's client throws: {detail}" if verdict in FAILING else detail
        for verdict, detail in misled.values()
    ]
    return np.array([places[numbers[group]] for group in misled], np.int64), details


def is_sticky(assignor: pa.ChunkedArray, group: Longs) -> Flags:
    """Return for each row whether some row of its group names an assignor that looks at claims."""
    has_sticky = pc.fill_null(pc.is_in(assignor, value_set=pa.array(STICKY)), False).to_numpy()
    is_named: Flags = np.isin(group, np.unique(group[has_sticky]))
    return is_named


def _group_rows(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a group's rows as ``rows.fold`` has them; none if its claims do not count.

    They do not where its assignor does not look at them, or rows have no meaning.
    """
    of_members = [row for row in rows if row["kind"] == task_rows.MEMBER]
    members = {row["member_id"]: row for row in of_members}
    assignor = min((row["assignor"] for row in of_members if row["assignor"]), default="")
    is_classic = all(row["group_type"] != CONSUMER for row in of_members)
    is_usable = is_classic and all(members) and len(members) == len(of_members)
    topics = {
        row["topic"]: row for row in rows if row["kind"] == task_rows.SUBSCRIBED and row["is_known"]
    }
    sizes = [row["size"] for row in topics.values()]
    is_small = (
        max(sizes, default=0) <= PARTITIONS_OF_A_TOPIC and sum(sizes) <= PARTITIONS_OF_A_GROUP
    )
    if assignor not in STICKY or not is_usable or not is_small:
        return
    lists = dict.fromkeys(row["texts"] or "[]" for row in of_members)
    list_numbers = {texts: number for number, texts in enumerate(lists)}
    for row in of_members:
        texts = [row["group_instance_id"], row["rack_id"], assignor, None, row["client"]]
        yield {
            "kind": read.MEMBER,
            "member_id": row["member_id"],
            "number": row["generation"],
            "place": row["member_seq"],
            "list_number": list_numbers[row["texts"] or "[]"],
            "texts": json.dumps([*texts, "true" if row["is_leader"] else None]),
        }
    for listed, number in list_numbers.items():
        yield {"kind": read.SUBSCRIPTION, "list_number": number, "texts": listed}
    for name, row in topics.items():
        yield {"kind": read.TOPIC, "topic": name, "number": row["size"], "texts": row["racks"]}
    for row in rows:
        if row["kind"] == task_rows.OWNED and row["partition"] is not None:
            claim = {name: row[name] for name in ("member_id", "topic")}
            yield {"kind": read.CLAIM, **claim, "number": row["partition"], "place": 0}
