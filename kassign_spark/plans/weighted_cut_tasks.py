"""What tasks do for a group that is cut: its heaviest partitions, its limits, what is shed, a plan.

Members and topics of a group go by number here, in Java's order of their names.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.cut import (
    bundled,
    curve_cut,
    limits_of_curve,
    limits_of_plan,
    plan_cut,
    to_open,
    to_shed,
)
from kassign_spark.assignors.weighted.problem import Longs
from kassign_spark.assignors.weighted.sentences import sentence
from kassign_spark.assignors.weighted.small import Wanted
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.named import group_columns
from kassign_spark.groups.numbers import dense, names
from kassign_spark.plans.weighted_cut_read import CutRead, names_of_cut, numbers_of, read_cut
from kassign_spark.plans.weighted_tasks import (
    CURVE,
    VERDICT_NUMBERS,
    complete,
    point_row,
    table_of,
    verdict_row,
)

OVER, KEPT, CLASS, PART = range(4)

LIMITS = (
    "cluster_id string, group_id string, kind tinyint, home bigint, topic_number bigint, "
    "partition bigint, number bigint, value double"
)
"""Rows of kind OVER: home is above limit number, the tightest is 0, by value; KEPT: the partition
stays; CLASS: the topic is of class number, and bundles of the group weigh value."""
HEAVIEST = (
    "cluster_id string, group_id string, topic_number bigint, partition bigint, home bigint, "
    "whole double"
)
SHED = (
    "cluster_id string, group_id string, topic_number bigint, partition bigint, home bigint, "
    "whole double, cost double, least bigint"
)
"""Partitions that are shed, and, with ``topic_number`` null, how many a member sheds at least."""
BUNDLED = (
    "cluster_id string, group_id string, topic_number bigint, partition bigint, whole double, "
    "lead_topic bigint, lead_partition bigint"
)
CUT = (
    "cluster_id string, group_id string, topic_number bigint, partition bigint, owner bigint, "
    "opened bigint, verdict string, "
    + ", ".join(f"{name} {kind}" for name, kind in VERDICT_NUMBERS.items())
    + ", detail string"
)
"""Rows of what may move and who is given it (owner), of members whose partitions may all move in
the next round (opened), and of verdicts."""


def heaviest_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """The heaviest partitions of each group among the rows of a task: ``most`` of them."""
    columns = numbers_of(table, "topic_number", "partition", "home", "whole", "most")
    run = _group_numbers(table)
    chosen = []
    for group in range(int(run.max(initial=-1)) + 1):
        rows = np.flatnonzero((run == group) & (columns["whole"] > 0))
        most = int(columns["most"][rows].max(initial=0))
        if len(rows) > most:
            whole = columns["whole"][rows]
            rows = rows[whole >= np.partition(whole, len(whole) - most)[len(whole) - most]]
        order = np.lexsort(
            (columns["partition"][rows], columns["topic_number"][rows], -columns["whole"][rows])
        )
        chosen.append(rows[order][:most])
    yield _select(table, np.concatenate(chosen), HEAVIEST)


def limits_arrow(table: pa.Table, *, wanted: Wanted | None) -> Iterator[pa.Table]:
    """Say who is above which limit: of a plan, or, with ``wanted`` None, of the curve's points."""
    batch, reads = read_cut(table)
    for read in reads:
        facts = read.facts
        found = limits_of_curve(facts) if wanted is None else limits_of_plan(facts, wanted)
        rows = [
            {"kind": OVER, "home": m, "number": j, "value": float(above[m])}
            for j, above in enumerate(found.excess)
            for m in np.flatnonzero(above > 0).tolist()
        ]
        topic, partition = read.heavy_at
        rows += [
            {"kind": KEPT, "topic_number": int(topic[p]), "partition": int(partition[p])}
            for p in found.kept.tolist()
        ]
        rows += [
            {"kind": CLASS, "topic_number": t, "number": k, "value": found.quantum}
            for t, k in enumerate(read.topic_class.tolist())
        ]
        yield _rows(batch, read.number, rows, LIMITS)


