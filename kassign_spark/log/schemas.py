"""The tables of the group log: its raw records, and what they say once decoded.

Of every table ``partition`` and ``offset`` are the place of the record in ``__consumer_offsets``
(but for ``commits`` and ``log_assignment``, whose ``partition`` is one of ``topic``). All records
of a group stand in one partition, in order. Times are UTC.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kassign_spark.schemas import Table

_STRING, _INT, _LONG, _BINARY = StringType(), IntegerType(), LongType(), BinaryType()
_BOOLEAN, _TIMESTAMP, _STRINGS = BooleanType(), TimestampType(), ArrayType(StringType())


def _required(name: str, data_type: DataType) -> StructField:
    return StructField(name, data_type, nullable=False)


_PLACE = [
    _required("partition", _INT),
    _required("offset", _LONG),
    _required("at", _TIMESTAMP),
    _required("is_tombstone", _BOOLEAN),
]

RECORDS = Table(
    "records",
    StructType(
        [
            StructField("key", _BINARY),
            StructField("value", _BINARY),
            _required("topic", _STRING),
            _required("partition", _INT),
            _required("offset", _LONG),
            _required("timestamp", _TIMESTAMP),
        ]
    ),
)
"""The log as Spark's Kafka source gives it; a value of null is a tombstone."""

GENERATIONS = Table(
    "generations",
    StructType(
        [
            _required("group_id", _STRING),
            _required("group_type", _STRING),
            StructField("generation", _INT),
            StructField("protocol_type", _STRING),
            StructField("assignor", _STRING),
            StructField("leader", _STRING),
            StructField("member_count", _INT),
            *_PLACE,
        ]
    ),
)
"""One row a GroupMetadata record (`classic`) or ConsumerGroupMetadata record (`consumer`, whose
generation is the group epoch). Null: `generation` of a tombstone; the columns after it of a
tombstone and of every row of type `consumer`."""

LOG_MEMBERS = Table(
    "log_members",
    StructType(
        [
            _required("group_id", _STRING),
            _required("record", _STRING),
            StructField("generation", _INT),
            _required("member_id", _STRING),
            StructField("group_instance_id", _STRING),
            StructField("client_id", _STRING),
            StructField("client_host", _STRING),
            StructField("rack_id", _STRING),
            StructField("rebalance_timeout_ms", _INT),
            StructField("session_timeout_ms", _INT),
            StructField("topics", _STRINGS),
            StructField("topics_regex", _STRING),
            StructField("assignor", _STRING),
            StructField("owned_generation", _INT),
            StructField("previous_generation", _INT),
            StructField("state", _STRING),
            *_PLACE,
        ]
    ),
)
"""What a record says of one member. `record` is the record's kind:
- `group`: a member in a GroupMetadata record; `generation` is the group's, `owned_generation` that
  in which it had what it claims, as the group's assignor reads it; `assignor` and
  `previous_generation` and `state` are null. It has no tombstones: those are of `generations`.
- `member`: ConsumerGroupMemberMetadata, the member as it joined or changed; `generation` is null
  (the epoch that it leads to follows in the log, as a row of `generations`).
- `target`: ConsumerGroupTargetAssignmentMember, its partitions are `target` in log_assignment.
- `current`: ConsumerGroupCurrentMemberAssignment; `generation` is the member's epoch,
  `previous_generation` the one before, `state` is Kafka's MemberState in lower case.
A tombstone says that the record of that kind is gone (of `member`: the member left)."""

ROLES = ("assigned", "owned", "target", "revoking")
LOG_ASSIGNMENT = Table(
    "log_assignment",
    StructType(
        [
            _required("group_id", _STRING),
            StructField("generation", _INT),
            _required("offset", _LONG),
            _required("member_id", _STRING),
            _required("role", _STRING),
            StructField("topic", _STRING),
            StructField("topic_id", _STRING),
            _required("partition", _INT),
        ]
    ),
)
"""Partitions of a member in the record at `offset`. `role` is `assigned` (what the leader gave, or
what the member holds by its `current` record), `owned` (what it claimed when it joined, as the
group's assignor reads it: of `sticky` in its user data, else in its subscription), `target` or
`revoking` (new protocol). Classic groups name the `topic`; those of the new protocol its
`topic_id`, and `topic` only where the log itself says which name the id has."""

COMMITS = Table(
    "commits",
    StructType(
        [
            _required("group_id", _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
            StructField("committed", _LONG),
            _required("at", _TIMESTAMP),
            _required("is_tombstone", _BOOLEAN),
            _required("offset", _LONG),
            StructField("topic_id", _STRING),
        ]
    ),
)
"""One row an OffsetCommit record; `committed` is null of a tombstone."""

LOG_TARGETS = Table(
    "log_targets",
    StructType([_required("group_id", _STRING), StructField("generation", _INT), *_PLACE]),
)
"""ConsumerGroupTargetAssignmentMetadata: the epoch that the target before it was computed for."""

LOG_REGEXES = Table(
    "log_regexes",
    StructType(
        [
            _required("group_id", _STRING),
            _required("topics_regex", _STRING),
            StructField("topics", _STRINGS),
            *_PLACE,
        ]
    ),
)
"""ConsumerGroupRegularExpression: the topics that a subscribed regex stands for."""

LOG_TOPICS = Table(
    "log_topics",
    StructType(
        [
            _required("group_id", _STRING),
            StructField("topic", _STRING),
            StructField("topic_id", _STRING),
            StructField("num_partitions", _INT),
            *_PLACE,
        ]
    ),
)
"""ConsumerGroupPartitionMetadata, one row a topic (brokers up to 4.0 write it; later ones only its
tombstone, one row with null topic)."""

UNREAD = Table(
    "unread",
    StructType(
        [
            _required("kind", _STRING),
            StructField("version", _INT),
            _required("reason", _STRING),
            _required("count", _LONG),
        ]
    ),
)
"""Records, or parts of them, that no table has, counted. `kind` is Kafka's name of the record."""

DECODED = (GENERATIONS, LOG_MEMBERS, LOG_ASSIGNMENT, COMMITS, LOG_TARGETS, LOG_REGEXES, LOG_TOPICS)
"""The tables that records are decoded to, but for the unread."""
