"""Seeded random groups with weights: heavy tails, hot partitions, capacities, subscriptions.

Numbers come from Python's own generator, whose sequence is the same in every version.
"""

import random
from typing import Any

import numpy as np

from kassign_spark.assignors.weighted.problem import Group

WEIGHTS = ("uniform", "even", "lognormal", "pareto", "zipf", "hot", "topics", "few", "equal")


def draw(seed: int, size: int | None = None) -> dict[str, Any]:
    """One group as plain data: weights descending, capacities whole; 5 to 60 partitions."""
    rng = random.Random(f"weighted-{seed}")
    members = rng.randint(2, 12)
    partitions = rng.randint(5, 60)
    partitions = partitions if size is None else size
    kind = WEIGHTS[seed % len(WEIGHTS)]
    weights = sorted((_weight(rng, kind, i) for i in range(partitions)), reverse=True)
    capacity = [rng.choice([1, 1, 2, 3, 4]) if seed % 3 == 0 else 1 for _ in range(members)]
    class_, eligible = _subscriptions(rng, partitions, members)
    home = [-1] * partitions
    if rng.random() < 0.67:
        home = _owners(rng, weights, class_, eligible, capacity)
    return {
        "seed": seed,
        "kind": kind,
        "weight": weights,
        "class": class_,
        "eligible": eligible,
        "capacity": capacity,
        "home": home,
    }


def as_group(drawn: dict[str, Any], cost: list[float] | None = None) -> Group:
    return Group(
        np.array(drawn["weight"], float),
        np.array(drawn["class"], np.int64),
        np.array(drawn["home"], np.int64),
        np.ones(len(drawn["weight"])) if cost is None else np.array(cost, float),
        np.array(drawn["eligible"], bool),
        np.array(drawn["capacity"], float),
    )


def _weight(rng: random.Random, kind: str, i: int) -> int:
    if kind == "uniform":
        return rng.randint(1, 1000)
    if kind == "even":
        return rng.randint(90, 110)
    if kind == "lognormal":
        return max(1, round(100 * rng.lognormvariate(0, 1)))
    if kind == "pareto":
        return round(50 * rng.paretovariate(1.1))
    if kind == "zipf":
        return round(3000 / (i + 1)) + 1
    if kind == "hot":
        return rng.randint(2000, 4000) if i < 2 else rng.randint(1, 120)
    if kind == "topics":
        return (20, 70, 300)[i % 3] + rng.randint(0, 9)
    if kind == "few":
        return rng.choice([0, 0, 1, 5, 40, 400])
    return 7


def _subscriptions(
    rng: random.Random, partitions: int, members: int
) -> tuple[list[int], list[list[bool]]]:
    how = rng.choice(["equal", "equal", "halves", "rolling", "pattern"])
    if how == "equal":
        return [0] * partitions, [[True] * members]
    classes = rng.randint(2, 6)
    if how == "rolling":
        rows = [[True] * members, [m < (members + 1) // 2 for m in range(members)]]
    elif how == "halves":
        rows = [[rng.random() < 0.5 for _ in range(members)] for _ in range(classes)]
    else:
        rows = [[rng.random() < 0.25 or k == 0 for _ in range(members)] for k in range(classes)]
    for row in rows:
        if not any(row):
            row[rng.randrange(members)] = True
    class_ = [rng.randrange(len(rows)) for _ in range(partitions)]
    used = sorted(set(class_))
    return [used.index(k) for k in class_], [rows[k] for k in used]


def _owners(
    rng: random.Random,
    weights: list[int],
    class_: list[int],
    eligible: list[list[bool]],
    capacity: list[int],
) -> list[int]:
    """What a plan for other weights gave, some members gone, some partitions new."""
    members = len(capacity)
    drift = rng.choice([0.1, 0.5, 1.0])
    gone = rng.randrange(members) if rng.random() < 0.4 else -1
    load = [0.0] * members
    home = []
    for weight, k in zip(weights, class_, strict=True):
        if rng.random() < 0.08:
            home.append(-1)
            continue
        takers = [m for m in range(members) if eligible[k][m]]
        m = min(takers, key=lambda m: (load[m] / capacity[m], m))
        load[m] += weight * rng.lognormvariate(0, drift)
        home.append(-1 if m == gone and rng.random() < 0.7 else m)
    return home
