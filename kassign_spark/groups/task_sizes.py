"""How many tasks a measure is cut into, and which groups are too large for one of them.

Neither hangs on ``spark.sql.shuffle.partitions``. Where Spark's own estimate says that the tables
are small, nothing is counted; else one query counts the rows of each group.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.rows import tasks_for
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.sessions import cores, estimated_bytes

MOST_ROWS_OF_A_GROUP = 2_000_000
"""Rows of a group, of the tables together, up to which one task takes the whole group."""

_SMALL_BYTES = 1 << 20
"""Below that nobody counts: even at a byte a row, which Parquet does not reach, a task holds it."""
ONE_TASK_BYTES = 1 << 18
"""Up to which, by Spark's own estimate, one task takes all tables from the beginning."""

ONE_FOLD_BYTES = 1 << 24
"""Up to which one task folds a table into a row a group, or a topic: a shuffle costs more."""
ONE_FOLD_EDGES = 2_000_000
"""The same for pairs of a member and a topic of its list, where they are needed one by one."""

ONE_GROUP_BYTES = 1 << 25
"""Up to which one task reads the tables of a single group: sooner than they are shuffled."""


class TaskSizes(NamedTuple):
    """How to cut.

    Attributes:
        tasks: into how many tasks.
        is_large: over the columns of ``GROUP_KEY``, never null: the group has more rows than a
            task takes; None where no group has.
    """

    tasks: int
    is_large: Column | None


def task_sizes(frames: Sequence[DataFrame], most_rows: int = MOST_ROWS_OF_A_GROUP) -> TaskSizes:
    """Look at the tables of a call, which have ``GROUP_KEY``; runs a query if they may be large.

    ``most_rows`` is less where a test forces the border.
    """
    session = frames[0].sparkSession
    size = sum(map(estimated_bytes, frames))
    if most_rows == MOST_ROWS_OF_A_GROUP and size <= _SMALL_BYTES:
        return TaskSizes(1 if size <= ONE_TASK_BYTES else cores(session), None)
    keys = [frame.select(*GROUP_KEY) for frame in frames]
    counts = reduce(DataFrame.unionByName, keys).groupBy(*GROUP_KEY).agg(F.count("*").alias("rows"))
    large = F.when(F.col("rows") > most_rows, F.struct(*GROUP_KEY))
    # As many large groups as there are times two million rows: few, whatever the fleet.
    found = counts.agg(F.sum("rows").alias("rows"), F.collect_list(large).alias("large")).first()
    assert found is not None
    rows = found["rows"] or 0
    tasks = tasks_for(rows, session)
    if not found["large"]:
        return TaskSizes(tasks, None)
    keys_of_large = [F.struct(*map(F.lit, group)) for group in found["large"]]
    group_id = F.coalesce("group_id", F.lit(""))  # a null one is in no group, and so not large
    return TaskSizes(tasks, F.struct(GROUP_KEY[0], group_id).isin(*keys_of_large))
