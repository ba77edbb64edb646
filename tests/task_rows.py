"""Groups as the rows that a task is given, without Spark: kernels are tested by the thousand."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from tests.kafka.oracle import Group

SCHEMA = pa.schema(
    {
        "cluster_id": pa.string(),
        "group_id": pa.string(),
        "kind": pa.int8(),
        "member_id": pa.string(),
        "topic": pa.string(),
        "number": pa.int64(),
        "place": pa.int64(),
        "list_number": pa.int64(),
        "texts": pa.string(),
    }
)
"""What ``rows.fold`` gives."""
MEASURED = pa.schema(
    {
        "cluster_id": pa.string(),
        "group_id": pa.string(),
        "kind": pa.int8(),
        "member_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int64(),
        "rack_id": pa.string(),
        "texts": pa.string(),
        "size": pa.int64(),
    }
)
"""What ``task_rows.rows`` gives, for the measures."""
Row = dict[str, Any]


def rows_of(
    group: Group,
    name: str,
    client: str | None = None,
    *,
    is_leader_known: bool = True,
    has_positions: bool = False,
) -> Iterable[Row]:
    """What ``rows.fold`` makes of a group; its members are in JoinGroup order, the first leads.

    With ``has_positions`` what a member owns is in the order of its list.
    """
    key: Row = {"cluster_id": "", "group_id": name, "number": 0, "place": 0, "list_number": 0}
    lists: dict[tuple[str, ...], int] = {}
    for place, member in enumerate(group.members):
        number = lists.setdefault(tuple(member.topics), len(lists))
        generation = -1 if member.generation is None else member.generation
        texts = [member.group_instance_id, member.rack_id, group.assignor]
        if client is not None:
            texts += [None, client, "true" if is_leader_known and place == 0 else None]
        yield key | {
            "kind": MEMBER,
            "member_id": member.member_id,
            "number": generation,
            "place": place,
            "list_number": number,
            "texts": json.dumps(texts),
        }
        for position, (topic, partition) in enumerate(member.owned):
            yield key | {
                "kind": CLAIM,
                "place": position if has_positions else 0,
                "member_id": member.member_id,
                "topic": topic,
                "number": partition,
            }
    for topics, number in lists.items():
        yield key | {
            "kind": SUBSCRIPTION,
            "list_number": number,
            "texts": json.dumps(list(topics)),
        }
    for topic, size in group.topics.items():
        count = size if isinstance(size, int) else len(size)
        racks = None if isinstance(size, int) else json.dumps([list(of) for of in size])
        if count and any(topic in member.topics for member in group.members):
            yield key | {"kind": TOPIC, "topic": topic, "number": count, "texts": racks}


def name_of(number: int) -> str:
    """The group_id of the group at a place."""
    return f"g{number:06d}"


def table_of(groups: Sequence[Group]) -> pa.Table:
    """All groups, named by their places, as the table of one task."""
    rows = [row for number, group in enumerate(groups) for row in rows_of(group, name_of(number))]
    return pa.Table.from_pylist(rows, SCHEMA)


def assigned_of(
    tables: Iterable[pa.Table], groups: Sequence[Group]
) -> list[dict[str, set[tuple[str, int]]]]:
    """What each member of each group is given."""
    result: list[dict[str, set[tuple[str, int]]]] = [
        {member.member_id: set() for member in group.members} for group in groups
    ]
    for row in each_partition(tables):
        partitions = result[int(row["group_id"][1:])][row["member_id"]]
        assert (row["topic"], row["partition"]) not in partitions
        partitions.add((row["topic"], row["partition"]))
    return result


def each_partition(tables: Iterable[pa.Table]) -> Iterator[Row]:
    """The rows that lists of ``named.LISTS`` stand for."""
    for table in tables:
        for row in table.to_pylist():
            first, members = row["first_partition"], row["member_ids"]
            for partition, member_id in enumerate(members, first):
                if member_id is not None:
                    key = {name: row[name] for name in ("cluster_id", "group_id", "topic")}
                    yield key | {"partition": partition, "member_id": member_id}


def as_table(rows: Iterable[Row], schema: pa.Schema = MEASURED) -> pa.Table:
    """Rows whose ``texts`` are lists, as a task is given them: lists as JSON."""
    columns = [
        {**row, "texts": json.dumps(row["texts"])} if row.get("texts") is not None else row
        for row in rows
    ]
    return pa.Table.from_pylist(columns, schema)
