"""Every assignor on the groups of a task, beside the best that there is."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, KAFKAS, STICKY
from kassign_spark.client.group_state import NEVER_SETTLES, OK, UNANSWERED
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import group_columns, with_nulls
from kassign_spark.groups.numbers import Longs
from kassign_spark.groups.read import read_batch
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.plans.exact import ClientOutcomes, follow_exactly, misled_groups
from kassign_spark.plans.rebalance_rounds import follow
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.whatif.answer_columns import columns_of
from kassign_spark.whatif.compare_coordinator import follow_coordinator, group_states
from kassign_spark.whatif.outcome import crossing_now, measure, optimum
from kassign_spark.whatif.weighed import PROBLEM, Weighed, read_weighed

COMPARED = columns_of("compare")
COMPARED_BY_WEIGHT = f"{columns_of('compare.weighted')}, {PROBLEM} string"

_VARIANTS = [(number, number == COOPERATIVE_STICKY) for number in range(len(KAFKAS))]
_VARIANTS.append((COOPERATIVE_STICKY, False))
"""Each assignor under its own protocol, and the cooperative one under the eager one as well."""


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
