"""Settings of consumers in the files of frameworks, which put prefixes before Kafka's names."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kassign_spark.settings.broker_rules import BROKER_SETTINGS
from kassign_spark.settings.known_names import (
    CONSUMER_NAMES,
    is_of_another_family,
    nearest_name,
    squash_name,
)

_KNOWN = CONSUMER_NAMES.union(BROKER_SETTINGS)
_OF_GROUPS = frozenset(name for name in BROKER_SETTINGS if name.startswith("consumer."))
"""Settings of a group, which read like those of Connect's and Streams' consumers."""
_PREFIX_END = re.compile(
    r"(?i)(?:^|(?<=\.))(?:kafka|consumers\.[^.]+|consumer|consumer-?properties|properties|"
    r"additional-?properties|configuration|override|smallrye-kafka|bindings\.[^.]+|"
    r"incoming\.[^.]+)\.(?=.)"
)
_OTHERS = re.compile(
    r"(?i)(?:.*\.)?(?:producers?|admin|outgoing|template|listener)\..*|spring\.kafka\.(?:ssl|jaas)\..*"
)
_OWN_NAMES = re.compile(
    r"(?i)spring\.kafka\.(?:consumer\.)?|camel\.component\.kafka\.(?:configuration\.)?|"
    r"kafka\.consumers\.[^.]+\.|spring\.cloud\.stream\.bindings\.[^.]+\."
)
"""Before names that a framework writes in a way of its own, as ``auto-offset-reset``."""
_SPRING_TEXT = """
auto-commit-interval auto-offset-reset bootstrap-servers client-id enable-auto-commit
fetch-max-wait fetch-min-size group-id heartbeat-interval isolation-level key-deserializer
max-poll-interval max-poll-records value-deserializer
"""
_SPRINGS = _SPRING_TEXT.split()
_OWN = {squash_name(name): name for name in CONSUMER_NAMES} | {
    "autocommitinterval": "auto.commit.interval.ms",
    "fetchmaxwait": "fetch.max.wait.ms",
    "fetchminsize": "fetch.min.bytes",
    "heartbeatinterval": "heartbeat.interval.ms",
    "maxpollinterval": "max.poll.interval.ms",
}
_FRAMEWORK = re.compile(r"(?i)(?:spring|quarkus|mp|camel|kafka|micronaut|flink|table)\..*")
"""Before keys that are the framework's own business where they are none of Kafka's."""
_SHARED = {"spring.kafka", "kafka", "app", "application", "default", "properties"}
"""Before ``.consumer.`` where all consumers of a file are meant."""
_OF_CONNECT = re.compile(
    r"(?:key|value)\.converter|plugin\.path|connector\.class|(?:offset|config|status)\.storage\..*"
)
_UNIT_MS: dict[str, float] = {
    "ns": 1e-6,
    "us": 1e-3,
    "": 1,
    "ms": 1,
    "s": 1e3,
    "m": 6e4,
    "h": 3.6e6,
    "d": 8.64e7,
}
_UNIT_BYTES: dict[str, float] = {
    "": 1,
    "b": 1,
    "kb": 1 << 10,
    "mb": 1 << 20,
    "gb": 1 << 30,
    "tb": 1 << 40,
}


class Misspelled(NamedTuple):
    """A key that no client knows."""

    key: str
    nearest: str | None
    """The closest known name in the notation of the file; null: none is close."""


class ClientFile(NamedTuple):
    """The content of a file."""

    clients: dict[str, dict[str, str]]
    """Settings by Kafka's names, of each consumer in it; the name of one that is alone is empty."""
    unknown: list[Misspelled]


class _KnownPrefix(NamedTuple):
    role: str
    prefix: str
    name: str
    value: str


def read_through(properties: Mapping[str, str]) -> ClientFile:
    """Find the settings of consumers in a file, whatever prefixes are before them.

    Args:
        properties: of a file, by key.

    Returns:
        The settings; of no client: there is none that Kafka's client knows.
    """
    has_providers = "config.providers" in properties
    of_groups = frozenset() if _has_clients_prefix(properties) else _OF_GROUPS
    settings: list[_KnownPrefix] = []
    unknown: list[Misspelled] = []
    for key, text in properties.items():
        rule = _find_known(key, text, of_groups)
        if rule is None:
            unknown += _find_misspelled(key)
        elif not ("${" in text and (has_providers or rule.prefix)):
            # What stands for another value is put in later.
            settings.append(rule)
        else:
            settings.append(rule._replace(name="", value=""))
    is_connect = any(map(_OF_CONNECT.fullmatch, properties))
    return ClientFile(_clients(settings, is_connect=is_connect), unknown)


