"""A group that is cut as the kernels take it, from the rows of a task."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.cut import Facts, Pool
from kassign_spark.assignors.weighted.problem import Doubles, Group, Longs
from kassign_spark.assignors.weighted.sentences import Names
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.numbers import find
from kassign_spark.groups.read import read_kinds
from kassign_spark.plans.weight_rows import CAPACITY
from kassign_spark.plans.weighted_groups import capacities, eligible_members, naming

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
    value, cost, number, place, home = numbers_of(
        table, "value", "cost", "number", "place", "subscription"
    )
    capacity = capacities(batch, kinds[0], value[kind == CAPACITY])
    reads = []
    for group in range(batch.group_count):
        first, last = batch.first_topic[group : group + 2].tolist()
        members = np.arange(*batch.first_member[group : group + 2].tolist())
        eligible = eligible_members(batch, members, first, last)
        different, topic_class = np.unique(eligible, axis=0, return_inverse=True)
        topic_class = topic_class.reshape(-1)
        unit, sums, loads, heavy, pool = (
            np.flatnonzero(kind == of)[claims.group == group]
            for of, claims in zip((UNIT, SUM, LOAD, HEAVY, POOL), kinds[1:], strict=True)
        )
        heavy, pool = (
            rows[heaviest_first(value[rows], place[rows], number[rows])] for rows in (heavy, pool)
        )
        class_weight = np.zeros(len(different))
        np.add.at(class_weight, topic_class[place[sums]], value[sums])
        load, count = np.zeros(len(members)), np.zeros(len(members), np.int64)
        load[home[loads]] = value[loads]
        count[home[loads]] = number[loads]
        heaviest = Group(
            value[heavy],
            topic_class[place[heavy]],
            home[heavy],
            np.ones(len(heavy)),
            different,
            capacity[members],
            float(value[unit[0]]),
        )
        nobodys, told = home[pool] < 0, cost[pool]
        # What is nobody's costs nothing, and must not look like a choice: a cost that others have.
        of_nobodys = float(told[~nobodys][0]) if (~nobodys).any() else 1.0
        may_move = Pool(
            value[pool],
            topic_class[place[pool]],
            home[pool],
            np.where(nobodys, of_nobodys, told),
            np.where(nobodys, told, 1.0).astype(np.int64),
        )
        topics = batch.topic_names.take(pa.array(batch.topic_name[first:last] - 1)).to_pylist()
        reads.append(
            CutRead(
                group,
                Facts(heaviest, class_weight, load, count),
                may_move,
                _found_in(number << 32 | place, heavy, pool),
                int(number[unit[0]]),
                [
                    sorted(topics[t] for t in np.flatnonzero(topic_class == k).tolist())
                    for k in range(len(different))
                ],
                topic_class,
                (place[heavy], number[heavy]),
                (place[pool], number[pool]),
                members,
                first,
            )
        )
    return batch, reads


def heaviest_first(weight: Doubles, topic: Longs, partition: Longs) -> Longs:
    """The order of partitions by weight, and of those that weigh the same by name."""
    return np.lexsort((partition, topic, -weight))


def _found_in(code: Longs, heavy: Longs, pool: Longs) -> Longs:
    """Of each of the heaviest partitions its place in the pool; -1: it is not there."""
    order = np.argsort(code[pool], kind="stable")
    return np.append(order, -1)[find(code[pool][order], code[heavy])]


def names_of_cut(batch: Batch, read: CutRead) -> Names:
    """How to call what an answer about the group tells by number."""
    facts, (topic, number) = read.facts, read.heavy_at

    def partition(p: int) -> str:
        code = batch.topic_name[read.first_topic + topic[p]]
        return f"{batch.topic_names[int(code) - 1].as_py()}-{number[p]}"

    def weight(classes: Sequence[int]) -> float:
        return float(facts.class_weight[list(classes)].sum())

    return naming(batch, read.members, facts.heavy, read.class_topics, partition, weight)


def numbers_of(table: pa.Table, *names_: str) -> list[np.ndarray]:
    """Columns as arrays; null numbers are -1."""
    columns = (table[name] for name in names_)
    return [(of.fill_null(-1) if of.null_count else of).to_numpy() for of in columns]
