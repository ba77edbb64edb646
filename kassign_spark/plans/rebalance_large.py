"""The rounds of a rebalance over DataFrames: of groups too large for a task, and of users' own."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS, Assignor
from kassign_spark.assignors.in_tasks import STICKY
from kassign_spark.assignors.sticky import sticky_target
from kassign_spark.conforming import declare
from kassign_spark.groups.eligible import Eligible
from kassign_spark.rounds import Budget, converge
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY
from kassign_spark.settings.computing import Settings

_OWNED_KEY = [*GROUP_KEY, "member_id", "topic", "partition"]
_STEP = [*GROUP_KEY, "round", "member_id", "topic", "partition", "action"]
_HOLDS = "action IN ('retained', 'assigned')"
"""Whether the member has the partition after the round."""


def follow_eager(eligible: Eligible, strategy: Assignor, settings: Settings) -> DataFrame:
    """All members give up everything, then receive everything: the columns of steps."""
    forgetful = strategy is ASSIGNORS["cooperative-sticky"]
    seen = eligible._replace(owned=None) if forgetful else eligible
    received = declare(strategy(seen, settings), ASSIGNMENT)
    given_up = _owned_by_members(eligible)
    return _in_round(given_up, 1, "revoked").unionByName(_in_round(received, 1, "assigned"))


def follow_cooperative(eligible: Eligible, settings: Settings) -> DataFrame:
    """Follow the rounds; the frame that converges holds all rounds so far, from 0: the start.

    Partitions of topics that a member has dropped are given up before it joins: nobody has to wait
    for them, and no round follows because of them (``ConsumerCoordinator.onJoinPrepare``).
    """
    owned = _by_subscription(_owned_by_members(eligible), eligible.members)
    if eligible.owned is not None:
        claims = _by_subscription(eligible.owned, eligible.members).where("is_subscribed")
        eligible = eligible._replace(owned=claims.drop("is_subscribed"))
    start = _in_round(owned.where("is_subscribed"), 0, "retained")
    budget = Budget(settings.max_rounds)
    rounds = converge(
        start.withColumn("is_open", F.lit(True)),
        lambda rounds: _add_round(eligible, rounds, budget.used, settings),
        F.count_if("is_open"),
        what="cooperative rebalance",
        budget=budget,
    )
    dropped = _in_round(owned.where("NOT is_subscribed"), 1, "revoked")
    return rounds.where("round > 0").drop("is_open").unionByName(dropped)


def _by_subscription(owned: DataFrame, members: DataFrame) -> DataFrame:
    """Tell what members own of topics that they subscribe to from the rest: is_subscribed."""
    topics = members.select(*GROUP_KEY, "member_id", F.col("topics").alias("subscribed"))
    is_subscribed = F.array_contains("subscribed", F.col("topic")).alias("is_subscribed")
    return owned.join(topics, on=[*GROUP_KEY, "member_id"], how="inner").select(
        *_OWNED_KEY, is_subscribed
    )


def _add_round(eligible: Eligible, rounds: DataFrame, last: int, settings: Settings) -> DataFrame:
    """Add the round after round ``last`` for the groups that are open."""
    before = rounds.where(f"is_open AND round = {last} AND {_HOLDS}").select(*_OWNED_KEY)
    if last:
        open_groups = rounds.where("is_open").select(*GROUP_KEY).distinct()
        members = eligible.members.join(open_groups, on=list(GROUP_KEY), how="left_semi")
        eligible = eligible._replace(
            # All of them have come through the round before this one.
            members=members.withColumn("generation", F.lit(last).cast("bigint")),
            owned=before,
        )
    added = _in_round(_round(eligible, before, settings), last + 1)
    states = rounds.where(_HOLDS).groupBy(*GROUP_KEY, "round").agg(_fingerprint())
    earlier = states.groupBy(*GROUP_KEY).agg(F.collect_set("state").alias("earlier"))
    comes_back = F.coalesce(F.array_contains("earlier", F.col("state")), F.lit(False))
    outcome = (
        added.groupBy(*GROUP_KEY)
        .agg(
            F.bool_or(F.col("action").isin("revoked", "withheld")).alias("goes_on"), _fingerprint()
        )
        .join(earlier, on=list(GROUP_KEY), how="left")
        .select(*GROUP_KEY, (F.col("goes_on") & ~comes_back).alias("is_open"))
    )
    closed = rounds.withColumn("is_open", F.lit(False))
    return closed.unionByName(added.join(outcome, on=list(GROUP_KEY), how="inner"))


def _round(eligible: Eligible, before: DataFrame, settings: Settings) -> DataFrame:
    """Compare what members own before a round with what it gives them: ``_OWNED_KEY``, action."""
    target = sticky_target(eligible, settings, STICKY, "told").withColumn(
        "partition", F.col("partition").cast("int")
    )
    compared = before.withColumn("owns", F.lit(True)).join(target, on=_OWNED_KEY, how="full")
    given_up = F.col("owns") & F.coalesce("is_moving", F.lit(True))
    # Both hold for a disputed partition that goes to one of those who own it.
    actions = F.array(
        F.when(given_up, "revoked"),
        F.when(F.col("is_moving"), "withheld"),
        F.when(F.col("owns") & ~F.col("is_moving"), "retained"),
        F.when(F.col("owns").isNull() & ~F.col("is_moving"), "assigned"),
    )
    return compared.select(*_OWNED_KEY, F.explode(F.array_compact(actions)).alias("action"))


def _owned_by_members(eligible: Eligible) -> DataFrame:
    """What members own that are still there; partitions as int, each member's once."""
    if eligible.owned is None:
        nothing = eligible.members.where(F.lit(False))
        return nothing.selectExpr(*GROUP_KEY, "member_id", "'' as topic", "0 as partition")
    present = eligible.members.select(*GROUP_KEY, "member_id")
    owned = eligible.owned.join(present, on=[*GROUP_KEY, "member_id"], how="left_semi")
    return owned.withColumn("partition", F.col("partition").cast("int")).distinct()


def _fingerprint() -> Column:
    """Tell apart what members of a group hold, whatever the order of the rows."""
    row = F.when(F.expr(_HOLDS), F.xxhash64("member_id", "topic", "partition"))
    held = F.struct(F.count(row), F.coalesce(F.bit_xor(row), F.lit(0).cast("bigint")))
    return held.alias("state")


def _in_round(frame: DataFrame, number: int, action: str | None = None) -> DataFrame:
    """The columns of steps; without ``action`` that of each row."""
    told = {"round": str(number), **({} if action is None else {"action": f"'{action}'"})}
    return frame.selectExpr(*(f"{told.get(name, name)} as {name}" for name in _STEP))
