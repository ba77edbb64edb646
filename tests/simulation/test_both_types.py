"""Groups of both types in one call of ``simulate``: as the kernel tells it."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark import simulate
from kassign_spark.errors import InputError
from kassign_spark.schemas import CLUSTER_ID, MEMBERS, OWNED, TARGET, TOPICS, Table
from tests.simulation.task_events import Row, simulated
from tests.simulation.test_simulate import events_frame
from tests.simulation.test_simulated_consumer_groups import group_of


def frame(spark: SparkSession, table: Table, rows: list[Row]) -> DataFrame:
    """Without clusters."""
    fields = [field for field in table.columns if field.name != CLUSTER_ID]
    data = [tuple(row.get(field.name) for field in fields) for row in rows]
    return spark.createDataFrame(data, StructType(fields))


def tables() -> dict[str, list[Any]]:
    """Three groups: of the new protocol by names, by a regex, and a classic one."""
    by_name, target = group_of(3)
    other, other_target = group_of(2, group_id="r", topics=None, topics_regex="t|u.*")
    other_target = [{**row, "group_id": "r"} for row in other_target]
    classic = [
        {"group_id": "c", "member_id": f"m{i}", "topics": ["t"], "assignor": "range"}
        for i in range(2)
    ]
    topics = [
        {"topic": "t", "num_partitions": 6, "topic_id": "J6V0K9wQRmmjVk2nq0Y1zA"},
        {"topic": "u", "num_partitions": 3, "topic_id": "b1Xw2dQeT0u3s5gqk7Yp8g"},
    ]
    targets = [*target, *other_target]
    owned = [{k: v for k, v in row.items() if k != "position"} for row in targets]
    kinds: list[dict[str, Any]] = [
        {"group_id": "g", "kind": "member_joins", "member_id": "new"},
        {"group_id": "r", "kind": "member_leaves", "member_id": "m1"},
        {"kind": "topic_appears", "topic": "u2", "num_partitions": 4},
        {"kind": "topic_grows", "topic": "t", "num_partitions": 8},
        {"group_id": "g", "kind": "subscription_changes", "topics_regex": "u2?"},
        {"group_id": "g", "kind": "group_settings_change", "session_timeout_ms": 60000},
        {"group_id": "g", "kind": "member_crashes", "member_id": "m0"},
        {"kind": "topic_changes_racks", "topic": "t", "replica_racks": [["a"]]},
    ]
    events = [{**event, "event": number} for number, event in enumerate(kinds)]
    return {
        "members": [*by_name, *other, *classic],
        "topics": topics,
        "owned": owned,
        "events": events,
        "target": targets,
    }


def frames(spark: SparkSession, of: dict[str, list[Any]]) -> list[DataFrame]:
    schemas = {"members": MEMBERS, "topics": TOPICS, "owned": OWNED, "target": TARGET}
    made = {name: frame(spark, schema, of[name]) for name, schema in schemas.items()}
    made["events"] = events_frame(spark, of["events"])
    return [made[name] for name in ("members", "topics", "owned", "events", "target")]


def test_tasks_tell_what_the_kernel_tells(spark: SparkSession) -> None:
    tables_of_both = tables()
    *inputs, target = frames(spark, tables_of_both)
    rows = simulate(*inputs, target=target).collect()
    names = [name for name in rows[0].asDict() if name not in ("line", "problem")]
    kernel = simulated(
        *(tables_of_both[name] for name in ("members", "topics", "owned", "events")),
        tables_of_both["target"],
    )
    assert all(row["problem"] is None for row in kernel)
    assert Counter(tuple(row[n] for n in names) for row in rows) == Counter(
        tuple(row[n] for n in names) for row in kernel
    )
    assert {row.protocol for row in rows} == {"consumer", "eager"}
    assert max(row.group_epoch or 0 for row in rows) > 12


@pytest.mark.parametrize(
    ("table", "row", "says"),
    [
        pytest.param(
            "members",
            {"assignor": "sticky"},
            "the coordinator has no such assignor",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "members",
            {"topics_regex": "(?=a)"},
            "INVALID_REGULAR_EXPRESSION",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "topics", {"topic_id": "short"}, "is not a topic id of Kafka", marks=pytest.mark.slow
        ),
        ("target", {"position": 1}, "position: 1 appears 2 times"),
        ("events", {"topics_regex": "a++"}, "INVALID_REGULAR_EXPRESSION"),
        ("events", {"stop": "quits"}, 'unknown stop "quits"'),
    ],
)
def test_bad_input(spark: SparkSession, table: str, row: Row, says: str) -> None:
    tables_of_both = tables()
    tables_of_both[table][0] = {**tables_of_both[table][0], **row}
    if row.get("stop"):
        tables_of_both[table][0]["kind"] = "member_leaves"
    *inputs, target = frames(spark, tables_of_both)
    with pytest.raises(InputError) as caught:
        simulate(*inputs, target=target)
    assert says in str(caught.value)
