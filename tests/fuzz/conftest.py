"""Many small plans, each run once: compiling them to Java would take most of the time."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(autouse=True)
def _interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    before = {name: spark.conf.get(name, None) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
