"""A group that is cut as the kernels take it, from the rows of a task."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.cut import Facts, Pool
from kassign_spark.assignors.weighted.problem import Doubles, Group, Longs
from kassign_spark.assignors.weighted.sentences import Names
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.read import read_kinds
from kassign_spark.plans.weight_rows import CAPACITY
from kassign_spark.plans.weighted_groups import eligible_members

UNIT, SUM, LOAD, HEAVY, POOL = range(12, 17)
"""Kinds of rows beside those of ``weight_rows``:
UNIT: value (by what weights were multiplied), number (bound on moves);
SUM: place (topic), value (its weight);
LOAD: subscription (member), number (partitions that it has), value (their weight);
HEAVY: place (topic), number (partition), subscription (member that has it, or -1), value (weight);
POOL: as HEAVY, what may move: cost (of moving it; of what nobody has: for how many it stands).
"""


class CutRead(NamedTuple):
    """A group that was cut.

    Attributes:
        number: of the group in its batch.
        facts: what is known of it.
        pool: what may move.
        taking_part: of each of ``facts.heavy`` its number in ``pool``; -1: it stays.
        moves_bound: no plan within the limits moves fewer.
        class_topics: of each class its topics, by name.
        topic_class: of each topic.
        heavy_at: topics and partitions of ``facts.heavy``.
        pool_at: those of ``pool``.
        members: of the batch.
        first_topic: of the batch.
    """

    number: int
    facts: Facts
    pool: Pool
    taking_part: Longs
    moves_bound: int
    class_topics: list[list[str]]
    topic_class: Longs
    heavy_at: tuple[Longs, Longs]
    pool_at: tuple[Longs, Longs]
    members: Longs
    first_topic: int


def read_cut(table: pa.Table) -> tuple[Batch, list[CutRead]]:
    """Read the rows of whole groups, of the kinds above and of ``groups.rows.fold``."""
    batch, kinds = read_kinds(table, (CAPACITY, UNIT, SUM, LOAD, HEAVY, POOL))
    kind = table["kind"].to_numpy()
    columns = numbers_of(table, "number", "place", "subscription", "value", "cost")
    capacity = np.ones(len(batch.member_group))
    sized = kinds[0]
    known = sized.member >= 0
    capacity[sized.member[known]] = columns["value"][kind == CAPACITY][known]
    topic_names = batch.topic_names.to_pylist()
    reads = []
    for group in range(batch.group_count):
        first, last = batch.first_topic[group : group + 2].tolist()
        members = np.arange(*batch.first_member[group : group + 2].tolist())
        eligible = eligible_members(batch, members, first, last)
        different, topic_class = np.unique(eligible, axis=0, return_inverse=True)
        topic_class = topic_class.reshape(-1)
        mine = [
            np.flatnonzero(kind == of)[claims.group == group]
            for of, claims in zip((UNIT, SUM, LOAD, HEAVY, POOL), kinds[1:], strict=True)
        ]
        unit, sums, loads, heavy, pool = mine
        heavy, pool = (_heaviest_first(columns, rows) for rows in (heavy, pool))
        place, home = columns["place"], columns["subscription"]
        class_weight = np.zeros(len(different))
        np.add.at(class_weight, topic_class[place[sums]], columns["value"][sums])
        load, count = np.zeros(len(members)), np.zeros(len(members), np.int64)
        load[home[loads]] = columns["value"][loads]
        count[home[loads]] = columns["number"][loads]
        heaviest = Group(
            columns["value"][heavy],
            topic_class[place[heavy]],
            home[heavy],
            np.ones(len(heavy)),
            different,
            capacity[members],
            float(columns["value"][unit[0]]),
        )
        nobodys = home[pool] < 0
        may_move = Pool(
            columns["value"][pool],
            topic_class[place[pool]],
            home[pool],
            np.where(
                nobodys, _cost_of_nobodys(columns["cost"][pool], nobodys), columns["cost"][pool]
            ),
            np.where(nobodys, columns["cost"][pool], 1.0).astype(np.int64),
        )
        names_of_topics = [topic_names[code - 1] for code in batch.topic_name[first:last].tolist()]
        reads.append(
            CutRead(
                group,
                Facts(heaviest, class_weight, load, count),
                may_move,
                _found_in(columns, heavy, pool),
                int(columns["number"][unit[0]]),
                [
                    sorted(names_of_topics[t] for t in np.flatnonzero(topic_class == k).tolist())
                    for k in range(len(different))
                ],
                topic_class,
                (place[heavy], columns["number"][heavy]),
                (place[pool], columns["number"][pool]),
                members,
                first,
            )
        )
    return batch, reads


def _cost_of_nobodys(cost: Doubles, nobodys: np.ndarray) -> float:
    """A cost that others have: what is nobody's costs nothing, and must not look like a choice."""
    return float(cost[~nobodys][0]) if (~nobodys).any() else 1.0


def _heaviest_first(columns: dict[str, np.ndarray], rows: Longs) -> Longs:
    order = np.lexsort((columns["number"][rows], columns["place"][rows], -columns["value"][rows]))
    return rows[order]


def _found_in(columns: dict[str, np.ndarray], heavy: Longs, pool: Longs) -> Longs:
    """Of each of the heaviest partitions its place in the pool; -1: it is not there."""
    code = columns["number"] << 32 | columns["place"]
    order = np.argsort(code[pool], kind="stable")
    place = np.searchsorted(code[pool][order], code[heavy])
    place = np.minimum(place, max(len(pool) - 1, 0))
    if not len(pool):
        return np.full(len(heavy), -1)
    at = order[place]
    return np.where(code[pool][at] == code[heavy], at, -1)


def names_of_cut(batch: Batch, read: CutRead) -> Names:
    """How to call what an answer about the group tells by number."""
    facts, (topic, number) = read.facts, read.heavy_at
    group = facts.heavy

    def topic_name(t: int) -> str:
        return str(batch.topic_names[int(batch.topic_name[read.first_topic + t]) - 1].as_py())

    def member(m: int) -> str:
        return str(batch.member_names[int(batch.member_name[read.members[m]]) - 1].as_py())

    return Names(
        lambda p: f"{topic_name(int(topic[p]))}-{number[p]}",
        member,
        lambda classes: sorted({name for k in classes for name in read.class_topics[k]}),
        lambda p: float(group.weight[p]) / group.power,
        lambda members: float(sum(group.capacity[list(members)].tolist())),
        lambda classes: float(facts.class_weight[list(classes)].sum()) / group.power,
    )


def numbers_of(table: pa.Table, *names_: str) -> dict[str, np.ndarray]:
    """Columns as arrays; null numbers are -1."""
    found = {}
    for name in names_:
        column = table[name]
        found[name] = (column.fill_null(-1) if column.null_count else column).to_numpy()
    return found
