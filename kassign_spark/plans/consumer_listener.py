"""What the listeners of members of the new protocol are told, heartbeat by heartbeat."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.coordinator.reconcile import ASSIGNED, REVOKED
from kassign_spark.inputs.rules import STATIC_AWAY
from kassign_spark.schemas import GROUP_KEY

AFTER_HEARTBEAT = "after_heartbeat"
"""The moment of these calls: inside ``poll``, once the answer of a heartbeat is there."""

_CALL_KEY = [*GROUP_KEY, "round", "member_id"]
_PARTITIONS = "array<struct<topic: string, partition: int>>"


def consumer_listener_calls(steps: DataFrame, members: DataFrame) -> DataFrame:
    """List the calls of every member's listener on the way to a target.

    As the Java client's ``AsyncKafkaConsumer`` does: what an answer takes away comes as
    `onPartitionsRevoked`, and then `onPartitionsAssigned` follows always, with an empty list where
    nothing came. A member whose assignment stays is told nothing, unless it is new.

    Args:
        steps: as ``rebalance`` gives them, with cluster_id.
        members: ``schemas.MEMBERS``, conforming, of groups of group_type `consumer`. A member
            without a generation, or of generation 0, is new.

    Returns:
        cluster_id string, group_id string, round int, member_id string, call int, moment string
        (`after_heartbeat`), callback string, partitions array<struct<topic string, partition int>>.
    """
    here = steps.join(members.select(*GROUP_KEY).distinct(), on=list(GROUP_KEY), how="left_semi")
    changed = here.where(F.col("action").isin(REVOKED, ASSIGNED)).groupBy(*_CALL_KEY)
    told = changed.agg(*(_partitions(action).alias(action) for action in (REVOKED, ASSIGNED)))
    epoch = F.coalesce("generation", F.lit(0))
    fresh = members.where((epoch <= 0) & (epoch != STATIC_AWAY)).select(
        *GROUP_KEY, F.lit(1).alias("round"), "member_id"
    )
    none = F.array().cast(_PARTITIONS)
    return (
        told.join(fresh, on=_CALL_KEY, how="full")
        .withColumns({name: F.coalesce(name, none) for name in (REVOKED, ASSIGNED)})
        .select(*_CALL_KEY, F.posexplode(F.array_compact(_calls())).alias("call", "made"))
        .select(*_CALL_KEY, (F.col("call") + 1).alias("call"), "made.*")
    )


def _partitions(action: str) -> Column:
    partition = F.struct("topic", F.col("partition").cast("int").alias("partition"))
    return F.sort_array(F.collect_list(F.when(F.col("action") == action, partition)))


def _calls() -> Column:
    revoked = _call("onPartitionsRevoked", REVOKED)
    return F.array(F.when(F.size(REVOKED) > 0, revoked), _call("onPartitionsAssigned", ASSIGNED))


def _call(callback: str, partitions: str) -> Column:
    return F.struct(
        F.lit(AFTER_HEARTBEAT).alias("moment"),
        F.lit(callback).alias("callback"),
        F.col(partitions).alias("partitions"),
    )
