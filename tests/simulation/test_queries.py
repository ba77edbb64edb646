"""How many queries and jobs a simulation runs: as many for many events as for few."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import parse_sweep, read_snapshot, simulate, sweep
from tests.query_counter import counting, run_to_nothing
from tests.quick_frames import takes_arrow
from tests.simulation.test_both_types import frames, tables
from tests.simulation.test_simulate import e, events_frame

_FLEET = "examples/fleet"


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
    with counting(spark) as counted:
        run_to_nothing([simulate(*tables, events)])
    assert counted.queries <= 8
    assert counted.jobs <= 24


@takes_arrow
def test_targets_and_regexes_cost_no_more(spark: SparkSession) -> None:
    *inputs, target = frames(spark, tables())
    with counting(spark) as counted:
        run_to_nothing([simulate(*inputs, target=target)])
    assert counted.queries <= 8
    assert counted.jobs <= 24


def test_a_sweep_costs_the_same_whatever_the_number_of_variants(spark: SparkSession) -> None:
    tables = read_snapshot(_FLEET, spark)
    asked = [parse_sweep({"members": "-9..+9", "partitions": "x1..x3", "group_id": "mail-sender"})]
    with counting(spark) as counted:
        run_to_nothing([sweep(*tables, asked)])
    assert counted.queries <= 4
    assert counted.jobs <= 12
