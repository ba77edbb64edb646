"""Plans by weight for groups too large for one task: only what may move is planned by name.

Partitions, with their weights and owners, stay a frame. From it come what members and classes weigh
together and the heaviest partitions, from which a task finds the limits; what members above theirs
shed is chosen by tasks, a member in one; and a task plans what was shed, beside what nobody has.
Where that leaves members above their limits, all partitions of some members may move, and it plans
again.
"""

from functools import partial, reduce
from itertools import groupby
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.sizes import restrict_to
from kassign_spark.assignors.weighted.cut import (
    BUNDLES_A_MEMBER,
    HEAVIEST_A_MEMBER,
    PARTITIONS_A_MEMBER,
)
from kassign_spark.assignors.weighted.small import Wanted
from kassign_spark.errors import InputError
from kassign_spark.expressions import java_string_order
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import (
    Claims,
    partition_of,
    read_claims,
    subscribed_topics,
    topic_number,
    topic_number_of,
)
from kassign_spark.groups.rows import all_rows, in_tasks
from kassign_spark.inputs.checks import MAX_LISTED
from kassign_spark.plans.weight_rows import fold_capacities, refused_groups, valued
from kassign_spark.plans.weighted_cut_tasks import (
    BUNDLED,
    CLASS,
    CUT,
    HEAVIEST,
    HEAVY,
    KEPT,
    LIMITS,
    LOAD,
    OVER,
    PART,
    POOL,
    SHED,
    SUM,
    UNIT,
    bundle_arrow,
    curve_cut_arrow,
    cut_arrow,
    heaviest_arrow,
    limits_arrow,
    shed_arrow,
)
from kassign_spark.plans.weighted_groups import NAMED, Given, missing_says
from kassign_spark.plans.weighted_tasks import CURVE, PLANNED
from kassign_spark.rounds import hold
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.settings.computing import Settings

_ROUNDS = 4
_SLICE = 200_000
_AT = ("topic_number", "partition")


class Large(NamedTuple):
    """Groups that are cut.

    Attributes:
        eligible: these groups.
        topics: cluster_id string, group_id string, topic string, num_partitions int,
            topic_number int.
        members: cluster_id string, group_id string, member_id string, home int.
        parts: cluster_id string, group_id string, topic_number int, partition int, whole double
            (its weight as ``problem.scaled`` makes it), cost double, home int? (who owns it).
        units: one row a group: cluster_id string, group_id string, power double, member_count int,
            free bigint (partitions of nobody), free_idle bigint (those without weight).
        most_free: the greatest ``free``.
    """

    eligible: Eligible
    topics: DataFrame
    members: DataFrame
    parts: DataFrame
    units: DataFrame
    most_free: int


def cut(
    eligible: Eligible,
    weights: DataFrame,
    given: Given,
    settings: Settings,
    *,
    even_first: bool = False,
) -> tuple[Eligible, Large | None]:
    """Tell groups that are cut from those that a task plans whole; runs jobs if some are large.

    Cut are groups of more partitions than ``settings.max_partitions_per_task`` and at least
    ``PARTITIONS_A_MEMBER`` a member, that have weight. Where topics are kept together, none is, nor
    with ``even_first`` those whose partitions all weigh the same: their best balance is by counts.

    Returns:
        the groups for tasks, and the others; None: there are none.

    Raises:
        InputError: some of these have partitions without weight; lists groups.
    """
    border = settings.max_partitions_per_task
    if eligible.most_partitions <= border or given.together:
        return eligible, None
    keys = list(GROUP_KEY)
    sizes = eligible.members.groupBy(*keys).agg(F.count(F.lit(1)).alias("member_count"))
    sizes = sizes.join(
        subscribed_topics(eligible).groupBy(*keys).agg(F.sum("num_partitions").alias("partitions")),
        on=keys,
        how="inner",
    )
    enough = F.greatest(F.lit(border + 1), F.col("member_count") * PARTITIONS_A_MEMBER)
    found_large, counted = hold(
        sizes.where(F.col("partitions") >= enough), {"groups": F.count(F.lit(1))}
    )
    if not counted["groups"]:
        return eligible, None
    some = restrict_to(eligible, found_large)
    topics = hold(
        subscribed_topics(some).withColumn("topic_number", topic_number()), {"rows": F.count("*")}
    ).frame
    members = _numbered_members(some)
    raw = hold(_partitions(some, topics, members, weights), {"rows": F.count("*")}).frame
    units, found = hold(
        _units(raw, found_large, given, even_first),
        {
            "problems": F.count_if(F.col("lacks")),
            "weighed": F.count_if(F.col("power") > 0),
            "most_free": F.max("free"),
        },
    )
    if found["problems"]:
        raise _lacking(raw, units.where("lacks"), topics)
    if not found["weighed"]:
        return eligible, None
    weighed = units.where("power > 0")
    some = restrict_to(some, weighed)
    parts = _weighed(raw, weighed, given)
    large = Large(some, topics, members, parts, weighed, found["most_free"])
    return _without(eligible, weighed), large


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
        more = may.join(pool, on=[*GROUP_KEY, *_AT], how="left_anti")
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


