"""Follow the groups of a plan until the plan is reached, under both protocols."""

from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.conforming import conform, has_cluster_id, restore_cluster_id
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, observed_rows, run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.report.followed_kernel import FOLLOWED, OF_GROUPS, follow_both_arrow
from kassign_spark.report.plan import Plan
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS, OWNED
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize
from kassign_spark.spark.spark_versions import union_by_name


class FollowedPlan(NamedTuple):
    """The rebalances of a plan.

    Attributes:
        groups: one row per group: cluster_id string, group_id string, protocol string, and rounds
            int, moved bigint, paused bigint, settles boolean, each three times: ``planned_...`` as
            planned, ``eager_...`` with the group's assignor under the eager protocol,
            ``cooperative_...`` with `cooperative-sticky` under the cooperative one;
            withheld_count bigint: partitions that it withholds in its first round (null or 0:
            none), min_before, max_before, idle_before bigint: of its members' loads before the
            plan, idle_after bigint: members without partitions in the end.
        withholding: the cluster_id and group_id of groups that withhold some; None: none does.
        final: ``schemas.ASSIGNMENT``: who has what after the last round.
        eligible: the groups, as they were looked at.
    """

    groups: DataFrame
    withholding: DataFrame | None
    final: DataFrame
    eligible: Eligible


def follow(plan: Plan, settings: Settings) -> FollowedPlan:
    """Follow the rebalance of every group of a plan, twice, in one go; runs queries.

    A plan by weight is reached at once: what moves pauses, and nothing is withheld; of groups
    without an assignor of Kafka's client protocol and ``eager_...`` are null.
    """
    # A plan by weight is of groups with any assignor, or with none.
    known_assignors = None if plan.is_by_weight else ASSIGNORS
    eligible = inspect_inputs(conform_inputs(*plan.snapshot), known_assignors).eligible
    kernel = partial(
        follow_both_arrow,
        is_owned=eligible.owned is not None,
        racks_before_moves=settings.racks_before_moves,
        max_rounds=settings.max_rounds,
        at_once=plan.is_by_weight,
    )
    planned = observed_rows(conform(plan.assignment, ASSIGNMENT))
    tasks = settings.batches or eligible.batches
    rows = run_in_tasks(fold(eligible).unionByName(planned), kernel, FOLLOWED, tasks)
    rows_held, totals = materialize(rows, {"withholding": F.count_if(F.col("withheld_count") > 0)})
    is_group = F.col("member_id").isNull()
    groups = rows_held.where(is_group).select(*GROUP_KEY, *OF_GROUPS)
    if not totals["withholding"]:
        return FollowedPlan(groups, None, plan.assignment, eligible)
    withholding = groups.where(F.col("withheld_count") > 0).select(*GROUP_KEY)
    final = _final(plan, rows_held.where(~is_group), withholding)
    return FollowedPlan(groups, withholding, final, eligible)


def _final(plan: Plan, later: DataFrame, withholding: DataFrame) -> DataFrame:
    """Return the plan; for groups that withhold partitions, the end of their rounds, ``later``."""
    columns = [field.name for field in ASSIGNMENT.columns]
    at_once = conform(plan.assignment, ASSIGNMENT).join(
        withholding, on=list(GROUP_KEY), how="left_anti"
    )
    whole = at_once.select(*columns).unionByName(later.select(*columns))
    return restore_cluster_id(whole, has_cluster_id(plan.assignment))


def member_loads(final: DataFrame, members: DataFrame, owned: DataFrame | None) -> DataFrame:
    """Count what each member holds before and after.

    Args:
        final: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``.
        owned: ``schemas.OWNED``: each claim counts, also one that another member disputes.

    Returns:
        One row for each of ``members``, and for each that owns something and is not among them:
        cluster_id string, group_id string, member_id string, before bigint (null without
        ``owned``), after bigint, has_left boolean: it owns partitions and is not in the group.
    """
    key = [*GROUP_KEY, "member_id"]
    sides = [
        conform(members, MEMBERS).selectExpr(*key, "true as is_present"),
        conform(final, ASSIGNMENT).selectExpr(*key, "1 as after"),
    ]
    if owned is not None:
        claims = conform(owned, OWNED).select(*key, "topic", "partition").distinct()
        sides.append(claims.selectExpr(*key, "1 as before"))
    before = "cast(null as bigint)" if owned is None else "count(before)"
    columns = (f"{before} as before", "count(after) as after", "count(is_present) = 0 as has_left")
    totals = union_by_name(sides, allow_missing=True).groupBy(*key).agg(*map(F.expr, columns))
    return totals.where("not has_left or before > 0")
