"""Rules for client settings: what Kafka's Java consumer and its broker refuse, and advice."""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.conforming import CLIENT_ASSIGNORS
from kassign_spark.settings.setting_rules import (
    Rule,
    no_number,
    number,
    recommendation,
    refusal,
    setting_value,
    since,
    trim_setting,
)

SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
POLL_INTERVAL, POLL_RECORDS = "max.poll.interval.ms", "max.poll.records"
REQUEST, STRATEGY = "request.timeout.ms", "partition.assignment.strategy"
GROUP_ID, INSTANCE_ID = "group.id", "group.instance.id"
PROTOCOL, REMOTE_ASSIGNOR = "group.protocol", "group.remote.assignor"
_AUTO_COMMIT, _MECHANISM = "enable.auto.commit", "sasl.mechanism"
_SECURITY = "security.protocol"
_INTERNAL_TOPICS = "exclude.internal.topics"
_SHARE_SETTINGS = ("share.acknowledgement.mode", "share.acquire.mode")

_LEAST = {
    HEARTBEAT: (0, "2.1.0"),
    POLL_INTERVAL: (1, "0.10.1"),
    POLL_RECORDS: (1, "0.10.0"),
    REQUEST: (0, "0.9.0"),
}
"""The least values that the consumer's constructor takes, and since when it looks."""
CLIENT_NUMBERS = [SESSION, *_LEAST]
"""Settings of clients that are whole numbers."""
CLIENT_SETTINGS = [
    *CLIENT_NUMBERS,
    STRATEGY,
    GROUP_ID,
    INSTANCE_ID,
    PROTOCOL,
    REMOTE_ASSIGNOR,
    _AUTO_COMMIT,
    _MECHANISM,
    _SECURITY,
    "client.rack",
    _INTERNAL_TOPICS,
    *_SHARE_SETTINGS,
]
"""All that some rule of clients looks at."""

_SINCE = {
    POLL_RECORDS: "0.10.0",
    POLL_INTERVAL: "0.10.1",
    INSTANCE_ID: "2.3.0",
    PROTOCOL: "3.7.0",
    REMOTE_ASSIGNOR: "3.7.0",
}
"""The first version of the client that knows a setting."""
_EAGER = [CLIENT_ASSIGNORS[name] for name in ("range", "roundrobin", "sticky")]
_STICKY, _COOPERATIVE = CLIENT_ASSIGNORS["sticky"], CLIENT_ASSIGNORS["cooperative-sticky"]


def client_rules() -> list[Rule]:
    """List every rule of clients; the order of the list has no meaning."""
    return [
        *_number_rules(),
        *_timeout_rules(),
        *_static_rules(),
        *_assignor_rules(),
        *_version_rules(),
        *_protocol_rules(),
    ]


def _number_rules() -> Iterator[Rule]:
    for setting in CLIENT_NUMBERS:
        yield no_number(setting, since(_SINCE.get(setting, "0.0")))
    for setting, (least, version) in _LEAST.items():
        broken = since(version) & (number(setting) < least)
        yield refusal(setting, broken, f"must be at least {least}")


def _timeout_rules() -> Iterator[Rule]:
    default = F.when(since("3.0.0"), 45_000).when(since("0.10.1"), 10_000).otherwise(30_000)
    session = F.coalesce(number(SESSION), default)
    heartbeat = F.coalesce(number(HEARTBEAT), F.lit(3000))
    readable = _is_readable(SESSION) & _is_readable(HEARTBEAT) & ~_is_consumer_protocol()
    yield refusal(
        HEARTBEAT,
        readable & (heartbeat >= session),
        F.format_string("must be lower than session.timeout.ms, which is %d", session),
        heartbeat,
    )
    yield recommendation(
        HEARTBEAT,
        readable & (heartbeat < session) & (heartbeat * 3 > session),
        F.format_string(
            "fewer than three heartbeats in a session.timeout.ms of %d; one that is lost may cost "
            "the membership",
            session,
        ),
        heartbeat,
    )
    longest = F.when(since("2.3.0"), 1_800_000).otherwise(300_000)
    yield refusal(
        SESSION,
        ~_is_consumer_protocol() & ~number(SESSION).between(6000, longest),
        F.format_string(
            "the broker answers INVALID_SESSION_TIMEOUT: by default a broker of this version takes "
            "6000 (group.min.session.timeout.ms) to %d (group.max.session.timeout.ms)",
            longest,
        ),
    )
    request_default = F.when(since("0.10.1"), 305_000).otherwise(40_000)
    request = F.coalesce(number(REQUEST), request_default)
    readable = _is_readable(REQUEST) & _is_readable(SESSION)
    yield refusal(
        REQUEST,
        ~since("2.0.0") & readable & (request >= 0) & (request <= session),
        F.format_string("must be greater than session.timeout.ms, which is %d", session),
        request,
    )
    poll = F.coalesce(number(POLL_INTERVAL), F.lit(300_000))
    readable = _is_readable(POLL_INTERVAL) & _is_readable(SESSION) & ~_is_consumer_protocol()
    yield recommendation(
        POLL_INTERVAL,
        since("0.10.1") & readable & (poll >= 1) & (poll < session),
        F.format_string(
            "lower than session.timeout.ms, which is %d; the Java client takes it, clients on "
            "librdkafka refuse it",
            session,
        ),
        poll,
    )


