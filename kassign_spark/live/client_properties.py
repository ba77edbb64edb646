"""A Java client's properties file, as settings of kafka-python's admin client.

The file is the one that Kafka's own tools take as ``--command-config``. It holds secrets: no value
of it is in an error, a ``repr`` or a log of ours, only names of keys. A line may be a part of a
secret itself, of a key over several lines say: what does not read like a setting of Kafka's is
named by its line.
"""

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from kassign_spark.errors import SettingsError
from kassign_spark.limits import read_text

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_JAAS_ENTRY = re.compile(
    r'\s*([\w.$]+)\s+required((?:\s+\w+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";]+))*)\s*;\s*'
)
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')
_MILLISECONDS = {
    "request.timeout.ms": "request_timeout_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
}
_SETTING = re.compile(
    r"(?:auto|bootstrap|check|client|connections|default|enable|fetch|group|heartbeat|isolation|"
    r"max|metadata|metric|metrics|partition|receive|reconnect|request|retry|sasl|security|send|"
    r"session|socket|ssl)(?:\.[a-z0-9_]{1,20})+"
)
_ONE_LINE = "a value over several lines needs \\ at the end of each but the last"


class Key(str):
    """A key, with the line that it is on."""

    line: int
    is_assigned: bool
    """Whether = or : follows: Java accepts a blank as well, and a word alone."""

    def __new__(cls, text: str, line: int, *, is_assigned: bool) -> Self:
        """Create the key that stands in ``line``."""
        key = super().__new__(cls, text)
        key.line, key.is_assigned = line, is_assigned
        return key


class _Secret(str):
    """A string that a ``repr``, and so a traceback or a log of a dict, does not show."""

    def __repr__(self) -> str:
        return "'…'"


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a file as ``java.util.Properties`` does: ISO-8859-1, comments, continuations, escapes.

    The keys know their lines (``Key``).

    Raises:
        SettingsError: the file cannot be read, or has a broken ``\\u`` escape, or half a character.
    """
    return parse_properties(properties_text(path), path)


def properties_text(path: str | Path) -> str:
    """Read a properties file whole.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        return read_text(path, "iso-8859-1")
    except OSError as error:
        raise SettingsError(
            f"client properties file {path} cannot be read: {error.strerror}"
        ) from None


