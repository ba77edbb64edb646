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

from kassign_spark.assignors.weighted.cut import (
    BUNDLES_A_MEMBER,
    HEAVIEST_A_MEMBER,
)
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
from kassign_spark.plans.weighted_large import AT, Large
from kassign_spark.plans.weighted_tasks import CURVE, PLANNED
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings

_ROUNDS = 4
_SLICE = 200_000
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
    most = settings.max_partitions_per_task // 2
    kernel = partial(cut_arrow, wanted=wanted, most=most)
    for _ in range(_ROUNDS):
        table = _table(facts, pool, large.units, least)
        found, counted = hold(
            in_tasks(table, kernel, CUT, large.eligible.tasks),
            {"opened": F.count_if(F.col("opened").isNotNull())},
        )
        if not counted["opened"]:
            break
        opened = found.where("opened IS NOT NULL").select(
            *GROUP_KEY, F.col("opened").cast("int").alias("home")
        )
        may = _of_members(large, limits).where("stays = 0")
        may = may.join(F.broadcast(opened), on=[*GROUP_KEY, "home"], how="left_semi")
        more = may.join(pool, on=[*GROUP_KEY, *AT], how="left_anti")
        pool = hold(
            pool.unionByName(more.withColumns(_as_itself()).select(*pool.columns)),
            {"rows": F.count("*")},
        ).frame
    verdicts = found.where("verdict IS NOT NULL")
    both = _assignment(large, pool, found).unionByName(verdicts, allowMissingColumns=True)
    none = F.lit(None).cast("string")
    whole = both.withColumn("problem", none).select(*(f.split()[0] for f in PLANNED.split(", ")))
    return hold(whole, {"rows": F.count("*")}).frame


def trace_large_groups(large: Large, given: Given, settings: Settings) -> DataFrame:
    """Trace the curves of groups that are cut: the columns of ``weighted_tasks.CURVE``."""
    facts, limits = _limits(large, None)
    pool, least = _pool(large, limits, given, settings)
    table = _table(facts, pool, large.units, least)
    return hold(
        in_tasks(table, curve_cut_arrow, CURVE, large.eligible.tasks), {"rows": F.count("*")}
    ).frame


