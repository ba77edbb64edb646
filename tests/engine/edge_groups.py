"""Random groups as the arrays that ``engine.task.settle`` takes."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.engine.segments import Longs
from tests.oracles.mixed_groups import MixedGroup


class Edges(NamedTuple):
    """The arguments of ``settle``."""

    class_of: Longs
    member_of: Longs
    owned: Longs
    supply: Longs
    turn: Longs


def edges_of(groups: Sequence[MixedGroup]) -> Edges:
    """Make a class of each topic; groups follow each other."""
    rows: list[tuple[int, int, int]] = []
    classes: list[tuple[int, int]] = []
    member_count = 0
    for group in groups:
        supply, owned = group.counts()
        members = sorted(group.subscriptions)
        for turn, topic in enumerate(sorted(supply)):
            rows += (
                (len(classes), member_count + number, owned[topic, member])
                for number, member in enumerate(members)
                if (topic, member) in owned
            )
            classes.append((supply[topic], turn))
        member_count += len(members)
    class_of, member_of, owned_counts = np.array(rows, np.int64).reshape(-1, 3).T
    return Edges(class_of, member_of, owned_counts, *np.array(classes, np.int64).reshape(-1, 2).T)


def random_edges(rng: random.Random) -> Edges:
    """One group, larger and with more partitions and owners than those of ``mixed_groups``."""
    member_count, density = rng.randint(1, 40), rng.choice((0.1, 0.3, 0.6, 0.9))
    largest, most_owned = rng.choice((2, 5, 40, 200)), rng.choice((0, 2, 6, 30))
    rows: list[tuple[int, int, int]] = []
    supply: list[int] = []
    for number in range(rng.randint(1, 40)):
        supply.append(rng.randint(0, largest))
        left = supply[-1]
        for member in range(member_count):
            if rng.random() < density:
                owned = min(left, rng.randint(0, most_owned))
                left -= owned
                rows.append((number, member, owned))
    class_of, member_of, owned_counts = np.array(rows, np.int64).reshape(-1, 3).T
    return Edges(class_of, member_of, owned_counts, np.array(supply), np.arange(len(supply)))
