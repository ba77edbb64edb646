"""The values that ``ConsumerConfig`` accepts: types, ranges and choices, by version.

Settings whose values ``client_rules`` looks at have no line here.
"""

import json
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.settings.client_versions import version_of
from kassign_spark.settings.setting_rules import BLANKS_AROUND, HARMLESS_NUMBER, REFUSED

_WHOLE = "[+-]?[0-9]{1,19}"
_DOUBLE = r"[+-]?([0-9]{1,20}\.?[0-9]{0,18}|\.[0-9]{1,18})([eE][+-]?[0-9]{1,2})?[dDfF]?"
_DURATION = r"P(?=.)(\+?[0-9]+D)?(T(?=.)(\+?[0-9]+H)?(\+?[0-9]+M)?(\+?[0-9]+([.,][0-9]{0,9})?S)?)?"
_WORD = r"[\p{L}_$][\p{L}\p{N}_$]*"
_BITS = {"short": 16, "int": 32, "long": 64}
_NEWEST = "9999.0"

_NUMBERS = """
auto.commit.interval.ms int 0
bootstrap.resolve.timeout.ms long 0
connections.max.idle.ms long
default.api.timeout.ms int 0
fetch.max.bytes int 0
fetch.max.wait.ms int 0
fetch.min.bytes int 0
max.partition.fetch.bytes int 0
metadata.max.age.ms long 0
metadata.recovery.rebootstrap.trigger.ms long 0
metrics.num.samples int 1
metrics.sample.window.ms long 0
receive.buffer.bytes int -1
reconnect.backoff.max.ms long 0
reconnect.backoff.ms long 0
retry.backoff.max.ms long 0
retry.backoff.ms long 0
sasl.kerberos.min.time.before.relogin long
sasl.kerberos.ticket.renew.jitter double
sasl.kerberos.ticket.renew.window.factor double
sasl.login.connect.timeout.ms int
sasl.login.read.timeout.ms int
sasl.login.refresh.buffer.seconds short 0 3600
sasl.login.refresh.min.period.seconds short 0 900
sasl.login.refresh.window.factor double 0.5 1.0
sasl.login.refresh.window.jitter double 0.0 0.25
sasl.login.retry.backoff.max.ms long
sasl.login.retry.backoff.ms long
sasl.oauthbearer.assertion.claim.exp.seconds int 0 86400
sasl.oauthbearer.assertion.claim.nbf.seconds int 0 3600
sasl.oauthbearer.clock.skew.seconds int
sasl.oauthbearer.jwks.endpoint.refresh.ms long
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long
send.buffer.bytes int -1
socket.connection.setup.timeout.max.ms long
socket.connection.setup.timeout.ms long
"""
"""Settings, types, and the least and the greatest values."""
_FLAGS = """
allow.auto.create.topics auto.include.jmx.reporter check.crcs enable.auto.commit enable.metrics.push
exclude.internal.topics internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported metadata.cluster.check.enable
sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.header.urlencode
"""
_LISTS = """
bootstrap.servers config.providers interceptor.classes metric.reporters
sasl.oauthbearer.expected.audience ssl.cipher.suites ssl.enabled.protocols
"""
_CLASSES = """
key.deserializer sasl.client.callback.handler.class sasl.login.callback.handler.class
sasl.login.class sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
ssl.engine.factory.class value.deserializer
"""
_DESERIALIZERS = (
    "Boolean ByteArray ByteBuffer Bytes Double Float Integer List Long Short String UUID Void"
)
_SINCE = {
    "allow.auto.create.topics": "2.3.0",
    "bootstrap.resolve.timeout.ms": "4.1.0",
    "default.api.timeout.ms": "2.0.0",
    "enable.metrics.push": "3.7.0",
    "metadata.cluster.check.enable": "4.1.0",
    "metadata.recovery.rebootstrap.trigger.ms": "4.0.0",
    "metadata.recovery.strategy": "3.8.0",
    "retry.backoff.max.ms": "3.7.0",
    "socket.connection.setup.timeout.max.ms": "2.7.0",
    "socket.connection.setup.timeout.ms": "2.7.0",
    "sasl.oauthbearer.header.urlencode": "3.9.0",
}
"""Since when clients know a setting, and so look at it; left out: since long ago."""
_UNTIL = {"auto.include.jmx.reporter": "4.0.0", "internal.leave.group.on.close": "4.2.0"}


class ValueType(NamedTuple):
    """Valid values of a setting from one version up to, but not including, another."""

    setting: str
    detail: str
    pattern: str
    """Pattern of a valid value without surrounding blanks."""
    harmless: str
    """Pattern of a refused value that can be shown: it cannot be a secret."""
    least: str | None = None
    most: str | None = None
    since: int = 0
    until: int = version_of(_NEWEST)


_SHOWN_WORD, _NEVER = "[A-Za-z_ -]{0,40}", "(?!)"


def _number(
    setting: str, kind: str, least: str | None = None, most: str | None = None
) -> ValueType:
    sentence = (
        "must be a number" if kind == "double" else f"must be a whole number of {_BITS[kind]} bits"
    )
    limits = ""
    if most is not None:
        limits = f", {least} to {most}"
    elif least is not None:
        limits = f", at least {least}"
    if kind != "double":
        bound = 2 ** (_BITS[kind] - 1)
        least, most = least or str(-bound), most or str(bound - 1)
    pattern = _DOUBLE if kind == "double" else _WHOLE
    if least is None:
        pattern = f"{_DOUBLE}|[+-]?(Infinity|NaN)"
    return ValueType(setting, sentence + limits, pattern, HARMLESS_NUMBER, least, most)


