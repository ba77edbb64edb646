"""What clients may set with which group protocol, and what that does (KIP-848)."""

from collections.abc import Iterator

from pyspark.sql import functions as F

from kassign_spark.settings.rules import (
    ADVICE,
    HEARTBEAT,
    INSTANCE_ID,
    INTERNAL_TOPICS,
    PROTOCOL,
    REFUSED,
    REMOTE_ASSIGNOR,
    SESSION,
    SHARE_SETTINGS,
    SINCE,
    STRATEGY,
    Rule,
    given,
    is_consumer_protocol,
    since,
    trimmed,
)


def protocol_rules() -> Iterator[Rule]:
    """Give the rules of `group.protocol` and of what goes with it, in no order."""
    known = F.lower(trimmed(PROTOCOL)).isin("classic", "consumer")
    has_setting = since(SINCE[PROTOCOL])
    yield Rule(PROTOCOL, REFUSED, has_setting & ~known, F.lit("must be classic or consumer"))
    yield Rule(
        PROTOCOL,
        ADVICE,
        is_consumer_protocol() & ~since("4.0.0"),
        F.lit("consumer is a preview in clients before 4.0: not for production"),
    )
    for setting in (SESSION, HEARTBEAT, STRATEGY):
        is_set = is_consumer_protocol() & (trimmed(setting) != "")
        yield Rule(
            setting,
            REFUSED,
            since("4.0.0") & is_set,
            F.lit("cannot be set with group.protocol=consumer"),
        )
        yield Rule(
            setting,
            ADVICE,
            ~since("4.0.0") & is_set,
            F.lit("has no effect with group.protocol=consumer; from 4.0 on it is refused"),
        )
    yield Rule(
        REMOTE_ASSIGNOR,
        REFUSED,
        has_setting
        & given(REMOTE_ASSIGNOR).isNotNull()
        & (known | given(PROTOCOL).isNull())
        & ~is_consumer_protocol(),
        F.lit("cannot be set with group.protocol=classic, which is the default"),
    )
    for setting in SHARE_SETTINGS:
        yield Rule(
            setting,
            REFUSED,
            since("4.1.0") & given(setting).isNotNull(),
            F.lit("is a setting of share consumers, which a KafkaConsumer refuses"),
        )
    yield from _advice()


def _advice() -> Iterator[Rule]:
    """What a client of the new protocol may set, to little effect or with a surprise."""
    is_new = is_consumer_protocol()
    yield Rule(
        REMOTE_ASSIGNOR,
        ADVICE,
        is_new & ~given(REMOTE_ASSIGNOR).isin("uniform", "range"),
        F.lit(
            "only the broker sees whether it knows it: unless it is one of its "
            "group.consumer.assignors, the consumer ends with UNSUPPORTED_ASSIGNOR"
        ),
    )
    yield Rule(
        "client.rack",
        ADVICE,
        is_new & (trimmed("client.rack") != ""),
        F.lit("neither assignor of the coordinator looks at racks; fetches still do"),
    )
    yield Rule(
        INTERNAL_TOPICS,
        ADVICE,
        is_new & given(INTERNAL_TOPICS).isNotNull(),
        F.lit("has no effect on a SubscriptionPattern, which finds internal topics too"),
    )
    yield Rule(
        INSTANCE_ID,
        ADVICE,
        is_new & (trimmed(INSTANCE_ID) != ""),
        F.lit(
            "after a crash the broker refuses the newcomer (UNRELEASED_INSTANCE_ID, fatal) until "
            "the session has expired: let it start again until it is taken"
        ),
    )
