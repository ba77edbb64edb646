"""Numbers at and beyond their limits, in events and in the state that they meet."""

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError
from kassign_spark.simulation.events import schedule
from kassign_spark.simulation.simulate import simulate
from kassign_spark.simulation.timeouts import Timeouts
from tests import builders
from tests.simulation.test_simulate import e, events_frame

_MOST = 2**31 - 1


def test_the_number_of_an_event_has_32_bits(spark: SparkSession) -> None:
    rows = [{"event": _MOST + 1, **e("member_leaves", "C0", group_id="g")}]
    with pytest.raises(InputError, match=r"event is 2147483648; must be a whole number from -2147"):
        schedule(events_frame(spark, rows), Timeouts())


def test_a_group_goes_on_behind_the_last_generation(spark: SparkSession) -> None:
    member = {"topics": ["t"], "assignor": "sticky", "generation": _MOST, "member_seq": _MOST}
    members = builders.members(spark, [{**member, "group_id": "g", "member_id": "C0"}])
    rows = [{"event": n, **e("member_joins", f"C{n}", group_id="g", topics=["t"])} for n in (1, 2)]
    steps = simulate(members, builders.topics(spark, {"t": 3}), None, events_frame(spark, rows))
    last = steps.where("event = 2 AND action = 'assigned'").collect()
    assert sorted(row.member_id for row in last) == ["C0", "C1", "C2"]
