"""What the tables of the log are to hold of a record, said row by row."""

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from kassign_spark.log.log_schemas import (
    COMMITS,
    GENERATIONS,
    LOG_ASSIGNMENT,
    LOG_MEMBERS,
    LOG_REGEXES,
    LOG_TARGETS,
    LOG_TOPICS,
)
from tests.kafka.log_records import Record
from tests.oracles import protocol, wire
from tests.oracles.wire import ProtocolError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999
_NO_ID = "A" * 22
_FIELD_OF_ROLE = {"assigned": "assignedPartitions", "revoking": "partitionsPendingRevocation"}
_STATES = {0: "stable", 1: "unrevoked_partitions", 2: "unreleased_partitions", 127: "unknown"}

Rows = list[dict[str, Any]]
TABLES = (
    GENERATIONS, LOG_MEMBERS, LOG_ASSIGNMENT, COMMITS, LOG_TARGETS, LOG_REGEXES, LOG_TOPICS
)  # fmt: skip


def recorded_at(offset: int) -> datetime:
    """The timestamp of the record itself."""
    return _EPOCH + timedelta(days=20_000, milliseconds=offset)


class ExpectedRows:
    """Collects what records say, with ``unread`` by kind."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {table.name: [] for table in TABLES}
        self.unread: Counter[str] = Counter()

    def all(self, records: Iterable[Record | str]) -> "ExpectedRows":
        """Add records whose offsets are their places; an error is a record that nobody reads."""
        for offset, record in enumerate(records):
            if isinstance(record, str):
                self.unread["broken"] += 1
            elif record.type in _TELL:
                _TELL[record.type](self, record, offset)
            else:
                self.unread["other"] += 1
        return self

    def row(self, table: Any, offset: int, at_ms: int | None = None, **columns: Any) -> None:
        row = dict.fromkeys(table.columns.names) | {"offset": offset} | columns
        at = _at(at_ms) or recorded_at(offset)
        row |= {"at": at} if "at" in row else {}
        if "partition" not in columns:
            row["partition"] = 0
        if "is_tombstone" in row:
            row["is_tombstone"] = bool(row["is_tombstone"])
        self.tables[table.name].append(row)

    def commit(self, record: Record, offset: int) -> None:
        key, value = record.key, record.value or {}
        topic_id = value.get("topicId", _NO_ID)
        self.row(
            COMMITS,
            offset,
            value.get("commitTimestamp"),
            group_id=key["group"],
            topic=key["topic"],
            partition=key["partition"],
            committed=value.get("offset"),
            is_tombstone=record.value is None,
            topic_id=None if topic_id == _NO_ID else topic_id,
        )

    def group(self, record: Record, offset: int) -> None:
        group_id = record.key["group"]
        key: dict[str, Any] = {"group_id": group_id, "group_type": "classic"}
        if record.value is None:
            self.row(GENERATIONS, offset, **key, is_tombstone=True)
            return
        value = record.value
        at_ms = value.get("currentStateTimestamp")
        members = value["members"]
        self.row(
            GENERATIONS,
            offset,
            at_ms,
            **key,
            generation=value["generation"],
            protocol_type=value["protocolType"],
            assignor=value["protocol"],
            leader=value["leader"],
            member_count=len(members),
        )
        owned: Rows = []
        for member_seq, member in enumerate(members):
            self._classic_member(record, member, member_seq, offset, at_ms, owned)
        self.tables[LOG_ASSIGNMENT.name] += owned

    def _classic_member(
        self,
        record: Record,
        member: dict[str, Any],
        member_seq: int,
        offset: int,
        at_ms: int | None,
        owned: Rows,
    ) -> None:
        assert record.value is not None
        common = {
            "group_id": record.key["group"],
            "generation": record.value["generation"],
            "member_id": member["memberId"],
        }
        consumer = record.value["protocolType"] == "consumer"
        if not consumer:
            self.unread["other protocol"] += 1
        subscription = self._decoded(consumer, member["subscription"], protocol.decode_subscription)
        assignment = self._decoded(consumer, member["assignment"], protocol.decode_assignment)
        timeout = member.get("rebalanceTimeout", -1)
        self.row(
            LOG_MEMBERS,
            offset,
            at_ms,
            **common,
            record="group",
            group_instance_id=member.get("groupInstanceId"),
            client_id=member["clientId"],
            client_host=member["clientHost"],
            rack_id=subscription and subscription.rack_id,
            rebalance_timeout_ms=timeout if timeout >= 0 else None,
            session_timeout_ms=member["sessionTimeout"],
            topics=subscription and list(subscription.topics),
            owned_generation=subscription and subscription.generation,
            member_seq=member_seq,
        )
        for role, pairs in (
            ("assigned", assignment.partitions if assignment else ()),
            ("owned", subscription.owned if subscription else ()),
        ):
            for topic, partition in pairs:
                self.row(
                    LOG_ASSIGNMENT, offset, **common, role=role, topic=topic, partition=partition
                )
                if role == "owned":
                    owned.append(self.tables[LOG_ASSIGNMENT.name].pop())

    def _decoded(self, consumer: bool, encoded: str, decode: Any) -> Any:
        if not consumer or not encoded:
            return None
        try:
            with patch.object(wire, "Reader", _AsJava):
                return decode(base64.b64decode(encoded))
        except ProtocolError:
            self.unread["message"] += 1
            return None

    def epoch(self, record: Record, offset: int) -> None:
        value = record.value or {}
        self.row(
            GENERATIONS,
            offset,
            group_id=record.key["groupId"],
            group_type="consumer",
            generation=value.get("epoch"),
            is_tombstone=record.value is None,
        )

    def target_epoch(self, record: Record, offset: int) -> None:
        self.row(
            LOG_TARGETS,
            offset,
            group_id=record.key["groupId"],
            generation=(record.value or {}).get("assignmentEpoch"),
            is_tombstone=record.value is None,
        )

    def topics(self, record: Record, offset: int) -> None:
        group_id = record.key["groupId"]
        if record.value is None:
            self.row(LOG_TOPICS, offset, group_id=group_id, is_tombstone=True)
            return
        for topic in record.value["topics"]:
            self.row(
                LOG_TOPICS,
                offset,
                group_id=group_id,
                topic=topic["topicName"],
                topic_id=None if topic["topicId"] == _NO_ID else topic["topicId"],
                num_partitions=topic["numPartitions"],
            )

    def member(self, record: Record, offset: int) -> None:
        value = record.value or {}
        timeout = value.get("rebalanceTimeoutMs", -1)
        classic = value.get("classicMemberMetadata") or {}
        session = classic.get("sessionTimeoutMs", -1)
        self.row(
            LOG_MEMBERS,
            offset,
            **_of_member(record, "member"),
            group_instance_id=value.get("instanceId"),
            rack_id=value.get("rackId"),
            client_id=value.get("clientId"),
            client_host=value.get("clientHost"),
            topics=value.get("subscribedTopicNames"),
            topics_regex=value.get("subscribedTopicRegex"),
            rebalance_timeout_ms=timeout if timeout >= 0 else None,
            session_timeout_ms=session if session >= 0 else None,
            assignor=value.get("serverAssignor"),
        )

    def target(self, record: Record, offset: int) -> None:
        self.row(LOG_MEMBERS, offset, **_of_member(record, "target"))
        self._add_partitions(
            record, offset, "target", (record.value or {}).get("topicPartitions", ())
        )

    def current(self, record: Record, offset: int) -> None:
        value = record.value or {}
        self.row(
            LOG_MEMBERS,
            offset,
            **_of_member(record, "current"),
            generation=value.get("memberEpoch"),
            previous_generation=value.get("previousMemberEpoch"),
            state=_STATES.get(value.get("state", -1)),
        )
        for role, field in _FIELD_OF_ROLE.items():
            self._add_partitions(
                record, offset, role, value.get(field, ()), value.get("memberEpoch")
            )

    def _add_partitions(
        self,
        record: Record,
        offset: int,
        role: str,
        topics: Sequence[dict[str, Any]],
        generation: int | None = None,
    ) -> None:
        for topic_id, partition in _partitions(topics):
            self.row(
                LOG_ASSIGNMENT,
                offset,
                group_id=record.key["groupId"],
                member_id=record.key["memberId"],
                generation=generation,
                role=role,
                topic_id=None if topic_id == _NO_ID else topic_id,
                partition=partition,
            )

    def regex(self, record: Record, offset: int) -> None:
        self.row(
            LOG_REGEXES,
            offset,
            group_id=record.key["groupId"],
            topics_regex=record.key["regularExpression"],
            topics=(record.value or {}).get("topics"),
            is_tombstone=record.value is None,
        )


def _of_member(record: Record, kind: str) -> dict[str, Any]:
    return {
        "group_id": record.key["groupId"],
        "member_id": record.key["memberId"],
        "record": kind,
        "is_tombstone": record.value is None,
    }


def _partitions(topics: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["topicId"], partition


def _at(milliseconds: int | None) -> datetime | None:
    if milliseconds is None or not 0 <= milliseconds <= _LAST_MS:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)


class _AsJava(wire.Reader):
    """Replaces what is no UTF-8, as a Java client does."""

    def nullable_string(self, field: str) -> str | None:
        length = self._integer(">h", f"length of {field}")
        return None if length < 0 else self._take(length, field).decode("utf-8", "replace")


_TELL = {
    0: ExpectedRows.commit,
    1: ExpectedRows.commit,
    2: ExpectedRows.group,
    3: ExpectedRows.epoch,
    4: ExpectedRows.topics,
    5: ExpectedRows.member,
    6: ExpectedRows.target_epoch,
    7: ExpectedRows.target,
    8: ExpectedRows.current,
    16: ExpectedRows.regex,
}
