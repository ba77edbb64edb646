"""Text for people, made of a few rows that are already on the driver."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Columns = Mapping[str, str | Callable[[Mapping[str, Any]], object]]
"""By heading, the key of a row's value or what makes one of the row."""
_MAX_RANGES = 12
"""Ranges of a topic that a line shows; sticky leftovers can be many."""
_MAX_SHOWN = 200
"""Characters of a value that a message shows."""
_LOGIN = re.compile(
    r"(?!abfss?:|wasbs?:)\w[\w+.-]*://[^/@]+@"  # any user, but for Azure's containers
    r"|(?:\w[\w+.-]*://)?[^/@:]+:(?!/|\d+/)[^@]*@"  # user and password; host:port is none
    r"|s3[an]?://[^/@:]+:[^@]*@"  # with a slash in the password; a bucket has no port
)
_LOGIN_OF_URL = re.compile(r"://[^/\s@:]+:(?!\d+/)[^\s@]*@")
_PASSWORDS = re.compile(r"(?i)([?&;](?:user|password)=)[^&;\s'\"]+")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay out rows in columns; numbers are right-aligned."""
    body = [list(row) for row in rows]
    cells = [list(header), *([cell(value) for value in row] for row in body)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [_is_numeric([row[i] for row in body]) for i in range(len(header))]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    ]


def lay_out_rows(rows: Sequence[Mapping[str, Any]], columns: Columns) -> list[str]:
    """Lay out rows in columns below an empty line, if there are any."""
    if not rows:
        return []
    values = (
        [column(row) if callable(column) else row[column] for column in columns.values()]
        for row in rows
    )
    return ["", *table(list(columns), values)]


def _is_numeric(column: Sequence[object]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def cell(value: object) -> str:
    """Return one value: floats with two decimals, null as ``-``."""
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else printable(str(value))


def printable(text: str) -> str:
    """Escape what would break a line or steer a terminal: names are free text in Kafka."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def is_login(text: str) -> bool:
    """Return whether a path or an address contains a login, as in ``s3a://key:secret@bucket``.

    Azure's ``abfss://container@account`` has none, nor has ``hdfs://host:8020/a@b``.
    """
    return not text.startswith("table:") and _LOGIN.match(text) is not None


def without_login(text: str) -> str:
    """Remove the login before the ``@`` of an address, and passwords from a JDBC URL."""
    return _PASSWORDS.sub(r"\1...", _LOGIN_OF_URL.sub("://...@", text))


def mask_address(address: str) -> str:
    """Return an address without all that is before its last ``@``."""
    _, sign, host = re.sub("%40", "@", address).rpartition("@")
    return f"...@{host}" if sign else host


def format_value(value: object) -> str:
    """Return a value that was read from a file as JSON, cut where it is long.

    It is written only as far as it is shown: a few lines of YAML can stand for gigabytes.
    """
    text = ""
    try:
        for part in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
            text += part
            if len(text) > _MAX_SHOWN:
                break
    except (TypeError, ValueError, RecursionError):  # a key that JSON does not have, or a number
        text += "..."
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} ..."


def is_unicode(text: str) -> bool:
    """Return whether a text can be UTF-8: JSON and YAML can escape half a surrogate pair."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def one_line(text: str) -> str:
    """Turn a message into one printable line."""
    return printable(" ".join(text.split()))


def plural(count: int, noun: str) -> str:
    """Count things: ``1 group``, ``1,200 groups``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_names(names: Sequence[str], most: int) -> str:
    """List names; beyond ``most`` of them say how many there are: ``a, b and 2 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def not_shown(hidden: int, noun: str, condition: str = "", *, shown: int) -> list[str]:
    """Return how many are left out and how to see them all; nothing where none is."""
    if not hidden:
        return []
    return [f"{plural(hidden, f'more {noun}')}{condition} not shown (--show {shown} shows all)"]


def lay_out_first_rows(facts: Mapping[str, Any], noun: str, columns: Columns) -> list[str]:
    """Lay out the first rows of a kind, such as ``groups``, and say how many are left out."""
    hidden, count = facts[f"{noun}s_not_shown"], facts[f"{noun}_count"]
    return lay_out_rows(facts[f"{noun}s"], columns) + not_shown(hidden, noun, shown=count)


def counts(facts: Mapping[str, Any], *nouns: str) -> list[str]:
    """Count each of these kinds of things, from its key such as ``group_count``."""
    return [plural(facts[f"{noun}_count"], noun) for noun in nouns]


def written(output: str | None, text: str, tables: str = "") -> list[str]:
    """Return the closing line on where ``text`` was written, if it was, and which tables."""
    if output is None:
        return []
    place = f"{text} {printable(output)}"
    return ["", f"{place}: {tables}" if tables else place]


def topic_ranges(topic: Mapping[str, Any]) -> str:
    """Return a topic's partitions in short: ``orders[0-3,7]``."""
    shown = topic["ranges"][:_MAX_RANGES]
    text = ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in shown)
    if len(topic["ranges"]) > len(shown):
        text += f",... {topic['partition_count']} in all"
    return f"{printable(topic['topic'])}[{text}]"


def group_name(row: Mapping[str, Any]) -> str:
    """Return a group's name, with its cluster's where there are several clusters."""
    cluster = row.get("cluster_id")
    return printable(f"{cluster}/{row['group_id']}" if cluster else row["group_id"])


def print_result(text: str) -> None:
    """Print a result; whoever stops reading early, such as ``head``, has what they wanted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
