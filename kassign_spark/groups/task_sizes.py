"""Choose the number of tasks of a measure; it never depends on ``spark.sql.shuffle.partitions``."""

from pyspark.sql import DataFrame

from kassign_spark.groups.rows import tasks_for
from kassign_spark.inputs.client_families import CLIENT_COLUMNS
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.sessions import cores, estimated_bytes
from kassign_spark.spark.spark_versions import union_by_name

_SMALL_BYTES = 1 << 20
"""Below that nobody counts: even at a byte a row, which Parquet does not reach, a task holds it."""
ONE_TASK_BYTES = 1 << 18
"""Up to which, by Spark's own estimate, one task takes all tables from the beginning."""

ONE_FOLD_BYTES = 1 << 24
"""Up to which one task folds a table into a row per group, or a topic: a shuffle costs more."""
ONE_FOLD_EDGES = 2_000_000
"""The same for pairs of a member and a topic of its list, where they are needed one by one."""

ONE_GROUP_BYTES = 1 << 25
"""Up to which one task reads the tables of a single group, without a shuffle.

With one, assign of a group of 1,000,000 owned partitions whose subscriptions differ takes 1.12
times as long, and others at most 1.07 times.
"""


def table_bytes(frame: DataFrame) -> float:
    """Return Spark's estimate of the bytes of a conforming table, without the columns of clients.

    A column that the caller's table lacks counts as if it were there: with those, assign of 10,000
    groups folds members in several tasks, and takes 1.1 to 1.4 times as long.
    """
    return estimated_bytes(frame.drop(*CLIENT_COLUMNS))


def tasks_of(*tables: DataFrame | None) -> int:
    """Return the number of tasks for tables of a call, which have ``GROUP_KEY``; None: absent.

    Runs a query where Spark's own estimate does not say that they are small.
    """
    frames = [table for table in tables if table is not None]
    session = frames[0].sparkSession
    size = sum(map(table_bytes, frames))
    if size <= _SMALL_BYTES:
        return 1 if size <= ONE_TASK_BYTES else cores(session)
    keys = (frame.select(*GROUP_KEY) for frame in frames)
    return tasks_for(union_by_name(keys).count(), session)
