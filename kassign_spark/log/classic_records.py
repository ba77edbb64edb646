"""Rows of commits and of classic groups' generations, with the members' own messages within."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import place_in_run
from kassign_spark.log import log_schemas
from kassign_spark.log.cursor import FINE, Bools, Bytes, Cursors, Ints, Span
from kassign_spark.log.messages import (
    ASSIGNMENT,
    NEWEST_PROTOCOL,
    STICKY_USER_DATA,
    SUBSCRIPTION,
)
from kassign_spark.log.records import Part, Records, expand_assigned, part, repeat_columns
from kassign_spark.log.value_columns import Columns, Items, items, numbers, spans, spread, take
from kassign_spark.log.values import binary, ids, lists_of_texts, not_negative, texts
from kassign_spark.log.versions import UnreadMessages, read_versioned

OTHER_PROTOCOL = "members of a group of another protocol type than consumer"
_CONSUMER = "consumer"
_MESSAGES = {
    "subscription": ("ConsumerProtocolSubscription", SUBSCRIPTION),
    "assignment": ("ConsumerProtocolAssignment", ASSIGNMENT),
}


def commits(records: Records) -> list[Part]:
    """Return rows of ``commits``, of either kind of record."""
    present, values, _ = records
    has_id = "topic_id" in values
    return records.parts(
        log_schemas.COMMITS,
        {},
        committed=values["committed"],
        at=present.times(numbers(values["commit_timestamp"])),
        topic_id=ids(present.batch.values, spans(values["topic_id"])) if has_id else None,
    )


def generations(records: Records, *, owned: bool) -> tuple[list[Part], list[UnreadMessages]]:
    """Return rows of ``generations``, ``log_members`` and ``log_assignment`` of classic groups."""
    present, values, tombstones = records
    source = present.batch.values
    members = items(values["members"])
    protocol_type = texts(source, spans(values["protocol_type"]))
    assignor = texts(source, spans(values["protocol"]))
    group = {
        "group_id": present.text("group_id"),
        "generation": pa.array(values["generation"]),
        **present.place(),
        "at": present.times(numbers(values["state_timestamp"])),
    }
    groups = part(
        log_schemas.GENERATIONS,
        present.record,
        group_type="classic",
        protocol_type=protocol_type,
        assignor=assignor,
        leader=texts(source, spans(values["leader"])),
        member_count=members.counts,
        **group,
    )
    ended = tombstones.part(log_schemas.GENERATIONS, group_type="classic")
    row = members.rows()
    consumers = np.asarray(pc.equal(protocol_type, _CONSUMER))[row]
    others = UnreadMessages("GroupMetadata", None, OTHER_PROTOCOL, np.flatnonzero(~consumers))
    has_subscription, subscriptions, broken = _message("subscription", source, members, consumers)
    _, assignments, broken_too = _message("assignment", source, members, consumers)
    is_sticky, is_cooperative_sticky = (
        np.asarray(pc.fill_null(pc.equal(assignor, name), False))[row]
        for name in ("sticky", "cooperative-sticky")
    )
    generation, claimed = _claims(source, subscriptions, is_sticky, is_cooperative_sticky)
    record = present.record[row]
    of_group = repeat_columns(group, row)
    member = {name: of_group[name] for name in ("group_id", "generation", "offset")}
    member |= {"member_id": texts(source, spans(members["member_id"]))}
    member_rows = part(
        log_schemas.LOG_MEMBERS,
        record,
        record="group",
        **of_group | member,
        group_instance_id=texts(source, spans(members["group_instance_id"])),
        client_id=texts(source, spans(members["client_id"])),
        client_host=texts(source, spans(members["client_host"])),
        rack_id=texts(source, spans(subscriptions["rack_id"])),
        rebalance_timeout_ms=not_negative(members["rebalance_timeout_ms"]),
        session_timeout_ms=members["session_timeout_ms"],
        topics=lists_of_texts(source, items(subscriptions["topics"]), has_subscription),
        owned_generation=not_negative(generation),
        member_seq=place_in_run(row),
    )
    lists = [("assigned", items(assignments["assigned"]))]
    if owned:
        lists += [("owned", lists_of_role) for lists_of_role in claimed]
    tables = [
        expand_assigned(
            record,
            lists_of_role,
            {"topic": texts(source, spans(lists_of_role["topic"]))},
            role,
            **member,
        )
        for role, lists_of_role in lists
    ]
    # Those were counted a member.
    unread = [replace(some, rows=record[some.rows]) for some in (others, *broken, *broken_too)]
    return [groups, ended, member_rows, *tables], unread


def subscriptions(records: Records) -> Part:
    """Return rows of ``subscriptions``."""
    present, values, _ = records
    source, members = present.batch.values, items(values["members"])
    row = members.rows()
    return part(
        log_schemas.SUBSCRIPTIONS,
        present.record[row],
        group_id=present.text("group_id").take(pa.array(row)),
        member_id=texts(source, spans(members["member_id"])),
        subscription=binary(source, spans(members["subscription"])),
    )


def _message(
    name: str, source: Bytes, members: Items, consumers: Bools
) -> tuple[Bools, Columns, list[UnreadMessages]]:
    """Read a message of every member: who has one, its columns, and those that are broken."""
    kind, struct = _MESSAGES[name]
    span = spans(members[name])
    # One without bytes says nothing.
    rows = np.flatnonzero(consumers & (span.length > 0))
    read = read_versioned(kind, struct, source.within(span), rows, NEWEST_PROTOCOL, lenient=True)
    is_readable = np.zeros(len(consumers), dtype=np.bool_)
    is_readable[read.rows] = True
    columns = (
        read.columns if is_readable.all() else spread(read.columns, read.rows, len(is_readable))
    )
    return is_readable, columns, list(read.unread)


def _claims(
    source: Bytes, subscriptions: Columns, is_sticky: Bools, is_cooperative_sticky: Bools
) -> tuple[Ints, list[Items]]:
    """Read what members say that they own, as the group's assignor does (``memberData``).

    `sticky` reads its user data alone, and what is
    broken there is nothing; `cooperative-sticky` reads the generation of subscriptions before
    version 2 from its user data.

    Returns:
        of every member the generation (-1: none), and lists of topics, each with its partitions.
    """
    generation = numbers(subscriptions["owned_generation"]).copy()
    user_data = spans(subscriptions["user_data"])
    owned = [items(subscriptions["owned"])]
    if is_sticky.any():
        others = np.flatnonzero(~is_sticky)
        plain = spread(take({"owned": owned[0]}, others), others, len(is_sticky))
        generation[is_sticky] = -1
        of_sticky = _read_sticky(source, user_data, is_sticky, generation)
        owned = [items(plain["owned"]), of_sticky]
    lacking = np.flatnonzero(is_cooperative_sticky & (generation < 0) & (user_data.length >= 4))
    generation[lacking] = _cursors(source, user_data, lacking).number(4)
    return generation, owned


def _read_sticky(source: Bytes, user_data: Span, is_sticky: Bools, generation: Ints) -> Items:
    """Return the partitions that user data name, and put the generations where they belong."""
    rows = np.flatnonzero(is_sticky & (user_data.length > 0))
    cursors = _cursors(source, user_data, rows)
    columns = STICKY_USER_DATA.read(cursors, 0)
    fine = np.flatnonzero(cursors.wrong == FINE)
    # Version 0 is what does not go on with four more bytes.
    newer = fine[cursors.remaining()[fine] >= 4]
    generation[rows[newer]] = cursors.at(newer).number(4)
    return items(spread(take(columns, fine), rows[fine], len(is_sticky))["owned"])


def _cursors(source: Bytes, span: Span, rows: Ints) -> Cursors:
    inner = source.within(span)
    return Cursors(inner, inner.start[rows], inner.end[rows])
