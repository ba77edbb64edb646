"""librdkafka's own mock cluster, and groups of real consumers in it.

The Python binding does not reach the mock cluster, so its functions are called in the library that
the binding brings.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import Consumer

_PRODUCER = 0
_SECONDS = 180
_SETTLED_SECONDS = 4.0
"""Longer than the cluster waits for members (3 s)."""


@contextmanager
def mock_cluster(topics: Mapping[str, int]) -> Iterator[str]:
    """Start a cluster with these topics, give its address, and end it."""
    library = _library()
    conf = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(conf, b"log_level", b"0", None, 0)
    error = ctypes.create_string_buffer(512)
    handle = library.rd_kafka_new(_PRODUCER, conf, error, len(error))
    assert handle, error.value.decode()
    cluster = library.rd_kafka_mock_cluster_new(handle, 1)
    try:
        for topic, count in topics.items():
            assert not library.rd_kafka_mock_topic_create(cluster, topic.encode(), count, 1)
        yield library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(handle)


def _library() -> ctypes.CDLL:
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob(
        "librdkafka-*.so*"
    )
    library = ctypes.CDLL(str(path))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, *arguments in (
        ("rd_kafka_conf_new", pointer),
        ("rd_kafka_conf_set", ctypes.c_int, pointer, text, text, text, ctypes.c_size_t),
        ("rd_kafka_new", pointer, ctypes.c_int, pointer, text, ctypes.c_size_t),
        ("rd_kafka_destroy", None, pointer),
        ("rd_kafka_mock_cluster_new", pointer, pointer, ctypes.c_int),
        ("rd_kafka_mock_cluster_destroy", None, pointer),
        ("rd_kafka_mock_cluster_bootstraps", text, pointer),
        ("rd_kafka_mock_topic_create", ctypes.c_int, pointer, text, ctypes.c_int, ctypes.c_int),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Joined(NamedTuple):
    """A consumer of a group, what it subscribes to, and the calls that its listener has received.

    These are `assign`, `revoke` and `lost`.
    """

    consumer: Consumer
    topics: list[str]
    settings: dict[str, str]
    calls: list[str]

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """What it has got."""
        return {(p.topic, p.partition) for p in self.consumer.assignment()}


def join(address: str, group_id: str, settings: dict[str, str], topics: list[str]) -> Joined:
    """Start a consumer, which joins when it is polled."""
    own = {"bootstrap.servers": address, "group.id": group_id, "log_level": 0, **settings}
    consumer = Consumer(own)
    calls: list[str] = []
    listener = {f"on_{call}": _noting(calls, call) for call in ("assign", "revoke", "lost")}
    consumer.subscribe(topics, **listener)
    return Joined(consumer, topics, settings, calls)


def _noting(calls: list[str], call: str) -> Callable[..., None]:
    """Note a call; the binding then does what it does without a listener."""
    return lambda *_: calls.append(call)


def settle(sizes: Mapping[str, int], groups: Sequence[Sequence[Joined]]) -> None:
    """Poll consumers until all that they subscribe to is assigned, and nothing changes any more.

    ``sizes`` are the topics' numbers of partitions.
    """
    every = [joined for group in groups for joined in group]
    expected = sum(
        sizes[topic] for group in groups for topic in set().union(*(each.topics for each in group))
    )
    before: list[set[tuple[str, int]]] = []
    changed = begun = time.monotonic()
    while (
        time.monotonic() - changed < _SETTLED_SECONDS
        or sum(map(len, before)) != expected
        or not all(joined.consumer.memberid() for joined in every)
    ):
        assert time.monotonic() - begun < _SECONDS, "groups did not settle"
        for joined in every:
            joined.consumer.poll(0)
        now = [joined.partitions for joined in every]
        if now != before:
            before, changed = now, time.monotonic()
        time.sleep(0.05)
