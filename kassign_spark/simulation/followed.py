"""The rounds that follow an event, under each protocol, also where members have different ones."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.rebalancing.protocol import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.rebalancing.steps import rebalance
from kassign_spark.rounds import Budget, settle
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS
from kassign_spark.settings import Settings
from kassign_spark.simulation.state import MEMBER_KEY

MIXED = "mixed"
"""Eager and cooperative members in one group: amid the second bounce of KIP-429."""

STEP = ["round", "member_id", "topic", "partition", "action"]
_CLAIM = [*MEMBER_KEY, "topic", "partition"]


def follow(
    members: DataFrame, topics: DataFrame, owned: DataFrame, protocol: str, settings: Settings
) -> DataFrame:
    """Follow the rebalance of groups that all have one protocol; runs jobs.

    Args:
        members: the members that take part, all of their groups: the columns of
            ``schemas.MEMBERS``, assignors array<string>, resolved array<string>.
        topics: as of ``State``.
        owned: cluster_id string, group_id string, member_id string, topic string, partition
            bigint: what these members own.
        protocol: `eager`, `cooperative` or ``MIXED``.
        settings: how to compute it.

    Returns:
        cluster_id string, group_id string, and the columns of ``rebalance``.
    """
    if protocol == MIXED:
        return _follow_mixed(members, topics, owned, settings)
    return _rebalance(members, topics, owned, protocol, settings)


def _rebalance(
    members: DataFrame, topics: DataFrame, owned: DataFrame, protocol: str, settings: Settings
) -> DataFrame:
    resolved = {
        "topics": F.col("resolved").alias("topics"),
        "topics_pattern": F.lit(None).cast("string").alias("topics_pattern"),
    }
    found = rebalance(
        members.select(*(resolved.get(name, F.col(name)) for name in MEMBERS.columns.names)),
        topics,
        owned.select(*_CLAIM),
        protocol=protocol,
        settings=settings,
    )
    cluster = F.coalesce(CLUSTER_ID, F.lit("")).alias(CLUSTER_ID)
    return found.select(cluster, "group_id", *STEP)


def _follow_mixed(
    members: DataFrame, topics: DataFrame, owned: DataFrame, settings: Settings
) -> DataFrame:
    """Follow groups in which eager members give up everything before each round.

    The assignor is a cooperative one, as cooperative members list no other. It sees what the
    cooperative members own; of the eager ones it knows nothing (``ConsumerCoordinator`` clears
    their owned partitions). A round follows while cooperative members have to give something up.
    """
    budget = Budget(settings.max_rounds)
    rounds: list[DataFrame] = []
    subscriptions = members.select(*MEMBER_KEY, "resolved", _is_eager().alias("is_eager"))
    while True:
        number = len(rounds) + 1
        told = owned.join(subscriptions, on=MEMBER_KEY, how="inner")
        answered = _rebalance(members, topics, told.where("NOT is_eager"), COOPERATIVE, settings)
        given_up = told.where("is_eager").withColumn("action", F.lit("revoked"))
        step = (
            answered.where("round = 1")
            .select(*GROUP_KEY, *STEP)
            .unionByName(given_up.withColumn("round", F.lit(1)).select(*GROUP_KEY, *STEP))
            .join(subscriptions, on=MEMBER_KEY, how="left")
        )
        joins_again = (
            (F.col("action") == "revoked")
            & ~F.col("is_eager")
            & F.array_contains("resolved", F.col("topic"))
        )
        settled, measured = settle(
            step.withColumn("round", F.lit(number)), {"open": F.count_if(joins_again)}
        )
        rounds.append(settled.select(*GROUP_KEY, *STEP))
        budget.spend("mixed rebalance", measured, measured["open"])
        if not measured["open"]:
            return reduce(DataFrame.unionByName, rounds)
        groups = settled.where(joins_again).select(*GROUP_KEY).distinct()
        # All have come through the round, and so are of one generation.
        members = members.join(groups, on=list(GROUP_KEY), how="left_semi").withColumn(
            "generation", F.lit(number).cast("bigint")
        )
        held = settled.where(F.col("action").isin("retained", "assigned"))
        owned = held.join(groups, on=list(GROUP_KEY), how="left_semi").select(*_CLAIM)


def _is_eager() -> Column:
    return F.exists("assignors", lambda name: ~name.isin(*COOPERATIVE_ASSIGNORS))


PROTOCOLS = (EAGER, COOPERATIVE, MIXED)
