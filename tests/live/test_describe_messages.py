"""The messages of ConsumerGroupDescribe, and the rows made of them, without a broker."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kafka.protocol.admin import DescribeConfigsResponse

from kassign_spark.live.classic_groups import _names
from kassign_spark.live.consumer_protocol_groups import (
    NOT_ASKED_FOR,
    _describe_request,
    consumer_group_names,
    describe_consumer_groups,
    describe_group_settings,
    kafka_topic_id,
)

_TOPIC = uuid.UUID("8c104156-a20c-4ecc-8f9b-d0ff765eb351")


def test_topic_ids_are_written_as_kafka_does() -> None:
    assert kafka_topic_id(_TOPIC) == kafka_topic_id(str(_TOPIC)) == "jBBBVqIMTsyPm9D_dl6zUQ"


class FakeAdmin:
    """Answers as a coordinator does, through the bytes of the given version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.asked: list[tuple[int, int]] = []
        self._manager = self

    def run(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(ask())

    async def send(self, request: Any, node_id: int) -> Any:
        self.asked.append((node_id, len(request.group_ids)))
        message = type(request).response_class
        group, member = message.DescribedGroup, message.DescribedGroup.Member
        assignment = member.Assignment
        topic_partitions = assignment.TopicPartitions(
            topic_id=_TOPIC, topic_name="t", partitions=[3, 0]
        )
        described = [
            group(
                error_code=30 if name == "hidden" else 0,
                group_id=name,
                group_state="Stable",
                group_epoch=5,
                assignment_epoch=5,
                assignor_name="uniform",
                members=[]
                if name in ("hidden", "empty")
                else [
                    member(
                        member_id="m",
                        instance_id="i",
                        member_epoch=-2,
                        client_id="c",
                        client_host="/127.0.0.1",
                        subscribed_topic_names=["t"],
                        subscribed_topic_regex="",
                        assignment=assignment(topic_partitions=[topic_partitions]),
                        target_assignment=assignment(topic_partitions=[topic_partitions]),
                        member_type=1,
                    )
                ],
            )
            for name in request.group_ids
        ]
        data = message(throttle_time_ms=0, groups=described).encode(version=self.version)
        return message.decode(bytes(data), version=self.version)

    def list_groups(self, broker_ids: list[int]) -> list[dict[str, str]]:
        return [
            {"group_id": f"{kind}{broker_ids[0]}", "group_type": kind, "protocol_type": protocol}
            for kind, protocol in (
                ("consumer", "consumer"),
                ("Consumer", "consumer"),
                ("classic", "consumer"),
                ("Classic", "connect"),
                ("share", "share"),
                ("Streams", "streams"),
            )
        ]


@pytest.mark.parametrize("version", [0, 1])
def test_rows_of_both_versions(version: int) -> None:
    result = describe_consumer_groups(FakeAdmin(version), {1: ["g", "hidden", "empty"]})
    assert result.members == [
        ("g", "m", "i", None, ["t"], None, -2, 0, "uniform", None, "consumer")
    ]
    assert result.owned == [("g", "m", "t", 3), ("g", "m", "t", 0)]
    assert result.target == [("g", "m", "t", 3, 0), ("g", "m", "t", 0, 1)]
    assert result.reasons["empty"] == "no members"
    assert "GroupAuthorizationFailed" in result.reasons["hidden"]


def test_each_coordinator_is_asked_for_many_groups_at_once() -> None:
    admin = FakeAdmin(1)
    names = {1: [f"g{i}" for i in range(250)], 2: ["other"], 3: []}
    result = describe_consumer_groups(admin, names)
    assert len({row[0] for row in result.members}) == 251
    assert admin.asked == [(1, 100), (1, 100), (1, 50), (2, 1)]


def test_only_groups_of_the_new_protocol_are_listed() -> None:
    assert consumer_group_names(FakeAdmin(1), [1, 2]) == {
        1: ["Consumer1", "consumer1"],
        2: ["Consumer2", "consumer2"],
    }


class FakeSettings:
    """Answers DescribeConfigs as a broker does: one group may not be asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._manager = self

    def run(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(ask())

    async def send(self, request: Any) -> Any:
        self.asked.append(len(request.resources))
        result = DescribeConfigsResponse.DescribeConfigsResult
        config = result.DescribeConfigsResourceResult
        values = {"streams.x": "1", "consumer.session.timeout.ms": "45000"}
        results = [
            result(
                error_code=30 if name == "hidden" else 0,
                error_message=None,
                resource_type=32,
                resource_name=name,
                configs=[
                    config(name=setting, value=value, read_only=False, is_sensitive=False)
                    for setting, value in values.items()
                ],
            )
            for _, name, _ in request.resources
        ]
        data = DescribeConfigsResponse(throttle_time_ms=0, results=results).encode(version=4)
        return DescribeConfigsResponse.decode(bytes(data), version=4)


def test_group_settings_as_far_as_one_may_read_them() -> None:
    admin = FakeSettings()
    rows, reasons = describe_group_settings(admin, ["a", "hidden", *(f"g{i}" for i in range(148))])
    assert admin.asked == [100, 50]
    assert rows[0] == ("a", "consumer.session.timeout.ms", "45000")
    assert len(rows) == 149
    assert list(reasons) == ["hidden"]
    assert "GroupAuthorizationFailed" in reasons["hidden"]


def test_groups_of_all_other_kinds_are_listed_with_the_reason() -> None:
    reasons: dict[str, str] = {}
    assert _names(FakeAdmin(1), 1, None, reasons) == ["classic1"]
    assert reasons == {
        "consumer1": NOT_ASKED_FOR,
        "Consumer1": NOT_ASKED_FOR,
        "Classic1": "protocol type connect, not consumer",
        "share1": "a share group, not a consumer group",
        "Streams1": "a streams group, not a consumer group",
    }


def test_a_request_is_as_kafka_reads_it() -> None:
    request = _describe_request()(group_ids=["ab"], include_authorized_operations=False)
    assert request.API_KEY == 69
    # One group of two letters, no operations, no tagged fields.
    assert bytes(request.encode(version=1)) == b"\x02\x03ab\x00\x00"
