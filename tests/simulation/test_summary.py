"""Paused, moved, stopped: counted from steps that are written out."""

from pyspark.sql import SparkSession

from kassign_spark.results import RESULTS
from kassign_spark.simulation.simulate import summarize_events

_COLUMNS = ("group_id", "event", "round", "member_id", "partition", "action")
_STEPS = [
    ("g", 1, 0, "C0", 0, "lost"),
    ("g", 1, 1, "C1", 1, "retained"),
    ("g", 1, 1, "C1", 2, "revoked"),
    ("g", 1, 1, "C1", 0, "assigned"),
    ("g", 1, 1, "C2", 2, "withheld"),
    ("g", 1, 2, "C1", 0, "retained"),
    ("g", 1, 2, "C1", 1, "retained"),
    ("g", 1, 2, "C2", 2, "assigned"),
    ("g", 2, None, None, None, None),
    ("h", 1, 1, "C0", 0, "revoked"),
    ("h", 1, 1, "C1", 0, "withheld"),
]


def test_counts(spark: SparkSession) -> None:
    columns = RESULTS["simulate"]
    rows = [{"stage": 1, "topic": "t", **dict(zip(_COLUMNS, row, strict=True))} for row in _STEPS]
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in columns) for row in rows],
        ", ".join(f"{name} {of}" for name, of in columns.items()),
    )
    result = {(r.group_id, r.event): r for r in summarize_events(frame).collect()}
    counts = {
        key: (r.rounds, r.partition_count, r.moved_count, r.paused_count, r.stopped_count)
        for key, r in result.items()
    }
    assert counts == {
        ("g", 1): (2, 3, 2, 1, 1),
        ("g", 2): (0, 0, 0, 0, 0),
        ("h", 1): (1, 0, 0, 1, 0),
    }
    assert {key: r.settles for key, r in result.items() if not r.settles} == {("h", 1): False}
    assert result["g", 1].paused_member_count == 1
