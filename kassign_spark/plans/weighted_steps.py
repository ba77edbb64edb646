"""Plans by weight for groups too large for one task: only what may move is planned by name.

Partitions, with their weights and owners, stay a frame. From it come what members and classes weigh
together and the heaviest partitions, from which a task finds the limits; what members above theirs
shed is chosen by tasks, a member in one; and a task plans what was shed, beside what nobody has.
Where that leaves members above their limits, all partitions of some members may move, and it plans
again.
"""

from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.weighted.cut import BUNDLES_A_MEMBER, HEAVIEST_A_MEMBER
from kassign_spark.assignors.weighted.small import Wanted
from kassign_spark.groups.rows import all_rows, in_tasks
from kassign_spark.plans.weight_rows import fold_capacities, valued
from kassign_spark.plans.weighted_cut_read import HEAVY, LOAD, POOL, SUM, UNIT
from kassign_spark.plans.weighted_cut_tasks import (
    BUNDLED,
    CLASS,
    CUT,
    HEAVIEST,
    KEPT,
    LIMITS,
    OVER,
    PART,
    SHED,
    bundle_arrow,
    curve_cut_arrow,
    cut_arrow,
    heaviest_arrow,
    limits_arrow,
    shed_arrow,
)
from kassign_spark.plans.weighted_groups import Given
from kassign_spark.plans.weighted_large import AT, Large, most_weighed_partitions
from kassign_spark.plans.weighted_tasks import CURVE, PLANNED
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings

_ROUNDS = 4
_SLICE = 200_000
_LEAD = ("lead_topic", "lead_partition")
_NUMBERS_OF_PARTS = {
    "place": "topic_number",
    "number": "partition",
    "subscription": "coalesce(home, -1)",
}


def plan_large_groups(large: Large, wanted: Wanted, given: Given, settings: Settings) -> DataFrame:
    """Plan groups that are cut; runs jobs.

    Returns:
        the columns of ``weighted_tasks.PLANNED``.
    """
    facts, limits = _limits(large, wanted)
    pool, least = _pool(large, limits, given, settings)
    most = most_weighed_partitions(settings) // 2
    kernel = partial(cut_arrow, wanted=wanted, most=most)
    for _ in range(_ROUNDS):
        table = _table(facts, pool, large.units, least)
        found, counted = hold(
            in_tasks(table, kernel, CUT, large.eligible.tasks),
            {"opened": F.count_if(F.col("opened").isNotNull())},
        )
        if not counted["opened"]:
            break
        opened = found.where("opened IS NOT NULL").selectExpr(
            *GROUP_KEY, "cast(opened as int) as home"
        )
        may = _of_members(large, limits).where("stays = 0").drop("stays")
        may = may.join(F.broadcast(opened), on=[*GROUP_KEY, "home"], how="left_semi")
        more = may.join(pool, on=[*GROUP_KEY, *AT], how="left_anti")
        pool = hold(pool.unionByName(more.withColumns(_as_itself()))).frame
    verdicts = found.where("verdict IS NOT NULL")
    both = _assignment(large, pool, found).unionByName(verdicts, allowMissingColumns=True)
    none = F.lit(None).cast("string")
    whole = both.withColumn("problem", none).select(*(f.split()[0] for f in PLANNED.split(", ")))
    return hold(whole).frame


def trace_large_groups(large: Large, given: Given, settings: Settings) -> DataFrame:
    """Trace the curves of groups that are cut: the columns of ``weighted_tasks.CURVE``."""
    facts, limits = _limits(large, None)
    pool, least = _pool(large, limits, given, settings)
    table = _table(facts, pool, large.units, least)
    return hold(in_tasks(table, curve_cut_arrow, CURVE, large.eligible.tasks)).frame


def _as(kind: str, *columns: str) -> list[str]:
    """Columns in another type, in SQL."""
    return [f"cast({column} as {kind}) as {column}" for column in columns]


def _limits(large: Large, wanted: Wanted | None) -> tuple[DataFrame, DataFrame]:
    """What is known of the groups, as rows for tasks, and who is above which limit; both held."""
    parts, keys = large.parts, list(GROUP_KEY)
    sums = parts.groupBy(*keys, "topic_number").agg(F.sum("whole").alias("value"))
    loads = (
        parts.where("home IS NOT NULL")
        .groupBy(*keys, "home")
        .agg(F.sum("whole").alias("value"), F.count("*").alias("number"))
    )
    most = large.units.selectExpr(*keys, f"member_count * {HEAVIEST_A_MEMBER} as most")
    owner = "coalesce(cast(home as bigint), -1) as home"
    heaviest = (
        parts.join(F.broadcast(most), on=keys, how="inner")
        .selectExpr(*keys, *_as("bigint", *AT), owner, "whole", "most")
        .mapInArrow(all_rows(heaviest_arrow), HEAVIEST)
        .join(F.broadcast(most), on=keys, how="inner")
    )
    heaviest = heaviest.repartition(1, *keys).mapInArrow(all_rows(heaviest_arrow), HEAVIEST)
    table = reduce(
        DataFrame.unionByName,
        [
            fold_capacities(large.eligible, claims=False),
            valued(sums, SUM, "value", place="topic_number"),
            valued(loads, LOAD, "value", subscription="home"),
            valued(heaviest, HEAVY, "whole", **_NUMBERS_OF_PARTS),
        ],
    )
    facts = hold(table).frame
    kernel = partial(limits_arrow, wanted=wanted)
    table = facts.unionByName(valued(large.units, UNIT, "power"))
    return facts, hold(in_tasks(table, kernel, LIMITS, large.eligible.tasks)).frame


