"""What Kafka's Java consumer and its broker refuse in settings, by version, and what is advised.

Every rule was tried on the clients of the versions around its limits. Rules look at columns that
``client_settings`` makes: ``version`` (``versions.version_number``), ``given`` (a map of what is
set), and for the whole-number settings ``number`` (a map, null where a text is no number).
"""

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.settings.versions import version_of

REFUSED, ADVICE = "refused", "advice"

SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
POLL_INTERVAL, POLL_RECORDS = "max.poll.interval.ms", "max.poll.records"
REQUEST, STRATEGY = "request.timeout.ms", "partition.assignment.strategy"
GROUP_ID, INSTANCE_ID = "group.id", "group.instance.id"
PROTOCOL, REMOTE_ASSIGNOR = "group.protocol", "group.remote.assignor"
BROKER_SESSION = "group.consumer.session.timeout.ms"
BROKER_HEARTBEAT = "group.consumer.heartbeat.interval.ms"

_LEAST = {
    HEARTBEAT: (0, "2.1.0"),
    POLL_INTERVAL: (1, "0.10.1"),
    POLL_RECORDS: (1, "0.10.0"),
    REQUEST: (0, "0.9.0"),
}
"""The least values that the consumer's constructor takes, and since when it looks."""
NUMBERS = [SESSION, *_LEAST, BROKER_SESSION, BROKER_HEARTBEAT]
"""Settings that are whole numbers."""
SETTINGS = [*NUMBERS, STRATEGY, GROUP_ID, INSTANCE_ID, PROTOCOL, REMOTE_ASSIGNOR, "client.rack"]
"""All that some rule looks at."""

_SINCE = {
    POLL_RECORDS: "0.10.0",
    POLL_INTERVAL: "0.10.1",
    INSTANCE_ID: "2.3.0",
    PROTOCOL: "3.7.0",
    REMOTE_ASSIGNOR: "3.7.0",
}
_PACKAGE = "org.apache.kafka.clients.consumer."
_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_EAGER = [_PACKAGE + _ASSIGNORS[name] for name in ("range", "roundrobin", "sticky")]
_STICKY = _PACKAGE + "StickyAssignor"
_COOPERATIVE = _PACKAGE + "CooperativeStickyAssignor"


class Rule(NamedTuple):
    """A rule that a client breaks where ``broken`` is true; null counts as false."""

    setting: str
    severity: str
    broken: Column
    detail: Column
    value: Column | None = None
    """What is at fault where it is not the given text, such as a default."""


def all_rules() -> list[Rule]:
    """List every rule; the order of the list has no meaning."""
    return [
        *_number_rules(),
        *_timeout_rules(),
        *_static_rules(),
        *_assignor_rules(),
        *_protocol_rules(),
        *_version_rules(),
        *_broker_rules(),
    ]


def given(setting: str) -> Column:
    """The text that a setting is set to, or null."""
    return F.try_element_at("given", F.lit(setting))


def trimmed(setting: str) -> Column:
    """The same as Kafka reads it: without blanks around it (Java's ``String.trim``)."""
    return F.regexp_replace(given(setting), r"^[\x00-\x20]+|[\x00-\x20]+\z", "")


def _number_rules() -> Iterator[Rule]:
    for setting in NUMBERS:
        is_none = given(setting).isNotNull() & _number(setting).isNull()
        detail = F.lit("not a whole number of 32 bits")
        yield Rule(setting, REFUSED, _since(_SINCE.get(setting, "0.0")) & is_none, detail)
    for setting, (least, since) in _LEAST.items():
        broken = _since(since) & (_number(setting) < least)
        yield Rule(setting, REFUSED, broken, F.lit(f"must be at least {least}"))


