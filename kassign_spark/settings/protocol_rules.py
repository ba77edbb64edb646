"""What clients may set with which group protocol, and what that does (KIP-848)."""

from collections.abc import Iterator

from pyspark.sql import functions as F

from kassign_spark.settings.rules import (
    HEARTBEAT,
    INSTANCE_ID,
    INTERNAL_TOPICS,
    PROTOCOL,
    REMOTE_ASSIGNOR,
    SESSION,
    SHARE_SETTINGS,
    SINCE,
    STRATEGY,
    Rule,
    advised,
    given,
    is_consumer_protocol,
    refused,
    since,
    trimmed,
)


def protocol_rules() -> Iterator[Rule]:
    """Give the rules of `group.protocol` and of what goes with it, in no order."""
    known = F.lower(trimmed(PROTOCOL)).isin("classic", "consumer")
    has_setting, is_new = since(SINCE[PROTOCOL]), is_consumer_protocol()
    yield refused(PROTOCOL, has_setting & ~known, "must be classic or consumer")
    yield advised(
        PROTOCOL,
        is_new & ~since("4.0.0"),
        "consumer is a preview in clients before 4.0: not for production",
    )
    for setting in (SESSION, HEARTBEAT, STRATEGY):
        is_set = is_new & (trimmed(setting) != "")
        detail = "cannot be set with group.protocol=consumer"
        yield refused(setting, since("4.0.0") & is_set, detail)
        advice = "has no effect with group.protocol=consumer; from 4.0 on it is refused"
        yield advised(setting, ~since("4.0.0") & is_set, advice)
    yield refused(
        REMOTE_ASSIGNOR,
        has_setting
        & given(REMOTE_ASSIGNOR).isNotNull()
        & (known | given(PROTOCOL).isNull())
        & ~is_new,
        "cannot be set with group.protocol=classic, which is the default",
    )
    for setting in SHARE_SETTINGS:
        yield refused(
            setting,
            since("4.1.0") & given(setting).isNotNull(),
            "is a setting of share consumers, which a KafkaConsumer refuses",
        )
    # What a client of the new protocol may set, to little effect or with a surprise.
    yield advised(
        REMOTE_ASSIGNOR,
        is_new & ~given(REMOTE_ASSIGNOR).isin("uniform", "range"),
        "only the broker sees whether it knows it: unless it is one of its "
        "group.consumer.assignors, the consumer ends with UNSUPPORTED_ASSIGNOR",
    )
    yield advised(
        "client.rack",
        is_new & (trimmed("client.rack") != ""),
        "neither assignor of the coordinator looks at racks; fetches still do",
    )
    yield advised(
        INTERNAL_TOPICS,
        is_new & given(INTERNAL_TOPICS).isNotNull(),
        "has no effect on a SubscriptionPattern, which finds internal topics too",
    )
    yield advised(
        INSTANCE_ID,
        is_new & (trimmed(INSTANCE_ID) != ""),
        "after a crash the broker refuses the newcomer (UNRELEASED_INSTANCE_ID, fatal) until "
        "the session has expired: let it start again until it is taken",
    )
