"""Classic groups as their coordinators describe them: what members sent, and what they got."""

import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kassign_spark.live.admin import ATTEMPTS, PAUSE_SECONDS, batches, list_groups, send
from kassign_spark.live.consumer_protocol_groups import NOT_ASKED_FOR

_NO_GENERATION = -1
_UNDECODABLE = (struct.error, ValueError, IndexError, TypeError)
"""What kafka-python's decoder raises on malformed bytes."""


class ClassicMember(NamedTuple):
    """A member of a stable group.

    Attributes:
        member_id: its id; ``group_instance_id``: of a static member.
        client_id: as it was set.
        subscription: the bytes that it sent; what follows is decoded from them.
        topics: that it subscribes to.
        generation: in which it owned something before; -1: none.
        rack_id: ``client.rack``.
        assigned: the partitions that it has, in the order of the assignment.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    subscription: bytes
    topics: list[str]
    generation: int
    rack_id: str | None
    assigned: list[tuple[str, int]]


class ClassicGroup(NamedTuple):
    """A stable group, its members in the coordinator's order."""

    group_id: str
    assignor: str
    members: list[ClassicMember]


class _Omitted(NamedTuple):
    reason: str
    may_settle: bool = False


def stable_groups(
    admin: Any, brokers: Sequence[int], progress: Callable[[str], None]
) -> tuple[list[ClassicGroup], dict[str, str]]:
    """Describe all stable groups, by name; of the others the reason why they are left out.

    Each broker lists the groups that it coordinates, so no look-up of coordinators is needed; a
    group whose coordinator moves meanwhile is found with its new one at the next attempt.
    """
    stable: dict[str, ClassicGroup] = {}
    reasons: dict[str, str] = {}
    pending: set[str] | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            progress(f"{len(pending or ())} groups are not stable, asking again")
            time.sleep(PAUSE_SECONDS)
        listed = {broker: _names(admin, broker, pending, reasons) for broker in brokers}
        pending, total = set(), sum(map(len, listed.values()))
        done = 0
        for broker, names in listed.items():
            for batch in batches(names):
                for group_id, group in _describe_groups(admin, batch, broker).items():
                    if isinstance(group, ClassicGroup):
                        stable[group_id] = group
                        reasons.pop(group_id, None)
                    else:
                        reasons[group_id] = group.reason
                        if group.may_settle:
                            pending.add(group_id)
                done += len(batch)
                progress(f"described {done} of {total} groups")
        if not pending:
            break
    return [stable[group_id] for group_id in sorted(stable)], reasons


def _names(admin: Any, broker: int, pending: set[str] | None, reasons: dict[str, str]) -> list[str]:
    """List a broker's classic consumer groups; the reasons get those of other kinds."""
    names = []
    for group in list_groups(admin, broker):
        name = group["group_id"]
        kind = (group.get("group_type") or "classic").lower()
        protocol = group["protocol_type"]
        if pending is not None:
            if name in pending:
                names.append(name)
        elif kind == "consumer":
            reasons[name] = NOT_ASKED_FOR
        elif kind != "classic":
            reasons[name] = f"a {kind} group, not a consumer group"
        elif protocol not in ("consumer", ""):
            reasons[name] = f"protocol type {protocol}, not consumer"
        else:
            names.append(name)
    return sorted(names)


def _describe_groups(
    admin: Any, names: Sequence[str], broker: int
) -> dict[str, ClassicGroup | _Omitted]:
    from kafka.protocol.admin import DescribeGroupsRequest

    request = DescribeGroupsRequest(groups=[*names], include_authorized_operations=False)
    return {group.group_id: _read(group) for group in send(admin, request, node_id=broker).groups}


def _read(group: Any) -> ClassicGroup | _Omitted:
    from kafka import errors

    if group.error_code:
        # Its coordinator is loading or moving.
        may_settle = group.error_code in (14, 15, 16)
        error = errors.for_code(group.error_code)
        return _Omitted(str(error(group.error_message or "")), may_settle)
    if not group.members:
        return _Omitted("no members")
    if group.group_state != "Stable":
        state = f"state {group.group_state}"
        return _Omitted(f"{state}: a coordinator shows only stable groups' members", True)
    members = []
    for member in group.members:
        try:
            members.append(_member(member))
        except _UNDECODABLE:
            return _Omitted(f"member {member.member_id}: its bytes cannot be decoded")
    return ClassicGroup(group.group_id, group.protocol_data, members)


def _member(member: Any) -> ClassicMember:
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

    sent, assignment = bytes(member.member_metadata), bytes(member.member_assignment)
    generation, rack_id = _NO_GENERATION, None
    topics = _short_subscription(sent)
    if topics is None:
        subscription = ConsumerProtocolSubscription.decode(sent)
        topics = list(subscription.topics)
        generation, rack_id = subscription.generation_id, subscription.rack_id
    assigned = ConsumerProtocolAssignment.decode(assignment).partitions() if assignment else []
    return ClassicMember(
        member.member_id,
        member.group_instance_id or None,
        member.client_id or None,
        sent,
        topics,
        generation,
        rack_id or None,
        [(partition.topic, partition.partition) for partition in assigned],
    )


def _short_subscription(data: bytes) -> list[str] | None:
    """Read a subscription of version 1 that ends after the user data; None: it is none.

    Only kafka-go writes such bytes: the owned partitions, which version 1 has, are not there.
    """
    version, count = struct.unpack_from(">hi", data)
    position, topics = 6, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, position)
        topics.append(data[position + 2 : position + 2 + length].decode())
        position += 2 + length
    (length,) = struct.unpack_from(">i", data, position)
    return topics if version == 1 and position + 4 + max(0, length) == len(data) else None
