"""What tasks do for a group that is cut: its heaviest partitions, its limits, what is shed, a plan.

Members and topics of a group go by number here, in Java's order of their names.
"""

from collections.abc import Iterator

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
from kassign_spark.groups.named import group_columns, with_nulls
from kassign_spark.groups.numbers import dense, names
from kassign_spark.plans.weighted_cut_read import (
    CutRead,
    heaviest_first,
    names_of_cut,
    numbers_of,
    read_cut,
)
from kassign_spark.plans.weighted_tasks import (
    CURVE,
    VERDICT,
    point_row,
    table_of_rows,
    verdict_row,
)

OVER, KEPT, CLASS, PART = range(4)

LIMITS = (
    "cluster_id string, group_id string, kind int, home bigint, topic_number bigint, "
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
    f"opened bigint, {VERDICT}"
)
"""Rows of what may move and who is given it (owner), of members whose partitions may all move in
the next round (opened), and of verdicts."""


def heaviest_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """The heaviest partitions of each group among the rows of a task: ``most`` of them."""
    topic, partition, all_whole, most_of = numbers_of(
        table, "topic_number", "partition", "whole", "most"
    )
    run = _group_numbers(table)
    chosen = []
    for group in range(int(run.max(initial=-1)) + 1):
        rows = np.flatnonzero((run == group) & (all_whole > 0))
        most = int(most_of[rows].max(initial=0))
        if len(rows) > most:
            whole = all_whole[rows]
            rows = rows[whole >= np.partition(whole, len(whole) - most)[len(whole) - most]]
        order = heaviest_first(all_whole[rows], topic[rows], partition[rows])
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
        yield table_of_rows(batch, [read.number] * len(rows), rows, LIMITS)


def shed_arrow(table: pa.Table, *, by_cost: bool) -> Iterator[pa.Table]:
    """Choose what members shed: rows of their partitions (PART), and of what they are above.

    Of PART number 1 says that the partition stays.
    """
    kind, home, topic, partition, number, value, cost = numbers_of(
        table, "kind", "home", "topic_number", "partition", "number", "value", "cost"
    )
    _, member = dense(_group_numbers(table), home.astype(np.int64))
    members = int(member.max(initial=-1)) + 1
    over = np.flatnonzero(kind == OVER)
    limits = int(number[over].max(initial=0)) + 1
    excess = np.zeros((limits, members))
    excess[number[over], member[over]] = value[over]
    rows = np.flatnonzero(kind == PART)
    rows = rows[heaviest_first(value[rows], topic[rows], partition[rows])]
    gives, least = to_shed(
        member[rows], value[rows], cost[rows], number[rows] == 1, [*excess], by_cost=by_cost
    )
    shed = rows[gives]
    at = over[np.unique(member[over], return_index=True)[1]]
    yield _select(table, shed, SHED, whole=table["value"].take(pa.array(shed)))
    yield _select(table, at, SHED, least=pa.array(least[member[at]]))


def bundle_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Put light partitions that nobody has together, within their class and slice."""
    topic, partition, whole, class_, part, value, unit = numbers_of(
        table, "topic_number", "partition", "whole", "number", "slice", "value", "unit"
    )
    group = _group_numbers(table)
    order = np.lexsort((partition, topic, -whole, class_, part, group))
    by = [group[order], part[order], class_[order]]
    changes = np.any([np.diff(key, prepend=-1) != 0 for key in by], axis=0)
    lead = order[
        bundled(np.cumsum(changes), whole[order], value[order], unit[order].astype(np.int64))
    ]
    lead_topic, lead_partition = (pa.array(of[lead].astype(np.int64)) for of in (topic, partition))
    yield _select(table, order, BUNDLED, lead_topic=lead_topic, lead_partition=lead_partition)


def cut_arrow(table: pa.Table, *, wanted: Wanted, most: int) -> Iterator[pa.Table]:
    """Plan what may move; ``most`` partitions of opened members."""
    batch, reads = read_cut(table)
    for read in reads:
        answer, over = plan_cut(read.facts, read.pool, read.taking_part, read.moves_bound, wanted)
        kept = limits_of_plan(read.facts, wanted).kept
        opened = to_open(read.facts, read.pool, kept, over, most)
        topic, partition = read.pool_at
        owners = {"topic_number": topic, "partition": partition, "owner": answer.owner}
        for size, columns in ((len(topic), owners), (len(opened), {"opened": opened})):
            keys = group_columns(batch, np.full(size, read.number))
            told = {name: pa.array(of) for name, of in columns.items()}
            yield with_nulls(CUT, keys | told)
        said = {
            **verdict_row(answer),
            "detail": sentence(answer, names_of_cut(batch, read), wanted.bounds) + _says_cut(read),
        }
        yield table_of_rows(batch, [read.number], [said], CUT)


def _says_cut(read: CutRead) -> str:
    could, whole = int(read.pool.stands_for.sum()), read.facts.partitions.sum()
    whole += int(read.pool.stands_for[read.pool.home < 0].sum())
    return f"; planned in steps, in which {could:,} of {whole:,} partitions could move"


def curve_cut_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Trace the curves."""
    batch, reads = read_cut(table)
    for read in reads:
        points = [point_row(point) for point in curve_cut(read.facts, read.pool)]
        yield table_of_rows(batch, [read.number] * len(points), points, CURVE)


def _group_numbers(table: pa.Table) -> Longs:
    """Of each row the number of its group, in the order of names."""
    return dense(names(table["cluster_id"]).code, names(table["group_id"]).code)[1]


def _select(table: pa.Table, rows: Longs, schema: str, **other: pa.Array) -> pa.Table:
    """Rows of a table with the columns of a schema; those that it and ``other`` lack are null."""
    names_ = [name for name in table.column_names if name in schema]
    taken = {name: table[name].take(pa.array(rows)) for name in names_}
    return with_nulls(schema, taken | other)
