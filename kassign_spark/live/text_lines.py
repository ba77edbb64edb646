"""Lines of text files that Kafka's tools printed, and what stands around their tables."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from kassign_spark.display import format_value
from kassign_spark.errors import InputError

LARGEST_FILE = 256 * 2**20
"""Bytes of a text; a line of a partition has some 150."""
_AROUND = re.compile(
    # What a person pasted with it,
    r"\s*$|```|[#$>%] |.*kafka-(consumer-groups|topics)(\.sh|\.bat)? --"
    # a log,
    r"|\[\d{4}-\d\d-\d\d [\d:,.]+\] |SLF4J(\(\w\))?: |log4j:|(OpenJDK|Java HotSpot).* warning: "
    r"|Picked up \w+: |WARN(ING)?: |(NOTE|Note): "
    # and a trace.
    r"|\s+at [\w.$/<>]+\(|\s+\.\.\. \d+ more"
    r"|(Caused by: )?[a-z][\w$]*(\.[\w$]+)+(Exception|Error)(: |\s*$)"
)


class Text(NamedTuple):
    """A file that was read.

    Attributes:
        path: as it was named.
        lines: without their ends.
        at: when it was last written, UTC.
    """

    path: str
    lines: list[str]
    at: datetime

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers, from 1, without those of a log, a trace or a prompt."""
        for number, line in enumerate(self.lines, 1):
            if not _AROUND.match(line):
                yield number, line

    def where(self, line: int) -> str:
        """Return the name of a line for messages."""
        return f"{self.path} line {line}"


def read_text(path: str) -> Text:
    """Read a text file whole: UTF-8, any ends of lines.

    Raises:
        InputError: there is no such file, or it is empty, no text, or larger than
            ``LARGEST_FILE``; the text names it.
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{path}: is not a regular file")
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
        at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > LARGEST_FILE:
        raise InputError(f"{path}: has more than {LARGEST_FILE:,} bytes; cut it by group")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} line 1: is UTF-16, as PowerShell writes it; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path} line {line}: is not UTF-8 text") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{path} line {line}: is not text: it has a byte 0")
    # Not splitlines: an id may hold what Unicode calls the end of a line.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not any(map(str.strip, lines)):
        raise InputError(f"{path}: is empty")
    return Text(path, lines, at)


def whole_number(text: str, where: str, largest: int) -> int:
    """Return a cell as a number from 0.

    Raises:
        InputError: it is none, or larger; ``where`` begins the text.
    """
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > largest:
        raise InputError(f"{where}: {format_value(text)} is not a whole number from 0 to {largest}")
    return int(text)
