"""List the calls of the members' rebalance listeners.

Source: ``ConsumerCoordinator.onJoinPrepare`` and ``onJoinComplete`` of the classic protocol
(kafka-clients 3.7 to 4.4). The default of ``onPartitionsLost`` calls ``onPartitionsRevoked``.
A member that asks for its assignment (``SyncGroup``) when another has already begun the next round
is answered REBALANCE_IN_PROGRESS, and is told nothing of that round; here all ask in time.
Members of the new protocol learn it heartbeat by heartbeat.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors import Assignor
from kassign_spark.assignors.assignor_protocols import protocol_column
from kassign_spark.client.protocols import COOPERATIVE
from kassign_spark.conforming import conform, fill_cluster_id, has_cluster_id
from kassign_spark.coordinator.reconcile import ASSIGNED, REVOKED
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.rules import STATIC_AWAY, is_consumer_group
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS

AFTER_HEARTBEAT = "after_heartbeat"
"""The moment of calls of the new protocol: inside ``poll``, once a heartbeat's answer is there."""

_CALL_KEY = [*GROUP_KEY, "round", "member_id"]
_CHANGES = ("retained", "assigned", "revoked", "unsubscribed")


def listener_calls(
    steps: DataFrame,
    members: DataFrame,
    *,
    assignor: str | Assignor | None = None,
    protocol: str | None = None,
) -> DataFrame:
    """List the calls of every member's ``ConsumerRebalanceListener`` in a rebalance.

    Where neither ``assignor`` nor ``protocol`` is given, members of groups of group_type `consumer`
    get the calls of ``consumer_listener_calls``.

    Args:
        steps: as ``rebalance`` gives them, for these members, assignor and protocol.
        members: ``schemas.MEMBERS``. A member that names the highest generation of its group is in
            it, and so is one that names none and owns something: a client that does not send one
            (a consumer that has lost its generation says that it owns nothing). An eager member
            that names a lower one has missed a rebalance, and lost what it owned: `sticky` alone
            still claims that, in its user data. Any other member is new.
        assignor: as given to ``rebalance``.
        protocol: as given to ``rebalance``.

    Returns:
        cluster_id string (where the inputs have it), group_id string, round int, member_id string,
        call int: the order of a member's calls in a round, from 1,
        moment string: `before_join` (before JoinGroup is sent) or `after_sync`; of the new
        protocol `after_heartbeat`,
        callback string: `onPartitionsRevoked`, `onPartitionsLost` or `onPartitionsAssigned`,
        partitions `array<struct<topic string, partition int>>`: sorted; empty where the client
        calls with nothing, as it does with `onPartitionsAssigned`, and with `onPartitionsRevoked`
        of an eager member that is in the generation.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: an unknown protocol.
    """
    has_clusters = has_cluster_id(members)
    consumer_calls = None
    if assignor is None and protocol is None and "group_type" in members.columns:
        consumer_members = conform(members, MEMBERS).where(is_consumer_group())
        consumer_calls = consumer_listener_calls(fill_cluster_id(steps), consumer_members)
        members = members.where(~is_consumer_group()).drop("group_type")
    keyed = steps.withColumn(
        CLUSTER_ID, F.coalesce(CLUSTER_ID, F.lit("")) if has_clusters else F.lit("")
    )
    subscribed = conform(members, MEMBERS)
    if "topics_pattern" in members.columns:
        subscribed = with_topics(subscribed, keyed.select(CLUSTER_ID, "topic"))
    all_members = subscribed.withColumn(
        "is_cooperative", protocol_column(assignor, protocol) == COOPERATIVE
    )
    taking_part = _taking_part(all_members, keyed)
    changed = taking_part.join(_changes(keyed, all_members), on=_CALL_KEY, how="left")
    owned = F.sort_array(F.concat("retained", "revoked", "unsubscribed"))
    changes = _fill_lists(changed, _CHANGES).withColumn("owned", owned)
    calls = _list_calls(changes.withColumn("in_generation", _is_in_generation()), _calls())
    whole = calls if consumer_calls is None else calls.unionByName(consumer_calls)
    return to_result(whole, "listener_calls", has_cluster_id=has_clusters)


