"""The rows of ``rebalances``: their columns, and the words that say why a group rebalanced."""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kassign_spark.schemas import Table

_STRING, _INT, _LONG, _DOUBLE = StringType(), IntegerType(), LongType(), DoubleType()
_STRINGS, _TIMESTAMP = ArrayType(StringType()), TimestampType()

FIRST = "first"
GAP = "gap"
PROTOCOL_CHANGED = "protocol_changed"
MEMBER_CRASHED = "member_crashed"
MEMBER_TOO_SLOW = "member_too_slow"
MEMBERS_CHANGED = "members_changed"
MEMBER_RESTARTED = "member_restarted"
MEMBER_JOINED = "member_joined"
MEMBER_LEFT = "member_left"
ASSIGNOR_CHANGED = "assignor_changed"
SUBSCRIPTION_CHANGED = "subscription_changed"
PARTITIONS_ADDED = "partitions_added"
HANDOVER = "handover"
UNKNOWN = "unknown"

REASONS = {
    FIRST: "the first of the group that the log has",
    GAP: "generations before it are not in the log: compacted away, or never completed",
    PROTOCOL_CHANGED: "the group went from the classic protocol to the new one, or back",
    MEMBER_CRASHED: "a member was silent longer than its session timeout",
    MEMBER_TOO_SLOW: "a member was silent longer than its max.poll.interval.ms",
    MEMBERS_CHANGED: "members left and others joined",
    MEMBER_RESTARTED: "a client that had left came back",
    MEMBER_JOINED: "a member joined",
    MEMBER_LEFT: "a member left",
    ASSIGNOR_CHANGED: "another assignor was chosen",
    SUBSCRIPTION_CHANGED: "a member changed its subscription",
    PARTITIONS_ADDED: "a topic got more partitions, or came to be",
    HANDOVER: "the second round of a cooperative rebalance",
    UNKNOWN: "nothing that the log shows had changed",
}
"""What each reason means, in the order in which they are looked for: the first that fits is it."""

CLOSED, CRASHED, TOO_SLOW = "left", "crashed", "too_slow"
LEFT_KINDS = (CLOSED, CRASHED, TOO_SLOW)
"""How a member went, as far as its commits tell."""

TOO_SLOW_POLLS = "polls_too_slow"
CRASHES = "crashes"
TWO_DEPLOYMENTS = "two_deployments"
RESTARTS = "restarts"
SUBSCRIPTIONS = "subscriptions"
COMING_AND_GOING = "members_come_and_go"
OTHERS = "other"
CAUSES = {
    TOO_SLOW_POLLS: "a client is too slow between two polls, over and over",
    CRASHES: "a client is silent longer than its session timeout, over and over",
    TWO_DEPLOYMENTS: "members with different subscriptions come and go: two applications may share "
    "the group.id",
    RESTARTS: "a client leaves and comes back, over and over",
    SUBSCRIPTIONS: "members change what they subscribe to, over and over",
    COMING_AND_GOING: "many clients join and leave: a deployment, or something that scales",
    OTHERS: "something else: see the reasons of the rebalances",
}
"""What each cause of a storm means, in the order in which they are looked for."""


def _required(name: str, data_type: ArrayType | IntegerType | StringType) -> StructField:
    return StructField(name, data_type, nullable=False)


REBALANCES = Table(
    "rebalances",
    StructType(
        [
            _required("group_id", _STRING),
            _required("group_type", _STRING),
            _required("generation", _INT),
            StructField("previous_generation", _INT),
            StructField("at", _TIMESTAMP, nullable=False),
            StructField("previous_at", _TIMESTAMP),
            StructField("assignor", _STRING),
            StructField("protocol", _STRING),
            _required("member_count", _INT),
            _required("joined", _STRINGS),
            _required("joined_clients", _STRINGS),
            _required("joined_hosts", _STRINGS),
            _required("joined_away", ArrayType(_DOUBLE)),
            _required("left", _STRINGS),
            _required("left_clients", _STRINGS),
            _required("left_hosts", _STRINGS),
            _required("left_kinds", _STRINGS),
            _required("changed", _STRINGS),
            _required("changed_clients", _STRINGS),
            _required("grown_topics", _STRINGS),
            _required("reason", _STRING),
            StructField("reason_detail", _STRING),
            _required("moved", _INT),
            _required("kept", _INT),
            StructField("longest_pause", _DOUBLE),
            StructField("longest_pause_topic", _STRING),
            StructField("longest_pause_partition", _INT),
            _required("idle", _INT),
            _required("static_restarts", _INT),
            StructField("session_timeout_ms", _INT),
            _required("subscription_count", _INT),
            StructField("offset", _LONG, nullable=False),
        ]
    ),
)
"""One row a group and generation; see ``rebalances.rebalances``."""

STORMS = Table(
    "storms",
    StructType(
        [
            _required("group_id", _STRING),
            StructField("begins", _TIMESTAMP, nullable=False),
            StructField("ends", _TIMESTAMP, nullable=False),
            _required("rebalances", _INT),
            _required("most_within", _INT),
            _required("cause", _STRING),
            StructField("client_id", _STRING),
            StructField("client_host", _STRING),
            _required("joins", _INT),
            _required("leaves", _INT),
            _required("moved", _INT),
            StructField("longest_pause", _DOUBLE),
            _required("saved_by_static", _INT),
            _required("saved_by_session", _INT),
            StructField("session_needed_ms", _INT),
            StructField("detail", _STRING),
        ]
    ),
)
"""One row a storm; see ``storms.storms``."""

EXPLAINED = Table(
    "explained",
    StructType(
        [
            _required("group_id", _STRING),
            _required("generation", _INT),
            StructField("at", _TIMESTAMP, nullable=False),
            StructField("assignor", _STRING),
            StructField("explained_by", _STRING),
            StructField("is_explained", BooleanType()),
            StructField("leader_client", _STRING),
            StructField("detail", _STRING),
        ]
    ),
)
"""One row a generation of a classic group; see ``explain.explain_history``."""
