"""Groups of the tests as the table that a task is given of them."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from tests.oracles.mixed_groups import MixedGroup
from tests.task_rows import SCHEMA


def table_of(groups: Sequence[MixedGroup], assignors: Mapping[str, str]) -> pa.Table:
    """Rows as ``rows.fold`` makes them; each group is alone in a cluster of its own name."""
    rows = []
    for group in groups:
        key = {"cluster_id": group.name, "group_id": group.name, "number": 0, "place": 0}
        key["list_number"] = 0
        lists: dict[tuple[str, ...], int] = {}
        for member, topics in group.subscriptions.items():
            number = lists.setdefault(topics, len(lists) + 1)
            texts = json.dumps([None, None, assignors[group.name]])
            rows.append(
                {**key, "kind": MEMBER, "member_id": member, "number": 5, "place": -1,
                 "list_number": number, "texts": texts}
            )  # fmt: skip
        for topics, number in lists.items():
            rows.append(
                {**key, "kind": SUBSCRIPTION, "list_number": number, "texts": json.dumps(topics)}
            )
        for topic, count in group.partitions.items():
            if count and group.subscribers(topic):
                rows.append({**key, "kind": TOPIC, "topic": topic, "number": count})
        for (topic, partition), member in group.owned.items():
            rows.append(
                {**key, "kind": CLAIM, "topic": topic, "number": partition, "member_id": member}
            )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
