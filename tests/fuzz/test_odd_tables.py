"""Whole fleets in, an assignment or one line out; and the assignment is always a possible one."""

import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from kassign_spark import (
    assign,
    balance,
    compare,
    deliver,
    diff,
    explain,
    predict,
    rebalance,
    summarize,
    validate,
    violations,
)
from kassign_spark.assignors import ASSIGNORS
from kassign_spark.plans.listener import listener_calls
from tests.builders import final_assignment, local_copy
from tests.fuzz.budget import examples
from tests.fuzz.odd_fleets import Fleet, bad_fleets, many_odd_fleets
from tests.fuzz.outcome import result_or_refusal

pytestmark = pytest.mark.slow


@examples(2, spark=True)
@given(fleet=many_odd_fleets(count=12))
def test_odd_fleets_have_an_assignment(spark: SparkSession, fleet: Fleet) -> None:
    members, topics, owned = fleet.frames(spark)
    plan = local_copy(assign(members, topics, owned))
    assert violations(plan, members, topics, owned).collect() == []
    refusing = {"assignor_unusable", "topics_missing", "duplicate_member", "topics_unnamed"}
    problems = validate(members, topics, owned, assignors=ASSIGNORS).collect()
    assert not refusing & {p.problem for p in problems}


@examples(8, spark=True)
@given(fleet=bad_fleets())
def test_bad_fleets_are_refused_in_one_line(spark: SparkSession, fleet: Fleet) -> None:
    members, topics, owned = fleet.frames(spark)
    rows = result_or_refusal(lambda: local_copy(assign(members, topics, owned)))
    problems = result_or_refusal(
        lambda: validate(members, topics, owned, assignors=ASSIGNORS).collect()
    )
    # What assign refuses, validate either lists or refuses as well.
    assert rows is not None or problems is None or problems
    if rows is not None:
        assert violations(rows, members, topics, owned).collect() == []


@examples(2, spark=True)
@given(fleet=many_odd_fleets(count=12))
def test_a_rebalance_ends_with_everything_assigned(spark: SparkSession, fleet: Fleet) -> None:
    members, topics, owned = fleet.frames(spark)
    steps = local_copy(rebalance(members, topics, owned))
    unsettled = [r.group_id for r in summarize(steps, owned).collect() if not r.settles]
    rows = violations(final_assignment(steps), members, topics).collect()
    assert [row for row in rows if row.group_id not in unsettled] == []
    listener_calls(steps, members).collect()


@examples(2, spark=True)
@given(fleet=many_odd_fleets(count=12))
def test_predictions_have_a_verdict_for_every_group(spark: SparkSession, fleet: Fleet) -> None:
    members, topics, owned = fleet.frames(spark)
    predicted = predict(members, topics, owned)
    key = ["cluster_id", "group_id"] if fleet.has_clusters else ["group_id"]
    groups = {tuple(row.get(name) or None for name in key) for row in fleet.members}
    verdicts = predicted.verdicts.collect()
    assert {tuple(row[name] or None for name in key) for row in verdicts} == groups
    assert len(verdicts) == len(groups)
    predicted.assignment.collect()


@examples(2, spark=True)
@given(fleet=bad_fleets())
def test_any_owners_can_be_measured(spark: SparkSession, fleet: Fleet) -> None:
    """What was seen somewhere is an assignment too, however wrong."""
    members, topics, owned = fleet.frames(spark)
    if owned is None:
        return
    for measure in (
        lambda: violations(owned, members, topics, owned),
        lambda: balance(owned, members, owned),
        lambda: diff(owned, owned),
        lambda: deliver(owned, members),
        lambda: explain(owned, members, topics, owned),
        lambda: compare(members, topics, owned),
        lambda: rebalance(members, topics, owned),
    ):
        result_or_refusal(lambda measure=measure: measure().collect())  # type: ignore[misc]
