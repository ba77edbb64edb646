"""Offsets of a live cluster: where its partitions begin and end, and what groups have committed.

Requests go to the brokers that can answer them, many groups or partitions in each: commits to the
coordinators, begin and end to the leaders. kafka-python's own calls end at the first group or
partition that may not be read; here that one is reported, and the others are read.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kassign_spark.live.admin import ATTEMPTS, PAUSE_SECONDS, batches, list_groups, send

Row = tuple[Any, ...]
Partition = tuple[str, int]

_PARTITIONS_A_REQUEST = 2_000
_EARLIEST, _LATEST = -2, -1
_READ_UNCOMMITTED = 0
_MOVED = "its coordinator moved while it was asked"


class ReadOffsets(NamedTuple):
    """The offsets that brokers returned.

    Attributes:
        rows: of ``schemas.OFFSETS`` without cluster_id. Partitions of groups whose commits could
            not be read have a row without group_id.
        groups: those whose commits could not be read, with the reason.
        partitions: those whose begin and end could not be read, as `topic-partition`.
    """

    rows: list[Row]
    groups: dict[str, str]
    partitions: dict[str, str]


class _Ends(NamedTuple):
    begin: int
    end: int
    as_of: datetime


def read_offsets(
    admin: Any,
    brokers: Sequence[int],
    topics_of: Mapping[str, Collection[str]],
    described: Sequence[Mapping[str, Any]],
    progress: Callable[[str], None],
) -> ReadOffsets:
    """Read the offsets of all partitions that some groups read.

    Commits are read first and ends after them, so that no lag is negative for the time between.

    ``topics_of`` are the topics that each group reads; those that do not exist are passed over.
    ``described`` are the cluster's topics with their partitions and leaders.
    """
    committed, group_reasons = _read_committed(admin, brokers, sorted(topics_of), progress)
    topic_names = {topic for topics in topics_of.values() for topic in topics}
    partitions = {
        topic["name"]: sorted(p["partition_index"] for p in topic["partitions"])
        for topic in described
        if topic["name"] in topic_names
    }
    ends, partition_reasons = _ends(admin, partitions, described, progress)
    rows: list[Row] = []
    of_nobody = set()
    for group in sorted(topics_of):
        for topic in sorted(set(topics_of[group]) & partitions.keys()):
            readable = [(topic, p) for p in partitions[topic] if (topic, p) in ends]
            if group in committed:
                offsets = committed[group]
                rows += [_row(group, key, ends[key], offsets.get(key)) for key in readable]
            else:
                of_nobody.update(readable)
    rows += [_row(None, key, ends[key], None) for key in sorted(of_nobody)]
    names = {f"{topic}-{p}": reason for (topic, p), reason in partition_reasons.items()}
    return ReadOffsets(rows, group_reasons, names)


def _row(group: str | None, partition: Partition, ends: _Ends, committed: int | None) -> Row:
    return (group, *partition, ends.begin, ends.end, committed, ends.as_of)


def _read_committed(
    admin: Any, brokers: Sequence[int], groups: Sequence[str], progress: Callable[[str], None]
) -> tuple[dict[str, dict[Partition, int]], dict[str, str]]:
    """Return the committed offsets of each group, and the groups that could not be read.

    Each broker lists the groups that it coordinates; those that moved meanwhile are listed again.
    """
    from kafka import errors

    committed: dict[str, dict[Partition, int]] = {}
    reasons = dict.fromkeys(groups, _MOVED)
    for attempt in range(ATTEMPTS):
        pending = {group for group, reason in reasons.items() if reason == _MOVED}
        if not pending:
            break
        if attempt:
            time.sleep(PAUSE_SECONDS)
        for broker in brokers:
            of_broker = sorted(pending & {g["group_id"] for g in list_groups(admin, broker)})
            for batch in batches(of_broker):
                for name, answer in _ask_for_commits(admin, broker, batch):
                    error = errors.for_code(answer.error_code)
                    if error is errors.NoError:
                        committed[name] = _offsets_of(answer)
                        reasons.pop(name, None)
                    elif not error.retriable:
                        reasons[name] = str(error())
                progress(f"read commits of {len(committed)} of {len(groups)} groups")
    return committed, reasons


def _ask_for_commits(admin: Any, broker: int, groups: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Ask for all commits of groups: in one request, or of an old broker group by group."""
    for name, request in admin._list_group_offsets_requests(dict.fromkeys(groups)):
        answer = send(admin, request, node_id=broker)
        if name is None:
            yield from ((group.group_id, group) for group in answer.groups)
        else:
            yield name, answer


def _offsets_of(answer: Any) -> dict[Partition, int]:
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
        if not partition.error_code and partition.committed_offset >= 0
    }


def _ends(
    admin: Any,
    partitions_of: Mapping[str, Sequence[int]],
    described: Sequence[Mapping[str, Any]],
    progress: Callable[[str], None],
) -> tuple[dict[Partition, _Ends], dict[Partition, str]]:
    """Begin and end of all partitions of some topics, and the partitions that could not be read."""
    ends_of: dict[Partition, _Ends] = {}
    pending = {(topic, p) for topic, numbers in partitions_of.items() for p in numbers}
    count, reasons = len(pending), dict.fromkeys(pending, "its topic no longer exists")
    for attempt in range(ATTEMPTS):
        if not pending:
            break
        if attempt:
            time.sleep(PAUSE_SECONDS)
            described = admin.describe_topics(sorted({topic for topic, _ in pending}))
        for leader, partitions in sorted(_group_by_leader(described, pending).items()):
            if leader < 0:
                reasons |= dict.fromkeys(partitions, "it has no leader")
                continue
            for batch in batches(sorted(partitions), _PARTITIONS_A_REQUEST):
                begins, failed = _ask_for_offsets(admin, leader, batch, _EARLIEST)
                ends, failed_later = _ask_for_offsets(admin, leader, sorted(begins), _LATEST)
                now = datetime.now(UTC)
                ends_of |= {key: _Ends(begins[key], ends[key], now) for key in ends}
                for key, error in (failed | failed_later).items():
                    reasons[key] = str(error())
                    if not error.retriable:
                        pending.discard(key)
                pending -= ends.keys()
            progress(f"read offsets of {len(ends_of)} of {count} partitions")
    return ends_of, {key: reasons[key] for key in sorted(reasons) if key not in ends_of}


def _group_by_leader(
    described: Iterable[Mapping[str, Any]], partitions: Collection[Partition]
) -> dict[int, list[Partition]]:
    leaders: dict[int, list[Partition]] = defaultdict(list)
    for topic in described:
        for partition in topic["partitions"]:
            partition_key = topic["name"], partition["partition_index"]
            if partition_key in partitions:
                leaders[partition["leader_id"]].append(partition_key)
    return leaders


def _ask_for_offsets(
    admin: Any, leader: int, partitions: Sequence[Partition], timestamp: int
) -> tuple[dict[Partition, int], dict[Partition, Any]]:
    """Ask a leader for one offset of each partition; also gives the errors of those without."""
    from kafka import TopicPartition, errors

    if not partitions:
        return {}, {}
    timestamps = {TopicPartition(*key): timestamp for key in partitions}
    request = admin._list_partition_offsets_request(timestamps, _READ_UNCOMMITTED)
    answered, failed = {}, {}
    for topic in send(admin, request, node_id=leader).topics:
        for partition in topic.partitions:
            key = topic.name, partition.partition_index
            if partition.error_code:
                failed[key] = errors.for_code(partition.error_code)
            else:
                answered[key] = partition.offset
    return answered, failed
