"""Events: possible ones leave a possible state, any others are refused in one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.simulation.event_file import _FIELDS, EventFile
from kassign_spark.simulation.events import KINDS, check_events, with_steps
from kassign_spark.simulation.fold import fold_events
from kassign_spark.simulation.group_reading import read_groups
from kassign_spark.simulation.simulate import simulate
from kassign_spark.simulation.timeouts import Timeouts
from kassign_spark.spark.spark_versions import to_arrow
from tests.fuzz.budget import examples
from tests.fuzz.odd_fleets import Fleet, many_odd_fleets
from tests.fuzz.outcome import result_or_refusal
from tests.fuzz.strategies import names, text
from tests.simulation.checked_states import check_states

_LISTS = ("topics", "assignors")
_NUMBERS = ("downtime_ms", "computed_before_ms", "num_partitions", *vars(Timeouts()))
_FITTING = {
    "group_id": st.sampled_from(["g", "h"]) | text(),
    "member_id": st.sampled_from(["a", "b"]) | text(),
    "topic": st.sampled_from(["t", "u"]) | text(),
}
_TABLES = Fleet(
    [
        {"group_id": g, "member_id": m, "topics": ["t"], "assignor": a, "generation": 2**31 - 1}
        for g, a in (("g", "sticky"), ("h", "cooperative-sticky"))
        for m in "ab"
    ],
    [{"topic": "t", "num_partitions": 3}],
    None,
)


def _value(name: str) -> st.SearchStrategy[Any]:
    if name in _LISTS:
        known = st.sampled_from(["range", "sticky", "t", ""])
        return st.lists(st.none() | known | text(), max_size=2)
    if name == "replica_racks":
        racks = st.lists(st.none() | st.sampled_from(["a", "b", ""]) | text(), max_size=2)
        return st.lists(st.none() | racks, max_size=4)
    if name in _NUMBERS:
        return st.sampled_from([0, 1, -1, 4, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)])
    return _FITTING.get(name, text())


@st.composite
def _any_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events with what their kind needs, mostly, and with what it has no use for, sometimes."""
    rows = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(list(KINDS)))
        may = (*KINDS[kind].may, draw(st.sampled_from(_FIELDS)))
        fields = [*KINDS[kind].needs, *draw(st.lists(st.sampled_from(may), max_size=2))]
        row = {name: draw(_value(name)) for name in fields if name != "cluster_id"}
        event = draw(st.sampled_from([number] * 6 + [None, 2**31, -(2**63), 2**63 - 1, 0]))
        rows.append(
            {**row, "kind": draw(st.sampled_from([kind] * 8 + [None, "no"])), "event": event}
        )
    return rows


@examples(5, spark=True)
@given(rows=_any_events())
def test_any_events_have_an_order_or_are_refused(
    spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    events = EventFile(rows, Timeouts(), []).events(spark, cluster_id=False)
    result = result_or_refusal(lambda: check_events(events, Timeouts()))
    if result is not None:
        steps = [row.step for row in with_steps(result.frame).collect()]
        assert set(steps) == set(range(1, max(steps) + 1)), "no step without an event"
        assert len(steps) >= len(rows)


@pytest.mark.slow
@examples(8, spark=True)
@given(rows=_any_events())
def test_any_events_are_simulated_or_refused(
    spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    events = EventFile(rows, Timeouts(), []).events(spark, cluster_id=False)
    members, topics, _ = _TABLES.frames(spark)
    simulated = result_or_refusal(lambda: simulate(members, topics, None, events).collect())
    assert simulated is None or {row.event for row in simulated} <= {row["event"] for row in rows}


@st.composite
def _histories(draw: st.DrawFn) -> tuple[Fleet, list[dict[str, Any]]]:
    """A fleet, and events that are possible in it, one after the other."""
    fleet = draw(many_odd_fleets(count=10, assignors=("range", "sticky", "cooperative-sticky")))
    fleet = Fleet(
        [{**row, "group_instance_id": None, "topics_pattern": None} for row in fleet.members],
        fleet.topics,
        fleet.owned,
        fleet.has_clusters,
    )
    for row in fleet.members:
        row["topics"] = row["topics"] or []
    groups: dict[tuple[str | None, str], set[str]] = {}
    for row in fleet.members:
        groups.setdefault((row.get("cluster_id"), row["group_id"]), set()).add(row["member_id"])
    known = sorted({row["topic"] for row in fleet.topics}) or ["t"]
    rows: list[dict[str, Any]] = []
    # To all groups something happens at once, so that there are as few steps as turns.
    for number in range(1, draw(st.integers(1, 2)) + 1):
        for (cluster, group), ids in groups.items():
            where = {"cluster_id": cluster, "group_id": group, "event": number}
            subscription = draw(st.lists(st.sampled_from(known), max_size=3))
            joiner = draw(names().filter(lambda name, ids=ids: name not in ids))  # type: ignore[misc]
            kinds = ["member_joins", "subscription_changes"]
            if len(ids) > 1:
                kinds += ["member_leaves", "member_crashes", "member_restarts"]
            kind = draw(st.sampled_from(kinds))
            member = joiner if kind == "member_joins" else draw(st.sampled_from(sorted(ids)))
            more = {"topics": subscription} if kind in kinds[:2] else {}
            rows.append({**where, "kind": kind, "member_id": member, **more})
            if kind == "member_joins":
                ids.add(member)
            elif kind in ("member_leaves", "member_crashes"):
                ids.discard(member)
    return fleet, rows


@examples(1, spark=True)
@given(history=_histories())
def test_possible_events_leave_a_possible_state(
    spark: SparkSession, history: tuple[Fleet, list[dict[str, Any]]]
) -> None:
    fleet, rows = history
    inputs = conform_inputs(*fleet.frames(spark))
    events = EventFile(rows, Timeouts(), []).events(spark, cluster_id=fleet.has_clusters)
    topics = inspect_inputs(inputs, known_assignors=ASSIGNORS).eligible.topics
    table = fold_events(inputs, topics, check_events(events, Timeouts()), patterns=False)
    check_states(*read_groups(to_arrow(table)))