def consumer_listener_calls(steps: DataFrame, members: DataFrame) -> DataFrame:
    """List the calls of every member's listener on the way to a target.

    As the Java client's ``AsyncKafkaConsumer`` does: what an answer takes away comes as
    `onPartitionsRevoked`, and then `onPartitionsAssigned` follows always, with an empty list where
    nothing came. A member whose assignment stays gets no call, unless it is new.

    Args:
        steps: as ``rebalance`` gives them, with cluster_id.
        members: ``schemas.MEMBERS``, conforming, of groups of group_type `consumer`. A member
            without a generation, or of generation 0, is new.

    Returns:
        cluster_id string, group_id string, round int, member_id string, call int, moment string
        (`after_heartbeat`), callback string, partitions array<struct<topic string, partition int>>.
    """
    steps_of_members = steps.join(
        members.select(*GROUP_KEY).distinct(), on=list(GROUP_KEY), how="left_semi"
    )
    action, changes = F.col("action"), (REVOKED, ASSIGNED)
    changed = steps_of_members.where(action.isin(*changes)).groupBy(*_CALL_KEY)
    changes_by_member = changed.agg(
        *(_partitions(action == change).alias(change) for change in changes)
    )
    epoch = F.coalesce("generation", F.lit(0))
    fresh = members.where((epoch <= 0) & (epoch != STATIC_AWAY)).select(
        *GROUP_KEY, F.lit(1).alias("round"), "member_id"
    )
    calls = [
        _call(AFTER_HEARTBEAT, "Revoked", F.col(REVOKED), F.lit(True)),
        _call(AFTER_HEARTBEAT, "Assigned", F.col(ASSIGNED), F.lit(True), empty=True),
    ]
    return _list_calls(
        _fill_lists(changes_by_member.join(fresh, on=_CALL_KEY, how="full"), changes), calls
    )


def _fill_lists(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Empty lists of partitions for null."""
    none = F.array().cast("array<struct<topic: string, partition: int>>")
    return frame.withColumns({name: F.coalesce(name, none) for name in columns})


def _list_calls(frame: DataFrame, calls: list[Column]) -> DataFrame:
    """Return the calls of each member and round, numbered from 1; null: it is not made."""
    calls_in_order = F.posexplode(F.array_compact(F.array(*calls))).alias("call", "made")
    numbered = frame.select(*_CALL_KEY, calls_in_order)
    return numbered.select(*_CALL_KEY, (F.col("call") + 1).alias("call"), "made.*")


def _partitions(condition: Column) -> Column:
    partition = F.struct("topic", F.col("partition").cast("int").alias("partition"))
    return F.sort_array(F.collect_list(F.when(condition, partition)))


def _taking_part(members: DataFrame, steps: DataFrame) -> DataFrame:
    """Return one row per member and round: all members take part in all rounds of their group."""
    rounds = steps.groupBy(*GROUP_KEY).agg(F.max("round").alias("rounds"))
    latest = F.max("generation").over(Window.partitionBy(*GROUP_KEY))
    names_one = F.coalesce(F.col("generation") >= 0, F.lit(False))
    return (
        members.withColumn("names_latest", names_one & (F.col("generation") == latest))
        .withColumn("names_none", ~names_one)
        .join(rounds, on=list(GROUP_KEY), how="left")
        .withColumn("round", F.explode(F.sequence(F.lit(1), F.coalesce("rounds", F.lit(1)))))
    )


def _changes(steps: DataFrame, members: DataFrame) -> DataFrame:
    """Collect what each member keeps, receives and gives up in a round."""
    subscriptions = members.select(*GROUP_KEY, "member_id", "topics")
    kept_topic = F.array_contains("topics", F.col("topic"))
    action = F.col("action")
    return (
        steps.join(subscriptions, on=[*GROUP_KEY, "member_id"], how="inner")
        .groupBy(*_CALL_KEY)
        .agg(
            _partitions(action == "retained").alias("retained"),
            _partitions(action == "assigned").alias("assigned"),
            _partitions((action == "revoked") & kept_topic).alias("revoked"),
            _partitions((action == "revoked") & ~kept_topic).alias("unsubscribed"),
        )
    )


def _is_in_generation() -> Column:
    owns_any = F.size("owned") > 0
    is_in = (F.col("names_none") | F.col("is_cooperative")) & owns_any
    return (F.col("round") > 1) | F.col("names_latest") | is_in


def _calls() -> list[Column]:
    """Return the calls of a member in one round, in order; null where one is not made."""
    cooperative, in_generation = F.col("is_cooperative"), F.col("in_generation")
    return [
        _call("before_join", "Lost", F.col("owned"), ~in_generation, empty=False),
        _call("before_join", "Revoked", F.col("owned"), ~cooperative & in_generation, empty=True),
        _call("before_join", "Revoked", F.col("unsubscribed"), cooperative & in_generation),
        _call("after_sync", "Revoked", F.col("revoked"), cooperative & in_generation),
        _call("after_sync", "Assigned", F.col("assigned"), F.lit(True), empty=True),
    ]


def _call(
    moment: str, callback: str, partitions: Column, made: Column, *, empty: bool = False
) -> Column:
    call = F.struct(
        F.lit(moment).alias("moment"),
        F.lit(f"onPartitions{callback}").alias("callback"),
        partitions.alias("partitions"),
    )
    return F.when(made if empty else made & (F.size(partitions) > 0), call)
