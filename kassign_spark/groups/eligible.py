"""One row per group, one row per topic: the inputs folded once, and what the checks need to know.

Partitions stay counts. A topic read by five hundred groups is never expanded five hundred times,
and a group whose members subscribe alike costs as much as its members plus its topics, not their
product: its topics are kept once.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.expressions import java_string_order
from kassign_spark.groups.paths import Paths
from kassign_spark.schemas import GROUP_KEY


class Eligible(NamedTuple):
    """The input of a strategy: checked frames that all have ``cluster_id``, never null.

    Attributes:
        members: ``schemas.MEMBERS``.
        topics: cluster_id string, topic string, num_partitions int >= 1, and with ``has_racks``
            replica_racks `array<array<string>>`?; one row per topic.
        owned: ``schemas.OWNED``, or None where the caller gave none.
        heterogeneous: whether members of some group may subscribe to different topics.
        most_topics: no group whose members subscribe alike subscribes to more.
        most_partitions: no such group has more.
        most_edges: no group has more pairs of a member and a topic that it subscribes to.
        tasks: how many tasks to cut work over all groups into.
        one_list: the members of each group list the same topics, in the same order.
        one_folds: one task folds members and topics sooner than several that shuffle them.
        is_one_group: there is a single group, of which one task may read all.
        has_racks: whether some member has a rack, and racks of replicas may be known.
        had_patterns: some members subscribed by a pattern, which was resolved.
        has_clients: some member names the client library that it runs.
        paths: where to record which engine computes the groups; None: nowhere.
    """

    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None
    heterogeneous: bool
    most_topics: int
    most_partitions: int
    most_edges: int
    tasks: int
    one_list: bool = False
    one_folds: bool = False
    is_one_group: bool = False
    has_racks: bool = False
    had_patterns: bool = False
    has_clients: bool = False
    paths: Paths | None = None

    @property
    def groups(self) -> DataFrame:
        """Return members folded into one row per group; runs no job. Tasks do not need it.

        Returns:
            One row per group: cluster_id string, group_id string,
            members `array<string>`: member ids in MemberInfo order,
            topics `array<string>`: what every member of a homogeneous group subscribes to, sorted,
            is_homogeneous boolean: all members subscribe to the same topics, however listed,
            assignor string: the least that a member names, null where none names one,
            has_racks boolean: some member has a rack.
        """
        members = self.members
        ordered = F.sort_array(F.collect_list(F.struct(*member_order(), "member_id")))
        if self.heterogeneous:
            # Once a member: an aggregate would put it in order again for each of its measures.
            members = members.withColumn("topics", F.sort_array(F.array_distinct("topics")))
            topics, is_homogeneous = "min(topics)", "coalesce(min(topics) = max(topics), false)"
        else:
            topics, is_homogeneous = "sort_array(array_distinct(any_value(topics)))", "true"
        return members.groupBy(*GROUP_KEY).agg(
            ordered["member_id"].alias("members"),
            F.expr(f"{topics} as topics"),
            F.expr(f"{is_homogeneous} as is_homogeneous"),
            F.expr("min(assignor) as assignor"),
            F.expr("bool_or(coalesce(length(rack_id) > 0, false)) as has_racks"),
        )

    @property
    def batches(self) -> int:
        """Return the number of tasks for groups that fit in one task each."""
        return 1 if self.is_one_group else self.tasks

    def note_path(self, path: str, rounds: Mapping[str, int] | None = None) -> None:
        """Record the engine that computes all of these groups, and its rounds by kind."""
        if self.paths is not None:
            self.paths.note(self.groups, path)
            self.paths.rounds.update(rounds or {})


def restrict(
    eligible: Eligible, assignors: Collection[str], known_assignors: Collection[str]
) -> Eligible:
    """Keep the groups that use one of ``assignors``; all groups use ``known_assignors``."""
    if set(known_assignors) <= set(assignors):
        return eligible
    uses_one = F.col("assignor").isin(*sorted(assignors))
    return restrict_to_members(eligible, eligible.members.where(uses_one))


def restrict_to_members(eligible: Eligible, members: DataFrame) -> Eligible:
    """Keep the groups of ``members``, which are some of theirs, and what is owned in these."""
    owned = eligible.owned
    if owned is not None:
        keys = members.select(*GROUP_KEY).distinct()
        owned = owned.join(keys, on=list(GROUP_KEY), how="left_semi")
    return eligible._replace(members=members, owned=owned)


def member_order() -> tuple[Column, Column, Column]:
    """Order members as ``AbstractPartitionAssignor.MemberInfo.compareTo`` does.

    Static members come first, by ``group.instance.id``; the others follow, by ``member.id``.

    Returns:
        sort keys over the columns of ``schemas.MEMBERS``.
    """
    return (
        F.col("group_instance_id").isNull().alias("is_dynamic"),
        java_string_order(F.col("group_instance_id")).alias("instance_order"),
        java_string_order(F.col("member_id")).alias("member_order"),
    )
