"""Large groups by the shapes that hurt: heavy tails, hot partitions, capacities, many classes."""

from dataclasses import dataclass

import numpy as np

from kassign_spark.assignors.weighted import large
from kassign_spark.assignors.weighted.problem import Group, scale_weights


@dataclass(frozen=True)
class Shape:
    partitions: int
    members: int
    classes: int = 1
    kind: str = "lognormal"
    sigma: float = 1.0
    capacities: bool = False
    share: float = 0.5
    leaving: int = 0
    seed: int = 1


LARGE = {
    "lognormal": Shape(2_000, 100),
    "heavy": Shape(5_000, 100, sigma=2.0, capacities=True),
    "zipf": Shape(10_000, 500, kind="zipf"),
    "halves": Shape(12_000, 300, classes=60),
    "leave": Shape(100_000, 1_000, capacities=True, leaving=70),
    "ten-classes": Shape(100_000, 1_000, classes=10),
    "very-heavy": Shape(250_000, 2_000, sigma=2.0),
    "tenths": Shape(100_000, 800, classes=400, kind="zipf", share=0.1),
    "million": Shape(1_000_000, 3_000),
    "million-classes": Shape(1_000_000, 3_000, classes=50, sigma=2.0),
}


def make(shape: Shape) -> Group:
    random = np.random.default_rng(shape.seed)
    if shape.kind == "zipf":
        weight = 1e6 / np.arange(1, shape.partitions + 1)
    else:
        weight = np.exp(random.normal(0, shape.sigma, shape.partitions)) * 100
    whole, power = scale_weights(np.sort(weight)[::-1])
    eligible = np.ones((shape.classes, shape.members), bool)
    if shape.classes > 1:
        eligible = random.random(eligible.shape) < shape.share
        eligible[~eligible.any(axis=1), 0] = True
    capacity = np.ones(shape.members)
    if shape.capacities:
        capacity[random.random(shape.members) < 0.3] = 2.0
    return Group(
        whole,
        random.integers(0, shape.classes, shape.partitions),
        np.full(shape.partitions, -1),
        np.ones(shape.partitions),
        eligible,
        capacity,
        power,
    )


def with_owners(group: Group, *, drift: float = 0.3, leaving: int = 2, seed: int = 2) -> Group:
    """What a plan for other weights gave, some members gone since."""
    random = np.random.default_rng(seed)
    before = group.weight * np.exp(random.normal(0, drift, len(group.weight)))
    order = np.argsort(-before, kind="stable")
    then = group._replace(weight=np.rint(before[order]), class_=group.class_[order])
    home = np.empty(len(order), np.int64)
    home[order] = large.group_bounds(then).owner
    home[home >= len(group.capacity) - leaving] = -1
    return group._replace(home=home)
