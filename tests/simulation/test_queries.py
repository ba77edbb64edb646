"""How many queries and jobs a simulation runs: as many for many events as for few."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import parse_sweep, read_snapshot, simulate, sweep
from tests.simulation.test_simulate import e, events_frame

_FLEET = "examples/fleet"


def _counted(spark: SparkSession, call: Callable[[], DataFrame]) -> tuple[int, int]:
    """Queries and jobs of a call and of reading its result once."""
    context = spark.sparkContext._jsc.sc()
    store = spark._jsparkSession.sharedState().statusStore()

    def seen() -> tuple[int, int]:
        context.listenerBus().waitUntilEmpty()
        return store.executionsCount(), context.statusStore().jobsList(None).size()

    queries, jobs = seen()
    call().write.format("noop").mode("overwrite").save()
    more_queries, more_jobs = seen()
    return more_queries - queries, more_jobs - jobs


def _events(spark: SparkSession, count: int) -> Any:
    group = {"group_id": "mail-sender"}
    rows = []
    for number in range(count):
        kind = "member_joins" if number % 2 else "member_crashes"
        rows.append({**e(kind, "mail-sender-1", **group), "event": number})
    rows.append({**e("topic_grows", topic="orders.cancelled", num_partitions=12), "event": count})
    return events_frame(spark, rows)


@pytest.mark.parametrize("count", [2, 40])
def test_a_simulation_costs_the_same_whatever_the_number_of_events(
    spark: SparkSession, count: int
) -> None:
    tables = read_snapshot(_FLEET, spark)
    events = _events(spark, count)
    queries, jobs = _counted(spark, lambda: simulate(*tables, events))
    assert queries <= 8
    assert jobs <= 24


def test_a_sweep_costs_the_same_whatever_the_number_of_variants(spark: SparkSession) -> None:
    tables = read_snapshot(_FLEET, spark)
    asked = [parse_sweep({"members": "-9..+9", "partitions": "x1..x3", "group_id": "mail-sender"})]
    queries, jobs = _counted(spark, lambda: sweep(*tables, asked))
    assert queries <= 4
    assert jobs <= 12
