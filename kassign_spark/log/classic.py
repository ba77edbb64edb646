"""Rows of commits and of classic groups' generations, with the members' own messages within."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.log import schemas
from kassign_spark.log.claims import claims
from kassign_spark.log.columns import Columns, Items, items, numbers, spans, spread
from kassign_spark.log.cursor import Bools, Bytes, Ints
from kassign_spark.log.messages import ASSIGNMENT, NEWEST_PROTOCOL, SUBSCRIPTION
from kassign_spark.log.records import Records
from kassign_spark.log.rows import Part, part
from kassign_spark.log.structs import Struct
from kassign_spark.log.values import ids, integers, lists_of_texts, texts
from kassign_spark.log.versions import Unread, read_versioned

OTHER_PROTOCOL = "members of a group of another protocol type than consumer"
_CONSUMER = "consumer"


def commits(records: Records) -> list[Part]:
    """Rows of ``commits``, of either kind of record."""
    said, values, gone = records
    rows = part(
        schemas.COMMITS,
        said.record,
        group_id=said.text("group_id"),
        topic=said.text("topic"),
        partition=numbers(said.key["partition"]),
        committed=numbers(values["committed"]),
        at=said.times(numbers(values["commit_timestamp"])),
        is_tombstone=False,
        offset=said.place()["offset"],
        topic_id=ids(said.batch.values, spans(values["topic_id"]))
        if "topic_id" in values
        else None,
    )
    tombstones = part(
        schemas.COMMITS,
        gone.record,
        group_id=gone.text("group_id"),
        topic=gone.text("topic"),
        partition=numbers(gone.key["partition"]),
        at=gone.times(),
        is_tombstone=True,
        offset=gone.place()["offset"],
    )
    return [rows, tombstones]


def generations(records: Records, *, owned: bool) -> tuple[list[Part], list[Unread]]:
    """Rows of ``generations``, ``log_members`` and ``log_assignment`` of classic groups."""
    said, values, gone = records
    source = said.batch.values
    members = items(values["members"])
    protocol_type = texts(source, spans(values["protocol_type"]))
    group_id = said.text("group_id")
    generation = numbers(values["generation"])
    assignor = texts(source, spans(values["protocol"]))
    place = said.place() | {"at": said.times(numbers(values["state_timestamp"]))}
    groups = part(
        schemas.GENERATIONS,
        said.record,
        group_id=group_id,
        group_type="classic",
        generation=generation,
        protocol_type=protocol_type,
        assignor=assignor,
        leader=texts(source, spans(values["leader"])),
        member_count=members.counts,
        **place,
    )
    tombstones = part(
        schemas.GENERATIONS,
        gone.record,
        group_id=gone.text("group_id"),
        group_type="classic",
        **gone.place(),
    )
    row = members.rows()
    consumers = np.asarray(pc.equal(protocol_type, _CONSUMER))[row]
    unread = []
    if not consumers.all():
        others = int((~consumers).sum())
        unread.append(Unread("GroupMetadata", None, OTHER_PROTOCOL, others))
    of_row = pa.array(row)
    of_members = _Members(
        said.record[row],
        group_id.take(of_row),
        generation[row],
        place["offset"].take(of_row),
        texts(source, spans(members["member_id"])),
    )
    subscriptions = _message(
        "ConsumerProtocolSubscription", SUBSCRIPTION, source, members, consumers
    )
    assignments = _message("ConsumerProtocolAssignment", ASSIGNMENT, source, members, consumers)
    is_sticky, is_cooperative_sticky = (
        np.asarray(pc.fill_null(pc.equal(assignor, name), False))[row]
        for name in ("sticky", "cooperative-sticky")
    )
    claimed = claims(source, subscriptions.columns, is_sticky, is_cooperative_sticky)
    member_rows = part(
        schemas.LOG_MEMBERS,
        of_members.record,
        group_id=of_members.group_id,
        record="group",
        generation=of_members.generation,
        member_id=of_members.member_id,
        group_instance_id=texts(source, spans(members["group_instance_id"])),
        client_id=texts(source, spans(members["client_id"])),
        client_host=texts(source, spans(members["client_host"])),
        rack_id=_empty_as_null(texts(source, spans(subscriptions.columns["rack_id"]))),
        rebalance_timeout_ms=_given(numbers(members["rebalance_timeout_ms"])),
        session_timeout_ms=numbers(members["session_timeout_ms"]),
        topics=lists_of_texts(source, items(subscriptions.columns["topics"]), subscriptions.there),
        owned_generation=_given(claimed.generation),
        **{name: array.take(of_row) for name, array in place.items() if name != "is_tombstone"},
        is_tombstone=False,
    )
    lists = [("assigned", items(assignments.columns["assigned"]))]
    if owned:
        lists += [("owned", owned_lists) for owned_lists in claimed.owned]
    made = [_partitions(of_members, role, held, source) for role, held in lists]
    unread += [*subscriptions.unread, *assignments.unread]
    return [groups, tombstones, member_rows, *made], unread


class _Members(NamedTuple):
    """Of each member what its rows of partitions repeat."""

    record: Ints
    group_id: pa.Array
    generation: Ints
    offset: pa.Array
    member_id: pa.Array


class _Message(NamedTuple):
    """A message of every member: empty where not ``there``."""

    there: Bools
    columns: Columns
    unread: list[Unread]


def _message(
    kind: str, struct: Struct, source: Bytes, members: Items, consumers: Bools
) -> _Message:
    """Read a member's message in the record; one without bytes says nothing."""
    name = "subscription" if struct is SUBSCRIPTION else "assignment"
    span = spans(members[name])
    rows = np.flatnonzero(consumers & (span.length > 0))
    read = read_versioned(kind, struct, source.within(span), rows, NEWEST_PROTOCOL, lenient=True)
    there = np.zeros(len(consumers), dtype=np.bool_)
    there[read.rows] = True
    if there.all():
        return _Message(there, read.columns, list(read.unread))
    return _Message(there, spread(read.columns, there), list(read.unread))


def _partitions(members: _Members, role: str, held: Items, source: Bytes) -> Part:
    """Rows of ``log_assignment`` from lists of topics, each with its partitions."""
    partitions = items(held["partitions"])
    topic = partitions.rows()
    member = held.rows()[topic]
    of_member = pa.array(member)
    return part(
        schemas.LOG_ASSIGNMENT,
        members.record[member],
        group_id=members.group_id.take(of_member),
        generation=members.generation[member],
        offset=members.offset.take(of_member),
        member_id=members.member_id.take(of_member),
        role=role,
        topic=texts(source, spans(held["topic"])).take(pa.array(topic)),
        partition=numbers(partitions[""]),
    )


def _given(values: Ints) -> pa.Array:
    """Numbers, of which a negative one means none."""
    return integers(values, pa.int32(), values >= 0)


def _empty_as_null(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, ""), None, values)
