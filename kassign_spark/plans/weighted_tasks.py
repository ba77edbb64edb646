"""Plans by weight and curves inside a task: rows of whole groups in, answers with names out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.answer import NOTHING_TO_DO, WeightedPlan
from kassign_spark.assignors.weighted.planner import curves_of, plan_groups
from kassign_spark.assignors.weighted.sentences import sentence
from kassign_spark.assignors.weighted.small import PlanOptions
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.group_names import (
    PIECE,
    group_columns,
    member_ids,
    partition_columns,
    schema_of,
    with_nulls,
)
from kassign_spark.plans.weighted_groups import WeightedGroup, WeightOptions, names_of, read_groups

VERDICT = (
    "verdict string, max_load double, fair_load double, load_bound double, gap double, "
    "limit double, best_load double, moves bigint, moves_bound bigint, moved_weight double, "
    "count_difference int, dominant_count int, is_proven boolean, detail string"
)
POINT = (
    "moves bigint, moved_weight double, max_load double, skew double, count_difference int, "
    "bound double, is_knee boolean"
)
PLANNED = (
    "cluster_id string, group_id string, member_id string, topic string, partition int, "
    f"problem string, {VERDICT}"
)
"""Rows of an assignment (member_id is there), of verdicts (verdict is), and of problems."""
CURVE = f"cluster_id string, group_id string, problem string, {POINT}"
"""Rows of points (moves is there), and of problems."""


def plan_arrow(
    table: pa.Table, *, options: PlanOptions, weights: WeightOptions
) -> Iterator[pa.Table]:
    """Plan the groups of a task: the columns of ``PLANNED``, in pieces."""
    batch, reads = read_groups(table, weights)
    if any(read.problem for read in reads):
        yield _problems(batch, reads, PLANNED)
        return
    planned = [read for read in reads if read.group is not None]
    answers = plan_groups([read.group for read in planned if read.group is not None], options)
    by_group = {read.number: answer for read, answer in zip(planned, answers, strict=True)}
    yield from _assignment(batch, planned, answers)
    rows = [_verdict(batch, read, by_group.get(read.number), options) for read in reads]
    yield _table_of_rows(batch, [read.number for read in reads], rows, PLANNED)


def curve_arrow(table: pa.Table, *, effort: str, weights: WeightOptions) -> Iterator[pa.Table]:
    """Trace the curves of the groups of a task: the columns of ``CURVE``."""
    batch, reads = read_groups(table, weights)
    if any(read.problem for read in reads):
        yield _problems(batch, reads, CURVE)
        return
    planned = [read for read in reads if read.group is not None]
    curves = curves_of([read.group for read in planned if read.group is not None], effort)
    numbers = [r.number for r, curve in zip(planned, curves, strict=True) for _ in curve]
    points = [point._asdict() for curve in curves for point in curve]
    yield _table_of_rows(batch, numbers, points, CURVE)


def _assignment(
    batch: Batch, reads: Sequence[WeightedGroup], answers: Sequence[WeightedPlan]
) -> Iterator[pa.Table]:
    if not reads:
        return
    slot = np.concatenate([read.item_slot for read in reads])
    pairs = zip(reads, answers, strict=True)
    member = np.concatenate(
        [read.members[weighted_plan.owner[read.item_of]] for read, weighted_plan in pairs]
    )
    for start in range(0, len(slot), PIECE):
        some, owner = slot[start : start + PIECE], member[start : start + PIECE]
        columns = {
            **group_columns(batch, batch.slot_group[some]),
            "member_id": member_ids(batch, owner),
            **partition_columns(batch, some),
        }
        yield with_nulls(PLANNED, columns)


def _verdict(
    batch: Batch, read: WeightedGroup, answer: WeightedPlan | None, options: PlanOptions
) -> dict[str, Any]:
    if answer is None or read.group is None:
        row: dict[str, Any] = dict.fromkeys(schema_of(VERDICT).names, 0)
        detail = "no member subscribes to a topic that has partitions"
        return {**row, "verdict": NOTHING_TO_DO, "is_proven": True, "detail": detail}
    columns = {*schema_of(VERDICT).names} - {"dominant_count", "detail"}
    row = {name: getattr(answer, name) for name in columns}
    detail = sentence(answer, names_of(batch, read), options.bounds)
    return {**row, "dominant_count": len(answer.dominant), "detail": detail}


def _problems(batch: Batch, reads: Sequence[WeightedGroup], schema: str) -> pa.Table:
    wrong = [read for read in reads if read.problem]
    rows = [{"problem": read.problem} for read in wrong]
    return _table_of_rows(batch, [read.number for read in wrong], rows, schema)


def _table_of_rows(
    batch: Batch, groups: Sequence[int], rows: Sequence[Mapping[str, Any]], schema: str
) -> pa.Table:
    """Return a table of rows that are given as dicts, each of a group."""
    columns = {name: [row.get(name) for row in rows] for name in schema_of(schema).names}
    keys = group_columns(batch, np.array(groups, np.int64))
    return with_nulls(schema, columns | keys)
