"""Which way each group's assignment was computed, kept for whoever asks.

A strategy says so of the groups that it is given; they are the same with and without a listener.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import GROUP_KEY

WINDOWS = "windows"
"""Window functions over DataFrames."""
TASK = "task"
"""The whole group inside one task."""
SLICES = "slices"
"""Slices of the group's partitions, each in a task of its own."""
COUNTS = "counts"
"""The group's counts inside one task, its partitions named by steps over DataFrames."""
OWN = "own"
"""A strategy of the caller's."""


def components_path(by: str, rounds: int, settled_in: int) -> str:
    """Name the way of a group that is cut into connected components, with the rounds that it took.

    Such as `components by graphframes` or `components by rounds (3), settled in rounds (41)`: the
    latter settled those components that are too large for a task.
    """
    found = f"components by {by}" + (f" ({rounds})" if rounds else "")
    return found + (f", settled in rounds ({settled_in})" if settled_in else "")


class Paths:
    """What was said, group by group.

    Attributes:
        misled: groups whose claims mislead Kafka's client, so that it does something else than the
            plan: the columns of ``exact.MISLED``; None: there is no such claim.
        has_hidden_topics: as of ``Eligible``.
    """

    def __init__(self) -> None:
        self._said: list[tuple[DataFrame, str | None]] = []
        self.misled: DataFrame | None = None
        self.has_hidden_topics = False

    def note(self, groups: DataFrame, path: str) -> None:
        """Take note of the path of all these groups: one row a group, with ``GROUP_KEY``."""
        self._said.append((groups.select(*GROUP_KEY), path))

    def note_each(self, groups: DataFrame) -> None:
        """Take note of groups that have their own: ``GROUP_KEY`` and path string."""
        self._said.append((groups.select(*GROUP_KEY, "path"), None))

    def only(self) -> str | None:
        """The path of all groups; None where it is not the same."""
        paths = {path for _, path in self._said}
        return paths.pop() if len(paths) == 1 else None

    def frame(self) -> DataFrame | None:
        """All groups: cluster_id string, group_id string, path string; None: nothing was said."""
        frames = (
            groups if path is None else groups.withColumn("path", F.lit(path))
            for groups, path in self._said
        )
        return reduce(DataFrame.unionByName, frames) if self._said else None