def _timeout_rules() -> Iterator[Rule]:
    session = F.coalesce(_number(SESSION), _default_session())
    heartbeat = F.coalesce(_number(HEARTBEAT), F.lit(3000))
    readable = _is_readable(SESSION) & _is_readable(HEARTBEAT) & ~_is_consumer_protocol()
    yield Rule(
        HEARTBEAT,
        REFUSED,
        readable & (heartbeat >= session),
        F.format_string("must be lower than session.timeout.ms, which is %d", session),
        heartbeat,
    )
    yield Rule(
        HEARTBEAT,
        ADVICE,
        readable & (heartbeat < session) & (heartbeat * 3 > session),
        F.format_string(
            "fewer than three heartbeats in a session.timeout.ms of %d; one that is lost may cost "
            "the membership",
            session,
        ),
        heartbeat,
    )
    longest = F.when(_since("2.3.0"), 1_800_000).otherwise(300_000)
    yield Rule(
        SESSION,
        REFUSED,
        ~_is_consumer_protocol() & ~_number(SESSION).between(6000, longest),
        F.format_string(
            "the broker answers INVALID_SESSION_TIMEOUT: by default a broker of this version takes "
            "6000 (group.min.session.timeout.ms) to %d (group.max.session.timeout.ms)",
            longest,
        ),
    )
    request_default = F.when(_since("0.10.1"), 305_000).otherwise(40_000)
    request = F.coalesce(_number(REQUEST), request_default)
    yield Rule(
        REQUEST,
        REFUSED,
        ~_since("2.0.0")
        & _is_readable(REQUEST)
        & _is_readable(SESSION)
        & (request >= 0)
        & (request <= session),
        F.format_string("must be greater than session.timeout.ms, which is %d", session),
        request,
    )
    poll = F.coalesce(_number(POLL_INTERVAL), F.lit(300_000))
    yield Rule(
        POLL_INTERVAL,
        ADVICE,
        _since("0.10.1")
        & _is_readable(POLL_INTERVAL)
        & _is_readable(SESSION)
        & ~_is_consumer_protocol()
        & (poll >= 1)
        & (poll < session),
        F.format_string(
            "lower than session.timeout.ms, which is %d; the Java client takes it, clients on "
            "librdkafka refuse it",
            session,
        ),
        poll,
    )


def _static_rules() -> Iterator[Rule]:
    instance = trimmed(INSTANCE_ID)
    allowed = r"^[A-Za-z0-9._-]{1,249}\z"
    broken = ~instance.rlike(allowed) | instance.isin(".", "..")
    yield Rule(
        INSTANCE_ID,
        REFUSED,
        _since(_SINCE[INSTANCE_ID]) & broken,
        F.lit('must be 1 to 249 of the characters A-Z, a-z, 0-9, ".", "_", "-"; not "." or ".."'),
    )
    yield Rule(
        INSTANCE_ID,
        REFUSED,
        _since(_SINCE[INSTANCE_ID]) & (F.col("same_instance") > 1),
        F.format_string(
            'group "%s" has %d clients of this id: the broker fences all but the last to join',
            trimmed(GROUP_ID),
            F.col("same_instance"),
        ),
    )
    is_blank = trimmed(GROUP_ID) == ""
    yield Rule(GROUP_ID, REFUSED, _since("4.0.0") & is_blank, F.lit("must not be empty or blank"))
    yield Rule(
        GROUP_ID,
        ADVICE,
        ~_since("4.0.0") & is_blank,
        F.lit("empty or blank: clients from 4.0 on refuse it"),
    )


def _assignor_rules() -> Iterator[Rule]:
    text = trimmed(STRATEGY)
    names = F.when(text == "", F.array().cast("array<string>")).otherwise(F.split(text, r"\s*,\s*"))
    is_classic = ~_is_consumer_protocol()

    def has(*classes: str) -> Column:
        return F.arrays_overlap(names, F.array(*(F.lit(name) for name in classes)))

    yield Rule(
        STRATEGY,
        REFUSED,
        # Clients from 4.2 on drop the second one with a warning (KIP-1161).
        _since("3.1.0")
        & ~_since("4.2.0")
        & is_classic
        & (F.size(F.array_distinct(names)) < F.size(names)),
        F.lit("an assignor is there twice"),
    )
    yield Rule(
        STRATEGY,
        REFUSED,
        is_classic & F.array_contains(names, ""),
        F.lit("an entry of the list is empty"),
    )
    for name, simple in _ASSIGNORS.items():
        yield Rule(
            STRATEGY,
            REFUSED,
            is_classic & F.array_contains(names, name),
            F.lit(f'"{name}" is no class: the setting takes {_PACKAGE}{simple}'),
        )
    for name, since in ((_STICKY, "0.11.0"), (_COOPERATIVE, "2.4.0")):
        yield Rule(
            STRATEGY,
            REFUSED,
            ~_since(since) & has(name),
            F.lit(f"the client has no {name} before {since}"),
        )
    yield Rule(
        STRATEGY,
        ADVICE,
        is_classic & has(_COOPERATIVE) & has(*_EAGER),
        F.lit(
            "eager: a consumer is cooperative when all its assignors are; keep the eager one only "
            "while members are changed over"
        ),
    )
    rack = F.coalesce(trimmed("client.rack"), F.lit(""))
    yield Rule(
        STRATEGY,
        ADVICE,
        _since("3.5.0") & ~_since("3.7.1") & has(_STICKY, _COOPERATIVE) & (rack != ""),
        F.lit("with client.rack the sticky assignors of 3.5.0 to 3.7.0 can throw (KAFKA-15170)"),
    )
    yield Rule(
        STRATEGY,
        ADVICE,
        _since("2.4.0") & ~_since("3.0.0") & has(_STICKY, _COOPERATIVE),
        F.lit(
            "the sticky assignors of 2.4 to 2.8 can throw: some partitions are unassigned but all "
            "consumers are at maximum capacity"
        ),
    )


