"""Settings of brokers and groups for the new protocol (KIP-848), and what is refused or advised.

By the limits that a broker has by default; of a group by `kafka-configs --entity-type groups`.
"""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

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

_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
_INTERVAL = "consumer.assignment.interval.ms"
_OF_BROKER = "group."
"""Before the name of a group's setting: that of the broker's default."""
_LIMITS = {
    _SESSION: (45_000, 60_000, "4.0.0"),
    _HEARTBEAT: (5_000, 15_000, "4.0.0"),
    _INTERVAL: (0, 15_000, "4.3.0"),
}
"""The least and the greatest value where the broker sets no other limits, and since when."""
_LEAST_OF_ALL = {_SESSION: 1, _HEARTBEAT: 1, _INTERVAL: 0}
"""The least value that a limit must have as well."""
_DEFAULTS = {_SESSION: 45_000, _HEARTBEAT: 5_000, _INTERVAL: 1_000}
_MAX_SIZE, _THREADS = "group.consumer.max.size", "group.coordinator.background.threads"
_REFRESH = "group.consumer.regex.refresh.interval.ms"
_ASSIGNORS, _POLICY = "group.consumer.assignors", "group.consumer.migration.policy"
_PROTOCOLS = "group.coordinator.rebalance.protocols"
_OFFLOAD = "consumer.assignor.offload.enable"
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
_KNOWN_PROTOCOLS = ("classic", "consumer", "share", "streams")


def _limit(end: str, name: str) -> str:
    """Return the broker's setting that limits one of a group; ``end``: `min` or `max`."""
    return name.replace("consumer.", f"{_OF_BROKER}consumer.{end}.", 1)


_TIMES = [before + name for before in ("", _OF_BROKER) for name in _LIMITS]
_MIN_MAX = [_limit(end, name) for name in _LIMITS for end in ("min", "max")]
BROKER_NUMBERS = [*_TIMES, *_MIN_MAX, _MAX_SIZE, _THREADS, _REFRESH]
"""Settings of brokers and groups that are whole numbers."""
BROKER_SETTINGS = [
    *BROKER_NUMBERS,
    _ASSIGNORS,
    _POLICY,
    _PROTOCOLS,
    _OFFLOAD,
    _OF_BROKER + _OFFLOAD,
]
"""All that some rule of brokers and groups looks at."""


def broker_rules() -> list[Rule]:
    """List every rule of brokers and groups; the order of the list has no meaning."""
    return [
        *(no_number(setting, F.lit(True)) for setting in BROKER_NUMBERS),
        *_time_rules(""),
        *_time_rules(_OF_BROKER),
        *_limit_rules(),
        *(
            refusal(setting, number(setting) < least, f"must be at least {least}")
            for setting, least in ((_MAX_SIZE, 1), (_THREADS, 1), (_REFRESH, 10_000))
        ),
        *_name_rules(),
    ]


def _time_rules(before: str) -> Iterator[Rule]:
    for name, (_, _, version) in _LIMITS.items():
        setting, (least, most) = before + name, _limits(name)
        yield refusal(
            setting,
            ~number(setting).between(least, most) | (number(setting) < _LEAST_OF_ALL[name]),
            F.format_string("outside the broker's own limits, %d to %d", least, most),
        )
        yield _unknown_before(version, setting)
    session, heartbeat = (
        F.coalesce(number(before + name), F.lit(_DEFAULTS[name])) for name in (_SESSION, _HEARTBEAT)
    )
    is_set = (
        setting_value(before + _SESSION).isNotNull()
        | setting_value(before + _HEARTBEAT).isNotNull()
    )
    yield refusal(
        before + _HEARTBEAT,
        is_set & since("4.0.0") & (heartbeat >= session),
        F.format_string(f"must be lower than {before}{_SESSION}, which is %d", session),
        heartbeat,
    )


def _limits(name: str) -> tuple[Column, Column]:
    """Return the bounds of a time: the broker's, or its defaults."""
    least, most, _ = _LIMITS[name]
    return (
        F.coalesce(number(_limit("min", name)), F.lit(least)),
        F.coalesce(number(_limit("max", name)), F.lit(most)),
    )


def _limit_rules() -> Iterator[Rule]:
    for name, (_, _, version) in _LIMITS.items():
        least, most = _limits(name)
        # The broker's default is not moved by a limit that leaves it out.
        time = F.coalesce(number(_OF_BROKER + name), F.lit(_DEFAULTS[name]))
        least_of_all = _LEAST_OF_ALL[name]
        for end, is_left_out in (("min", time < least), ("max", time > most)):
            limit = _limit(end, name)
            too_low = number(limit) < least_of_all
            yield refusal(limit, too_low, f"must be at least {least_of_all}")
            yield refusal(
                limit,
                setting_value(_OF_BROKER + name).isNull()
                & setting_value(limit).isNotNull()
                & is_left_out,
                F.format_string(f"leaves out {_OF_BROKER}{name}, which is %d", time),
            )
            yield _unknown_before(version, limit)


def _unknown_before(version: str, setting: str) -> Rule:
    is_unknown = ~since(version) & setting_value(setting).isNotNull()
    return recommendation(setting, is_unknown, f"unknown to brokers before {version}")


def _name_rules() -> Iterator[Rule]:
    policy = F.lower(trim_setting(_POLICY))
    yield refusal(_POLICY, ~policy.isin(*_POLICIES), f"must be one of {', '.join(_POLICIES)}")
    yield recommendation(
        _POLICY,
        policy == "upgrade",
        "when the last new member of a mixed group leaves, its partitions stay unread until "
        "somebody joins, and nobody can go back online; bidirectional has neither",
    )
    assignors = _list(_ASSIGNORS)
    has_empty = F.array_contains(assignors, "")
    yield refusal(_ASSIGNORS, has_empty, "needs at least one assignor, none of them empty")
    is_twice = F.size(F.array_distinct(assignors)) < F.size(assignors)
    yield recommendation(_ASSIGNORS, is_twice, "an assignor appears twice; it counts once")
    class_names = F.filter(
        assignors, lambda name: ~name.isin("uniform", "range", "") & ~name.contains(".")
    )
    yield refusal(_ASSIGNORS, F.size(class_names) > 0, "takes uniform, range and names of classes")
    protocols = _list(_PROTOCOLS)
    known = F.array(*(F.lit(name) for name in _KNOWN_PROTOCOLS))
    yield refusal(
        _PROTOCOLS,
        F.size(F.array_except(protocols, known)) > 0,
        f"takes {', '.join(_KNOWN_PROTOCOLS)}, in small letters",
    )
    yield recommendation(
        _PROTOCOLS,
        ~F.array_contains(protocols, "consumer"),
        "without consumer, clients of the new protocol get UNSUPPORTED_VERSION",
    )
    for setting in (_OFFLOAD, _OF_BROKER + _OFFLOAD):
        is_flag = F.lower(trim_setting(setting)).isin("true", "false")
        yield refusal(setting, ~is_flag, "must be true or false")
        yield recommendation(
            setting, setting_value(setting).isNotNull(), "nothing reads it yet, as of 4.4"
        )


def _list(setting: str) -> Column:
    return F.split(trim_setting(setting), r"\s*,\s*")
