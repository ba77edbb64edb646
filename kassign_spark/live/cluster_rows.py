"""Turn a cluster's answers into rows of the tables, in the column order of the schemas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.live.classic_groups import ClassicGroup
from kassign_spark.live.consumer_protocol_groups import Row, kafka_topic_id


class Omission(NamedTuple):
    """Something of the cluster that is not in the tables, and why."""

    kind: str
    """``group`` or ``topic``; of what is in the tables ``settings`` or ``commits`` of a group,
    ``offsets`` of a partition.
    """
    name: str
    reason: str


def racks_of(brokers: Iterable[Mapping[str, Any]]) -> dict[int, str | None]:
    """Return the racks of brokers without fenced ones, which are down: no client sees them."""
    return {b["broker_id"]: b["rack"] or None for b in brokers if not b.get("is_fenced")}


def topic_rows(
    described: Iterable[dict[str, Any]], racks: Mapping[int, str | None], cluster_id: str | None
) -> tuple[list[Row], list[Omission]]:
    """Return rows of ``topics`` by name, and topics without partitions that can be seen."""
    has_racks = any(racks.values())
    rows: list[Row] = []
    omitted = []
    for topic in sorted(described, key=lambda t: t["name"]):
        partitions = sorted(topic["partitions"], key=lambda p: p["partition_index"])
        if not partitions:
            omitted.append(Omission("topic", topic["name"], f"error {topic['error_code']}"))
            continue
        replica_racks = [
            [racks[node] for node in _leader_first(partition) if racks.get(node)]
            for partition in partitions
        ]
        topic_id = kafka_topic_id(topic["topic_id"]) if topic.get("topic_id") else None
        in_racks = replica_racks if has_racks else None
        rows.append((cluster_id, topic["name"], len(partitions), in_racks, topic_id))
    return rows, omitted


def _leader_first(partition: Mapping[str, Any]) -> list[int]:
    """Return brokers with a replica: the leader, then the others in their order."""
    return sorted(partition["replica_nodes"], key=lambda node: node != partition["leader_id"])


def leader_rows(described: Iterable[dict[str, Any]], cluster_id: str | None) -> list[Row]:
    """Return rows of ``leaders``: of the topic whose leaders coordinate the groups."""
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


def group_rows(
    groups: Iterable[ClassicGroup], cluster_id: str | None
) -> tuple[list[Row], list[Row]]:
    """Return rows of ``members`` and of ``owned``, from descriptions of stable groups."""
    members: list[Row] = []
    owned: list[Row] = []
    for group in groups:
        generation = max(0, *(member.generation for member in group.members)) + 1
        for seq, member in enumerate(group.members):
            identity = (cluster_id, group.group_id, member.member_id)
            static, rack = member.group_instance_id, member.rack_id
            of_group = (None, generation, seq, group.assignor, None, None)
            members.append((*identity, static, rack, member.topics, *of_group))
            owned += [(*identity, topic, partition) for topic, partition in member.assigned]
    return members, owned
