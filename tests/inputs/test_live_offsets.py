"""Offsets that brokers give only partly: what is told, and that the rest is read."""

from types import SimpleNamespace as Made
from typing import Any

import pytest
from kafka import errors

from kassign_spark.live.admin import list_groups
from kassign_spark.live.offsets import read_offsets

_BUSY, _REFUSED = errors.NotCoordinatorError, errors.GroupAuthorizationFailedError
_STALE, _HIDDEN = errors.NotLeaderForPartitionError, errors.TopicAuthorizationFailedError


class _Admin:
    """Answers of two brokers; group c moves and partition 2 gets a new leader after a first try."""

    def __init__(self, loading: int = 0) -> None:
        self._manager = self
        self.loading = loading
        self.asked: list[tuple[int, Any]] = []

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        return described(2)

    def list_groups(self, broker_ids: list[int]) -> list[dict[str, str]]:
        if self.loading:
            self.loading -= 1
            raise errors.CoordinatorLoadInProgressError
        names = {1: "ab", 2: "c"} if not self.asked else {1: "abc", 2: ""}
        return [{"group_id": name} for name in names[broker_ids[0]]]

    def _list_group_offsets_requests(self, groups: dict[str, None]) -> list[tuple[None, Any]]:
        return [(None, list(groups))]

    def _list_partition_offsets_request(self, specs: dict[Any, int], _: int) -> Any:
        return specs

    def run(self, ask: Any) -> Any:
        try:
            ask().send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("a request that waits")

    async def send(self, request: Any, node_id: int) -> Any:
        self.asked.append((node_id, request))
        if isinstance(request, list):
            return Made(groups=[_group(name, node_id) for name in request])
        return Made(
            topics=[
                Made(name=at.topic, partitions=[_partition(at.partition, spec, node_id)])
                for at, spec in request.items()
            ]
        )


def _group(name: str, broker: int) -> Any:
    code = _REFUSED.errno if name == "b" else _BUSY.errno if (name, broker) == ("c", 2) else 0
    at = [(0, 5), (1, -1), (9, 3)]
    partitions = [Made(partition_index=p, committed_offset=o, error_code=0) for p, o in at]
    topics = [Made(name="t", partitions=partitions)]
    return Made(group_id=name, error_code=code, topics=topics)


def _partition(number: int, timestamp: int, broker: int) -> Any:
    code = _HIDDEN.errno if number == 1 else _STALE.errno if (number, broker) == (2, 1) else 0
    return Made(
        partition_index=number, offset=2 if timestamp == -2 else 10 + number, error_code=code
    )


def described(leader_of_2: int) -> list[dict[str, Any]]:
    leaders = {0: 1, 1: 1, 2: leader_of_2, 3: -1}
    partitions = [{"partition_index": p, "leader_id": leader} for p, leader in leaders.items()]
    return [{"name": "t", "partitions": partitions}, {"name": "unread", "partitions": partitions}]


def test_what_may_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kassign_spark.live.offsets.PAUSE_SECONDS", 0.0)
    lines: list[str] = []
    topics_of = {"a": {"t", "gone"}, "b": {"t"}, "c": {"t"}}
    result = read_offsets(_Admin(), [1, 2], topics_of, described(1), lines.append)
    assert [row[:-1] for row in result.rows] == [
        ("a", "t", 0, 2, 10, 5),
        ("a", "t", 2, 2, 12, None),
        ("c", "t", 0, 2, 10, 5),
        ("c", "t", 2, 2, 12, None),
        (None, "t", 0, 2, 10, None),
        (None, "t", 2, 2, 12, None),
    ]
    assert list(result.groups) == ["b"]
    assert "GroupAuthorizationFailed" in result.groups["b"]
    assert list(result.partitions) == ["t-1", "t-3"]
    assert "TopicAuthorizationFailed" in result.partitions["t-1"]
    assert result.partitions["t-3"] == "it has no leader"
    assert "read commits of 2 of 3 groups" in lines
    assert "read offsets of 2 of 4 partitions" in lines


def test_a_broker_that_loads_its_groups_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kassign_spark.live.admin._LOADING_PAUSE_SECONDS", 0.0)
    assert [group["group_id"] for group in list_groups(_Admin(loading=3), 1)] == ["a", "b"]
    monkeypatch.setattr("kassign_spark.live.admin._LOADING_SECONDS", 0.0)
    with pytest.raises(errors.CoordinatorLoadInProgressError):
        list_groups(_Admin(loading=3), 1)
