"""Servers of this machine for a module, and two drivers for each store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.s3 import S3, running_s3


@pytest.fixture(scope="package")
def s3(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    folder: Path = tmp_path_factory.mktemp("s3")
    try:
        served = running_s3(folder)
        store = served.__enter__()
        store.settings()
    except RuntimeError as error:
        pytest.skip(f"no S3 on loopback: {error}")
    yield store
    served.__exit__(None, None, None)
