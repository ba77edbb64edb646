"""Small tables for tests: rows as dicts, columns as they come, types as declared."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from kassign_spark.schemas import ASSIGNMENT, MEMBERS, OWNED, TOPIC_PARTITIONS, TOPICS, Table

Rows = Sequence[Mapping[str, Any]]


def table(spark: SparkSession, declared: Table, rows: Rows, *, wide: bool = False) -> DataFrame:
    """A frame with the columns that some row has, or all that must be there.

    Args:
        spark: The session.
        declared: Gives the types; every column is nullable here, so that tests can break rules.
        rows: May leave columns out.
        wide: Whole numbers as ``bigint``.
    """
    names = {name for row in rows for name in row}
    fields = [
        StructField(
            f.name, LongType() if wide and isinstance(f.dataType, IntegerType) else f.dataType
        )
        for f in declared.columns
        if f.name in names or not f.nullable or f.name == "topics"
    ]
    assert names <= {f.name for f in fields}, names
    return spark.createDataFrame(
        [tuple(row.get(f.name) for f in fields) for row in rows], StructType(fields)
    )


def members(spark: SparkSession, rows: Rows, **options: bool) -> DataFrame:
    return table(spark, MEMBERS, rows, **options)


def topics(spark: SparkSession, rows: Rows | Mapping[str, int], **options: bool) -> DataFrame:
    """From rows, or from names and sizes; rows with ``partition`` make the other form."""
    if isinstance(rows, Mapping):
        rows = [{"topic": name, "num_partitions": size} for name, size in rows.items()]
    by_partition = any("partition" in row for row in rows)
    return table(spark, TOPIC_PARTITIONS if by_partition else TOPICS, rows, **options)


def owned(spark: SparkSession, rows: Rows, **options: bool) -> DataFrame:
    return table(spark, OWNED, rows, **options)


def owner_rows(text: str, group_id: str, **more: Any) -> list[dict[str, Any]]:
    """Rows of ``owned`` or ``assignment`` from ``"C0: t0p0 t0p1; C1: t1p0"``."""
    rows = []
    for part in filter(None, text.split(";")):
        member_id, _, tps = part.strip().partition(":")
        for tp in tps.split():
            topic, _, partition = tp.rpartition("p")
            rows.append(
                {
                    **more,
                    "group_id": group_id,
                    "member_id": member_id,
                    "topic": topic,
                    "partition": int(partition),
                }
            )
    return rows


def assignment(spark: SparkSession, *groups: list[dict[str, Any]]) -> DataFrame:
    return table(spark, ASSIGNMENT, [row for group in groups for row in group])


def local_copy(frame: DataFrame) -> DataFrame:
    """The rows themselves: what is built upon them does not compute them again."""
    return frame.sparkSession.createDataFrame(frame.collect(), frame.schema)


def final_assignment(steps: DataFrame) -> DataFrame:
    """Return what members own after the last round of ``rebalance``."""
    keys = [name for name in ("cluster_id", "group_id") if name in steps.columns]
    last = f"max(round) over (partition by {', '.join(keys)}) as last"
    owned = steps.selectExpr("*", last).where("round = last and action in ('retained', 'assigned')")
    return owned.select(*keys, "member_id", "topic", "partition")