def _protocol_rules() -> Iterator[Rule]:
    known = F.lower(trimmed(PROTOCOL)).isin("classic", "consumer")
    since = _since(_SINCE[PROTOCOL])
    yield Rule(PROTOCOL, REFUSED, since & ~known, F.lit("must be classic or consumer"))
    for setting in (SESSION, HEARTBEAT, STRATEGY):
        is_set = _is_consumer_protocol() & given(setting).isNotNull()
        yield Rule(
            setting,
            REFUSED,
            _since("4.0.0") & is_set,
            F.lit("cannot be set with group.protocol=consumer"),
        )
        yield Rule(
            setting,
            ADVICE,
            ~_since("4.0.0") & is_set,
            F.lit("has no effect with group.protocol=consumer; from 4.0 on it is refused"),
        )
    yield Rule(
        REMOTE_ASSIGNOR,
        REFUSED,
        since
        & given(REMOTE_ASSIGNOR).isNotNull()
        & (known | given(PROTOCOL).isNull())
        & ~_is_consumer_protocol(),
        F.lit("cannot be set with group.protocol=classic, which is the default"),
    )


def _version_rules() -> Iterator[Rule]:
    for setting, since in _SINCE.items():
        yield Rule(
            setting,
            ADVICE,
            ~_since(since) & given(setting).isNotNull(),
            F.lit(f"unknown to clients before {since}, which ignore it"),
        )


def _broker_rules() -> Iterator[Rule]:
    """Settings of a broker for groups of the new protocol (KIP-848), by default limits."""
    for setting, least, most in (
        (BROKER_SESSION, 45_000, 60_000),
        (BROKER_HEARTBEAT, 5_000, 15_000),
    ):
        yield Rule(
            setting,
            REFUSED,
            ~_number(setting).between(least, most),
            F.lit(f"outside the broker's own limits, by default {least} to {most}"),
        )
    session = F.coalesce(_number(BROKER_SESSION), F.lit(45_000))
    heartbeat = F.coalesce(_number(BROKER_HEARTBEAT), F.lit(5_000))
    is_broker = given(BROKER_SESSION).isNotNull() | given(BROKER_HEARTBEAT).isNotNull()
    yield Rule(
        BROKER_HEARTBEAT,
        REFUSED,
        is_broker & _since("4.0.0") & (heartbeat >= session),
        F.format_string("must be lower than %s, which is %d", F.lit(BROKER_SESSION), session),
        heartbeat,
    )


def _number(setting: str) -> Column:
    return F.try_element_at("number", F.lit(setting))


def _is_readable(setting: str) -> Column:
    """Not set, or set to a number."""
    return given(setting).isNull() | _number(setting).isNotNull()


def _default_session() -> Column:
    return F.when(_since("3.0.0"), 45_000).when(_since("0.10.1"), 10_000).otherwise(30_000)


def _since(version: str) -> Column:
    return F.col("version") >= version_of(version)


def _is_consumer_protocol() -> Column:
    """Whether the client uses KIP-848's protocol; before 3.7 there is no such setting."""
    is_set = F.coalesce(F.lower(trimmed(PROTOCOL)) == "consumer", F.lit(False))
    return _since(_SINCE[PROTOCOL]) & is_set