def _has_clients_prefix(properties: Iterable[str]) -> bool:
    """Return whether `consumer.` precedes settings of clients, not the beginning of a group's."""
    return any(
        _OF_CONNECT.fullmatch(key)
        or key == "application.id"
        or (
            key.startswith("consumer.")
            and key not in _OF_GROUPS
            and key.removeprefix("consumer.") in CONSUMER_NAMES
        )
        for key in properties
    )


def _find_known(key: str, value: str, of_groups: frozenset[str]) -> _KnownPrefix | None:
    if key in CONSUMER_NAMES or key in of_groups or key in _KNOWN - _OF_GROUPS:
        return _KnownPrefix("", "", key, value)
    key, value = _plain(key, value)
    role, key = _profile(key)
    for prefix, name in _cuts(key):
        if name in CONSUMER_NAMES and not _is_others(prefix):
            return _KnownPrefix(role + _role(prefix), prefix, name, value)
        is_own = _OWN_NAMES.fullmatch(prefix) is not None and not _is_others(prefix)
        target = _OWN.get(squash_name(name)) if is_own else None
        if prefix.startswith("spring.cloud") and name == "group":
            target = "group.id"
        if target is not None:
            return _KnownPrefix(
                role + _role(prefix), prefix, target, _write_as_kafka(target, value)
            )
    return None


def _find_misspelled(key: str) -> Iterator[Misspelled]:
    """Return the settings that an unknown key may stand for, unless it is another program's."""
    plain = _profile(_plain(key, "")[0])[1]
    if _is_others(plain):
        return
    for prefix, name in [("", plain), *_cuts(plain)]:
        nearest = nearest_name(name, _SPRINGS if _OWN_NAMES.fullmatch(prefix) else ())
        if nearest is not None:
            yield Misspelled(key, prefix + nearest)
            return
    if not (is_of_another_family(plain) or _FRAMEWORK.fullmatch(plain)):
        yield Misspelled(key, None)


def _cuts(key: str) -> Iterator[tuple[str, str]]:
    """Cut a key behind each of its prefixes, the shortest first."""
    for end in _PREFIX_END.finditer(key):
        yield key[: end.end()], key[end.end() :]


def _is_others(prefix: str) -> bool:
    return _OTHERS.fullmatch(prefix) is not None


def _plain(key: str, value: str) -> tuple[str, str]:
    """Remove quotes, as in Flink's SQL, and brackets, as in Spring's maps."""
    if key[:1] in ("'", '"'):
        quote = key[0]
        key = key.strip(quote)
        value = value.strip().rstrip(",").strip().strip(quote)
    return re.sub(r"\.?\[([^\]]+)\]", r".\1", key).replace('"', ""), value


def _profile(key: str) -> tuple[str, str]:
    """Cut off the profile of Quarkus, ``%dev.``."""
    match = re.fullmatch(r"(%[\w,-]+\.)(.+)", key)
    return (match[1], match[2]) if match else ("", key)


def _role(prefix: str) -> str:
    """Return which of several consumers in a file is meant; empty: all."""
    match = re.search(r"(?i)(?:incoming|bindings|consumers)\.([^.]+)\.", prefix)
    if match is None:
        match = re.match(r"(?i)([^.]+)\.consumer\.", prefix)
    return "" if match is None or match[1].lower() in _SHARED else match[1]


def _clients(settings: list[_KnownPrefix], *, is_connect: bool) -> dict[str, dict[str, str]]:
    """Collect the settings of each consumer; a longer prefix takes precedence."""
    if is_connect:
        # Consumers of connectors have nothing of the worker's own membership.
        settings = [
            setting if setting.prefix else setting._replace(role="worker") for setting in settings
        ]
    roles = [*dict.fromkeys(setting.role for setting in settings)]
    if len(roles) > 1 and "" in roles and not is_connect:
        roles.remove("")  # what all have
    clients: dict[str, dict[str, str]] = {}
    for role in roles:
        levels = {role} if is_connect else {"", role}
        by_level = sorted(
            (setting for setting in settings if setting.role in levels),
            key=lambda setting: (setting.role != "", len(setting.prefix)),
        )
        client = role if len(roles) > 1 else ""
        clients[client] = {each.name: each.value for each in by_level if each.name}
    return clients


def _write_as_kafka(name: str, value: str) -> str:
    """Write a value that a framework reads itself as Kafka does: ``10s`` is 10000."""
    text = value.strip().lower()
    if name == "isolation.level":
        return text.replace("-", "_")
    by_unit: dict[str, dict[str, float]] = {"ms": _UNIT_MS, "bytes": _UNIT_BYTES}
    units = by_unit.get(name.rpartition(".")[2], {})
    amount = re.fullmatch(r"(?:pt)?(\d{1,12})([a-z]{0,2})", text)
    if amount is None or amount[2] not in units:
        return value
    return str(int(int(amount[1]) * units[amount[2]]))
