"""The answers of the coordinator itself, once for all tests of its model."""

import pytest
from pyspark.sql import SparkSession

from tests.coordinator.chains import Computation, chains
from tests.kafka import coordinator

_SEED = 848


@pytest.fixture(scope="session")
def computed(spark: SparkSession) -> dict[str, list[Computation]]:
    """Over a thousand targets of each assignor, all answered in one call."""
    lives = {name: chains(140, seed=_SEED, assignor=name) for name in ("uniform", "range")}
    coordinator.run(spark, [life[0].script for of in lives.values() for life in of])
    return {name: [c for life in of for c in life] for name, of in lives.items()}
