"""One call of ``simulate`` for all files of this folder: each has groups and topics of its own."""

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from kassign_spark.simulation.simulate import simulate
from tests import builders
from tests.simulation import test_bounces, test_far_event_numbers, test_simulate
from tests.simulation.test_simulate import Simulated, events_frame


@pytest.fixture(scope="package")
def simulated(spark: SparkSession) -> Simulated:
    """The rows of ``simulate``, by group, event and stage."""
    members, sizes, owned = test_simulate.fleet(spark)
    rows = test_simulate.events()
    for other in (test_bounces, test_far_event_numbers):
        members, owned = members + other.MEMBERS, owned + other.OWNED
        sizes, rows = sizes | other.TOPICS, rows + other.EVENTS
    frame = simulate(
        builders.members(spark, members),
        builders.topics(spark, sizes),
        builders.owned(spark, owned),
        events_frame(spark, rows).repartition(3),
    )
    # One held result, whatever the number of events.
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert len(plan.splitlines()) <= 3
    result: Simulated = defaultdict(list)
    for row in frame.collect():
        result[row.group_id, row.event, row.stage].append(row)
    return result
