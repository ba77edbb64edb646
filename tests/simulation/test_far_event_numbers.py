"""Numbers at and beyond their limits, in events and in the state that they meet."""

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError
from kassign_spark.simulation.events import check_events
from kassign_spark.simulation.timeouts import Timeouts
from tests.simulation.test_simulate import Simulated, e, events_frame

_MOST = 2**31 - 1
_AT = {"group_id": "far", "topics": ["far"]}

TOPICS = {"far": 3}
OWNED: list[dict[str, object]] = []
MEMBERS = [
    {**_AT, "member_id": "C0", "assignor": "sticky", "generation": _MOST, "member_seq": _MOST}
]
EVENTS = [{"event": n, **e("member_joins", f"C{n + 1}", **_AT)} for n in (0, 1)]


def test_the_number_of_an_event_has_32_bits(spark: SparkSession) -> None:
    rows = [{"event": _MOST + 1, **e("member_leaves", "C0", group_id="g")}]
    with pytest.raises(InputError, match=r"event is 2147483648; must be a whole number from -2147"):
        check_events(events_frame(spark, rows), Timeouts())


def test_a_group_goes_on_behind_the_last_generation(simulated: Simulated) -> None:
    assigned = [row for row in simulated["far", 1, 1] if row.action == "assigned"]
    assert sorted(row.member_id for row in assigned) == ["C0", "C1", "C2"]