def _of_members(large: Large, limits: DataFrame) -> DataFrame:
    """Partitions that somebody has, and stays bigint: 1: its member has it for itself; else 0."""
    kept = limits.where(f"kind = {KEPT}").selectExpr(
        *GROUP_KEY, *_as("int", *AT), "cast(1 as bigint) as stays"
    )
    somebodys = large.parts.where("home IS NOT NULL")
    return somebodys.join(F.broadcast(kept), [*GROUP_KEY, *AT], "left").fillna(0, ["stays"])


def _pool(
    large: Large, limits: DataFrame, given: Given, settings: Settings
) -> tuple[DataFrame, DataFrame]:
    """Say what may move: what members above a limit shed, and what nobody has; both held.

    Returns:
        cluster_id, group_id, topic_number int, partition int, whole double, cost double, home int?,
        lead_topic int, lead_partition int: partitions of one lead go together; and how many
        partitions each group sheds at least: cluster_id, group_id, least bigint.
    """
    keys, tasks = list(GROUP_KEY), large.eligible.tasks
    over = limits.where(f"kind = {OVER}")
    homes = F.broadcast(over.selectExpr(*keys, *_as("int", "home")).distinct())
    candidates = _of_members(large, limits).join(homes, on=[*keys, "home"], how="left_semi")
    table = candidates.selectExpr(
        *keys,
        f"{PART} as kind",
        *_as("bigint", "home", *AT),
        "stays as number",
        "whole as value",
        "cost",
    ).unionByName(over, allowMissingColumns=True)
    kernel = partial(shed_arrow, by_cost=given.by_weight)
    shed = hold(in_tasks(table, kernel, SHED, tasks, (*GROUP_KEY, "home"))).frame
    least = shed.where("least IS NOT NULL").groupBy(*keys).agg(F.sum("least").alias("least"))
    gives = shed.where("topic_number IS NOT NULL").selectExpr(
        *keys, *_as("int", *AT, "home"), "whole", "cost"
    )
    free, most = large.parts.where("home IS NULL"), most_weighed_partitions(settings) // 2
    if large.most_free > most:
        free = _bundled(large, free, limits, most)
    else:
        free = free.withColumns(_as_itself())
    return hold(gives.withColumns(_as_itself()).unionByName(free)).frame, least


def _as_itself() -> dict[str, Column]:
    return {lead: F.col(name) for lead, name in zip(_LEAD, AT, strict=True)}


def _bundled(large: Large, free: DataFrame, limits: DataFrame, most: int) -> DataFrame:
    """Let light partitions that nobody has go together, class by class, in slices of the group.

    In groups that have at most ``most`` of them, each goes by itself.
    """
    keys = list(GROUP_KEY)
    classes = limits.where(f"kind = {CLASS}").selectExpr(
        *keys, *_as("int", "topic_number"), "number", "value"
    )
    units = large.units.selectExpr(
        *keys,
        f"free > {most} as is_bundled",
        # So many bundles of what weighs nothing as there are of the rest.
        f"greatest(ceil(free_idle / (member_count * {BUNDLES_A_MEMBER})), 1) as unit",
        f"floor(free / {_SLICE}) + 1 as slices",
    )
    table = (
        free.join(F.broadcast(classes), on=[*keys, "topic_number"], how="inner")
        .join(F.broadcast(units), on=keys, how="inner")
        .selectExpr(
            *keys,
            *_as("bigint", *AT),
            "whole",
            "number",
            "if(is_bundled, value, 0D) as value",
            "if(is_bundled, unit, 1) as unit",
            "pmod(xxhash64(topic_number, partition), slices) as slice",
        )
    )
    found = in_tasks(table, bundle_arrow, BUNDLED, large.eligible.tasks, (*GROUP_KEY, "slice"))
    return found.selectExpr(
        *keys,
        *_as("int", *AT, *_LEAD),
        "whole",
        "cast(null as double) as cost",
        "cast(null as int) as home",
    )


def _table(facts: DataFrame, pool: DataFrame, units: DataFrame, least: DataFrame) -> DataFrame:
    """The rows of the groups, with what may move."""
    keys = list(GROUP_KEY)
    lead = [F.col(lead).alias(name) for name, lead in zip(AT, _LEAD, strict=True)]
    items = pool.groupBy(*keys, *lead, "home").agg(
        F.sum("whole").alias("whole"),
        F.max("cost").alias("cost"),
        F.count("*").cast("double").alias("stands_for"),
    )
    cost = "if(home is null, stands_for, cost)"
    unit = units.join(least, on=keys, how="left")
    return facts.unionByName(valued(items, POOL, "whole", cost, **_NUMBERS_OF_PARTS)).unionByName(
        valued(unit, UNIT, "power", number="least")
    )


def _assignment(large: Large, pool: DataFrame, found: DataFrame) -> DataFrame:
    """Who has every partition: cluster_id, group_id, member_id, topic, partition."""
    keys = list(GROUP_KEY)
    given = (
        found.where("owner IS NOT NULL")
        .selectExpr(*keys, *_as("int", *AT, "owner"))
        .toDF(*keys, *_LEAD, "owner")
    )
    moved = pool.join(given, on=[*keys, *_LEAD], how="inner").select(*keys, *AT, "owner")
    owners = large.parts.join(moved, on=[*keys, *AT], how="left").selectExpr(
        *keys, *AT, "coalesce(owner, home) as home"
    )
    return (
        owners.join(F.broadcast(large.members), on=[*keys, "home"], how="inner")
        .join(F.broadcast(large.topics), on=[*keys, "topic_number"], how="inner")
        .select(*keys, "member_id", "topic", "partition")
    )
