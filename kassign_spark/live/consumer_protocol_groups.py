"""Groups of the new protocol (KIP-848) as a live coordinator describes them.

kafka-python has no message for that yet (``ConsumerGroupDescribe``, key 69); its own machinery
reads the two that lie beside this file.
"""

import base64
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.live.admin import batches, list_groups, send

Row = tuple[Any, ...]

NOT_ASKED_FOR = "KIP-848 group: the broker makes its assignment, not an assignor"
"""Why such groups are left out of a snapshot that does not ask for them."""

_OF_CONSUMER_GROUPS = "consumer."
"""The other settings of a group are for when it is of another type."""


class DescribedGroups(NamedTuple):
    """The coordinators' description of some groups.

    Attributes:
        members: rows of ``schemas.MEMBERS`` without cluster_id, in the coordinator's order.
            generation is the member's epoch, -2 where it is static and away; assignor the group's
            choice.
        owned: rows (group_id, member_id, topic, partition): what members have been given and have
            not said to have given up.
        target: rows (group_id, member_id, topic, partition, position): what they are to have;
            position is the place in the coordinator's list, from 0.
        reasons: of groups that are not in the rows, by name.
    """

    members: list[Row]
    owned: list[Row]
    target: list[Row]
    reasons: dict[str, str]


def consumer_group_names(admin: Any, brokers: Sequence[int]) -> dict[int, list[str]]:
    """List the groups of the new protocol by the broker that coordinates them."""
    return {
        broker: sorted(
            group["group_id"]
            for group in list_groups(admin, broker)
            if (group.get("group_type") or "").lower() == CONSUMER
        )
        for broker in brokers
    }


def describe_consumer_groups(
    admin: Any, names_by_broker: Mapping[int, Sequence[str]]
) -> DescribedGroups:
    """Ask each coordinator for its groups, many in a request.

    Such a group can be described in any state. A partition that a member is still to give up is
    owned by it; no owned partition belongs to a deleted topic.

    Returns:
        The groups that have members and may be read, whole; the others with the reason.
    """
    described = DescribedGroups([], [], [], {})
    for broker, names in names_by_broker.items():
        for batch in batches(names):
            request = _describe_request()(
                group_ids=list(batch), include_authorized_operations=False
            )
            for group in send(admin, request, node_id=broker).groups:
                _add(described, group)
    return described


def describe_group_settings(
    admin: Any, names: Sequence[str]
) -> tuple[list[tuple[str, str, str | None]], dict[str, str]]:
    """Ask for the settings of groups, many in a request; any broker knows them all.

    Returns:
        group_id, setting, value: what applies, whether set for the group or the broker's default;
        and why settings are not there, by group.
    """
    from kafka import errors
    from kafka.admin import ConfigResourceType
    from kafka.protocol.admin import DescribeConfigsRequest

    rows: list[tuple[str, str, str | None]] = []
    reasons: dict[str, str] = {}
    for batch in batches(names):
        resources = [(ConfigResourceType.GROUP, name, None) for name in batch]
        for result in send(admin, DescribeConfigsRequest(resources=resources)).results:
            if result.error_code:
                error = errors.for_code(result.error_code)
                reasons[result.resource_name] = str(error(result.error_message or ""))
                continue
            rows.extend(
                (result.resource_name, config.name, config.value)
                for config in sorted(result.configs, key=lambda config: config.name)
                if config.name.startswith(_OF_CONSUMER_GROUPS)
            )
    return rows, reasons


def kafka_topic_id(topic_id: uuid.UUID | str) -> str:
    """Write a topic id as Kafka does: 22 characters of URL-safe base64."""
    value = topic_id if isinstance(topic_id, uuid.UUID) else uuid.UUID(topic_id)
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _add(described: DescribedGroups, group: Any) -> None:
    from kafka import errors

    name = group.group_id
    if group.error_code:
        error = errors.for_code(group.error_code)
        described.reasons[name] = str(error(group.error_message or ""))
        return
    if not group.members:
        described.reasons[name] = "no members"
        return
    for seq, member in enumerate(group.members):
        member_id = member.member_id
        identity = (name, member_id, member.instance_id or None, member.rack_id or None)
        topics, regex = list(member.subscribed_topic_names), member.subscribed_topic_regex or None
        of_group = (member.member_epoch, seq, group.assignor_name)
        described.members.append((*identity, topics, None, *of_group, regex, CONSUMER))
        owned = _partitions(member.assignment)
        described.owned.extend((name, member_id, topic, p) for topic, p in owned)
        target = _partitions(member.target_assignment)
        described.target.extend(
            (name, member_id, topic, p, position) for position, (topic, p) in enumerate(target)
        )


def _partitions(assignment: Any) -> list[tuple[str, int]]:
    return [
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    ]


@cache
def _describe_request() -> Any:
    """Return the request's class; defined when first needed, as kafka-python is an extra."""
    from kafka.protocol.api_message import ApiMessage

    class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
        pass

    class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
        pass

    # kafka-python keeps a weak reference only to the class of a response.
    ConsumerGroupDescribeRequest.response_class = ConsumerGroupDescribeResponse
    return ConsumerGroupDescribeRequest
