"""The records of ``__consumer_offsets``, and the consumers' messages within, as structs.

After the message definitions of Kafka 4.4.0 (group-coordinator ``common/message/*.json`` and
clients ``ConsumerProtocol*.json``). A key begins with the record's type as int16, a value with its
version.
"""

from typing import NamedTuple

from kassign_spark.log.structs import Struct, Tagged, struct


class Kind(NamedTuple):
    """A type of record: Kafka's name, its key, its value and the newest version of that."""

    name: str
    key: Struct
    value: Struct
    newest: int = 0


def _alone(field: str) -> Tagged:
    return Tagged(struct(field, flexible=0, open=False))


_OF_TARGET = struct("topic_id uuid, partitions []int32", flexible=0)
_OF_CURRENT = struct(
    "topic_id uuid, partitions []int32", flexible=0, tags={0: _alone("epochs []int32?")}
)

_LEGACY_OFFSET_COMMIT = struct("committed int64, metadata string, commit_timestamp int64")
_OFFSET_COMMIT = struct(
    "committed int64, leader_epoch int32 3+, metadata string, commit_timestamp int64, "
    "expire_timestamp int64 1",
    flexible=4,
    tags={0: _alone("topic_id uuid")},
)
_GROUP_METADATA = struct(
    "protocol_type string, generation int32, protocol string?, leader string?, "
    "state_timestamp int64 2+, members []",
    flexible=4,
    members=struct(
        "member_id string, group_instance_id string? 3+, client_id string, client_host string, "
        "rebalance_timeout_ms int32 1+, session_timeout_ms int32, subscription bytes, "
        "assignment bytes",
        flexible=4,
    ),
)
_EPOCH = struct("generation int32", flexible=0, tags={0: _alone("hash_or_time int64")})
"""The record of a group's epoch with its topics' metadata hash, or of a target with its time."""
_PARTITION_METADATA = struct(
    "topics []",
    flexible=0,
    topics=struct(
        "topic_id uuid, topic string, num_partitions int32, partition_metadata []",
        flexible=0,
        partition_metadata=struct("partition int32, racks []string", flexible=0),
    ),
)
_CLASSIC_MEMBER = struct(
    "session_timeout_ms int32, supported_protocols []",
    flexible=0,
    supported_protocols=struct("name string, metadata bytes", flexible=0),
)
"""A member that still uses the classic protocol."""
_MEMBER_METADATA = struct(
    "group_instance_id string?, rack_id string?, client_id string, client_host string, "
    "topics []string, topics_regex string?, rebalance_timeout_ms int32, assignor string?",
    flexible=0,
    tags={0: Tagged(_CLASSIC_MEMBER, nullable=True)},
)
_TARGET = struct("target []", flexible=0, target=_OF_TARGET)
_CURRENT = struct(
    "generation int32, previous_generation int32, state int8, assigned [], revoking []",
    flexible=0,
    assigned=_OF_CURRENT,
    revoking=_OF_CURRENT,
)
_REGEX = struct("topics []string, version int64, timestamp int64", flexible=0)

OF_GROUP, _OF_MEMBER = struct("group_id string"), struct("group_id string, member_id string")
_OF_PARTITION = struct("group_id string, topic string, partition int32")
_OF_REGEX = struct("group_id string, topics_regex string")

KINDS = {
    0: Kind("LegacyOffsetCommit", _OF_PARTITION, _LEGACY_OFFSET_COMMIT),
    1: Kind("OffsetCommit", _OF_PARTITION, _OFFSET_COMMIT, newest=4),
    2: Kind("GroupMetadata", OF_GROUP, _GROUP_METADATA, newest=4),
    3: Kind("ConsumerGroupMetadata", OF_GROUP, _EPOCH),
    4: Kind("ConsumerGroupPartitionMetadata", OF_GROUP, _PARTITION_METADATA),
    5: Kind("ConsumerGroupMemberMetadata", _OF_MEMBER, _MEMBER_METADATA),
    6: Kind("ConsumerGroupTargetAssignmentMetadata", OF_GROUP, _EPOCH),
    7: Kind("ConsumerGroupTargetAssignmentMember", _OF_MEMBER, _TARGET),
    8: Kind("ConsumerGroupCurrentMemberAssignment", _OF_MEMBER, _CURRENT),
    16: Kind("ConsumerGroupRegularExpression", _OF_REGEX, _REGEX),
}
"""The records that are read, by the type in front of a key."""

OTHER_KINDS = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""The records that are known by name and not read: groups of other types."""

MEMBER_STATES = {
    0: "stable",
    1: "unrevoked_partitions",
    2: "unreleased_partitions",
    127: "unknown",
}
"""``MemberState`` of the new protocol's members by its number."""

_BY_TOPIC = struct("topic string, partitions []int32")
SUBSCRIPTION = struct(
    "topics []string, user_data bytes?, owned [] 1+, owned_generation int32 2+, rack_id string? 3+",
    owned=_BY_TOPIC,
)
STICKY_USER_DATA = struct("owned []", owned=_BY_TOPIC)
"""User data of ``StickyAssignor``; in version 1 four more bytes follow, the generation."""
ASSIGNMENT = struct("assigned [], user_data bytes?", assigned=_BY_TOPIC)
NEWEST_PROTOCOL = 3
"""A subscription or an assignment of a higher version is read as this one, as Kafka does."""