def shed_arrow(table: pa.Table, *, by_cost: bool) -> Iterator[pa.Table]:
    """Choose what members shed: rows of their partitions (PART), and of what they are above.

    Of PART number 1 says that the partition stays.
    """
    columns = numbers_of(
        table, "kind", "home", "topic_number", "partition", "number", "value", "cost"
    )
    group = _group_numbers(table)
    _, member = dense(group, columns["home"].astype(np.int64))
    members = int(member.max(initial=-1)) + 1
    over = np.flatnonzero(columns["kind"] == OVER)
    limits = int(columns["number"][over].max(initial=0)) + 1
    excess = [np.zeros(members) for _ in range(limits)]
    for j in range(limits):
        of = over[columns["number"][over] == j]
        excess[j][member[of]] = columns["value"][of]
    rows = np.flatnonzero(columns["kind"] == PART)
    order = np.lexsort(
        (columns["partition"][rows], columns["topic_number"][rows], -columns["value"][rows])
    )
    rows = rows[order]
    gives, least = to_shed(
        member[rows],
        columns["value"][rows],
        columns["cost"][rows],
        columns["number"][rows] == 1,
        excess,
        by_cost=by_cost,
    )
    shed = _select(table.rename_columns(_SHED_NAMES), rows[gives], SHED)
    at = over[np.unique(member[over], return_index=True)[1]]
    of_members = _select(table, at, SHED)
    counts = pa.array(least[member[at]])
    yield pa.concat_tables(
        [shed, of_members.set_column(of_members.num_columns - 1, "least", counts)]
    )


_SHED_NAMES = [
    "cluster_id", "group_id", "kind", "home", "topic_number", "partition", "number", "whole", "cost"
]  # fmt: skip


def bundle_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Put light partitions that nobody has together, within their class and slice."""
    columns = numbers_of(
        table, "topic_number", "partition", "whole", "number", "slice", "value", "unit"
    )
    group = _group_numbers(table)
    order = np.lexsort(
        (columns["partition"], columns["topic_number"], -columns["whole"], columns["number"],
         columns["slice"], group)
    )  # fmt: skip
    by = [group[order], columns["slice"][order], columns["number"][order]]
    changes = np.any([np.diff(key, prepend=-1) != 0 for key in by], axis=0)
    lead = bundled(
        np.cumsum(changes),
        columns["whole"][order],
        columns["value"][order],
        columns["unit"][order].astype(np.int64),
    )
    found = _select(table, order, BUNDLED)
    for name, of in (("lead_topic", "topic_number"), ("lead_partition", "partition")):
        at = found.column_names.index(name)
        found = found.set_column(at, name, pa.array(columns[of][order][lead].astype(np.int64)))
    yield found


def cut_arrow(table: pa.Table, *, wanted: Wanted, most: int) -> Iterator[pa.Table]:
    """Plan what may move; ``most`` partitions of opened members."""
    batch, reads = read_cut(table)
    for read in reads:
        answer, over = plan_cut(read.facts, read.pool, read.taking_part, read.moves_bound, wanted)
        kept = limits_of_plan(read.facts, wanted).kept
        opened = to_open(read.facts, read.pool, kept, over, most)
        topic, partition = read.pool_at
        owners = {"topic_number": topic, "partition": partition, "owner": answer.owner}
        yield _columns(batch, read.number, owners, CUT)
        yield _columns(batch, read.number, {"opened": opened}, CUT)
        said = {
            **verdict_row(answer),
            "detail": sentence(answer, names_of_cut(batch, read), wanted.bounds) + _says_cut(read),
        }
        yield _rows(batch, read.number, [said], CUT)


def _says_cut(read: CutRead) -> str:
    could, whole = int(read.pool.stands_for.sum()), read.facts.partitions.sum()
    whole += int(read.pool.stands_for[read.pool.home < 0].sum())
    return f"; planned in steps, in which {could:,} of {whole:,} partitions could move"


def curve_cut_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Trace the curves."""
    batch, reads = read_cut(table)
    for read in reads:
        points = [point_row(point) for point in curve_cut(read.facts, read.pool)]
        yield _rows(batch, read.number, points, CURVE)


def _group_numbers(table: pa.Table) -> Longs:
    """Of each row the number of its group, in the order of names."""
    return dense(names(table["cluster_id"]).code, names(table["group_id"]).code)[1]


def _select(table: pa.Table, rows: Longs, schema: str) -> pa.Table:
    """Rows of a table with the columns of a schema; those that it lacks are null."""
    return complete(
        {name: table[name].take(pa.array(rows)) for name in table.column_names if name in schema},
        len(rows),
        schema,
    )


def _rows(batch: Batch, group: int, rows: list[dict[str, Any]], schema: str) -> pa.Table:
    """Rows of one group, given as dicts."""
    keys = group_columns(batch, np.full(len(rows), group))
    return table_of(keys, rows, schema)


def _columns(batch: Batch, group: int, columns: dict[str, np.ndarray], schema: str) -> pa.Table:
    """Rows of one group, given as arrays."""
    size = len(next(iter(columns.values())))
    keys = group_columns(batch, np.full(size, group))
    return complete({**keys, **{n: pa.array(of) for n, of in columns.items()}}, size, schema)
