"""Groups that are cut, the border forced at small sizes: as good as what a task plans whole."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import Bounds, Limit, Settings, plan_by_weight, tradeoff
from kassign_spark.errors import InputError

CUT = Settings(max_partitions_per_task=2_000)
TOPICS = 4


class Drawn:
    """Groups of one situation each, as columns."""

    def __init__(self) -> None:
        self.members: list[dict[str, Any]] = []
        self.topics: list[dict[str, Any]] = []
        self.weights: list[pa.Table] = []
        self.owned: list[pa.Table] = []

    def add(
        self,
        group: str,
        partitions: int,
        members: int,
        *,
        sigma: float = 1.0,
        skewed: float = 1.5,
        free: float = 0.02,
        idle: float = 0.0,
        hot: float = 0.0,
        halves: bool = False,
        sized: bool = False,
    ) -> None:
        random = np.random.default_rng(len(self.topics) + 1)
        each = partitions // TOPICS
        names = [f"{group}-{t}" for t in range(TOPICS)]
        ids = [f"m{m:02d}" for m in range(members)]
        for m, member in enumerate(ids):
            mine = names if not halves else [names[t] for t in range(TOPICS) if (t + m) % 4 < 2]
            capacity = 2.0 if sized and m % 3 == 0 else None
            self.members.append(
                {"group_id": group, "member_id": member, "topics": mine, "capacity": capacity}
            )
        self.topics += [{"topic": name, "num_partitions": each} for name in names]
        weight = np.round(np.exp(random.normal(0, sigma, partitions)) * 100)
        weight[random.random(partitions) < idle] = 0
        weight[0] = max(weight[0], hot * weight.sum() / members)
        topic, number = np.divmod(np.arange(partitions), each)
        share = np.where(np.arange(members) % 10 == 0, skewed, 1.0)
        owner = random.choice(members, partitions, p=share / share.sum())
        if halves:  # the next member that may
            may = (topic[:, None] + (owner[:, None] + np.arange(4))) % 4 < 2
            owner = (owner + may.argmax(axis=1)) % members
        has = random.random(partitions) >= free
        by_name = pa.array(names).take(pa.array(topic))
        at = {"topic": by_name, "partition": pa.array(number.astype(np.int32))}
        self.weights.append(pa.table({**at, "weight": pa.array(weight)}))
        owners = pa.array(ids).take(pa.array(owner))
        held = pa.table({"group_id": pa.array([group] * partitions), "member_id": owners, **at})
        self.owned.append(held.filter(pa.array(has)))

    def frames(self, spark: SparkSession) -> tuple[DataFrame, ...]:
        return (
            spark.createDataFrame(
                self.members,
                "group_id string, member_id string, topics array<string>, capacity double",
            ),
            spark.createDataFrame(self.topics, "topic string, num_partitions int"),
            spark.createDataFrame(pa.concat_tables(self.weights)),
            spark.createDataFrame(pa.concat_tables(self.owned)),
        )


@pytest.fixture(scope="module")
def fleet(spark: SparkSession) -> tuple[DataFrame, ...]:
    drawn = Drawn()
    drawn.add("capacities", 6_000, 12, sized=True)
    drawn.add("fresh", 6_000, 12, free=1.0, idle=0.3)
    drawn.add("halves", 8_000, 16, halves=True)
    drawn.add("heavy", 10_000, 20, sigma=2.0)
    drawn.add("hot", 6_000, 12, hot=3.0)
    drawn.add("idle", 6_000, 10, idle=0.6)
    drawn.add("many-members", 2_400, 24)
    drawn.add("skewed", 9_000, 24)
    drawn.add("small", 400, 5)
    return tuple(frame.localCheckpoint() for frame in drawn.frames(spark))


Plans = dict[str, dict[str, Any]]


def verdicts_of(plan: Any) -> Plans:
    return {row.group_id: row.asDict() for row in plan.verdicts.collect()}


@pytest.fixture(scope="module")
def whole(fleet: tuple[DataFrame, ...]) -> Plans:
    return verdicts_of(plan_by_weight(*fleet))


@pytest.fixture(scope="module")
def cut(fleet: tuple[DataFrame, ...]) -> Any:
    return plan_by_weight(*fleet, settings=CUT)


def test_a_group_that_is_cut_gets_the_same_verdict(cut: Any, whole: Plans) -> None:
    found = verdicts_of(cut)
    assert found.keys() == whole.keys()
    for group, row in found.items():
        other = whole[group]
        print(group, *(f"{n} {row[n]:.6g}/{other[n]:.6g}" for n in ("max_load", "load_bound", "limit", "moves", "moves_bound", "best_load", "count_difference")), row["verdict"], other["verdict"])
        print(row["detail"], "|", other["detail"])