def _without(eligible: Eligible, groups: DataFrame) -> Eligible:
    keys = list(GROUP_KEY)
    names = groups.select(*keys)
    return eligible._replace(
        members=eligible.members.join(names, on=keys, how="left_anti"),
        groups=eligible.groups.join(names, on=keys, how="left_anti"),
        owned=None
        if eligible.owned is None
        else eligible.owned.join(names, on=keys, how="left_anti"),
    )


def _numbered_members(eligible: Eligible) -> DataFrame:
    """Members by number, in Java's order of their ids, as a task numbers them."""
    in_order = Window.partitionBy(*GROUP_KEY).orderBy(java_string_order(F.col("member_id")))
    return eligible.members.select(
        *GROUP_KEY, "member_id", (F.row_number().over(in_order) - 1).alias("home")
    )


def _partitions(
    eligible: Eligible, topics: DataFrame, members: DataFrame, weights: DataFrame
) -> DataFrame:
    """All partitions, with what is said of them: weight double?, move_cost double?, home int?."""
    numbered = topics.repartition(eligible.tasks, *GROUP_KEY, "topic")
    there = numbered.select(
        *GROUP_KEY,
        "topic_number",
        F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition"),
    )
    exists = F.col("partition") < F.col("num_partitions")
    own = weights.where("group_id IS NOT NULL").join(topics, on=[*GROUP_KEY, "topic"], how="inner")
    shared = weights.where("group_id IS NULL").drop("group_id")
    shared = shared.join(topics, on=[CLUSTER_ID, "topic"], how="inner")

    def told(frame: DataFrame, whose: str) -> DataFrame:
        return frame.where(exists).select(
            *GROUP_KEY,
            *_AT,
            F.col("weight").cast("double").alias(whose),
            F.col("move_cost").cast("double").alias(f"{whose}_cost"),
        )

    frames = [there, told(own, "own"), told(shared, "shared")]
    if eligible.owned is not None:
        frames.append(_owners(eligible, topics, members))
    nothing = {
        name: F.lit(None).cast("double") for name in ("own", "own_cost", "shared", "shared_cost")
    }
    whole = {**nothing, "home": F.lit(None).cast("int")}
    every = [
        frame.withColumns({n: of for n, of in whole.items() if n not in frame.columns}).select(
            *GROUP_KEY, *_AT, *whole
        )
        for frame in frames
    ]
    by_partition = (
        reduce(DataFrame.unionByName, every)
        .groupBy(*GROUP_KEY, *_AT)
        .agg(*(F.max(name).alias(name) for name in whole))
    )
    is_own = F.col("own").isNotNull()
    return by_partition.select(
        *GROUP_KEY,
        *_AT,
        F.coalesce("own", "shared").alias("weight"),
        F.when(is_own, F.col("own_cost")).otherwise(F.col("shared_cost")).alias("move_cost"),
        "home",
    )


