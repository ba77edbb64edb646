"""The tables of the group log: its raw records, and what they say once decoded.

Of every table ``partition`` and ``offset`` are the place of the record in ``__consumer_offsets``
(but for ``commits`` and ``log_assignment``, whose ``partition`` is one of ``topic``). All records
of a group stand in one partition, in order. Times are UTC.
"""

from kassign_spark.schemas import table_of

_PLACE = "partition int, offset bigint, at timestamp, is_tombstone boolean"

RECORDS = table_of(
    "records",
    "key binary?, value binary?, topic string, partition int, offset bigint, timestamp timestamp",
)
"""The log as Spark's Kafka source gives it; a value of null is a tombstone."""

GENERATIONS = table_of(
    "generations",
    "group_id string, group_type string, generation int?, protocol_type string?, "
    f"assignor string?, leader string?, member_count int?, {_PLACE}",
)
"""One row a GroupMetadata record (`classic`) or ConsumerGroupMetadata record (`consumer`, whose
generation is the group epoch). Null: `generation` of a tombstone; the columns after it of a
tombstone and of every row of type `consumer`."""

LOG_MEMBERS = table_of(
    "log_members",
    "group_id string, record string, generation int?, member_id string, "
    "group_instance_id string?, client_id string?, client_host string?, rack_id string?, "
    "rebalance_timeout_ms int?, session_timeout_ms int?, topics array<string>?, "
    "topics_regex string?, assignor string?, owned_generation int?, member_seq int?, "
    f"previous_generation int?, state string?, {_PLACE}",
)
"""What a record says of one member. `record` is the record's kind:
- `group`: a member in a GroupMetadata record; `generation` is the group's, `owned_generation` that
  in which it had what it claims, as the group's assignor reads it, `member_seq` its place among
  the members in the record, from 0; `rack_id` is empty of librdkafka's members without one;
  `assignor`, `previous_generation` and `state` are null. It has no tombstones: those are of
  `generations`.
- `member`: ConsumerGroupMemberMetadata, the member as it joined or changed; `generation` is null
  (the epoch that it leads to follows in the log, as a row of `generations`).
- `target`: ConsumerGroupTargetAssignmentMember, its partitions are `target` in log_assignment.
- `current`: ConsumerGroupCurrentMemberAssignment; `generation` is the member's epoch,
  `previous_generation` the one before, `state` is Kafka's MemberState in lower case.
A tombstone says that the record of that kind is gone (of `member`: the member left)."""

LOG_ASSIGNMENT = table_of(
    "log_assignment",
    "group_id string, generation int?, offset bigint, member_id string, role string, "
    "topic string?, topic_id string?, partition int",
)
"""Partitions of a member in the record at `offset`. `role` is `assigned` (what the leader gave, or
what the member holds by its `current` record), `owned` (what it claimed when it joined, as the
group's assignor reads it: of `sticky` in its user data, else in its subscription), `target` or
`revoking` (new protocol). Classic groups name the `topic`; those of the new protocol its
`topic_id`, and `topic` only where the log itself says which name the id has."""

COMMITS = table_of(
    "commits",
    "group_id string, topic string, partition int, committed bigint?, at timestamp, "
    "is_tombstone boolean, offset bigint, topic_id string?",
)
"""One row an OffsetCommit record; `committed` is null of a tombstone."""

LOG_TARGETS = table_of("log_targets", f"group_id string, generation int?, {_PLACE}")
"""ConsumerGroupTargetAssignmentMetadata: the epoch that the target before it was computed for."""

LOG_REGEXES = table_of(
    "log_regexes", f"group_id string, topics_regex string, topics array<string>?, {_PLACE}"
)
"""ConsumerGroupRegularExpression: the topics that a subscribed regex stands for."""

LOG_TOPICS = table_of(
    "log_topics", f"group_id string, topic string?, topic_id string?, num_partitions int?, {_PLACE}"
)
"""ConsumerGroupPartitionMetadata, one row per topic. Brokers up to 4.0 write it; later ones write
only its tombstone, one row with null topic."""

UNREAD = table_of(
    "unread",
    "kind string, version int?, reason string, group_id string?, count bigint",
)
"""Records, or parts of them, that no table has, counted. `kind` is Kafka's name of the record,
`group_id` what its key says, if it can be read."""
EACH_UNREAD = table_of(
    "unread",
    "kind string, version int?, reason string, group_id string?, offset bigint, count bigint",
)
"""The same each alone, with the place of the record: as they are decoded."""

SUBSCRIPTIONS = table_of("subscriptions", "group_id string, member_id string, subscription binary")
"""The bytes that members of classic groups sent, in their groups' records."""

DECODED = (GENERATIONS, LOG_MEMBERS, LOG_ASSIGNMENT, COMMITS, LOG_TARGETS, LOG_REGEXES, LOG_TOPICS)
"""The tables that records are decoded to, but for the unread."""
