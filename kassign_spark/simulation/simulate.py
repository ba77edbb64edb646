"""Simulate events on a fleet, one after the other, and sum up who rebalances, why and how."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.client.group_state import FAILING, NEVER_SETTLES
from kassign_spark.conforming import check_same_clusters, has_cluster_id
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.input_counts import in_one_partition
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rack_use import fold_racks
from kassign_spark.groups.rows import run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.rules import is_one_of
from kassign_spark.results import RESULTS, to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS
from kassign_spark.settings.computing import Settings
from kassign_spark.simulation.events import (
    EVENTS,
    TOPIC_KINDS,
    Events,
    check_events,
    raise_problems,
    with_steps,
)
from kassign_spark.simulation.fold import fold_events
from kassign_spark.simulation.kernel import simulate_arrow
from kassign_spark.simulation.simulated_rows import HAPPENED, OF_ROUNDS
from kassign_spark.simulation.timeouts import Timeouts
from kassign_spark.spark.iteration import materialize

_EVENT_COLUMNS = [name for name in RESULTS["simulate"] if name not in OF_ROUNDS]


def simulate(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    events: DataFrame,
    *,
    target: DataFrame | None = None,
    timeouts: Timeouts = Timeouts(),
    settings: Settings = Settings(),
) -> DataFrame:
    """Apply events to a fleet, and follow the rebalances that they start; runs a few queries.

    Each event meets the state that the one before it left. Tasks take whole groups through all
    their events. What starts a rebalance of the classic protocol is in ``decisions``; of the new
    one, where `rebalance` says whether the group's epoch rises, in ``consumer_decisions``.

    Args:
        members: ``schemas.MEMBERS``, each group with its assignor.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``; None: nobody owns anything before the first event.
        events: ``events.EVENTS``: event int (the order), kind string (``events.KINDS``), and what
            the kind needs. A member that joins and names no subscription or assignors has those
            of all other members. ``session_timeout_ms`` and the like are the event's own.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`; without it
            what their members own is taken for it.
        timeouts: where an event does not give them.
        settings: how to compute it.

    Returns:
        At least one row for each event and group that it is about (a topic's: all groups of the
        cluster): cluster_id string (where the inputs have it), group_id string, event int, stage
        int (2: a restarted member comes back; else 1), kind string, rebalance boolean, reason
        string (why, or why not), assignor string, protocol string (`eager`, `cooperative`,
        `mixed`: some members this, some that, or `consumer`), noticed_within_ms bigint: the longest
        until the rebalance begins, joined_within_ms bigint: the longest that each of its rounds
        waits for members (null where there is none), of groups of the new protocol (else null)
        group_epoch int: after the event, computed_within_ms bigint: the longest until the target is
        computed, settled_within_ms bigint: and then until all have come to it, but for their
        listeners, verdict string (ok | inexact | never_settles as in ``predict``, drawn: it depends
        on ids of members that are yet to be drawn), detail string: why; and the columns of
        ``rebalance``: round int, member_id string, topic string, partition int, action string (null
        where nothing is owned or given). For classic groups there is a verdict only where members
        claim partitions that do not exist, and Kafka's client throws, never ends, or is `ok` but
        gives away what does not exist; one without an answer stays as it is. Round 0 is before the
        rebalance: what a member had that goes, `revoked` on closing, else `lost`. A group whose
        last round withholds something never settles.

        In a `mixed` group eager members give up all they own before each round, cooperative ones
        what they have to.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only some have cluster_id.
        InputError: values that have no meaning, and events that are not possible: unknown groups,
            members and topics, counts that cannot be; with ``line`` where there is one; or a group
            reads more partitions than ``limits.PARTITIONS_OF_A_GROUP`` when it rebalances.
    """
    check_same_clusters([(MEMBERS, members), (EVENTS, events)])
    inputs = conform_inputs(members, topics, owned, target)
    checked = check_events(events, timeouts)
    summary = inspect_inputs(inputs, ASSIGNORS, both_types=True)
    eligible = summary.eligible
    if summary.is_one_partition:
        # With shuffles in the fold, simulate of the example takes 1.13 times as long.
        inputs = in_one_partition(inputs)
    sized = _sized_topics(eligible, inputs.topics, checked)
    table = fold_events(inputs, sized, checked, patterns=eligible.had_patterns)
    kernel = partial(
        simulate_arrow,
        racks_before_moves=settings.racks_before_moves,
        max_rounds=settings.max_rounds,
    )
    tasks = settings.batches or eligible.batches
    happened, measured = materialize(
        run_in_tasks(table, kernel, HAPPENED, tasks),
        {"problems": F.count("problem")},
    )
    if measured["problems"]:
        _raise_first(happened.where("problem IS NOT NULL"), checked)
    return to_result(happened, "simulate", has_cluster_id=has_cluster_id(members))


def summarize_events(simulated: DataFrame) -> DataFrame:
    """Sum up the rows of ``simulate``.

    Args:
        simulated: as ``simulate`` gives it.

    Returns:
        One row an event, stage and group: cluster_id string (where the input has it), group_id
        string, event int, stage int, kind string, rebalance boolean, reason string, assignor
        string, protocol string, noticed_within_ms bigint, joined_within_ms bigint,
        computed_within_ms bigint, settled_within_ms bigint, group_epoch int, verdict string, detail
        string (all as in ``simulate``), rounds int,
        partition_count bigint: assigned in the end, moved_count bigint: of these, with another
        member than before, paused_count bigint: partitions that their member, still there, stops
        reading for a while, paused_member_count bigint: members that do, stopped_count bigint:
        partitions that nobody reads since their member went, settles boolean: false where the
        rounds would repeat for ever, or the client has no answer. All counts are 0 where there is
        no rebalance.
    """
    has_clusters = has_cluster_id(simulated)
    cluster = F.coalesce(CLUSTER_ID, F.lit("")) if has_clusters else F.lit("")
    key = [*GROUP_KEY, "event", "stage"]
    event_columns = [CLUSTER_ID, *_EVENT_COLUMNS, "rounds"]
    last = f"coalesce(max(round) over (partition by {', '.join(key)}), 0) as rounds"
    had = "round = 0 or (round = 1 and action in ('retained', 'revoked'))"
    holds = "round = rounds and action in ('retained', 'assigned')"
    by_partition = (
        f"collect_set(if({had}, member_id, null)) as had",
        f"max(if({holds}, member_id, null)) as has",
        "collect_set(if(round > 0 and action = 'revoked', member_id, null)) as paused",
        "bool_or(round = 0) as stopped",
        "bool_or(round = rounds and action = 'withheld') as withheld",
    )
    without_end = f"coalesce({is_one_of('verdict', (*FAILING, NEVER_SETTLES))}, false)"
    is_moved = "has is not null and size(had) > 0 and not array_contains(had, has)"
    by_event = (
        "count(has) as partition_count",
        f"count_if({is_moved}) as moved_count",
        "count_if(size(paused) > 0) as paused_count",
        "size(array_distinct(flatten(collect_list(paused)))) as paused_member_count",
        "count_if(stopped) as stopped_count",
        f"not (coalesce(bool_or(withheld), false) or {without_end}) as settles",
    )
    steps = simulated.withColumn(CLUSTER_ID, cluster).selectExpr("*", last)
    summed = (
        steps.groupBy(*event_columns, "topic", "partition")
        .agg(*map(F.expr, by_partition))
        .groupBy(*event_columns)
        .agg(*map(F.expr, by_event))
    )
    return to_result(summed, "summarize_events", has_cluster_id=has_clusters)


def _sized_topics(eligible: Eligible, topics: DataFrame, events: Events) -> DataFrame:
    """Return topics with racks of replicas, also where only an event adds a member's rack."""
    if eligible.has_racks or not events.counts["racks"] or "replica_racks" not in topics.columns:
        return eligible.topics
    return eligible.topics.join(fold_racks(topics), on=[CLUSTER_ID, "topic"], how="left")


def _raise_first(problems: DataFrame, events: Events) -> None:
    """Raise what is wrong with the events of the first step in which something is.

    Raises:
        InputError: always.
    """
    about = F.when(F.col("kind").isin(*TOPIC_KINDS), F.lit("")).otherwise(F.col("group_id"))
    keys = [CLUSTER_ID, "event", "stage", "about"]
    steps = with_steps(events.frame).withColumn("about", F.coalesce("group_id", F.lit("")))
    distinct = (
        problems.withColumn("about", about).select(*keys, "kind", "line", "problem").distinct()
    )
    in_steps = distinct.join(steps.select(*keys, "step"), on=keys, how="inner")
    first = in_steps.agg(F.min("step").alias("step"))
    first_problems = in_steps.join(first, on="step", how="left_semi")
    raise_problems(first_problems.withColumn("group_id", F.lit("")))