def _static_rules() -> Iterator[Rule]:
    instance, knows_instance = trim_setting(INSTANCE_ID), since(_SINCE[INSTANCE_ID])
    broken = ~instance.rlike(r"^[A-Za-z0-9._-]{1,249}\z") | instance.isin(".", "..")
    yield refusal(
        INSTANCE_ID,
        knows_instance & broken,
        'must be 1 to 249 of the characters A-Z, a-z, 0-9, ".", "_", "-"; not "." or ".."',
    )
    yield refusal(
        INSTANCE_ID,
        knows_instance & (F.col("same_instance") > 1),
        F.format_string(
            'group "%s" has %d clients of this id: the broker fences all but the last to join',
            trim_setting(GROUP_ID),
            F.col("same_instance"),
        ),
    )
    yield recommendation(
        STRATEGY,
        F.col("has_other_library"),
        F.format_string(
            'group "%s" has clients of Java and of librdkafka (range, roundrobin, '
            "cooperative-sticky): whichever leads assigns by its own rules; let one library run in "
            "all clients",
            trim_setting(GROUP_ID),
        ),
    )
    is_blank = trim_setting(GROUP_ID) == ""
    yield refusal(GROUP_ID, since("4.0.0") & is_blank, "must not be empty or blank")
    advice = "empty or blank: clients from 4.0 on refuse it"
    yield recommendation(GROUP_ID, ~since("4.0.0") & is_blank, advice)
    yield recommendation(
        _AUTO_COMMIT,
        since("2.2.0")
        & (F.lower(trim_setting(_AUTO_COMMIT)) == "true")
        & setting_value(GROUP_ID).isNull(),
        "the client refuses it unless the program gives it a group.id",
    )
    yield refusal(
        _MECHANISM,
        (trim_setting(_MECHANISM) == "") & F.upper(trim_setting(_SECURITY)).startswith("SASL_"),
        "must not be empty where security.protocol is one with SASL",
    )


def _assignor_rules() -> Iterator[Rule]:
    text = trim_setting(STRATEGY)
    names = F.when(text == "", F.array().cast("array<string>")).otherwise(F.split(text, r"\s*,\s*"))
    is_classic = ~_is_consumer_protocol()

    def has(*classes: str) -> Column:
        return F.arrays_overlap(names, F.array(*(F.lit(name) for name in classes)))

    # Clients from 4.2 on drop the second one with a warning (KIP-1161).
    is_twice = F.size(F.array_distinct(names)) < F.size(names)
    refuses_twice = since("3.1.0") & ~since("4.2.0") & is_classic
    yield refusal(STRATEGY, refuses_twice & is_twice, "an assignor appears twice")
    has_empty = F.array_contains(names, "")
    yield refusal(STRATEGY, is_classic & has_empty, "an entry of the list is empty")
    for name, class_name in CLIENT_ASSIGNORS.items():
        yield refusal(
            STRATEGY,
            is_classic & F.array_contains(names, name),
            f'"{name}" is not a class: the setting takes {class_name}',
        )
    # A class of one's own is on the client's path or not; of Kafka's package there are these four.
    unknown = F.filter(
        names,
        lambda name: (
            name.rlike(r"^(org\.apache\.kafka\.clients\.consumer\.)?[^.]+\z")
            & ~name.isin(*CLIENT_ASSIGNORS, *CLIENT_ASSIGNORS.values())
        ),
    )
    detail = f"is not a class that Kafka has: those are {', '.join(CLIENT_ASSIGNORS.values())}"
    yield refusal(STRATEGY, is_classic & (F.size(unknown) > 0), detail)
    for name, version in ((_STICKY, "0.11.0"), (_COOPERATIVE, "2.4.0")):
        detail = f"the client has no {name} before {version}"
        yield refusal(STRATEGY, ~since(version) & has(name), detail)
    yield recommendation(
        STRATEGY,
        is_classic & has(_COOPERATIVE) & has(*_EAGER),
        "eager: a consumer is cooperative when all its assignors are; keep the eager one only "
        "while members are changed over",
    )
    rack = F.coalesce(trim_setting("client.rack"), F.lit(""))
    is_sticky = has(_STICKY, _COOPERATIVE)
    yield recommendation(
        STRATEGY,
        since("3.5.0") & ~since("3.7.1") & is_sticky & (rack != ""),
        "with client.rack the sticky assignors of 3.5.0 to 3.7.0 can throw (KAFKA-15170)",
    )
    yield recommendation(
        STRATEGY,
        since("2.4.0") & ~since("3.0.0") & is_sticky,
        "the sticky assignors of 2.4 to 2.8 can throw: some partitions are unassigned but all "
        "consumers are at maximum capacity",
    )


