"""One Spark session and one real Kafka broker for the whole run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kafka.broker import running_broker
from tests.kafka.secured import SETTINGS, SecuredBroker, secured_listeners
from tests.spark_session import SHORT_LIVED, start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = start_session(tmp_path_factory.mktemp("spark"), java_options=SHORT_LIVED)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_cached_frames(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves cached frames to the next one."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """The one real broker of the run; tests that ask for it have the marker ``broker``.

    It has a plain address, and further ones by name: SASL and TLS.
    """
    folder = tmp_path_factory.mktemp("broker")
    credentials, listeners = secured_listeners(folder)
    with running_broker(folder, listeners=listeners, settings=SETTINGS) as running:
        yield SecuredBroker(running.bootstrap_server, running.addresses, running.pid, credentials)
