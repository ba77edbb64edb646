"""The loop: one job a round, plans that stay flat, nothing left behind."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import NotConvergedError
from kassign_spark.spark.iteration import Budget, Round, converge, settle


def _plan(frame: DataFrame) -> tuple[int, int]:
    plan = frame._jdf.queryExecution().optimizedPlan()
    return len(plan.treeString()), int(plan.stats().sizeInBytes())


@pytest.mark.slow
def test_forty_rounds_of_self_joins_leave_the_plan_and_its_size_estimate_as_they_were(
    spark: SparkSession,
) -> None:
    plans = []

    def step(frame: DataFrame) -> DataFrame:
        plans.append(_plan(frame))
        totals = frame.groupBy("key").agg(F.sum("left").alias("total"))
        return frame.join(totals, on="key", how="inner").select(
            "id", "key", F.greatest(F.col("left") - 1, F.lit(0)).alias("left")
        )

    start, _ = settle(spark.range(200).selectExpr("id", "id % 7 as key", "40 - id % 5 as left"))
    budget = Budget(100)
    end = converge(start, step, F.sum("left"), kind="countdown", budget=budget)
    assert budget.used == 40
    lengths, sizes = zip(*plans, strict=True)
    assert max(lengths) <= min(lengths) + 8  # expression ids gain digits
    assert max(sizes) <= 2 * min(sizes)
    assert end.agg(F.sum("left")).collect() == [(0,)]
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_measures_ride_on_the_round(spark: SparkSession) -> None:
    rounds: list[Round] = []
    budget = Budget(5, rounds.append)
    frame = spark.range(10).selectExpr("id as left")
    converge(
        frame,
        lambda f: f.select((F.col("left") / 2).cast("bigint").alias("left")),
        F.count_if(F.col("left") > 0),
        kind="halves",
        budget=budget,
        measures={"total": F.sum("left")},
    )
    assert [r.number for r in rounds] == [1, 2, 3, 4]
    assert {r.kind for r in rounds} == {"halves"}
    assert [r.measured["total"] for r in rounds] == [20, 8, 2, 0]
    assert [r.measured["unfinished"] for r in rounds] == [8, 6, 2, 0]


def test_no_rows_are_no_work(spark: SparkSession) -> None:
    budget = Budget(1)
    empty = spark.range(0).selectExpr("id as left")
    assert converge(empty, lambda f: f, F.sum("left"), kind="x", budget=budget).count() == 0


def test_the_limit_is_an_error_that_names_the_loop_and_what_is_left(spark: SparkSession) -> None:
    with pytest.raises(NotConvergedError, match="not finished after 2 rounds: 3 rows of the waits"):
        converge(
            spark.range(3),
            lambda f: f,
            F.count("id"),
            kind="waits",
            budget=Budget(2),
        )


def test_a_failing_round_leaves_nothing_in_the_cache(spark: SparkSession) -> None:
    broken = spark.range(3).select(F.raise_error(F.lit("no")).alias("x"))
    with pytest.raises(Exception, match="no"):
        settle(broken)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
