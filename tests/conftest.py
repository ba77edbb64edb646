"""One Spark session and one real Kafka broker for the whole run, and the tier of each test.

What a test asks for says what it costs: its markers are set here, by its fixtures.
"""

import subprocess
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.docs.reader import ROOT
from tests.java import ROOMY, SHORT_LIVED
from tests.json_schemas import documents_checked
from tests.kafka.broker import Brokers, running_broker
from tests.kafka.secured import SETTINGS, SecuredBroker, secured_listeners
from tests.quick_frames import hold_small_frames
from tests.quick_gateway import keep_java_names
from tests.spark_session import QUICK_WORKERS, UNCOMPILED, start_session

_COSTLY = {
    "spark": "spark",
    "broker": "broker",
    "own_brokers": "broker",
    "own_processes": "process",
    "cluster": "cluster",
}
"""Marker by fixture; a test that uses none of them, directly or through another, is a unit test."""


_SMALL_QUERIES = {
    **UNCOMPILED,
    **QUICK_WORKERS,
    # Ten calls to Java for each operation on a column, to say which line of Python it is of.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # By the memory there is it would be 16 MB for each table of hashes, filled with zeros.
    "spark.buffer.pageSize": "1m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before pytest's own, which leaves out what ``-m`` does not ask for."""
    for item in items:
        fixtures: list[str] = getattr(item, "fixturenames", [])
        markers = {_COSTLY[name] for name in fixtures if name in _COSTLY}
        for marker in markers or {"unit"} - {mark.name for mark in item.iter_markers("broker")}:
            item.add_marker(marker)
    items[:] = _mixed(items)


def _mixed(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """File by file, those that wait for a broker evenly among those that compute, units last.

    So two workers seldom wait, or compute, both at once, and what is left in the end is short.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting, computing, units = [], [], []
    for of_file in files.values():
        marks = {mark.name for item in of_file for mark in item.iter_markers()}
        if "broker" in marks:
            waiting.append(of_file)
        else:
            (computing if marks & {"spark", "process", "cluster"} else units).append(of_file)
    places = [
        ((number + 0.5) / len(tier), of_file)
        for tier in (waiting, computing)
        for number, of_file in enumerate(tier)
    ]
    for of_file in [*(of_file for _, of_file in sorted(places, key=itemgetter(0))), *units]:
        yield from of_file


@pytest.fixture(scope="session", autouse=True)
def _documents_are_checked() -> Iterator[None]:
    """Whatever command a test runs: what it says has the schema that it declares."""
    with documents_checked():
        yield


@pytest.fixture(scope="session")
def own_processes() -> None:
    """For tests that start processes of their own: a command, a tool, a browser."""


@pytest.fixture(autouse=True)
def _a_unit_test_starts_no_process(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a JVM: ``make unit`` runs where there is no Java."""
    if request.node.get_closest_marker("unit") is None:
        return

    def refused(self: object, arguments: Any, *_: Any, **__: Any) -> None:
        raise AssertionError(
            f"a unit test starts no process, but this one {arguments}: let it ask for the fixture "
            "spark, broker or own_processes"
        )

    monkeypatch.setattr(subprocess.Popen, "__init__", refused)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    keep_java_names()
    hold_small_frames()
    options = f"{SHORT_LIVED} {ROOMY}"
    session = start_session(
        tmp_path_factory.mktemp("spark"), java_options=options, settings=_SMALL_QUERIES
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_cached_frames(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves cached frames to the next one."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(scope="session")
def own_brokers() -> Brokers:
    """For tests that need a broker of their own: one that fails or dies."""
    return running_broker


@pytest.fixture(scope="session")
def broker(
    own_brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """The one real broker of the run.

    It has a plain address, and further ones by name: SASL and TLS.
    """
    folder = tmp_path_factory.mktemp("broker")
    credentials, listeners = secured_listeners(folder)
    with own_brokers(folder, listeners=listeners, settings=SETTINGS) as running:
        yield SecuredBroker(running.bootstrap_server, running.addresses, running.pid, credentials)
