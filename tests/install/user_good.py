"""What a user may write: mypy --strict has nothing to say of it."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kassign_spark import (
    Bounds,
    KassignError,
    Limit,
    Settings,
    Snapshot,
    assign,
    balance,
    plan_by_weight,
    read_snapshot,
    write_snapshot,
)


def planned(spark: SparkSession, folder: Path) -> DataFrame:
    fleet: Snapshot = read_snapshot(folder, spark)
    members, topics, owned = fleet
    plan = assign(members, topics, owned, assignor="sticky", settings=Settings())
    write_snapshot(fleet, "table:lake.kafka", as_of=datetime.now(UTC))
    return balance(plan, members, owned)


def by_weight(fleet: Snapshot, weights: DataFrame) -> DataFrame | None:
    limit, bounds = Limit(tolerance=0.1), Bounds(max_moves=3)
    try:
        result = plan_by_weight(fleet.members, fleet.topics, weights, limit=limit, bounds=bounds)
    except KassignError:
        return None
    return result.verdicts
