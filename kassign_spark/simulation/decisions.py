"""Whether an event starts a rebalance in a group, why, and how long that takes to be noticed.

Sources, for the classic protocol: ``GroupMetadataManager`` of the broker (who joins, leaves, or
comes back under its ``group.instance.id``: KIP-345), ``ConsumerCoordinator`` and
``AbstractCoordinator`` of the client (heartbeats, poll interval, the leader's look at metadata).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.rebalancing.choice import CANDIDATES, PROTOCOLS, choose_assignors
from kassign_spark.rebalancing.protocol import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.simulation.followed import MIXED
from kassign_spark.simulation.problems import is_restart, problem_of_event
from kassign_spark.simulation.state import State


def events_of_groups(now: DataFrame, state: State) -> DataFrame:
    """Give each group its event of a step; a topic's event is one of every group of its cluster.

    Returns:
        cluster_id string, group_id string (null: a topic's event where there is no group), e
        struct: the columns of ``schedule``, and topic_size int: partitions that the topic has
        before (null: it is not there).
    """
    sizes = state.topics.select(CLUSTER_ID, "topic", F.col("num_partitions").alias("topic_size"))
    known = now.join(sizes, on=[CLUSTER_ID, "topic"], how="left")
    groups = state.members.select(*GROUP_KEY).distinct()
    everywhere = known.where("is_topic").drop("group_id").join(groups, on=CLUSTER_ID, how="left")
    every = known.where("NOT is_topic").unionByName(everywhere)
    return every.select(*GROUP_KEY, F.struct(*every.columns).alias("e"))


def choose(members: DataFrame) -> DataFrame:
    """Choose the assignor and the protocol of each group from its members' lists.

    Returns:
        cluster_id string, group_id string, assignor string (null: none in common), protocol
        string: `eager`, `cooperative` or ``MIXED``.
    """
    candidates = members.select(*CANDIDATES.columns.names)
    supported = {**dict.fromkeys(ASSIGNORS, (EAGER,)), **PROTOCOLS}
    chosen = choose_assignors(candidates, protocols=supported).groups.withColumn(
        CLUSTER_ID, F.coalesce(CLUSTER_ID, F.lit(""))
    )
    return chosen.select(
        *GROUP_KEY, "assignor", F.coalesce("protocol", F.lit(MIXED)).alias("protocol")
    )


def alone(members: DataFrame) -> DataFrame:
    """Do what ``choose`` does where every member of a group lists one assignor, the same."""
    is_cooperative = F.min("assignor").isin(*COOPERATIVE_ASSIGNORS)
    return members.groupBy(*GROUP_KEY).agg(
        F.min("assignor").alias("assignor"),
        F.when(is_cooperative, COOPERATIVE).otherwise(EAGER).alias("protocol"),
    )


def decide(
    of_groups: DataFrame, changed: DataFrame, before: DataFrame, after: DataFrame, lost: DataFrame
) -> DataFrame:
    """Decide for each group.

    Args:
        of_groups: as ``events_of_groups`` gives them.
        changed: members as ``change_members`` gives them.
        before: as ``choose`` gives it, of the members before the event.
        after: likewise, of those after it.
        lost: cluster_id string, group_id string: where a static member that comes back owns
            partitions of a topic that it has dropped.

    Returns:
        cluster_id string, group_id string, e struct, problem string (null: the event is possible),
        is_told boolean: false for the first stage of a restart that is not noticed, rebalance
        boolean, reason string, refused boolean: the member may not join, assignor string,
        protocol string, member_count bigint: after the event, noticed_within_ms bigint,
        joined_within_ms bigint.
    """
    facts = (
        of_groups.join(_facts(changed), on=list(GROUP_KEY), how="left")
        .join(_named(before, "before"), on=list(GROUP_KEY), how="left")
        .join(_named(after, "after"), on=list(GROUP_KEY), how="left")
        .join(lost.withColumn("lost", F.lit(True)), on=list(GROUP_KEY), how="left")
        .withColumn("refused", F.lit(False))
    )
    refused = (
        F.coalesce(F.col("came"), F.lit(False))
        & (F.col("count_after") > 0)
        & F.col("assignor_after").isNull()
    )
    told = facts.withColumn("refused", refused).withColumn("outcome", _outcome())
    rebalances = F.col("outcome.rebalance")
    keeps_old = refused | F.col("assignor_after").isNull()
    return told.select(
        *GROUP_KEY,
        "e",
        problem_of_event().alias("problem"),
        F.coalesce(~((F.col("e.stage") == 1) & is_restart() & ~F.col("went")), F.lit(True)).alias(
            "is_told"
        ),
        rebalances.alias("rebalance"),
        F.col("outcome.reason").alias("reason"),
        "refused",
        *(
            F.when(keeps_old, F.col(f"{name}_before")).otherwise(F.col(f"{name}_after")).alias(name)
            for name in ("assignor", "protocol")
        ),
        F.coalesce("count_after", F.lit(0)).alias("member_count"),
        F.when(rebalances, F.col("outcome.noticed")).cast("bigint").alias("noticed_within_ms"),
        F.when(rebalances, F.col("e.max_poll_interval_ms"))
        .cast("bigint")
        .alias("joined_within_ms"),
    )


def _named(choice: DataFrame, when: str) -> DataFrame:
    return choice.withColumnsRenamed({n: f"{n}_{when}" for n in ("assignor", "protocol")})


def _facts(changed: DataFrame) -> DataFrame:
    topic = F.col("e.topic")
    here = ~F.col("is_away")
    target = F.col("is_target")

    def subscribes(names: str) -> Column:
        return F.coalesce(F.array_contains(names, topic), F.lit(False))

    differs = F.sort_array("resolved") != F.sort_array("resolved_before")
    is_static = F.col("group_instance_id").isNotNull()
    return changed.groupBy(*GROUP_KEY).agg(
        F.count("*").alias("known_count"),
        (F.count_distinct("member_id") < F.count("*")).alias("has_duplicates"),
        (
            F.count_distinct(F.when(here, F.col("group_instance_id")))
            < F.count(F.when(here, F.col("group_instance_id")))
        ).alias("shares_instance"),
        F.count_if(~F.col("was_away")).alias("count_before"),
        F.count_if(here).alias("count_after"),
        F.bool_or(target & ~F.col("was_away")).alias("target_was_here"),
        F.bool_or(target & F.col("was_away") & ~F.col("is_new")).alias("target_was_away"),
        F.bool_or(target & is_static).alias("is_static"),
        F.bool_or("goes").alias("went"),
        F.bool_or("comes").alias("came"),
        F.bool_or("is_new").alias("is_new"),
        F.bool_or(F.col("switches") & ~is_static).alias("leaves_between"),
        F.bool_or("switches").alias("switches"),
        F.bool_or(here & F.coalesce(differs, F.lit(True))).alias("differs"),
        F.bool_or(here & (subscribes("resolved") | subscribes("resolved_before"))).alias("touched"),
        F.bool_or(here & F.col("resolved").isNull() & F.col("topics_pattern").isNull()).alias(
            "unsubscribed"
        ),
        F.max(F.when(here & F.col("resolved").isNull(), F.col("topics_pattern"))).alias(
            "bad_pattern"
        ),
        F.bool_or(F.col("is_new") & F.col("assignors").isNull()).alias("unassigned"),
    )


def _outcome() -> Column:
    """Say rebalance, reason, noticed: section by section of what starts a rebalance."""
    event, kind = F.col("e"), F.col("e.kind")
    session = event["session_timeout_ms"]
    poll = event["max_poll_interval_ms"]
    delay = F.when(F.col("count_before") == 0, event["initial_rebalance_delay_ms"]).otherwise(0)
    static = F.coalesce(F.col("is_static"), F.lit(False))
    emptied = F.when(F.col("count_after") == 0, "; the group is empty now").otherwise("")
    returns = is_restart() & (event["stage"] == 2)

    def yes(reason: str | Column, noticed: Column | int) -> Column:
        return _said(True, reason, noticed)

    def no(reason: str | Column) -> Column:
        return _said(False, reason, F.lit(None))

    def says(*parts: str | Column) -> Column:
        return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))

    topic = event["topic"]
    changes = (
        F.when(kind == "topic_appears", says("topic ", topic, " appears"))
        .when(kind == "topic_disappears", says("topic ", topic, " disappears"))
        .otherwise(says("topic ", topic, " gets more partitions"))
    )
    return (
        F.when(
            F.col("refused"),
            no("the member is refused: no assignor is on every list (INCONSISTENT_GROUP_PROTOCOL)"),
        )
        .when(
            F.col("count_after") + F.col("count_before") == 0,
            no("the group has no members"),
        )
        .when(
            event["is_topic"],
            F.when(
                F.col("touched"),
                yes(
                    says(changes, ": the leader sees it when it refreshes its metadata"),
                    event["metadata_max_age_ms"],
                ),
            ).otherwise(no(says("no member subscribes to topic ", topic))),
        )
        .when(kind == "member_joins", yes("a new member joins", delay))
        .when(
            kind == "member_crashes",
            yes(says("its heartbeats stop: dropped after the session timeout", emptied), session),
        )
        .when(
            kind == "member_leaves",
            F.when(
                static,
                yes(
                    says(
                        "a static member does not leave on closing: dropped after the session "
                        "timeout",
                        emptied,
                    ),
                    session,
                ),
            ).otherwise(yes(says("a dynamic member leaves", emptied), 0)),
        )
        .when(
            kind == "member_polls_too_late",
            F.when(
                static,
                yes(
                    says(
                        "max.poll.interval.ms passed: a static member stops its heartbeats, and is "
                        "dropped after the session timeout",
                        emptied,
                    ),
                    poll + session,
                ),
            ).otherwise(
                yes(says("max.poll.interval.ms passed: a dynamic member leaves", emptied), poll)
            ),
        )
        .when(
            is_restart() & (event["stage"] == 1),
            F.when(
                static,
                yes(
                    says("a static member is away longer than its session timeout", emptied),
                    session,
                ),
            ).otherwise(yes(says("a dynamic member leaves to restart", emptied), 0)),
        )
        .when(returns & F.col("target_was_away"), yes("the member joins again", delay))
        .when(
            returns & ~F.col("assignor_before").eqNullSafe(F.col("assignor_after")),
            yes(
                says(
                    "a static member is back in time, but the chosen assignor changes from ",
                    F.col("assignor_before"),
                    " to ",
                    F.col("assignor_after"),
                ),
                0,
            ),
        )
        .when(
            returns & F.coalesce(F.col("lost"), F.lit(False)),
            yes(
                "a static member is back in time, but its assignment has a topic that it no longer "
                "subscribes to: it joins again",
                0,
            ),
        )
        .when(
            returns,
            no("a static member is back within its session timeout: it gets its old assignment"),
        )
        .when(
            F.col("leaves_between"),
            yes(
                "a consumer that changes between a list and a pattern has to unsubscribe: it "
                "leaves, and joins again",
                0,
            ),
        )
        .when(
            F.col("switches") & F.coalesce(F.col("lost"), F.lit(False)),
            yes("a static member joins again: its assignment has a topic that it has dropped", 0),
        )
        .when(
            F.col("switches"),
            no("a static member that changes between a list and a pattern gets its old assignment"),
        )
        .when(F.col("differs"), yes("a member's subscription changes", 0))
        .otherwise(no("the members subscribe to the same topics as before"))
    )


def _said(rebalance: bool, reason: str | Column, noticed: Column | int) -> Column:
    return F.struct(
        F.lit(rebalance).alias("rebalance"),
        (F.lit(reason) if isinstance(reason, str) else reason).alias("reason"),
        (F.lit(noticed) if isinstance(noticed, int) else noticed).cast("bigint").alias("noticed"),
    )