def _limits(large: Large, wanted: Wanted | None) -> tuple[DataFrame, DataFrame]:
    """What is known of the groups, as rows for tasks, and who is above which limit; both held."""
    parts, keys = large.parts, list(GROUP_KEY)
    sums = parts.groupBy(*keys, "topic_number").agg(F.sum("whole").alias("value"))
    loads = (
        parts.where("home IS NOT NULL")
        .groupBy(*keys, "home")
        .agg(F.sum("whole").alias("value"), F.count("*").alias("number"))
    )
    most = F.broadcast(
        large.units.select(*keys, (F.col("member_count") * HEAVIEST_A_MEMBER).alias("most"))
    )
    long = {name: F.col(name).cast("bigint") for name in AT}
    owner = F.coalesce(F.col("home").cast("bigint"), F.lit(-1))
    heaviest = (
        parts.withColumns({**long, "home": owner})
        .join(most, on=keys, how="inner")
        .select(*keys, *AT, "home", "whole", "most")
        .mapInArrow(all_rows(heaviest_arrow), HEAVIEST)
        .join(most, on=keys, how="inner")
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
    facts = hold(table, {"rows": F.count("*")}).frame
    kernel = partial(limits_arrow, wanted=wanted)
    table = facts.unionByName(valued(large.units, UNIT, "power"))
    limits = in_tasks(table, kernel, LIMITS, large.eligible.tasks)
    return facts, hold(limits, {"rows": F.count("*")}).frame


def _of_members(large: Large, limits: DataFrame) -> DataFrame:
    """Partitions that somebody has, and stays bigint: 1: its member has it for itself; else 0."""
    kept = limits.where(F.col("kind") == KEPT).select(
        *GROUP_KEY,
        *(F.col(name).cast("int").alias(name) for name in AT),
        F.lit(1).cast("bigint").alias("is_kept"),
    )
    return (
        large.parts.where("home IS NOT NULL")
        .join(F.broadcast(kept), on=[*GROUP_KEY, *AT], how="left")
        .withColumn("stays", F.coalesce("is_kept", F.lit(0).cast("bigint")))
        .drop("is_kept")
    )


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
    over = limits.where(F.col("kind") == OVER).select(*keys, "home", "number", "value")
    homes = F.broadcast(over.select(*keys, F.col("home").cast("int").alias("home")).distinct())
    candidates = _of_members(large, limits).join(homes, on=[*keys, "home"], how="left_semi")
    nothing = F.lit(None).cast("bigint")
    table = candidates.select(
        *keys,
        F.lit(PART).cast("tinyint").alias("kind"),
        F.col("home").cast("bigint").alias("home"),
        *(F.col(name).cast("bigint").alias(name) for name in AT),
        F.col("stays").alias("number"),
        F.col("whole").alias("value"),
        "cost",
    ).unionByName(
        over.select(
            *keys,
            F.lit(OVER).cast("tinyint").alias("kind"),
            "home",
            *(nothing.alias(name) for name in AT),
            "number",
            "value",
            F.lit(None).cast("double").alias("cost"),
        )
    )
    kernel = partial(shed_arrow, by_cost=given.by_weight)
    shed = hold(
        in_tasks(table, kernel, SHED, tasks, (*GROUP_KEY, "home")), {"rows": F.count("*")}
    ).frame
    least = shed.where("least IS NOT NULL").groupBy(*keys).agg(F.sum("least").alias("least"))
    gives = shed.where("topic_number IS NOT NULL").withColumns(
        {name: F.col(name).cast("int") for name in (*AT, "home")}
    )
    columns = [*keys, *AT, "whole", "cost", "home", "lead_topic", "lead_partition"]
    free = large.parts.where("home IS NULL")
    if large.most_free > settings.max_partitions_per_task // 2:
        free = _bundled(large, free, limits, settings.max_partitions_per_task // 2)
    else:
        free = free.withColumns(_as_itself())
    pool = gives.withColumns(_as_itself()).select(*columns).unionByName(free.select(*columns))
    return hold(pool, {"rows": F.count("*")}).frame, least


def _as_itself() -> dict[str, Column]:
    return {"lead_topic": F.col("topic_number"), "lead_partition": F.col("partition")}


def _bundled(large: Large, free: DataFrame, limits: DataFrame, most: int) -> DataFrame:
    """Let light partitions that nobody has go together, class by class, in slices of the group.

    In groups that have at most ``most`` of them, each goes by itself.
    """
    keys = list(GROUP_KEY)
    classes = limits.where(F.col("kind") == CLASS).select(
        *keys, F.col("topic_number").cast("int").alias("topic_number"), "number", "value"
    )
    # So many bundles of what weighs nothing as there are of the rest.
    unit = F.ceil(F.col("free_idle") / (F.col("member_count") * BUNDLES_A_MEMBER))
    units = large.units.select(
        *keys,
        (F.col("free") > most).alias("is_bundled"),
        F.greatest(unit, F.lit(1)).cast("bigint").alias("unit"),
        (F.floor(F.col("free") / _SLICE) + 1).cast("bigint").alias("slices"),
    )
    table = (
        free.join(F.broadcast(classes), on=[*keys, "topic_number"], how="inner")
        .join(F.broadcast(units), on=keys, how="inner")
        .select(
            *keys,
            *(F.col(name).cast("bigint").alias(name) for name in AT),
            "whole",
            "number",
            F.when(F.col("is_bundled"), F.col("value")).otherwise(0.0).alias("value"),
            F.when(F.col("is_bundled"), F.col("unit")).otherwise(1).alias("unit"),
            F.pmod(F.xxhash64(*AT), F.col("slices")).alias("slice"),
        )
    )
    found = in_tasks(table, bundle_arrow, BUNDLED, large.eligible.tasks, (*GROUP_KEY, "slice"))
    numbers = (*AT, "lead_topic", "lead_partition")
    return found.withColumns(
        {
            **{name: F.col(name).cast("int") for name in numbers},
            "cost": F.lit(None).cast("double"),
            "home": F.lit(None).cast("int"),
        }
    )


def _table(facts: DataFrame, pool: DataFrame, units: DataFrame, least: DataFrame) -> DataFrame:
    """The rows of the groups, with what may move."""
    keys = list(GROUP_KEY)
    items = pool.groupBy(*keys, "lead_topic", "lead_partition", "home").agg(
        F.sum("whole").alias("whole"),
        F.max("cost").alias("cost"),
        F.count("*").cast("double").alias("stands_for"),
    )
    cost = "if(home is null, stands_for, cost)"
    at = {"topic_number": F.col("lead_topic"), "partition": F.col("lead_partition")}
    items = items.withColumns(at)
    unit = units.join(least, on=keys, how="left")
    return facts.unionByName(valued(items, POOL, "whole", cost, **_NUMBERS_OF_PARTS)).unionByName(
        valued(unit, UNIT, "power", number="least")
    )


def _assignment(large: Large, pool: DataFrame, found: DataFrame) -> DataFrame:
    """Who has every partition: cluster_id, group_id, member_id, topic, partition."""
    keys = list(GROUP_KEY)
    lead = ["lead_topic", "lead_partition"]
    given = found.where("owner IS NOT NULL").select(
        *keys,
        F.col("topic_number").cast("int").alias(lead[0]),
        F.col("partition").cast("int").alias(lead[1]),
        F.col("owner").cast("int").alias("owner"),
    )
    moved = pool.join(given, on=[*keys, *lead], how="inner").select(*keys, *AT, "owner")
    owners = large.parts.join(moved, on=[*keys, *AT], how="left").select(
        *keys, *AT, F.coalesce("owner", "home").alias("home")
    )
    return (
        owners.join(F.broadcast(large.members), on=[*keys, "home"], how="inner")
        .join(F.broadcast(large.topics), on=[*keys, "topic_number"], how="inner")
        .select(*keys, "member_id", "topic", "partition")
    )
