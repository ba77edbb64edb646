"""One standalone cluster a module; what a test kills of it, it gives back."""

from collections.abc import Iterator

import pytest

from tests.cluster.standalone import Standalone, running_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