def _owners(eligible: Eligible, topics: DataFrame, members: DataFrame) -> DataFrame:
    """Who owns what, of what they subscribe to, by number."""
    assert eligible.owned is not None
    owned = eligible.owned
    if eligible.heterogeneous:
        subscribed = eligible.members.select(
            *GROUP_KEY, "member_id", F.explode("topics").alias("topic")
        ).distinct()
        owned = owned.join(subscribed, on=[*GROUP_KEY, "member_id", "topic"], how="left_semi")
    claims: Claims = read_claims(eligible._replace(owned=owned), topics)
    disputed = claims.disputed
    claim = F.explode("claims").alias("claim")
    found = claims.members.join(members, on=[*GROUP_KEY, "member_id"], how="inner").select(
        *GROUP_KEY, "home", claim
    )
    found = found.select(
        *GROUP_KEY,
        topic_number_of(F.col("claim")).alias("topic_number"),
        partition_of(F.col("claim")).alias("partition"),
        "home",
    )
    if disputed is None:
        return found
    return found.join(disputed, on=[*GROUP_KEY, *_AT], how="left_anti")


def _units(raw: DataFrame, large: DataFrame, given: Given, even_first: bool) -> DataFrame:
    """How the weights of each group are scaled, as ``problem.scaled`` does; power 0: no weight."""
    keys = list(GROUP_KEY)
    weight = F.coalesce("weight", F.lit(given.missing or 0.0)) + F.lit(given.base)
    counted = raw.groupBy(*keys).agg(
        F.count("*").alias("count"),
        F.count("weight").alias("known"),
        F.max(weight).alias("most"),
        F.min(weight).alias("least"),
        F.count_if(F.col("home").isNull()).alias("free"),
        F.count_if(F.col("home").isNull() & (weight <= 0)).alias("free_idle"),
    )
    most = F.col("most")
    near = F.floor(F.log2(most)).cast("int")
    # The logarithm is rounded; powers of two are not.
    bits = near + F.when(F.pow(F.lit(2.0), near) > most, 0).when(
        F.pow(F.lit(2.0), near + 1) <= most, 2
    ).otherwise(1)
    shift = F.lit(50) - bits - F.length(F.bin("count"))
    power = F.pow(F.lit(2.0), F.greatest(F.least(shift, F.lit(1000)), F.lit(-1000)))
    by_count = F.lit(even_first) & (F.col("least") == most)
    lacks = (F.col("known") > 0) & (F.col("known") < F.col("count")) & F.lit(given.missing is None)
    return counted.join(large.select(*keys, "member_count"), on=keys, how="inner").select(
        *keys,
        lacks.alias("lacks"),
        F.when((F.col("known") > 0) & (most > 0) & ~by_count, power).otherwise(0.0).alias("power"),
        F.col("member_count").cast("int").alias("member_count"),
        (F.col("count") - F.col("known")).alias("missing"),
        "free",
        "free_idle",
    )


def _weighed(raw: DataFrame, units: DataFrame, given: Given) -> DataFrame:
    weight = F.coalesce("weight", F.lit(given.missing or 0.0)) + F.lit(given.base)
    cost = F.coalesce("move_cost", "weight") if given.by_weight else F.lit(1.0)
    powers = F.broadcast(units.select(*GROUP_KEY, "power"))
    return (
        raw.join(powers, on=list(GROUP_KEY), how="inner")
        .withColumn("weight", weight)
        .select(
            *GROUP_KEY,
            *_AT,
            F.rint(F.col("weight") * F.col("power")).alias("whole"),
            cost.alias("cost"),
            "home",
        )
    )


