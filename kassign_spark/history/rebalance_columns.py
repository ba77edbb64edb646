"""The rows of ``rebalances``: their columns, and the words that say why a group rebalanced."""

from kassign_spark.schemas import table_of

FIRST = "first"
GAP = "gap"
DAMAGED = "damaged"
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
    DAMAGED: "generations before it are in the log, but their records cannot be read",
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
"""The meaning of each reason, in the order in which they are tried: the first that fits wins."""

CLOSED, CRASHED, TOO_SLOW = "left", "crashed", "too_slow"
LEFT_KINDS = (CLOSED, CRASHED, TOO_SLOW)
"""The ways in which a member can leave, as far as its commits show."""

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
"""The meaning of each cause of a storm, in the order in which they are tried."""

REBALANCES = table_of(
    "rebalances",
    "group_id string, group_type string, generation int, previous_generation int?, at timestamp, "
    "previous_at timestamp?, assignor string?, protocol string?, member_count int, "
    "joined array<string>, joined_clients array<string>, joined_hosts array<string>, "
    "joined_away array<double>, left array<string>, left_clients array<string>, "
    "left_hosts array<string>, left_kinds array<string>, changed array<string>, "
    "changed_clients array<string>, grown_topics array<string>, reason string, "
    "reason_detail string?, moved int, kept int, longest_pause double?, "
    "longest_pause_topic string?, longest_pause_partition int?, idle int, static_restarts int, "
    "session_timeout_ms int?, subscription_count int, offset bigint",
)
"""One row per group and generation; see ``rebalances.rebalances``."""

STORMS = table_of(
    "storms",
    "group_id string, begins timestamp, ends timestamp, rebalances int, most_within int, "
    "cause string, client_id string?, client_host string?, joins int, leaves int, moved int, "
    "longest_pause double?, saved_by_static int, saved_by_session int, session_needed_ms int?, "
    "detail string?",
)
"""One row a storm; see ``storms.storms``."""

EXPLAINED = table_of(
    "explained",
    "group_id string, generation int, at timestamp, assignor string?, explained_by string?, "
    "is_explained boolean?, leader_client string?, detail string?",
)
"""One row per generation of a classic group; see ``explained_generations.explain_history``."""
