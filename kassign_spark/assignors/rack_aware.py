"""Groups in which racks count, apart from those in which they do not (KIP-881).

With racks the client's assignors are sequential inside a group: so such groups are followed one by
one, in plain Python on small integers, thousands of them side by side. The general pass is the
optimum here too. All other groups keep the strategies of plain DataFrames.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.general_racks import assign_with_racks
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.eligibility.racks import rack_use
from kassign_spark.prediction.arrow_states import Runs, states_of
from kassign_spark.prediction.model import follow_constrained, predict_group
from kassign_spark.prediction.state import GroupState, Outcome, without_missing
from kassign_spark.prediction.states import collect_states, topics_with_racks
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

Strategy = Callable[[Eligible, Settings], DataFrame]

_RANGE, _CONSTRAINED, _GENERAL = "range", "constrained", "general"
_RUNS = "array<struct<member_id: string, topic: string, partitions: array<int>>>"
_ASSIGNED = f"cluster_id string, group_id string, staying {_RUNS}, moving {_RUNS}"


def range_by_racks(eligible: Eligible, settings: Settings, plain: Strategy) -> DataFrame:
    """Assign as ``RangeAssignor`` does: topics that need racks by them, the others by ``plain``.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    way = F.when(F.col("by_topic"), _RANGE)
    return _by_racks(eligible._replace(owned=None), settings, plain, way, "staying")


def sticky_by_racks(eligible: Eligible, settings: Settings, plain: Strategy) -> DataFrame:
    """Give the target of the sticky assignors, where racks do not count by ``plain``.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean.
    """
    way = F.when(F.col("is_homogeneous") & F.col("by_group"), _CONSTRAINED).when(
        ~F.col("is_homogeneous") & F.col("can_mismatch"), _GENERAL
    )
    return _by_racks(eligible, settings, plain, way, "staying", "moving")


def _by_racks(
    eligible: Eligible, settings: Settings, plain: Strategy, way: Column, *kinds: str
) -> DataFrame:
    if eligible.racks is None:
        return plain(eligible, settings)
    keys = list(GROUP_KEY)
    use = rack_use(eligible).select(*keys, way.alias("assignor")).where("assignor is not null")
    groups, found = hold(use.withColumn("has_racks", F.lit(True)), {"groups": F.count("*")})
    if not found["groups"]:
        return plain(eligible._replace(racks=None), settings)
    sized = topics_with_racks(eligible)
    states = collect_states(groups, eligible.members, sized, eligible.owned)
    assign = partial(_assign_batches, racks_before_moves=settings.racks_before_moves)
    runs = states.mapInArrow(assign, _ASSIGNED)
    others = eligible._replace(
        members=eligible.members.join(groups, on=keys, how="left_anti"),
        groups=eligible.groups.join(groups, on=keys, how="left_anti"),
        racks=None,
    )
    return plain(others, settings).unionByName(_explode(runs, kinds))


def _explode(runs: DataFrame, kinds: tuple[str, ...]) -> DataFrame:
    """One row a partition, with is_moving where there are two kinds."""
    each = F.concat(*(F.transform(kind, _marked(kind == "moving")) for kind in kinds))
    named = runs.select(*GROUP_KEY, F.inline(each))
    partitions = F.explode("partitions").alias("partition")
    exploded = named.select(*GROUP_KEY, "member_id", "topic", partitions, "is_moving")
    return exploded if len(kinds) > 1 else exploded.drop("is_moving")


def _marked(is_moving: bool) -> Callable[[Column], Column]:
    return lambda run: run.withField("is_moving", F.lit(is_moving))


def _assign_batches(
    batches: Iterable["pa.RecordBatch"], *, racks_before_moves: bool
) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    for batch in batches:
        states = [without_missing(state) for state in states_of(batch)]
        general = [state for state in states if state.assignor == _GENERAL]
        optima = iter(assign_with_racks(general, racks_before_moves=racks_before_moves))
        staying, moving = Runs.empty(), Runs.empty()
        for state in states:
            outcome = next(optima) if state.assignor == _GENERAL else _follow(state)
            later: list[list[int]] = [[] for _ in state.member_ids]
            for partition, member in outcome.withheld.items():
                later[member].append(partition)
            staying.append(state.member_ids, outcome.layout, outcome.assigned)
            moving.append(state.member_ids, outcome.layout, later)
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("cluster_id"),
                batch.column("group_id"),
                staying.to_arrow(),
                moving.to_arrow(),
            ],
            names=["cluster_id", "group_id", "staying", "moving"],
        )


def _follow(state: GroupState) -> Outcome:
    return predict_group(state) if state.assignor == _RANGE else follow_constrained(state)
