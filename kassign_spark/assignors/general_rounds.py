"""The general pass on counts, in rounds over DataFrames: for groups too large for one task.

``engine.costs`` says what the steps mean and why they are exact. The state has one row an edge
(class, member) and repeats on it what belongs to its class and to its member. So nearly every step
is a window over the edges of a class or of a member, two exchanges a round; there are no joins,
whose size estimates multiply, but the one with a part's totals.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kassign_spark.engine.costs import ANY_NUMBER, HIGH, LOW, MIDDLE, MOVE, MUST_FILL, UNREACHABLE
from kassign_spark.expressions import div
from kassign_spark.rounds import Budget, converge, settle

_EDGE = ("part", "class", "member", "turn", "supply", "owned")
_STATE = (*_EDGE, "assigned", "quota", "open", "load")
_SWEPT = (*_STATE, "of_class", "of_member")

_PLACE = (
    f"case when load < quota then {1 - MUST_FILL} when load = quota then 1 else {UNREACHABLE} end"
)
"""Distance from a member to a place of its own."""
_TAKE = f"if(assigned < owned, 1, {MOVE + 1})"
"""Distance from class to member."""
_GIVE = f"if(assigned > owned, {1 - MOVE}, 1)"
"""Distance from member to class, one of which it pushes out."""

_STEPS_PER_ROUND = 2
"""A round costs about a second whatever it does, and loops take several steps."""


def settle_in_rounds(edges: DataFrame, budget: Budget) -> DataFrame:
    """Assign all partitions: balance best, then moves fewest.

    Args:
        edges: part bigint (its component), class bigint, member bigint (numbers that no two
            groups share), turn int (the class's number within its group), supply bigint (of the
            class), owned bigint.
        budget: counts the rounds.

    Returns:
        class bigint, member bigint, assigned bigint > 0.

    Raises:
        NotConvergedError: the budget ended first.
    """
    state = _start(edges.select(*_EDGE, F.lit(MIDDLE).alias("level")))
    settled = []
    while True:
        swept, flags = _run_distances(state, budget)
        restarted = None
        if flags["finished"]:
            split, counts = settle(
                _split(swept.where("not is_moving")), {"pending": F.count_if(~F.col("is_settled"))}
            )
            settled.append(split.where("is_settled").select("class", "member", "assigned"))
            restarted = _start(split.where("not is_settled")) if counts["pending"] else None
        pushed = _run_pushes(swept.where("is_moving"), budget) if flags["moving"] else None
        if pushed is None and restarted is None:
            return reduce(DataFrame.unionByName, settled).where("assigned > 0")
        state = reduce(DataFrame.unionByName, (f for f in (pushed, restarted) if f is not None))


def _of(key: str) -> WindowSpec:
    """All edges of the same class, or of the same member."""
    return Window.partitionBy(key)


def _in_order(key: str) -> WindowSpec:
    return _of(key).orderBy("member" if key == "class" else "class")


def _earlier(key: str) -> WindowSpec:
    """Edges of the same class and a lower member, or of the same member and a lower class."""
    return _in_order(key).rowsBetween(Window.unboundedPreceding, -1)


def _sum(values: Column, window: WindowSpec) -> Column:
    """Sum; nothing adds up to 0."""
    return F.coalesce(F.sum(values).over(window), F.lit(0).cast("bigint"))


def _progress() -> dict[str, Column]:
    """What is told of a round, over the edges that are not settled: about how many components."""
    return {
        "moves": F.sum(F.greatest(F.col("assigned") - F.col("owned"), F.lit(0))),
        "open_components": F.approx_count_distinct("part", 0.01),
    }


def _within(value: Column, upper: Column) -> Column:
    return F.greatest(F.least(value, upper), F.lit(0))


def _start(edges: DataFrame) -> DataFrame:
    """Make each (part, level) a part with a quota; members keep what they own up to it."""
    is_first_of_class = F.row_number().over(_in_order("class")) == 1
    is_first_of_member = F.row_number().over(_in_order("member")) == 1
    counted = edges.select(
        *_EDGE,
        "level",
        F.when(is_first_of_class, F.col("supply")).otherwise(0).alias("counted_supply"),
        F.when(is_first_of_member, 1).otherwise(0).alias("counted_member"),
    )
    parts = counted.groupBy("part", "level").agg(
        F.min("member").alias("new_part"),
        div(F.sum("counted_supply"), F.sum("counted_member")).alias("quota"),
    )
    owned_earlier = _sum(F.col("owned"), _earlier("member"))
    return (
        edges.join(parts, on=["part", "level"], how="inner")
        .withColumn("part", F.col("new_part"))
        .withColumn("assigned", _within(F.col("quota") - owned_earlier, F.col("owned")))
        .withColumn("load", _sum(F.col("assigned"), _of("member")))
        .withColumn("open", F.col("supply") - _sum(F.col("assigned"), _of("class")))
        .select(*_STATE)
    )


def _reachable(distance: Column) -> Column:
    too_far = distance > UNREACHABLE // 2
    return F.when(too_far, F.lit(UNREACHABLE)).otherwise(distance)


def _run_distances(state: DataFrame, budget: Budget) -> tuple[DataFrame, dict[str, int]]:
    """Add the distances, and whether a part still moves (is_moving) or is stuck (is_stuck)."""
    swept = converge(
        state.selectExpr(*_STATE, f"{UNREACHABLE} as of_class", f"{_PLACE} as of_member"),
        _sweep,
        F.count_if("is_nearer"),
        what="distances",
        budget=budget,
        measures=_progress(),
    )
    parts = swept.groupBy("part").agg(
        F.max((F.col("open") > 0) & (F.col("of_class") < UNREACHABLE)).alias("is_moving"),
        F.max(F.col("open") > 0).alias("is_stuck"),
        F.min(F.struct("class", "member")).alias("first_edge"),
    )
    is_first = F.col("first_edge") == F.struct("class", "member")
    return settle(
        swept.join(parts, on="part", how="inner").select(
            *_SWEPT, "is_moving", "is_stuck", is_first.alias("is_first")
        ),
        {
            "moving": F.count_if(F.col("is_first") & F.col("is_moving")),
            "finished": F.count_if(F.col("is_first") & ~F.col("is_moving")),
        },
    )


def _sweep(state: DataFrame) -> DataFrame:
    """Carry distances from members to classes to members; ``is_nearer`` in the last step."""
    for _ in range(_STEPS_PER_ROUND):
        of_class = F.min(F.expr(f"of_member + {_TAKE}")).over(_of("class"))
        through = F.expr(f"if(assigned > 0, of_class + {_GIVE}, {UNREACHABLE})")
        of_member = F.min(through).over(_of("member"))
        state = (
            state.select(*_STATE, _reachable(of_class).alias("of_class"), "of_member")
            .withColumn("nearest", F.least(F.expr(_PLACE), _reachable(of_member)))
            .select(
                *_STATE,
                "of_class",
                F.col("nearest").alias("of_member"),
                (F.col("nearest") != F.col("of_member")).alias("is_nearer"),
            )
        )
    return state


def _run_pushes(swept: DataFrame, budget: Budget) -> DataFrame:
    """Let open partitions step along cheapest paths until none of them finds room."""
    pushed = converge(
        _with_capacities(swept),
        _push_on,
        F.count_if(F.col("offer") > 0),
        what="transfers",
        budget=budget,
        measures=_progress(),
    )
    return pushed.select(*_STATE)


def _with_capacities(swept: DataFrame) -> DataFrame:
    """Add what may step along each edge on a cheapest path, and what each member accepts."""
    takes = f"of_class < {UNREACHABLE} and of_class = of_member + {_TAKE}"
    gives = f"of_class < {UNREACHABLE} and assigned > 0 and of_member = of_class + {_GIVE}"
    has_room = f"of_member < {UNREACHABLE} and of_member = {_PLACE}"
    return swept.selectExpr(
        *_STATE,
        f"if({takes}, if(owned > assigned, owned - assigned, {ANY_NUMBER}), 0L) as can_take",
        f"if({gives}, if(owned < assigned, assigned - owned, assigned), 0L) as can_give",
        f"if({has_room}, greatest(quota - load, 1L), 0L) as room",
        "0L as taken",
        "0L as given",
    ).withColumn("accepts", F.col("room") + _sum(F.col("can_give"), _of("member")))


def _push_on(state: DataFrame) -> DataFrame:
    return reduce(lambda pushed, _: _push(pushed), range(_STEPS_PER_ROUND), state)


def _push(state: DataFrame) -> DataFrame:
    """One step: classes offer what they have open, members accept and push out."""
    taken, given = F.col("taken"), F.col("given")
    takers = F.greatest(F.count_if("is_offered").over(_of("class")), F.lit(1))
    earlier = _sum(F.col("is_offered").cast("int"), _earlier("class"))
    place = (earlier + F.col("turn")) % F.col("takers")
    left = F.col("open")
    share = div(left, F.col("takers")) + (place < left % F.col("takers")).cast("int")
    offered = (
        state.withColumn("open", F.col("open") + _sum(given - taken, _of("class")))
        .withColumn("at_most", F.least("can_take", "accepts"))
        .withColumn("is_offered", (F.col("at_most") > 0) & (F.col("open") > 0))
        .withColumn("takers", takers)
        .withColumn("offer", F.when(F.col("is_offered"), F.least(share, F.col("at_most"))))
        .fillna(0, ["offer"])
    )
    pushed_out = F.col("arrived") - F.col("placed") - F.col("give_earlier")
    return (
        offered.withColumns(
            {
                "offered_earlier": _sum(F.col("offer"), _earlier("member")),
                "give_earlier": _sum(F.col("can_give"), _earlier("member")),
            }
        )
        .withColumn("taken", _within(F.col("accepts") - F.col("offered_earlier"), F.col("offer")))
        .withColumn("arrived", _sum(taken, _of("member")))
        .withColumn("placed", F.least("arrived", "room"))
        .withColumn("given", _within(pushed_out, F.col("can_give")))
        .select(
            *_EDGE,
            (F.col("assigned") + taken - given).alias("assigned"),
            "quota",
            "open",
            (F.col("load") + F.col("placed")).alias("load"),
            (F.col("can_take") - taken).alias("can_take"),
            (F.col("can_give") - given).alias("can_give"),
            (F.col("room") - F.col("placed")).alias("room"),
            "taken",
            "given",
            (F.col("accepts") - F.col("arrived")).alias("accepts"),
            "offer",
        )
    )


def _split(finished: DataFrame) -> DataFrame:
    """Cut finished parts in three (``level``); ``is_settled`` where nothing is left to do."""
    level = f"""case when of_member < {-MUST_FILL // 2} then {LOW}
        when of_member < {UNREACHABLE} then {MIDDLE} else {HIGH} end"""
    is_settled = F.expr(f"level = {MIDDLE} or (level = {HIGH} and not is_stuck)")
    return (
        finished.withColumn("level", F.expr(level))
        .withColumn("class_level", F.min("level").over(_of("class")))
        .where("level = class_level")
        .select(*_EDGE, "assigned", "level", is_settled.alias("is_settled"))
    )
