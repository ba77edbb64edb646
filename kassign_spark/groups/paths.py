"""Record which engine computed each group's assignment.

A strategy says so of the groups that it is given; they are the same with and without a listener.
"""

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.spark_versions import union_by_name

WINDOWS = "windows"
"""Window functions over DataFrames."""
TASK = "task"
"""The whole group inside one task."""
ROUNDS = "rounds"
"""Blocks of a group in rounds over DataFrames, which find connected components as well."""
ROUNDS_AND_GRAPHFRAMES = "rounds, components by graphframes"
OWN = "own"
"""A strategy of the caller's."""


class Paths:
    """The recorded engines, group by group.

    Attributes:
        misled: groups whose claims mislead Kafka's client, so that it does something else than the
            plan: the columns of ``exact.MISLED``; None: there is no such claim.
        has_hidden_topics: members own partitions of topics without a partition in the table topics.
        had_patterns: as in ``Eligible``.
        rounds: how many rounds over DataFrames there were, by what they were for.
    """

    def __init__(self) -> None:
        self._groups_by_path: list[tuple[DataFrame, str]] = []
        self.rounds: Counter[str] = Counter()
        self.misled: DataFrame | None = None
        self.has_hidden_topics = False
        self.had_patterns = True

    def note(self, groups: DataFrame, path: str) -> None:
        """Record the engine of all these groups: one row per group, with ``GROUP_KEY``."""
        self._groups_by_path.append((groups.select(*GROUP_KEY), path))

    def without_patterns(self, members: DataFrame) -> DataFrame:
        """Drop the column of patterns where no member has one: nothing has to resolve it again.

        That saves ``assign`` of ten groups, in a session that has run it before, a fifth of its
        jobs and 15 % of its time (7.9 -> 6.7 s).
        """
        return members if self.had_patterns else members.drop("topics_pattern")

    def only(self) -> str | None:
        """Return the path that all groups share; None if they differ."""
        paths = {path for _, path in self._groups_by_path}
        return paths.pop() if len(paths) == 1 else None

    def frame(self) -> DataFrame | None:
        """Return all groups: cluster_id, group_id and path strings; None: none was noted."""
        frames = (groups.withColumn("path", F.lit(path)) for groups, path in self._groups_by_path)
        return union_by_name(frames) if self._groups_by_path else None