def _lacking(raw: DataFrame, units: DataFrame, topics: DataFrame) -> InputError:
    """The error of groups that have partitions without weight: it names the first of them."""
    keys = list(GROUP_KEY)
    in_order = Window.partitionBy(*keys).orderBy(*_AT)
    first = (
        raw.where("weight IS NULL")
        .join(units.select(*keys, "missing"), on=keys, how="inner")
        .withColumn("place", F.row_number().over(in_order))
        .where(F.col("place") <= NAMED)
        .join(topics, on=[*keys, "topic_number"], how="inner")
        .orderBy(*keys, "place")
        .limit((MAX_LISTED + 1) * NAMED)
        .collect()
    )
    return refused_groups(
        [
            (group, missing_says(missing, [f"{row.topic}-{row.partition}" for row in of_group]))
            for (_, group, missing), of_group in groupby(
                first, lambda row: (row.cluster_id, row.group_id, row.missing)
            )
        ]
    )


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
    long = {name: F.col(name).cast("bigint") for name in _AT}
    owner = F.coalesce(F.col("home").cast("bigint"), F.lit(-1))
    heaviest = (
        parts.withColumns({**long, "home": owner})
        .join(most, on=keys, how="inner")
        .select(*keys, *_AT, "home", "whole", "most")
        .mapInArrow(all_rows(heaviest_arrow), HEAVIEST)
        .join(most, on=keys, how="inner")
    )
    heaviest = heaviest.repartition(1, *keys).mapInArrow(all_rows(heaviest_arrow), HEAVIEST)
    table = reduce(
        DataFrame.unionByName,
        [
            fold_capacities(large.eligible, claims=False),
            valued(sums, SUM, F.col("value"), place=F.col("topic_number")),
            valued(loads, LOAD, F.col("value"), subscription=F.col("home")),
            valued(heaviest, HEAVY, F.col("whole"), **_numbers_of_parts()),
        ],
    )
    facts = hold(table, {"rows": F.count("*")}).frame
    kernel = partial(limits_arrow, wanted=wanted)
    table = facts.unionByName(valued(large.units, UNIT, F.col("power")))
    limits = in_tasks(table, kernel, LIMITS, large.eligible.tasks)
    return facts, hold(limits, {"rows": F.count("*")}).frame


def _numbers_of_parts() -> dict[str, Column]:
    return {
        "place": F.col("topic_number"),
        "number": F.col("partition"),
        "subscription": F.coalesce("home", F.lit(-1)),
    }


def _of_members(large: Large, limits: DataFrame) -> DataFrame:
    """Partitions that somebody has, and stays bigint: 1: its member has it for itself; else 0."""
    kept = limits.where(F.col("kind") == KEPT).select(
        *GROUP_KEY,
        *(F.col(name).cast("int").alias(name) for name in _AT),
        F.lit(1).cast("bigint").alias("is_kept"),
    )
    return (
        large.parts.where("home IS NOT NULL")
        .join(F.broadcast(kept), on=[*GROUP_KEY, *_AT], how="left")
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
        *(F.col(name).cast("bigint").alias(name) for name in _AT),
        F.col("stays").alias("number"),
        F.col("whole").alias("value"),
        "cost",
    ).unionByName(
        over.select(
            *keys,
            F.lit(OVER).cast("tinyint").alias("kind"),
            "home",
            *(nothing.alias(name) for name in _AT),
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
        {name: F.col(name).cast("int") for name in (*_AT, "home")}
    )
    columns = [*keys, *_AT, "whole", "cost", "home", "lead_topic", "lead_partition"]
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
            *(F.col(name).cast("bigint").alias(name) for name in _AT),
            "whole",
            "number",
            F.when(F.col("is_bundled"), F.col("value")).otherwise(0.0).alias("value"),
            F.when(F.col("is_bundled"), F.col("unit")).otherwise(1).alias("unit"),
            F.pmod(F.xxhash64(*_AT), F.col("slices")).alias("slice"),
        )
    )
    found = in_tasks(table, bundle_arrow, BUNDLED, large.eligible.tasks, (*GROUP_KEY, "slice"))
    numbers = (*_AT, "lead_topic", "lead_partition")
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
    cost = F.when(F.col("home").isNull(), F.col("stands_for")).otherwise(F.col("cost"))
    at = {"topic_number": F.col("lead_topic"), "partition": F.col("lead_partition")}
    items = items.withColumns(at)
    unit = units.join(least, on=keys, how="left")
    return facts.unionByName(
        valued(items, POOL, F.col("whole"), cost, **_numbers_of_parts())
    ).unionByName(valued(unit, UNIT, F.col("power"), number=F.col("least")))


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
    moved = pool.join(given, on=[*keys, *lead], how="inner").select(*keys, *_AT, "owner")
    owners = large.parts.join(moved, on=[*keys, *_AT], how="left").select(
        *keys, *_AT, F.coalesce("owner", "home").alias("home")
    )
    return (
        owners.join(F.broadcast(large.members), on=[*keys, "home"], how="inner")
        .join(F.broadcast(large.topics), on=[*keys, "topic_number"], how="inner")
        .select(*keys, "member_id", "topic", "partition")
    )
