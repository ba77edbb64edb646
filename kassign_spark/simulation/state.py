"""What a simulation carries from event to event, and what an event does to it."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.eligibility.racks import fold_racks
from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import Inputs
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.rounds import settle
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS, OWNED
from kassign_spark.simulation.events import RESTARTS

MEMBER_KEY = [*GROUP_KEY, "member_id"]
_DECLARED = MEMBERS.columns.names


class State(NamedTuple):
    """The fleet between two events; all have cluster_id, never null.

    Attributes:
        members: ``schemas.MEMBERS``, conforming, subscriptions as declared, and
            assignors array<string>: the member's list, resolved array<string>: the topics that it
            subscribes to now, is_away boolean: it was in the group, and is not now.
        topics: cluster_id string, topic string, num_partitions int, replica_racks.
        owned: ``schemas.OWNED``, conforming.
    """

    members: DataFrame
    topics: DataFrame
    owned: DataFrame


def sized_topics(eligible: Eligible, topics: DataFrame) -> DataFrame:
    """Give the topics with the racks of their replicas, also where no member has a rack yet.

    Args:
        eligible: what ``prepare`` made of ``topics``.
        topics: ``schemas.TOPICS`` or ``schemas.TOPIC_PARTITIONS``.
    """
    if "replica_racks" not in topics.columns:
        none = F.lit(None).cast("array<array<string>>")
        return eligible.topics.drop("replica_racks").withColumn("replica_racks", none)
    sizes = eligible.topics.drop("replica_racks")
    return sizes.join(fold_racks(topics), on=[CLUSTER_ID, "topic"], how="left")


def first_state(inputs: Inputs) -> State:
    """Check the inputs and make the state before all events; runs jobs.

    Raises:
        InputError: values that have no meaning; lists every one.
    """
    eligible = look(inputs, known_assignors=ASSIGNORS).eligible
    topics = sized_topics(eligible, inputs.topics)
    resolved = with_topics(inputs.members, inputs.topics)
    members = inputs.members.join(
        resolved.select(*MEMBER_KEY, F.col("topics").alias("resolved")), on=MEMBER_KEY, how="inner"
    ).select(
        *_DECLARED,
        F.array("assignor").alias("assignors"),
        "resolved",
        F.lit(False).alias("is_away"),
    )
    owned = inputs.owned
    if owned is None:
        spark = inputs.members.sparkSession
        none = spark.createDataFrame([], OWNED.columns)
        owned = none.withColumn("partition", F.col("partition").cast("bigint"))
    return State(*(settle(frame).frame for frame in (members, topics, owned)))


def change_topics(topics: DataFrame, now: DataFrame) -> DataFrame:
    """Let topics appear, grow and disappear.

    Args:
        topics: as of ``State``.
        now: events as ``schedule`` gives them, of one step.
    """
    changed = now.where("is_topic").select(
        CLUSTER_ID, "topic", "kind", F.col("num_partitions").cast("int").alias("size")
    )
    return (
        topics.join(F.broadcast(changed), on=[CLUSTER_ID, "topic"], how="full")
        .where(~F.coalesce(F.col("kind") == "topic_disappears", F.lit(False)))
        .select(
            CLUSTER_ID,
            "topic",
            F.coalesce("size", "num_partitions").alias("num_partitions"),
            # The racks of partitions that are yet to be made are not known.
            F.when(F.col("size").isNull(), F.col("replica_racks")).alias("replica_racks"),
        )
    )


def change_members(state: State, topics: DataFrame, of_groups: DataFrame) -> DataFrame:
    """Let the members of the groups that have an event go, come, and change what they ask for.

    Args:
        state: before the event.
        topics: after it.
        of_groups: cluster_id string, group_id string, e struct: the event of each group.

    Returns:
        The columns of ``State.members`` of these groups' members, and e, old_member_id string,
        is_target boolean: the event names the member, was_away boolean, resolved_before
        array<string>, is_new boolean, goes boolean: leaves the group, comes boolean: joins it, as a
        consumer that knows nothing of before, and switches boolean: comes because it changes
        between a list and a pattern.
    """
    present = state.members.join(of_groups, on=list(GROUP_KEY), how="inner")
    event, kind = F.col("e"), F.col("e.kind")
    instance = F.coalesce("group_instance_id", F.lit(""))
    known = present.withColumns(
        {
            "is_new": F.lit(False),
            "is_target": F.coalesce(
                (event["member_id"] == F.col("member_id"))
                | ((kind != "member_joins") & (event["member_id"] == instance)),
                F.lit(False),
            ),
        }
    )
    members = known.unionByName(_joiners(state, of_groups))
    goes = (
        F.col("is_target")
        & ~F.col("is_away")
        & (
            kind.isin("member_leaves", "member_crashes", "member_polls_too_late")
            | (kind.isin(*RESTARTS) & (event["stage"] == 1) & ~is_awaited())
        )
    )
    comes = F.col("is_target") & (
        (kind == "member_joins") | (kind.isin(*RESTARTS) & (event["stage"] == 2))
    )
    resubscribes = (
        (comes & ~F.col("is_new"))
        | (
            (kind == "subscription_changes")
            & ~F.col("is_away")
            & (event["member_id"].isNull() | F.col("is_target"))
        )
    ) & (event["topics"].isNotNull() | event["topics_pattern"].isNotNull())

    def given(name: str, when: Column) -> Column:
        return F.when(when & event[name].isNotNull(), event[name]).otherwise(F.col(name))

    # A consumer has to unsubscribe in between: a dynamic one leaves by that, and joins anew.
    switches = (
        resubscribes
        & (kind == "subscription_changes")
        & (event["topics_pattern"].isNotNull() != F.col("topics_pattern").isNotNull())
    )
    marked = members.withColumns(
        {
            "goes": goes,
            "comes": comes | switches,
            "resubscribes": resubscribes,
            "switches": switches,
        }
    )
    went, came, again = F.col("goes"), F.col("comes"), F.col("resubscribes")
    changed = marked.withColumns(
        {
            "old_member_id": F.col("member_id"),
            "member_id": F.when(
                came & event["new_member_id"].isNotNull(), event["new_member_id"]
            ).otherwise(F.col("member_id")),
            "was_away": F.col("is_away"),
            "is_away": F.when(went, True).when(came, False).otherwise(F.col("is_away")),
            "topics": F.when(again, event["topics"]).otherwise(F.col("topics")),
            "topics_pattern": F.when(again, event["topics_pattern"]).otherwise(
                F.col("topics_pattern")
            ),
            "assignors": given("assignors", came),
            "rack_id": given("rack_id", came),
            "group_instance_id": given("group_instance_id", came),
            "generation": F.when(~(came & F.col("is_away")), F.col("generation")),
            "resolved_before": F.col("resolved"),
        }
    )
    resolved = with_topics(changed.select(*_DECLARED), topics).select(
        *MEMBER_KEY, F.col("topics").alias("resolved")
    )
    return changed.drop("resolved", "resubscribes").join(resolved, on=MEMBER_KEY, how="left")


def is_awaited() -> Column:
    """Whether a group waits for the member that ``e`` restarts: it is static, and back in time."""
    back_after = F.coalesce(F.col("e.downtime_ms"), F.lit(0))
    return F.col("group_instance_id").isNotNull() & (back_after < F.col("e.session_timeout_ms"))


def _joiners(state: State, of_groups: DataFrame) -> DataFrame:
    """Members that were never in their group; what the event leaves out is as all others have it.

    Where the others differ, or there are none, it is null; an empty group keeps its assignor.
    """
    joins = of_groups.where(F.col("e.kind") == "member_joins").withColumn(
        "member_id", F.col("e.member_id")
    )
    new = joins.join(state.members.select(*MEMBER_KEY), on=MEMBER_KEY, how="left_anti")
    here = ~F.col("is_away")

    def shared(name: str) -> Column:
        value = F.when(here, F.struct(name))
        return F.when(F.min(value) == F.max(value), F.min(value)[name]).alias(f"all_{name}")

    last_seq = F.max("member_seq")
    others = (
        state.members.join(joins.select(*GROUP_KEY), on=list(GROUP_KEY), how="left_semi")
        .groupBy(*GROUP_KEY)
        .agg(
            *(shared(name) for name in ("topics", "topics_pattern", "assignors")),
            F.min("assignor").alias("group_assignor"),
            (last_seq + F.when(last_seq < INT_MAX, 1).otherwise(0)).alias("next_seq"),
            F.count_if(here).alias("count_here"),
        )
    )
    event = F.col("e")
    own = event["topics"].isNotNull() | event["topics_pattern"].isNotNull()
    is_empty = F.col("count_here") == 0
    assignors = F.coalesce(
        event["assignors"],
        F.col("all_assignors"),
        F.when(is_empty, F.array("group_assignor")),
    )
    columns = {
        "group_instance_id": event["group_instance_id"],
        "rack_id": event["rack_id"],
        "topics": F.when(own, event["topics"]).otherwise(F.col("all_topics")),
        "topics_pattern": F.when(own, event["topics_pattern"]).otherwise(
            F.col("all_topics_pattern")
        ),
        "generation": F.lit(None).cast("bigint"),
        "member_seq": F.col("next_seq"),
        "assignor": F.coalesce(F.col("group_assignor"), F.get(assignors, F.lit(0))),
        "assignors": assignors,
        "resolved": F.array().cast("array<string>"),
        "is_away": F.lit(True),
        "is_new": F.lit(True),
        "is_target": F.lit(True),
    }
    return new.join(others, on=list(GROUP_KEY), how="left").select(
        *MEMBER_KEY, "e", *(value.alias(name) for name, value in columns.items())
    )
