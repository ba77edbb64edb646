"""Every assignor on the groups of a task, beside the best that there is."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, KAFKAS, STICKY
from kassign_spark.assignors.weighted.bounds import load_bounds
from kassign_spark.assignors.weighted.planner import batches
from kassign_spark.assignors.weighted.problem import Doubles, stack
from kassign_spark.client.group_state import NEVER_SETTLES, OK, UNANSWERED
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import group_columns, with_nulls
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.read import read_batch
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.plans.exact import ClientOutcomes, follow_exactly, misled_groups
from kassign_spark.plans.rebalance_rounds import follow
from kassign_spark.plans.weighted_groups import WeightOptions, read_groups
from kassign_spark.results import columns_of
from kassign_spark.whatif.compare_coordinator import follow_coordinator, group_states
from kassign_spark.whatif.outcome import crossing_now, measure, optimum

PROBLEM = "problem"
"""The column that says what is missing of weights."""
COMPARED = columns_of("compare")
COMPARED_BY_WEIGHT = f"{columns_of('compare.weighted')}, {PROBLEM} string"

_VARIANTS = [(number, number == COOPERATIVE_STICKY) for number in range(len(KAFKAS))]
_VARIANTS.append((COOPERATIVE_STICKY, False))
"""Each assignor under its own protocol, and the cooperative one under the eager one as well."""


class Weighed(NamedTuple):
    """Weights of the groups of a task.

    Attributes:
        weight: of each slot, whole numbers.
        capacity: of each member.
        group_of: of each member its group.
        power: of each group, by what weights were multiplied.
        fair: of each group, the load if weight were a liquid and all subscriptions equal.
        bound: of each group, no assignment has a lower greatest load.
        is_weighed: of each group, whether anything has weight.
        problem: of each group; null: none.
    """

    weight: Doubles
    capacity: Doubles
    group_of: Longs
    power: Doubles
    fair: Doubles
    bound: Doubles
    is_weighed: Flags
    problem: list[str | None]

    def measure(self, member: Longs, slot: Longs, is_moved: Flags) -> dict[str, pa.Array]:
        """Return the columns of ``compare`` about weights for these owners, each slot once."""
        exists = slot >= 0
        member, slot, is_moved = member[exists], slot[exists], is_moved[exists]
        weight, groups = self.weight[slot], len(self.power)
        load = np.bincount(member, weight, len(self.capacity)) / self.capacity
        most = np.zeros(groups)
        np.maximum.at(most, self.group_of, load)
        moved = np.bincount(self.group_of[member], np.where(is_moved, weight, 0.0), groups)
        skew = np.divide(most, self.fair, out=np.zeros(groups), where=self.is_weighed)
        columns = {
            "max_load": most / self.power,
            "load_skew": skew,
            "load_bound": self.bound / self.power,
            "moved_weight": moved / self.power,
        }
        return {name: pa.array(c, mask=~self.is_weighed) for name, c in columns.items()}


def compare_arrow(
    table: pa.Table,
    *,
    exact: bool = False,
    is_owned: bool = True,
    has_racks: bool = True,
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
    weights: WeightOptions | None = None,
) -> Iterator[pa.Table]:
    """Compare the assignors on the groups of a task (rows of ``rows.fold``): ``COMPARED``.

    Args:
        table: the groups; where ``weights`` are given, with their weights
            (``weight_rows.fold_weights``).
        exact: with the answers of Kafka's client, not those of ``assign``.
        is_owned: whether there is a table owned.
        has_racks: whether the racks of replicas are known.
        racks_before_moves: see ``Settings``.
        max_rounds: see ``Settings``.
        weights: the options of a comparison by weight: then ``COMPARED_BY_WEIGHT``.
    """
    batch, claims = read_batch(table)
    weighed = None if weights is None else read_weighed(table, weights)
    exists, squares, moves = optimum(batch, claims)
    now = crossing_now(batch, claims)
    same = {
        **group_columns(batch, np.arange(batch.group_count)),
        "member_count": np.diff(batch.first_member),
        "least_moves": pa.array(moves, mask=~exists | (not is_owned)),
        "least_sum_of_squares": pa.array(squares, mask=~exists),
    }
    schema = COMPARED if weighed is None else COMPARED_BY_WEIGHT
    rules = {"racks_before_moves": racks_before_moves, "max_rounds": max_rounds}
    for name, protocol, judged in _judge_groups(table, batch, claims, exact, rules):
        columns = {
            **same,
            "assignor": [name] * batch.group_count,
            "protocol": [protocol] * batch.group_count,
            **_measure_outcomes(
                batch, claims, judged, weighed, now, is_owned=is_owned, has_racks=has_racks
            ),
        }
        yield with_nulls(schema, columns)


def _judge_groups(
    table: pa.Table, batch: Batch, claims: Claims, exact: bool, rules: dict[str, Any]
) -> Iterator[tuple[str, str, ClientOutcomes]]:
    """Follow all groups under every assignor and protocol: names, and what comes of it."""
    for number, cooperates in _VARIANTS:
        assignor = np.full(batch.group_count, number)
        is_cooperative = np.full(batch.group_count, cooperates)
        if exact:
            judged = follow_exactly(batch, claims, assignor, is_cooperative)
        else:
            followed = follow(batch, claims, assignor, is_cooperative, **rules)
            verdicts: list[tuple[str, str | None]] = [
                (OK if ends else NEVER_SETTLES, None) for ends in followed.settles.tolist()
            ]
            if cooperates or number == STICKY:
                misled = misled_groups(batch, claims, batch.generation, assignor)
                verdicts = [misled.get(group, verdict) for group, verdict in enumerate(verdicts)]
            judged = ClientOutcomes(verdicts, followed.steps)
        yield KAFKAS[number], COOPERATIVE if cooperates else EAGER, judged
    states = list(group_states(table, batch, claims))
    for name in COORDINATOR_ASSIGNORS:
        yield name, CONSUMER, follow_coordinator(batch, claims, states, name)


def _measure_outcomes(
    batch: Batch,
    claims: Claims,
    judged: ClientOutcomes,
    weighed: Weighed | None,
    now: Longs,
    *,
    is_owned: bool,
    has_racks: bool,
) -> dict[str, Any]:
    """Return the columns that one assignor decides; null where it has no answer."""
    outcomes = measure(batch, claims, judged.steps)
    none = np.array([verdict in UNANSWERED for verdict, _ in judged.verdicts], bool)
    unknown = none | (not is_owned)
    loads: dict[str, Any] = {}
    if weighed is not None:
        loads = weighed.measure(outcomes.member, outcomes.slot, outcomes.is_moved)
        hidden = {"moved_weight": unknown, "max_load": none, "load_skew": none}
        for name, without in hidden.items():
            loads[name] = pc.if_else(pa.array(without), pa.scalar(None, pa.float64()), loads[name])
        loads[PROBLEM] = weighed.problem
    return {
        **loads,
        "verdict": [verdict for verdict, _ in judged.verdicts],
        "detail": [detail for _, detail in judged.verdicts],
        "partition_count": pa.array(outcomes.partition_count, mask=none),
        "kept": pa.array(outcomes.kept, mask=unknown),
        "moved": pa.array(outcomes.moved, mask=unknown),
        "spread": pa.array(outcomes.most - outcomes.least, mask=none),
        "topic_spread": pa.array(outcomes.topic_spread, mask=none),
        "sum_of_squares": pa.array(outcomes.sum_of_squares, mask=none),
        "rounds": pa.array(outcomes.rounds, mask=none),
        "paused": pa.array(outcomes.paused, mask=none),
        "cross_rack": pa.array(outcomes.cross_rack, mask=none | (not has_racks)),
        "cross_rack_more": pa.array(outcomes.cross_rack - now, mask=unknown | (not has_racks)),
    }


def read_weighed(table: pa.Table, options: WeightOptions) -> Weighed:
    """Read the weights of the groups of a task, and find the bounds on their loads.

    The rows are those of ``weight_rows.fold_weights``; nothing is kept together.
    """
    batch, reads = read_groups(table, options)
    count = batch.group_count
    weight, capacity = np.zeros(int(batch.first_slot[-1])), np.ones(len(batch.member_group))
    power, fair, bound = np.ones(count), np.zeros(count), np.zeros(count)
    weighed = [(r, r.group) for r in reads if r.group is not None and (r.group.weight > 0).any()]
    for read, group in weighed:
        weight[read.item_slot] = group.weight[read.item_of]
        capacity[read.members] = group.capacity
        power[read.number] = group.power
        fair[read.number] = group.fair_load()
    for rows in batches([group for _, group in weighed]):
        loads = load_bounds(stack([weighed[row][1] for row in rows])).load
        bound[[weighed[row][0].number for row in rows]] = loads
    is_weighed = np.zeros(count, bool)
    is_weighed[[read.number for read, _ in weighed]] = True
    problem = [read.problem or None for read in reads]
    return Weighed(weight, capacity, batch.member_group, power, fair, bound, is_weighed, problem)
