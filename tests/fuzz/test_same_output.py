"""One input in many forms, and one output: order, partitions, columns and Spark's settings."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign, rebalance, validate
from tests.fuzz.budget import examples
from tests.fuzz.odd_fleets import Fleet, many_odd_fleets

Rows = list[tuple[object, ...]]


def _results(frames: tuple[DataFrame, DataFrame, DataFrame | None]) -> list[Rows]:
    result = (assign(*frames), rebalance(*frames), validate(*frames))
    return [sorted(map(tuple, frame.collect()), key=repr) for frame in result]


def _in_another_form(frame: DataFrame, rng: random.Random) -> DataFrame:
    """Columns in another order, one more that nobody knows, rows in other places."""
    columns = rng.sample(frame.columns, len(frame.columns))
    mixed = frame.select(*columns, F.lit(rng.random()).alias("of somebody else's"))
    cut = mixed.repartition(rng.randint(1, 5), F.xxhash64(F.lit(rng.random()), *_plain(frame)))
    return cut.sortWithinPartitions(F.xxhash64(F.lit(rng.random()), *_plain(frame)))


def _plain(frame: DataFrame) -> list[str]:
    return [name for name, kind in frame.dtypes if not kind.startswith("array")]


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")


@pytest.mark.slow
@examples(1, spark=True)
@given(fleet=many_odd_fleets(count=12), seed=st.integers(0, 99), adaptive=st.booleans())
def test_the_form_of_the_input_does_not_matter(
    spark: SparkSession, fleet: Fleet, seed: int, adaptive: bool
) -> None:
    frames = fleet.frames(spark)
    once = _results(frames)
    rng = random.Random(seed)
    members, topics, owned = frames
    settings = {
        "spark.sql.adaptive.enabled": str(adaptive).lower(),
        "spark.sql.shuffle.partitions": str(rng.choice((1, 3, 7))),
        "spark.sql.codegen.wholeStage": str(not adaptive).lower(),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN" if adaptive else "FALLBACK",
    }
    with _settings(spark, settings):
        again = _results(
            (
                _in_another_form(members, rng),
                _in_another_form(topics, rng),
                None if owned is None else _in_another_form(owned, rng),
            )
        )
    assert once == again