def _choice(setting: str, *choices: str, exact: bool = True) -> ValueType:
    pattern = "|".join(choices)
    exactness = ", written exactly so" if exact else ""
    detail = f"must be one of {', '.join(choices)}{exactness}"
    return ValueType(setting, detail, pattern if exact else f"(?i){pattern}", _SHOWN_WORD)


def _value_types() -> list[ValueType]:
    offsets = ("latest", "earliest", "none")
    by_duration = _choice("auto.offset.reset", *offsets, "by_duration:PnDTnHnMn.nS")
    lookups = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    dns = _choice("client.dns.lookup", *lookups)
    v2_1, v3, v4 = map(version_of, ("2.1.0", "3.0.0", "4.0.0"))
    kafkas = r"org\.apache\.kafka\.common\.serialization\."
    types = [
        *(_number(*line.split()) for line in _NUMBERS.strip().splitlines()),
        *(
            ValueType(name, "must be true or false", "(?i)true|false", "[a-zA-Z]{0,8}|[01]")
            for name in _FLAGS.split()
        ),
        _choice(by_duration.setting, *offsets)._replace(until=v4),
        by_duration._replace(
            pattern=f"{'|'.join(offsets)}|by_duration:(?i){_DURATION}",
            harmless=f"{_SHOWN_WORD}(:[+-]?[PT0-9][A-Za-z0-9.,+-]{{0,30}})?",
            since=v4,
        ),
        _choice(dns.setting, "default", *lookups)._replace(since=v2_1, until=v3),
        dns._replace(since=v3),
        _choice("isolation.level", "read_committed", "read_uncommitted"),
        _choice("metrics.recording.level", "INFO", "DEBUG", "TRACE"),
        _choice("metadata.recovery.strategy", "rebootstrap", "none", exact=False),
        _choice("security.protocol", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", exact=False),
        _choice("sasl.oauthbearer.assertion.algorithm", "RS256", "ES256", exact=False)._replace(
            since=version_of("4.1.0")
        ),
        *(
            ValueType(
                name,
                "an entry of the list is empty",
                r"|[^,]*[^,\s]\s*(,\s*[^,]*[^,\s]\s*)*",
                _NEVER,
            )._replace(since=version_of("4.2.0"))
            for name in _LISTS.split()
            if name != "bootstrap.servers"
        ),
        *(
            ValueType(
                name, "must be the full name of a class", rf"{_WORD}(\.{_WORD})+", r"[\w$ -]{0,80}"
            )
            for name in _CLASSES.split()
        ),
        *(
            ValueType(
                name,
                f"Kafka has no such deserializer; it has {_DESERIALIZERS.replace(' ', ', ')}",
                rf"(?!{kafkas}).*|{kafkas}({_DESERIALIZERS.replace(' ', '|')})Deserializer",
                r"[\w.$]{0,120}",
            )
            for name in ("key.deserializer", "value.deserializer")
        ),
        ValueType(
            "bootstrap.servers",
            "must be a list of host:port, none empty",
            r"{0}(\s*,\s*{0})*".format(r"([\w%.-]*://)?\[?[\w%.:-]+\]?:[0-9]{1,5}"),
            _NEVER,
        ),
    ]
    return [
        table._replace(
            since=max(table.since, version_of(_SINCE.get(table.setting, "0.0"))),
            until=min(table.until, version_of(_UNTIL.get(table.setting, _NEWEST))),
        )
        for table in types
    ]


VALUE_TYPES = _value_types()
_SCHEMA = ", ".join(
    f"{name}:{'bigint' if name in ('since', 'until') else 'string'}" for name in ValueType._fields
)
_TRIMMED = rf"regexp_replace(given[t.setting], r'{BLANKS_AROUND}', '')"
_NUMBER = f"try_cast(regexp_replace({_TRIMMED}, '[dDfF]$', '') AS decimal(38, 18))"


def wrong_values() -> Column:
    """Make an array of the values that are of no right type: setting, value, severity, detail.

    Of columns ``given`` and ``version``, as rules look at them.
    """
    types = json.dumps([value_type._asdict() for value_type in VALUE_TYPES])
    return F.expr(rf"""
        transform(
            filter(
                from_json(r'{types}', 'array<struct<{_SCHEMA}>>'),
                t -> map_contains_key(given, t.setting)
                    AND version >= t.since AND version < t.until
                    AND (
                        NOT {_TRIMMED} rlike concat(r'^(?s:', t.pattern, r')\z')
                        OR t.least IS NOT NULL AND NOT coalesce(
                            {_NUMBER} BETWEEN CAST(t.least AS decimal(38, 18))
                                AND CAST(t.most AS decimal(38, 18)),
                            false
                        )
                    )
            ),
            t -> named_struct(
                'setting', t.setting,
                'value', if(
                    given[t.setting] rlike concat(r'^\s*(?:', t.harmless, r')\s*\z'),
                    given[t.setting], NULL
                ),
                'severity', '{REFUSED}',
                'detail', t.detail
            )
        )""")
