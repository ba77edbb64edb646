"""What events do to a fleet, one after the other: who rebalances, why, how, and who does not."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.rounds import hold, settle
from kassign_spark.schemas import (
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    check_same_clusters,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.settings import Settings
from kassign_spark.simulation.decisions import alone, choose, decide, events_of_groups
from kassign_spark.simulation.events import EVENTS, raise_problems, schedule
from kassign_spark.simulation.followed import PROTOCOLS, follow
from kassign_spark.simulation.state import (
    MEMBER_KEY,
    State,
    change_members,
    change_topics,
    first_state,
)
from kassign_spark.simulation.timeouts import Timeouts

_STRING, _INT, _LONG = StringType(), IntegerType(), LongType()
SIMULATED = StructType(
    [
        StructField(CLUSTER_ID, _STRING),
        StructField("group_id", _STRING),
        StructField("event", _INT),
        StructField("stage", _INT),
        StructField("kind", _STRING),
        StructField("rebalance", BooleanType()),
        StructField("reason", _STRING),
        StructField("assignor", _STRING),
        StructField("protocol", _STRING),
        StructField("noticed_within_ms", _LONG),
        StructField("joined_within_ms", _LONG),
        StructField("round", _INT),
        StructField("member_id", _STRING),
        StructField("topic", _STRING),
        StructField("partition", _INT),
        StructField("action", _STRING),
    ]
)


def simulate(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    events: DataFrame,
    *,
    timeouts: Timeouts = Timeouts(),
    settings: Settings = Settings(),
) -> DataFrame:
    """Let events happen to a fleet, and follow the rebalances that they start; runs jobs.

    Each event meets the state that the one before it left. Groups do not wait for each other: the
    nth events of all groups are taken at once. The classic protocol of the Java client and broker
    is followed; what starts a rebalance is in ``decisions``.

    Args:
        members: ``schemas.MEMBERS``, each group with its assignor.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``; None: nobody owns anything before the first event.
        events: ``events.EVENTS``: event int (the order), kind string (``events.KINDS``), and what
            the kind needs. A member that joins and names no subscription or assignors has those
            of all other members. ``session_timeout_ms`` and the like are the event's own.
        timeouts: where an event does not give them.
        settings: how to compute it.

    Returns:
        At least one row for each event and group that it is about (a topic's: all groups of the
        cluster): cluster_id string (where the inputs have it), group_id string, event int, stage
        int (2: a restarted member comes back; else 1), kind string, rebalance boolean, reason
        string (why, or why not), assignor string, protocol string (`eager`, `cooperative`, or
        `mixed`: some members this, some that), noticed_within_ms bigint: the longest until the
        rebalance begins, joined_within_ms bigint: the longest that each of its rounds waits for
        members (null where there is none), and the columns of ``rebalance``: round int, member_id
        string, topic string, partition int, action string (null where nothing is owned or given).
        Round 0 is before the rebalance: what a member had that goes, `revoked` on closing, else
        `lost`. A group whose last round withholds something never settles.

        In a `mixed` group eager members give up all they own before each round, cooperative ones
        what they have to.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only some have cluster_id.
        InputError: values that have no meaning, and events that are not possible: unknown groups,
            members and topics, counts that cannot be; with ``line`` where there is one.
    """
    check_same_clusters([(MEMBERS, members), (EVENTS, events)])
    inputs = conform_inputs(members, topics, owned)
    steps, last = schedule(events, timeouts)
    lists = steps.where("assignors IS NOT NULL").limit(1).count() > 0
    state = first_state(inputs)
    results = [inputs.members.sparkSession.createDataFrame([], SIMULATED)]
    for step in range(1, last + 1):
        happened, state = _step(state, steps.where(F.col("step") == step), lists, settings)
        results.append(happened)
    return restore_cluster_id(reduce(DataFrame.unionByName, results), has_cluster_id(members))


def _step(state: State, now: DataFrame, lists: bool, settings: Settings) -> tuple[DataFrame, State]:
    """Take one step: what happens in it, and the state after it."""
    of_groups, counted = settle(events_of_groups(now, state), {"topics": F.count_if("e.is_topic")})
    topics = state.topics
    if counted["topics"]:
        topics = settle(change_topics(state.topics, now)).frame
    changed = settle(change_members(state, topics, of_groups)).frame
    chosen = choose if lists else alone
    here = state.members.join(of_groups.drop("e"), on=list(GROUP_KEY), how="left_semi")
    decisions, measured = settle(
        decide(
            of_groups,
            changed,
            chosen(here.where("NOT is_away")),
            chosen(changed.where("NOT is_away")),
            _lost_groups(state.owned, changed),
        ),
        {
            "problems": F.count_if(F.col("problem").isNotNull()),
            **{
                protocol: F.count_if(_follows() & (F.col("protocol") == protocol))
                for protocol in PROTOCOLS
            },
        },
    )
    if measured["problems"]:
        named = ("where", "event", "line", CLUSTER_ID)
        where = [F.col(f"e.{name}").alias(name) for name in named]
        raised = decisions.where("problem IS NOT NULL")
        raise_problems(raised.select(*where, F.lit("").alias("group_id"), "problem").distinct())
    after = changed.join(
        decisions.select(*GROUP_KEY, "rebalance", "refused", *_chosen()),
        on=list(GROUP_KEY),
        how="inner",
    ).withColumns(
        {
            "is_away": F.col("is_away") | (F.col("refused") & F.col("comes")),
            "goes": F.col("goes") | (F.col("comes") & ~F.col("was_away") & F.col("rebalance")),
            "assignor": F.coalesce("chosen_assignor", "assignor"),
        }
    )
    owned = _carried(state.owned, after)
    rounds = [
        _rounds(after, topics, owned, protocol, settings)
        for protocol in PROTOCOLS
        if measured[protocol]
    ]
    steps = reduce(DataFrame.unionByName, [_given_up(owned, of_groups), *rounds])
    told = decisions.where("is_told").withColumns(
        {name: F.col(f"e.{name}") for name in ("event", "stage", "kind")}
    )
    happened = hold(
        told.join(steps, on=list(GROUP_KEY), how="left").select(
            *(F.col(f.name).cast(f.dataType).alias(f.name) for f in SIMULATED)
        ),
        {"rows": F.count(F.lit(1))},
    ).frame
    return happened, State(
        settle(_next_members(state.members, after, of_groups)).frame,
        topics,
        settle(_next_owned(owned, happened, decisions)).frame,
    )


def _chosen() -> list[Column]:
    return [F.col(name).alias(f"chosen_{name}") for name in ("assignor", "protocol")]


def _follows() -> Column:
    """Whether a decision is followed by rounds: there is a rebalance, and somebody to take part."""
    return F.col("rebalance") & F.col("is_told") & (F.col("member_count") > 0)


def _lost_groups(owned: DataFrame, changed: DataFrame) -> DataFrame:
    """Where a member comes back in time, and what it owns is not all of its new subscription."""
    back = changed.where(F.col("comes") & ~F.col("was_away")).select(
        *GROUP_KEY, F.col("old_member_id").alias("member_id"), "resolved"
    )
    return (
        owned.join(back, on=MEMBER_KEY, how="inner")
        .where(~F.array_contains("resolved", F.col("topic")))
        .select(*GROUP_KEY)
        .distinct()
    )


def _carried(owned: DataFrame, after: DataFrame) -> DataFrame:
    """Who owns what when the event has happened, before any round: ``owned`` and goes boolean."""
    renamed = after.select(
        *GROUP_KEY,
        F.col("old_member_id").alias("member_id"),
        F.col("member_id").alias("new_id"),
        "goes",
    )
    return owned.join(renamed, on=MEMBER_KEY, how="left").select(
        *GROUP_KEY,
        F.coalesce("new_id", "member_id").alias("member_id"),
        "topic",
        "partition",
        F.coalesce("goes", F.lit(False)).alias("goes"),
    )


def _given_up(owned: DataFrame, of_groups: DataFrame) -> DataFrame:
    """Round 0: what a member had that went."""
    is_lost = F.col("e.kind").isin("member_crashes", "member_polls_too_late")
    return (
        owned.where("goes")
        .join(of_groups, on=list(GROUP_KEY), how="inner")
        .select(
            *GROUP_KEY,
            F.lit(0).alias("round"),
            "member_id",
            "topic",
            "partition",
            F.when(is_lost, "lost").otherwise("revoked").alias("action"),
        )
    )


def _rounds(
    after: DataFrame, topics: DataFrame, owned: DataFrame, protocol: str, settings: Settings
) -> DataFrame:
    """Follow the groups that rebalance under a protocol."""
    taking_part = after.where(
        ~F.col("is_away") & F.col("rebalance") & (F.col("chosen_protocol") == protocol)
    )
    claims = owned.where(~F.col("goes")).join(
        taking_part.select(*MEMBER_KEY), on=MEMBER_KEY, how="left_semi"
    )
    return follow(taking_part, topics, claims, protocol, settings)


def _next_members(before: DataFrame, after: DataFrame, of_groups: DataFrame) -> DataFrame:
    """Members of a group that has been through a rebalance are all of its new generation."""
    others = before.join(of_groups, on=list(GROUP_KEY), how="left_anti")
    latest = F.max("generation").over(Window.partitionBy(*GROUP_KEY))
    is_in_it = F.col("rebalance") & ~F.col("is_away")
    # Behind the largest there is none; that all who were in the round have the same one is enough.
    following = F.least(F.coalesce(latest, F.lit(0)), F.lit(INT_MAX - 1)) + 1
    generation = F.when(is_in_it, following).otherwise(F.col("generation"))
    return others.unionByName(after.withColumn("generation", generation).select(*before.columns))


def _next_owned(owned: DataFrame, happened: DataFrame, decisions: DataFrame) -> DataFrame:
    """After a rebalance members own what its last round left them; else what they had."""
    rebalanced = decisions.where("rebalance AND is_told").select(*GROUP_KEY)
    columns = [*MEMBER_KEY, "topic", "partition"]
    kept = owned.where(~F.col("goes")).join(rebalanced, on=list(GROUP_KEY), how="left_anti")
    last = F.max("round").over(Window.partitionBy(*GROUP_KEY))
    held = (
        happened.withColumn("last", last)
        .where((F.col("round") == F.col("last")) & F.col("action").isin("retained", "assigned"))
        .withColumn("partition", F.col("partition").cast("bigint"))
    )
    return kept.select(*columns).unionByName(held.select(*columns))
