"""The records of ``__consumer_offsets``, and the consumers' messages within, as structs.

After the message definitions of Kafka 4.4.0 (group-coordinator ``common/message/*.json`` and
clients ``ConsumerProtocol*.json``). A key begins with the record's type as int16, a value with its
version.
"""

from typing import NamedTuple

from kassign_spark.log.structs import Field, Struct, Tagged

_GROUP, _MEMBER = Field("group_id", "string"), Field("member_id", "string")


def _alone(given: Field) -> Tagged:
    return Tagged(Struct((given,), flexible=0, open=False))


class Kind(NamedTuple):
    """A type of record: Kafka's name, its key, its value and the newest version of that."""

    name: str
    key: Struct
    value: Struct
    newest: int = 0


_PARTITIONS = (Field("topic_id", "uuid"), Field("partitions", "list", of="int32"))
_OF_TARGET = Struct(_PARTITIONS, flexible=0)
_OF_CURRENT = Struct(
    _PARTITIONS,
    flexible=0,
    tags={0: _alone(Field("epochs", "list", of="int32", nullable=True))},
)

_LEGACY_OFFSET_COMMIT = Struct(
    (
        Field("committed", "int64"),
        Field("metadata", "string"),
        Field("commit_timestamp", "int64"),
    )
)
_OFFSET_COMMIT = Struct(
    (
        Field("committed", "int64"),
        Field("leader_epoch", "int32", since=3),
        Field("metadata", "string"),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", since=1, until=1),
    ),
    flexible=4,
    tags={0: _alone(Field("topic_id", "uuid"))},
)
_GROUP_METADATA = Struct(
    (
        Field("protocol_type", "string"),
        Field("generation", "int32"),
        Field("protocol", "string", nullable=True),
        Field("leader", "string", nullable=True),
        Field("state_timestamp", "int64", since=2),
        Field(
            "members",
            "list",
            of=Struct(
                (
                    _MEMBER,
                    Field("group_instance_id", "string", since=3, nullable=True),
                    Field("client_id", "string"),
                    Field("client_host", "string"),
                    Field("rebalance_timeout_ms", "int32", since=1),
                    Field("session_timeout_ms", "int32"),
                    Field("subscription", "bytes"),
                    Field("assignment", "bytes"),
                ),
                flexible=4,
            ),
        ),
    ),
    flexible=4,
)
_EPOCH = Struct(
    (Field("generation", "int32"),),
    flexible=0,
    tags={0: _alone(Field("hash_or_time", "int64"))},
)
"""Of a group, with the hash of its topics' metadata, or of a target, with the time it was made."""
_PARTITION_METADATA = Struct(
    (
        Field(
            "topics",
            "list",
            of=Struct(
                (
                    Field("topic_id", "uuid"),
                    Field("topic", "string"),
                    Field("num_partitions", "int32"),
                    Field(
                        "partition_metadata",
                        "list",
                        of=Struct(
                            (
                                Field("partition", "int32"),
                                Field("racks", "list", of="string"),
                            ),
                            flexible=0,
                        ),
                    ),
                ),
                flexible=0,
            ),
        ),
    ),
    flexible=0,
)
_CLASSIC_MEMBER = Struct(
    (
        Field("session_timeout_ms", "int32"),
        Field(
            "supported_protocols",
            "list",
            of=Struct((Field("name", "string"), Field("metadata", "bytes")), flexible=0),
        ),
    ),
    flexible=0,
)
"""Of a member that still speaks the classic protocol."""
_MEMBER_METADATA = Struct(
    (
        Field("group_instance_id", "string", nullable=True),
        Field("rack_id", "string", nullable=True),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("topics", "list", of="string"),
        Field("topics_regex", "string", nullable=True),
        Field("rebalance_timeout_ms", "int32"),
        Field("assignor", "string", nullable=True),
    ),
    flexible=0,
    tags={0: Tagged(_CLASSIC_MEMBER, nullable=True)},
)
_TARGET = Struct((Field("target", "list", of=_OF_TARGET),), flexible=0)
_CURRENT = Struct(
    (
        Field("generation", "int32"),
        Field("previous_generation", "int32"),
        Field("state", "int8"),
        Field("assigned", "list", of=_OF_CURRENT),
        Field("revoking", "list", of=_OF_CURRENT),
    ),
    flexible=0,
)
_REGEX = Struct(
    (
        Field("topics", "list", of="string"),
        Field("version", "int64"),
        Field("timestamp", "int64"),
    ),
    flexible=0,
)

_OF_GROUP, _OF_MEMBER = Struct((_GROUP,)), Struct((_GROUP, _MEMBER))
_OF_PARTITION = Struct((_GROUP, Field("topic", "string"), Field("partition", "int32")))

KINDS = {
    0: Kind("LegacyOffsetCommit", _OF_PARTITION, _LEGACY_OFFSET_COMMIT),
    1: Kind("OffsetCommit", _OF_PARTITION, _OFFSET_COMMIT, newest=4),
    2: Kind("GroupMetadata", _OF_GROUP, _GROUP_METADATA, newest=4),
    3: Kind("ConsumerGroupMetadata", _OF_GROUP, _EPOCH),
    4: Kind("ConsumerGroupPartitionMetadata", _OF_GROUP, _PARTITION_METADATA),
    5: Kind("ConsumerGroupMemberMetadata", _OF_MEMBER, _MEMBER_METADATA),
    6: Kind("ConsumerGroupTargetAssignmentMetadata", _OF_GROUP, _EPOCH),
    7: Kind("ConsumerGroupTargetAssignmentMember", _OF_MEMBER, _TARGET),
    8: Kind("ConsumerGroupCurrentMemberAssignment", _OF_MEMBER, _CURRENT),
    16: Kind(
        "ConsumerGroupRegularExpression",
        Struct((_GROUP, Field("topics_regex", "string"))),
        _REGEX,
    ),
}
"""What is read, by the type in front of a key."""

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
"""What is known by name and not read: groups of other types."""

MEMBER_STATES = {
    0: "stable",
    1: "unrevoked_partitions",
    2: "unreleased_partitions",
    127: "unknown",
}
"""``MemberState`` of the new protocol's members by its number."""

_BY_TOPIC = Struct((Field("topic", "string"), Field("partitions", "list", of="int32")))
SUBSCRIPTION = Struct(
    (
        Field("topics", "list", of="string"),
        Field("user_data", "bytes", nullable=True),
        Field("owned", "list", since=1, of=_BY_TOPIC),
        Field("owned_generation", "int32", since=2),
        Field("rack_id", "string", since=3, nullable=True),
    )
)
STICKY_USER_DATA = Struct((Field("owned", "list", of=_BY_TOPIC),))
"""Of ``StickyAssignor``; of version 1 four more bytes follow, the generation."""
ASSIGNMENT = Struct(
    (Field("assigned", "list", of=_BY_TOPIC), Field("user_data", "bytes", nullable=True))
)
NEWEST_PROTOCOL = 3
"""A subscription or an assignment of a higher version is read as this one, as Kafka does."""
