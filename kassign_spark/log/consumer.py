"""Rows of the records of consumer groups, those of the new protocol (KIP-848)."""

from typing import Any

import pyarrow as pa

from kassign_spark.log import schemas
from kassign_spark.log.columns import items, numbers, spans
from kassign_spark.log.messages import MEMBER_STATES
from kassign_spark.log.records import Records, Rows
from kassign_spark.log.rows import Part, part
from kassign_spark.log.values import ids, integers, lists_of_texts, texts
from kassign_spark.schemas import Table


def epochs(records: Records) -> list[Part]:
    """Rows of ``generations``: group epochs."""
    return _of_group(records, schemas.GENERATIONS, group_type="consumer")


def targets(records: Records) -> list[Part]:
    """Rows of ``log_targets``: epochs of targets."""
    return _of_group(records, schemas.LOG_TARGETS)


def _of_group(records: Records, table: Table, **constant: Any) -> list[Part]:
    said, values, gone = records
    return [
        part(
            table,
            said.record,
            group_id=said.text("group_id"),
            generation=numbers(values["generation"]),
            **constant,
            **said.place(),
        ),
        part(table, gone.record, group_id=gone.text("group_id"), **constant, **gone.place()),
    ]


def topics(records: Records) -> list[Part]:
    """Rows of ``log_topics``, one a topic."""
    said, values, gone = records
    source = said.batch.values
    listed = items(values["topics"])
    row = listed.rows()
    of_row = pa.array(row)
    place = {
        name: given.take(of_row) if isinstance(given, pa.Array) else given
        for name, given in said.place().items()
    }
    return [
        part(
            schemas.LOG_TOPICS,
            said.record[row],
            group_id=said.text("group_id").take(of_row),
            topic=texts(source, spans(listed["topic"])),
            topic_id=ids(source, spans(listed["topic_id"])),
            num_partitions=numbers(listed["num_partitions"]),
            **place,
        ),
        part(schemas.LOG_TOPICS, gone.record, group_id=gone.text("group_id"), **gone.place()),
    ]


def regexes(records: Records) -> list[Part]:
    """Rows of ``log_regexes``."""
    said, values, gone = records
    return [
        part(
            schemas.LOG_REGEXES,
            said.record,
            group_id=said.text("group_id"),
            topics_regex=said.text("topics_regex"),
            topics=lists_of_texts(said.batch.values, items(values["topics"])),
            **said.place(),
        ),
        part(
            schemas.LOG_REGEXES,
            gone.record,
            group_id=gone.text("group_id"),
            topics_regex=gone.text("topics_regex"),
            **gone.place(),
        ),
    ]


def members(records: Records) -> list[Part]:
    """Rows of ``log_members``: members as they joined or changed."""
    said, values, gone = records
    source = said.batch.values
    timeout = numbers(values["rebalance_timeout_ms"])
    session = numbers(values["session_timeout_ms"])
    named = ("group_instance_id", "rack_id", "client_id", "client_host", "topics_regex", "assignor")
    said_by_member = {name: texts(source, spans(values[name])) for name in named}
    return [
        _member_rows(
            said,
            "member",
            rebalance_timeout_ms=integers(timeout, pa.int32(), timeout >= 0),
            session_timeout_ms=integers(session, pa.int32(), session >= 0),
            topics=lists_of_texts(source, items(values["topics"])),
            **said_by_member,
        ),
        _member_rows(gone, "member"),
    ]


def target_members(records: Records) -> list[Part]:
    """Rows of ``log_members`` and ``log_assignment``: what members are to have."""
    said, _, gone = records
    return [
        _member_rows(said, "target"),
        _member_rows(gone, "target"),
        _partitions(records, "target"),
    ]


def current_members(records: Records) -> list[Part]:
    """Rows of ``log_members`` and ``log_assignment``: what members have, and are to give up."""
    said, values, gone = records
    states = numbers(values["state"])
    numbered = pa.array(list(MEMBER_STATES), pa.int64())
    known = pa.array(list(MEMBER_STATES.values()))
    state = known.take(pa.compute.index_in(pa.array(states), numbered))
    generation = numbers(values["generation"])
    return [
        _member_rows(
            said,
            "current",
            generation=generation,
            previous_generation=numbers(values["previous_generation"]),
            state=state,
        ),
        _member_rows(gone, "current"),
        _partitions(records, "assigned", generation),
        _partitions(records, "revoking", generation),
    ]


def _member_rows(rows: Rows, record: str, **columns: Any) -> Part:
    return part(
        schemas.LOG_MEMBERS,
        rows.record,
        group_id=rows.text("group_id"),
        member_id=rows.text("member_id"),
        record=record,
        **columns,
        **rows.place(),
    )


def _partitions(records: Records, role: str, generation: Any = None) -> Part:
    """Rows of ``log_assignment`` from lists of topic ids, each with its partitions."""
    said = records.said
    held = items(records.values[role])
    partitions = items(held["partitions"])
    topic = partitions.rows()
    row = held.rows()[topic]
    of_row = pa.array(row)
    return part(
        schemas.LOG_ASSIGNMENT,
        said.record[row],
        group_id=said.text("group_id").take(of_row),
        generation=None if generation is None else generation[row],
        offset=said.place()["offset"].take(of_row),
        member_id=said.text("member_id").take(of_row),
        role=role,
        topic_id=ids(said.batch.values, spans(held["topic_id"])).take(pa.array(topic)),
        partition=numbers(partitions[""]),
    )