def parse_properties(text: str, path: str | Path) -> dict[str, str]:
    """Parse the text of the file at ``path``, as ``read_properties`` does.

    Raises:
        SettingsError: it has a broken ``\\u`` escape, or half a character.
    """
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = re.match(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*([=:]?)[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None, "all parts may be empty"
        try:
            key = Key(_unescape(match[1]), number, is_assigned=bool(match[2]))
            properties[key] = _Secret(_unescape(match[3]))
        except ValueError as error:
            raise SettingsError(
                f"client properties file {path}: line {number} has {error}"
            ) from None
    return properties


def refuse_fragments(keys: Iterable[str]) -> None:
    """Refuse fragments, which may be part of a secret, before anything logs their keys.

    Raises:
        SettingsError: a line is not a key=value.
    """
    fragments = [key for key in keys if not (getattr(key, "is_assigned", True) and "." in key)]
    if fragments:
        raise SettingsError(f"client properties: {_name_lines(fragments)}")


def _name_lines(keys: Iterable[str]) -> str:
    """Return the lines of keys that cannot be named in a message; empty where there are none."""
    unnamed = [key for key in keys if not _can_be_named(key)]
    if not unnamed:
        return ""
    more = f" (and {len(unnamed) - 1:,} more)" if len(unnamed) > 1 else ""
    lines = sorted(key.line for key in unnamed if isinstance(key, Key))
    if not lines:
        return f"a key is none of a Kafka client's{more}"
    return f"line {lines[0]} is not a key=value of a Kafka client{more}; {_ONE_LINE}"


def _can_be_named(key: str) -> bool:
    return _SETTING.fullmatch(key) is not None and getattr(key, "is_assigned", True)


def _find_unsupported(keys: Iterable[str]) -> list[str]:
    """Return a problem for each key that has a name, and one for all others."""
    keys = sorted(keys)
    problems = [f"{key} is not supported" for key in keys if _can_be_named(key)]
    return [*problems, *filter(None, [_name_lines(keys)])]


def admin_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Translate a client's properties into arguments of ``kafka.KafkaAdminClient``.

    Understood are the security protocol, SASL with PLAIN or SCRAM, TLS with PEM files, the client
    id and timeouts.

    Raises:
        SettingsError: one message with every key that is not understood or cannot be used.
    """
    left = {key: value.strip() for key, value in properties.items()}
    problems: list[str] = []
    settings: dict[str, Any] = {}
    if client_id := left.pop("client.id", ""):
        settings["client_id"] = client_id
    for key, name in _MILLISECONDS.items():
        value = left.pop(key, None)
        if value is None:
            continue
        if re.fullmatch("[0-9]{1,9}", value):
            settings[name] = int(value)
        else:
            problems.append(f"{key} must be a number of milliseconds")

    protocol = left.pop("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        problems.append(f"security.protocol must be one of {', '.join(_PROTOCOLS)}")
    settings["security_protocol"] = protocol
    for needed, read in (("SASL", _sasl_settings), ("SSL", _tls_settings)):
        prefix = f"{needed.lower()}."
        security = {key: left.pop(key) for key in list(left) if key.startswith(prefix)}
        if needed in protocol:
            translated, reasons = read(security)
            settings |= translated
            problems += reasons
        elif security and protocol in _PROTOCOLS:
            keys = ", ".join(sorted(filter(_can_be_named, security))) or _name_lines(security)
            problems.append(f"{keys}: security.protocol is not one that uses {needed}")
    if left.pop("bootstrap.servers", None) is not None:
        problems.append("bootstrap.servers: give the address as --bootstrap-server instead")
    problems += _find_unsupported(left)
    if problems:
        raise SettingsError("client properties: " + "; ".join(problems))
    return settings


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Yield lines without comments and blank ones, continuations joined, each with its number."""
    lines: list[tuple[int, str]] = []
    continued = False
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        part = line[:-1] if backslashes % 2 else line
        if continued:
            lines[-1] = lines[-1][0], lines[-1][1] + part
        else:
            lines.append((number, part))
        continued = backslashes % 2 == 1
    return lines


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        if not escaped.startswith("u"):
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) != 5:
            raise ValueError("a \\u without four hex digits")
        return chr(int(escaped[1:], 16))

    units = re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", plain, text, flags=re.DOTALL)
    try:
        # Java's text is UTF-16: two escapes can stand for one character.
        return units.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half a surrogate pair") from None


def _sasl_settings(properties: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    mechanism = properties.pop("sasl.mechanism", "GSSAPI")  # Kafka's default
    jaas = properties.pop("sasl.jaas.config", None)
    problems = _find_unsupported(properties)
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        return {}, [*problems, f"sasl.mechanism must be one of {', '.join(_LOGIN_MODULES)}"]
    entry = _JAAS_ENTRY.fullmatch(jaas or "")
    if entry is None or entry[1] != module:
        form = f'{module} required username="…" password="…";'
        return {}, [*problems, f"sasl.jaas.config must read: {form}"]
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _JAAS_OPTION.findall(entry[2])
    }
    username, password = options.pop("username", ""), options.pop("password", "")
    if not username or not password:
        problems.append("sasl.jaas.config needs a username and a password")
    if options:
        # Their names are a part of the value, as a password with a blank and without quotes is.
        problems.append("sasl.jaas.config has other options than username and password")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": _Secret(username),
        "sasl_plain_password": _Secret(password),
    }, problems


def _tls_settings(properties: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return an SSL context; it takes inline certificates too, and hides the key's password."""
    problems = []
    check = properties.pop("ssl.endpoint.identification.algorithm", "https").lower()
    if check not in ("", "https"):
        problems.append("ssl.endpoint.identification.algorithm must be https or empty")

    # Java's default type is JKS, which Python cannot read: only an explicit PEM will do.
    for store in ("truststore", "keystore"):
        names = [key for key in properties if key.startswith(f"ssl.{store}.")]
        if names and properties.pop(f"ssl.{store}.type", "JKS").upper() != "PEM":
            problems.append(f"ssl.{store}.type must be PEM")
            for key in names:
                properties.pop(key, None)
            properties.pop("ssl.key.password", None)

    trusted = properties.pop("ssl.truststore.location", None)
    inline = properties.pop("ssl.truststore.certificates", None)
    key_store = properties.pop("ssl.keystore.location", None)
    password = properties.pop("ssl.key.password", "")  # None would make OpenSSL ask at the terminal
    if trusted is None and inline is None:
        context = ssl.create_default_context()
    else:  # without the system's certificate authorities
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check == "https"
    loads: dict[str, Callable[[], None]] = {}
    if trusted is not None:
        loads["ssl.truststore.location"] = partial(context.load_verify_locations, trusted)
    if inline is not None:
        loads["ssl.truststore.certificates"] = partial(context.load_verify_locations, cadata=inline)
    if key_store is not None:
        load_own = partial(context.load_cert_chain, key_store, password=password)
        loads["ssl.keystore.location or ssl.key.password"] = load_own
    for key, load in loads.items():
        try:
            load()
        except (OSError, ValueError, TypeError) as error:  # ssl.SSLError is an OSError
            is_missing = isinstance(error, OSError) and not isinstance(error, ssl.SSLError)
            reason = "the file cannot be read" if is_missing else "no PEM that can be used"
            problems.append(f"{key}: {reason}")
    problems += _find_unsupported(properties)
    return {"ssl_context": context}, problems
