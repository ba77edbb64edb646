"""Groups and their events as the rows that a task is given, without Spark."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from kassign_spark.inputs.patterns import INTERNAL_TOPICS
from kassign_spark.schemas import MEMBERS
from kassign_spark.simulation.events import EVENTS, TOPIC_KINDS
from kassign_spark.simulation.group_reading import EVENT, PATTERN, REGEX, TARGET
from kassign_spark.simulation.kernel import simulate_arrow
from kassign_spark.simulation.timeouts import Timeouts
from tests.task_rows import SCHEMA

Row = Mapping[str, Any]
_MEMBER_TEXTS = ("group_instance_id", "rack_id", "assignor", "topics_regex")


def simulated(
    members: Sequence[Row],
    topics: Sequence[Row],
    owned: Sequence[Row],
    events: Sequence[Row],
    target: Sequence[Row] = (),
) -> list[dict[str, Any]]:
    """What ``simulate_arrow`` makes of the tables of one cluster, all groups in one task."""
    tables = simulate_arrow(task_table(members, topics, owned, events, target))
    return [row for table in tables for row in table.to_pylist()]


def task_table(
    members: Sequence[Row],
    topics: Sequence[Row],
    owned: Sequence[Row],
    events: Sequence[Row],
    target: Sequence[Row] = (),
) -> pa.Table:
    """What ``fold_events`` makes of the tables of one cluster, more topics than needed."""
    return pa.Table.from_pylist(list(_rows(members, topics, owned, events, target)), SCHEMA)


def _rows(
    members: Sequence[Row],
    topics: Sequence[Row],
    owned: Sequence[Row],
    events: Sequence[Row],
    target: Sequence[Row],
) -> Iterable[dict[str, Any]]:
    zeros = {"cluster_id": "", "number": 0, "place": 0, "list_number": 0}
    ever = sorted({row["topic"] for row in [*topics, *events] if row.get("topic")})
    lists: dict[Any, int] = {}
    for row in members:
        member = {name: row.get(name) for name in MEMBERS.columns.names}
        key = {**zeros, "group_id": member["group_id"]}
        listed, pattern = member["topics"], member["topics_pattern"]
        subscription = (key["group_id"], None if listed is None else tuple(listed), pattern)
        if subscription not in lists:
            lists[subscription] = len(lists)
            more = {"texts": _json(listed), "topic": pattern, "list_number": lists[subscription]}
            yield {**key, "kind": SUBSCRIPTION, **more}
        yield {
            **key,
            "kind": MEMBER,
            "member_id": member["member_id"],
            "topic": member["group_type"],
            "number": -1 if member["generation"] is None else member["generation"],
            "place": -1 if member["member_seq"] is None else member["member_seq"],
            "list_number": lists[subscription],
            "texts": _json([*(member[n] for n in _MEMBER_TEXTS), None, None]),
        }
    for row in owned:
        yield {**zeros, **row, "kind": CLAIM, "number": row["partition"]}
    for row in target:
        more = {"number": row["partition"], "place": row["position"]}
        yield {**zeros, **row, "kind": TARGET, **more}
    here = {row["group_id"] for row in members}
    groups = sorted(here | {row["group_id"] for row in events if row.get("group_id")})
    patterns = {row["topics_pattern"] for row in [*members, *events] if row.get("topics_pattern")}
    regexes = {row["topics_regex"] for row in [*members, *events] if row.get("topics_regex")}
    for group in groups:
        key = {**zeros, "group_id": group}
        for row in topics:
            if row["num_partitions"]:
                more = {"topic": row["topic"], "number": row["num_partitions"]}
                more |= {"member_id": row.get("topic_id")}
                yield {**key, "kind": TOPIC, **more, "texts": _json(row.get("replica_racks"))}
        for regex in regexes:
            names = [name for name in ever if re.fullmatch(regex, name)]
            yield {**key, "kind": REGEX, "topic": regex, "texts": _json(names)}
        for pattern in patterns:
            matching = _json(_matching(pattern, ever))
            yield {**key, "kind": PATTERN, "topic": pattern, "texts": matching}
    for row in events:
        is_topic = row["kind"] in TOPIC_KINDS
        event = {
            **{name: row.get(name) for name in EVENTS.columns.names},
            "is_topic": is_topic,
            "is_hosted": bool(here),
        }
        for name, value in vars(Timeouts()).items():
            event[name] = value if event[name] is None else event[name]
        event["own_timeouts"] = [name for name in vars(Timeouts()) if row.get(name) is not None]
        for group in groups if is_topic else [row["group_id"]]:
            yield {**zeros, "group_id": group, "kind": EVENT, "texts": _json(event)}


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _matching(pattern: str, names: Sequence[str]) -> list[str] | None:
    """Patterns of the tests mean the same to Python and to Java."""
    try:
        return [n for n in names if re.fullmatch(pattern, n) and n not in INTERNAL_TOPICS]
    except re.error:
        return None
