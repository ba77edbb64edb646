"""Turn a cluster's answers into rows of the tables, in the column order of the schemas."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.client_libraries import (
    AIOKAFKA,
    FRANZ_GO,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    KAFKAJS_PROTOCOL,
    LIBRDKAFKA,
    SARAMA,
)
from kassign_spark.live.consumer_protocol_groups import Row, kafka_topic_id

_CLIENT_IDS = {
    "rdkafka": LIBRDKAFKA,
    "kgo": FRANZ_GO,
    "sarama": SARAMA,
    "kafka-python-": KAFKA_PYTHON,
    "aiokafka-": AIOKAFKA,
}
"""What the client ids of libraries begin with, where nobody has set another."""


class Omission(NamedTuple):
    """Something of the cluster that is not in the tables, and why."""

    kind: str
    """``group`` or ``topic``; of what is in the tables ``settings`` or ``commits`` of a group,
    ``offsets`` of a partition.
    """
    name: str
    reason: str


def racks_of(brokers: Iterable[Mapping[str, Any]]) -> dict[int, str | None]:
    """The racks of brokers; a fenced one is down: it coordinates nothing, and no client sees it."""
    return {b["broker_id"]: b["rack"] or None for b in brokers if not b.get("is_fenced")}


def topic_rows(
    described: Iterable[dict[str, Any]], racks: Mapping[int, str | None], cluster_id: str | None
) -> tuple[list[Row], list[Omission]]:
    """Rows of ``topics`` by name, and topics without partitions that can be seen."""
    has_racks = any(racks.values())
    rows: list[Row] = []
    omitted = []
    for topic in sorted(described, key=lambda t: t["name"]):
        partitions = sorted(topic["partitions"], key=lambda p: p["partition_index"])
        if not partitions:
            omitted.append(Omission("topic", topic["name"], f"error {topic['error_code']}"))
            continue
        replica_racks = [
            [racks[node] for node in partition["replica_nodes"] if racks.get(node)]
            for partition in partitions
        ]
        topic_id = kafka_topic_id(topic["topic_id"]) if topic.get("topic_id") else None
        in_racks = replica_racks if has_racks else None
        rows.append((cluster_id, topic["name"], len(partitions), in_racks, topic_id))
    return rows, omitted


def leader_rows(described: Iterable[dict[str, Any]], cluster_id: str | None) -> list[Row]:
    """Rows of ``leaders``: of the topic whose leaders coordinate the groups."""
    return [
        (cluster_id, OFFSETS_TOPIC, partition["partition_index"], partition["leader_id"])
        for topic in described
        if topic["name"] == OFFSETS_TOPIC
        for partition in sorted(topic["partitions"], key=lambda p: p["partition_index"])
    ]


def topics_of(members: Sequence[Row], owned: Sequence[Row]) -> dict[str, set[str]]:
    """Return the topics that each group's members subscribe to or own."""
    topics: dict[str, set[str]] = {}
    for _, group_id, _, _, _, subscribed, *_ in members:
        topics.setdefault(group_id, set()).update(subscribed)
    for _, group_id, _, topic, _ in owned:
        topics[group_id].add(topic)
    return topics


def client_of(client_id: str, protocol: str, subscription: Mapping[str, Any]) -> str | None:
    """Return the library that a member runs, as far as its bytes and its client id tell.

    Args:
        client_id: the member's.
        protocol: the group's assignor.
        subscription: decoded; fields that the member's version of it does not have are absent.

    Returns:
        one of ``CLIENTS``; None: Java's, or one that nothing tells from it.
    """
    if protocol == KAFKAJS_PROTOCOL:
        return KAFKAJS
    if subscription.get("is_short"):
        return KAFKA_GO
    by_id = next((of for prefix, of in _CLIENT_IDS.items() if client_id.startswith(prefix)), None)
    if "rack_id" in subscription:
        # Java and franz-go write null where librdkafka writes an empty text or no bytes.
        is_empty = subscription["rack_id"] == "" or subscription["user_data"] in ("", b"")
        return LIBRDKAFKA if is_empty else by_id if by_id == FRANZ_GO else None
    return by_id


def short_subscription(text: str) -> dict[str, Any] | None:
    """Read a subscription of version 1 that ends after the user data; None: it is none.

    Only kafka-go writes such bytes: the owned partitions, which version 1 has, are not there.

    Args:
        text: the bytes as kafka-python's decoder leaves them: as ASCII, others with a backslash,
            which no name of a topic has.
    """
    data = text.replace("\\xff", "\xff").encode("latin-1", "replace")
    try:
        version, count = struct.unpack_from(">hi", data)
        at, topics = 6, []
        for _ in range(count):
            (length,) = struct.unpack_from(">h", data, at)
            topics.append(data[at + 2 : at + 2 + length].decode())
            at += 2 + length
        (length,) = struct.unpack_from(">i", data, at)
    except (struct.error, UnicodeDecodeError):
        return None
    if version != 1 or at + 4 + max(0, length) != len(data):
        return None
    return {"topics": topics, "user_data": None, "is_short": True}


def clients_of(groups: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the libraries that members run, as far as ``client_of`` tells, by group and member."""
    clients = {
        (group["group_id"], member["member_id"]): client_of(
            member.get("client_id") or "", group["protocol_data"], member["member_metadata"]
        )
        for group in groups
        for member in group["members"]
    }
    return {member: client for member, client in clients.items() if client is not None}


def group_rows(
    groups: Iterable[Mapping[str, Any]], cluster_id: str | None
) -> tuple[list[Row], list[Row]]:
    """Rows of ``members`` and of ``owned``, from descriptions of stable groups."""
    members: list[Row] = []
    owned: list[Row] = []
    for group in groups:
        group_id = group["group_id"]
        before = [m["member_metadata"].get("generation_id", -1) for m in group["members"]]
        generation = max(0, *before) + 1
        for seq, member in enumerate(group["members"]):
            member_id, subscription = member["member_id"], member["member_metadata"]
            static, rack = member.get("group_instance_id"), subscription.get("rack_id")
            identity = (cluster_id, group_id, member_id, static or None, rack or None)
            topics, assignor = list(subscription["topics"]), group["protocol_data"]
            members.append((*identity, topics, None, generation, seq, assignor, None, None))
            assigned = (member["member_assignment"] or {}).get("assigned_partitions", [])
            owned += [
                (cluster_id, group_id, member_id, topic["topic"], partition)
                for topic in assigned
                for partition in topic["partitions"]
            ]
    return members, owned