def _version_rules() -> Iterator[Rule]:
    for setting, version in _SINCE.items():
        is_unknown = ~since(version) & setting_value(setting).isNotNull()
        detail = f"unknown to clients before {version}, which ignore it"
        yield recommendation(setting, is_unknown, detail)


def _protocol_rules() -> Iterator[Rule]:
    """Return the rules for settings under each `group.protocol` (KIP-848)."""
    is_protocol = F.lower(trim_setting(PROTOCOL)).isin("classic", "consumer")
    has_setting, is_new = since(_SINCE[PROTOCOL]), _is_consumer_protocol()
    yield refusal(PROTOCOL, has_setting & ~is_protocol, "must be classic or consumer")
    yield recommendation(
        PROTOCOL,
        is_new & ~since("4.0.0"),
        "consumer is a preview in clients before 4.0: not for production",
    )
    for setting in (SESSION, HEARTBEAT, STRATEGY):
        is_set = is_new & (trim_setting(setting) != "")
        detail = "cannot be set with group.protocol=consumer"
        yield refusal(setting, since("4.0.0") & is_set, detail)
        advice = "has no effect with group.protocol=consumer; from 4.0 on it is refused"
        yield recommendation(setting, ~since("4.0.0") & is_set, advice)
    yield refusal(
        REMOTE_ASSIGNOR,
        has_setting
        & (trim_setting(REMOTE_ASSIGNOR) != "")
        & (is_protocol | setting_value(PROTOCOL).isNull())
        & ~is_new,
        "cannot be set with group.protocol=classic, which is the default",
    )
    for setting in _SHARE_SETTINGS:
        yield refusal(
            setting,
            since("4.1.0") & setting_value(setting).isNotNull(),
            "is a setting of share consumers, which a KafkaConsumer refuses",
        )
    # What a client of the new protocol may set, to little effect or with a surprise.
    yield recommendation(
        REMOTE_ASSIGNOR,
        is_new & ~setting_value(REMOTE_ASSIGNOR).isin("uniform", "range"),
        "only the broker sees whether it knows it: unless it is one of its "
        "group.consumer.assignors, the consumer ends with UNSUPPORTED_ASSIGNOR",
    )
    yield recommendation(
        "client.rack",
        is_new & (trim_setting("client.rack") != ""),
        "neither assignor of the coordinator looks at racks; fetches still do",
    )
    yield recommendation(
        _INTERNAL_TOPICS,
        is_new & setting_value(_INTERNAL_TOPICS).isNotNull(),
        "has no effect on a SubscriptionPattern, which finds internal topics too",
    )
    yield recommendation(
        INSTANCE_ID,
        is_new & (trim_setting(INSTANCE_ID) != ""),
        "after a crash the broker refuses the newcomer (UNRELEASED_INSTANCE_ID, fatal) until "
        "the session has expired: let it start again until it is taken",
    )


def _is_readable(setting: str) -> Column:
    """Return whether a setting is not set, or set to a number."""
    return setting_value(setting).isNull() | number(setting).isNotNull()


def _is_consumer_protocol() -> Column:
    """Return whether the client uses KIP-848's protocol; before 3.7 there is no such setting."""
    is_set = F.coalesce(F.lower(trim_setting(PROTOCOL)) == "consumer", F.lit(False))
    return since(_SINCE[PROTOCOL]) & is_set
