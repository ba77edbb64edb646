"""What the groups of a plan go through until the plan is reached, under both protocols."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.rebalancing.protocol import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.rebalancing.steps import rebalance
from kassign_spark.rebalancing.summary import final_assignment, summarize
from kassign_spark.report.plan import Plan
from kassign_spark.rounds import settle
from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    conform,
    fill_cluster_id,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.settings import Settings

_COOPERATIVE_STICKY = "cooperative-sticky"
_SUMMED = ("rounds", "moved", "paused", "settles")


class Followed(NamedTuple):
    """The rebalances of a plan.

    Attributes:
        rounds: one row a group: cluster_id string, group_id string, protocol string, and rounds
            int, moved bigint, paused bigint, settles boolean, each three times: ``planned_...`` as
            planned, ``eager_...`` with the group's assignor under the eager protocol,
            ``cooperative_...`` with `cooperative-sticky` under the cooperative one.
        withheld: one row a group that withholds partitions in its first round: cluster_id string,
            group_id string, withheld_count bigint.
        final: ``schemas.ASSIGNMENT``: who has what after the last round.
    """

    rounds: DataFrame
    withheld: DataFrame
    final: DataFrame


def follow(plan: Plan, settings: Settings) -> Followed:
    """Follow the rebalance of every group of a plan, twice; runs jobs.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values of the snapshot that have no meaning.
    """
    members, topics, owned = plan.snapshot
    eager_steps = settle(rebalance(members, topics, owned, protocol=EAGER, settings=settings)).frame
    cooperative_steps = settle(
        rebalance(members, topics, owned, assignor=_COOPERATIVE_STICKY, settings=settings)
    ).frame
    eager = _summed(eager_steps, owned, EAGER)
    cooperative = _summed(cooperative_steps, owned, COOPERATIVE)
    is_cooperative = F.col("assignor").isin(*COOPERATIVE_ASSIGNORS)
    both = (
        plan.balance.select(*GROUP_KEY, is_cooperative.alias("is_cooperative"))
        .join(eager, on=list(GROUP_KEY), how="left")
        .join(cooperative, on=list(GROUP_KEY), how="left")
    )
    rounds = both.select(
        *GROUP_KEY,
        F.when(F.col("is_cooperative"), COOPERATIVE).otherwise(EAGER).alias("protocol"),
        *(
            F.when(F.col("is_cooperative"), F.col(f"{COOPERATIVE}_{name}"))
            .otherwise(F.col(f"{EAGER}_{name}"))
            .alias(f"planned_{name}")
            for name in _SUMMED
        ),
        *(f"{protocol}_{name}" for protocol in (EAGER, COOPERATIVE) for name in _SUMMED),
    )
    held = settle(rounds).frame
    withholding = (
        fill_cluster_id(cooperative_steps)
        .where((F.col("round") == 1) & (F.col("action") == "withheld"))
        .groupBy(*GROUP_KEY)
        .agg(F.count("*").alias("withheld_count"))
        .join(
            held.where(F.col("protocol") == COOPERATIVE).select(*GROUP_KEY),
            on=list(GROUP_KEY),
            how="left_semi",
        )
    )
    withheld = settle(withholding).frame
    final = settle(_final(plan, cooperative_steps, withheld)).frame
    return Followed(held, withheld, final)


def _summed(steps: DataFrame, owned: DataFrame | None, protocol: str) -> DataFrame:
    """Give what ``summarize`` does, named by the protocol; a group without steps has no row."""
    summed = fill_cluster_id(summarize(steps, owned))
    columns: dict[str, Column] = {
        "rounds": F.col("rounds"),
        "moved": F.lit(None).cast("bigint") if owned is None else F.col("moved_count"),
        "paused": F.col("paused_count"),
        "settles": F.col("settles"),
    }
    return summed.select(
        *GROUP_KEY, *(columns[name].alias(f"{protocol}_{name}") for name in _SUMMED)
    )


def _final(plan: Plan, steps: DataFrame, withheld: DataFrame) -> DataFrame:
    """Take the plan, but for groups that withhold something the end of their rounds."""
    given = has_cluster_id(plan.assignment)
    columns = [field.name for field in ASSIGNMENT.columns]
    at_once = conform(plan.assignment, ASSIGNMENT).join(
        withheld, on=list(GROUP_KEY), how="left_anti"
    )
    later = conform(final_assignment(steps), ASSIGNMENT).join(
        withheld, on=list(GROUP_KEY), how="left_semi"
    )
    whole = at_once.select(*columns).unionByName(later.select(*columns))
    return restore_cluster_id(whole, given)
