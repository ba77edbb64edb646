"""Servers of this machine; each store has its own for all tests of a module."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet
from tests.stores.driver import Driver, running_driver
from tests.stores.hadoop import running_hadoop
from tests.stores.promises import Store, put_fleet
from tests.stores.s3 import running_s3


@pytest.fixture(scope="module", params=["s3a", "hdfs"])
def store(
    request: pytest.FixtureRequest,
    own_processes: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as stack:
        served = running_s3(folder) if request.param == "s3a" else running_hadoop(folder, "hdfs")
        try:
            running: Store = stack.enter_context(served)
        except RuntimeError as error:
            pytest.skip(f"no {request.param} on loopback: {error}")
        yield running


@pytest.fixture(scope="package")
def local_plan(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of the small fleet, as JSON, made and written on this machine."""
    folder = tmp_path_factory.mktemp("local")
    fleet, plan = write_small_fleet(folder / "fleet"), folder / "plan"
    assert cli.main(["assign", str(fleet), "--output", str(plan), "--format", "json"]) == 0
    return plan


@pytest.fixture(scope="module")
def fleet(store: Store, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the small fleet in the store."""
    return put_fleet(store, tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def driver(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("driver")
    with running_driver(folder, store.settings(), store.environment()) as running:
        yield running
