"""Read the output of ``kafka-consumer-groups.sh --describe`` of any version from 2.0 to 4.4.

Each group has a table of its own, whose header says which columns there are; the tool lays cells
out below their headings. Versions before 2.2 do not print the group.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import NamedTuple

from kassign_spark.display import format_value, plural
from kassign_spark.errors import InputError
from kassign_spark.live.text_lines import Text

NONE = "-"
NO_MEMBERS = "no members"
_NUMBER = r"-|-?[0-9]{1,19}"
_COUNT = r"[0-9]{1,19}"
_CELLS = {
    "GROUP": r"\S.*?",
    "TOPIC": r"[A-Za-z0-9._-]{1,249}",
    "PARTITION": _NUMBER,
    "LEADER-EPOCH": _NUMBER,
    "CURRENT-OFFSET": _NUMBER,
    "LOG-END-OFFSET": _NUMBER,
    "LAG": _NUMBER,
    "CONSUMER-ID": r"\S.*?",
    "HOST": r"/\S*|-",
    "CLIENT-ID": r"\S.*?|",
    "GROUP-INSTANCE-ID": r"\S*",
    "#PARTITIONS": _COUNT,
    "CURRENT-EPOCH": _NUMBER,
    "TARGET-EPOCH": _NUMBER,
    "UPGRADED": r"\S*",
    "ASSIGNMENT": r"|\S.*",
    "CURRENT-ASSIGNMENT": r"\S*",
    "TARGET-ASSIGNMENT": r"\S*",
    "COORDINATOR (ID)": r"\S+ +\(\S+\)",
    "ASSIGNMENT-STRATEGY": r"\S*",
    "STATE": r"[A-Za-z]+",
    "GROUP-EPOCH": _NUMBER,
    "TARGET-ASSIGNMENT-EPOCH": _NUMBER,
    "#MEMBERS": _COUNT,
}
"""The form of a cell in each column. A host is a Java address, which begins with ``/``."""
_KINDS = {
    "members": {"CONSUMER-ID", "#PARTITIONS"},
    "states": {"STATE", "ASSIGNMENT-STRATEGY"},
    "offsets": {"TOPIC", "PARTITION", "CONSUMER-ID"},
}
"""By kind of table, the columns by which it is known."""
_HEADING = re.compile(r"COORDINATOR \(ID\)|\S+")
_REMARKS = (
    (re.compile(r"Consumer group '(.*)' has no active members\."), NO_MEMBERS),
    (re.compile(r"Warning: Consumer group '(.*)' is rebalancing\."), "rebalancing"),
    (re.compile(r"Error: (?:The c|C)onsumer group '(.*)' does not exist\."), "does not exist"),
)
_TOPIC_PARTITIONS = re.compile(r"([A-Za-z0-9._-]+)(?:\(([0-9,]*)\)|:([0-9,]*))")
_NAMELESS = re.compile(r"\([0-9,]*\)(, \([0-9,]*\))*")
_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


class Row(NamedTuple):
    """A line of a table: cells by column, without blanks around them."""

    where: str
    cells: Mapping[str, str]


class Section(NamedTuple):
    """A table: of kind ``offsets``, ``members`` or ``states``."""

    kind: str
    at: datetime
    rows: list[Row]


class Remark(NamedTuple):
    """A line about a group, or about none: an error."""

    where: str
    group_id: str | None
    reason: str


class _Header(NamedTuple):
    where: str
    columns: tuple[str, ...]
    starts: tuple[int, ...]


def read_groups(text: Text, group_id: str | None = None) -> tuple[list[Section], list[Remark]]:
    """Read all tables of a text.

    Args:
        text: what the tool printed.
        group_id: of a text without the column GROUP; else None.

    Raises:
        InputError: a line is none of such a text; its file and number come first.
    """
    header: _Header | None = None
    sections: list[Section] = []
    remarks: list[Remark] = []
    for number, line in text.numbered():
        where = text.where(number)
        if (remark := _remark(where, line)) is not None:
            remarks.append(remark)
        elif (columns := _columns(line, where)) is not None:
            header = _header(line, where, columns, group_id)
            kind = next(
                kind for kind, columns_of_kind in _KINDS.items() if columns_of_kind <= set(columns)
            )
            sections.append(Section(kind, text.at, []))
        elif header is None:
            raise InputError(
                f"{where}: is not a line of kafka-consumer-groups.sh --describe: "
                f"{format_value(line.strip())}"
            )
        else:
            cells = _cells(line, where, header)
            if group_id is not None and cells.setdefault("GROUP", group_id) != group_id:
                raise InputError(
                    f"{where}: is of group {format_value(cells['GROUP'])}, not {group_id!r}"
                )
            sections[-1].rows.append(Row(where, cells))
    return sections, remarks


def parse_assignment(cell: str, row: Row) -> list[tuple[str, int]] | None:
    """Read a cell's partitions: ``orders(0,1), refunds(2)`` or, from 4.0, ``orders:0,1;refunds:2``.

    None: the tool left their topics out, as 3.8 does.

    Raises:
        InputError: it is neither.
    """
    if cell in ("", NONE):
        return []
    if _NAMELESS.fullmatch(cell):
        return None
    partitions: list[tuple[str, int]] = []
    for part in re.split(r"; ?|(?<=\)), ?", cell):
        match = _TOPIC_PARTITIONS.fullmatch(part)
        numbers = (match[2] if match[3] is None else match[3]).split(",") if match else [""]
        if match is None or not all(re.fullmatch(r"[0-9]{1,10}", number) for number in numbers):
            raise InputError(
                f"{row.where}: {format_value(part)} is not a topic with its partitions"
            )
        partitions += [(match[1], int(number)) for number in numbers]
    return partitions


def _remark(where: str, line: str) -> Remark | None:
    text = line.strip()
    for pattern, reason in _REMARKS:
        if match := pattern.fullmatch(text):
            return Remark(where, match[1], reason)
    return Remark(where, None, text) if text.startswith("Error: ") else None


def _columns(line: str, where: str) -> tuple[str, ...] | None:
    """Return the columns of a header; None of any other line.

    Raises:
        InputError: a column is unknown or there twice, or the columns are those of no table.
    """
    names = tuple(_HEADING.findall(line))
    columns = [name for name in names if name in _CELLS]
    if len(columns) < 2 or len(columns) * 2 < len(names):
        return None
    for name in names:
        if name not in _CELLS:
            raise InputError(f"{where}: column {format_value(name)} is unknown")
        if names.count(name) > 1:
            raise InputError(f"{where}: column {name} appears twice")
    if not any(columns_of_kind <= set(names) for columns_of_kind in _KINDS.values()):
        raise InputError(f"{where}: {' '.join(names)}: are columns of no table of --describe")
    return names


def _header(line: str, where: str, columns: tuple[str, ...], group_id: str | None) -> _Header:
    if "GROUP" not in columns and group_id is None:
        raise InputError(
            f"{where}: there is no column GROUP, as before Kafka 2.2; name the group: GROUP=FILE"
        )
    return _Header(where, columns, tuple(match.start() for match in _HEADING.finditer(line)))


def _cells(line: str, where: str, header: _Header) -> dict[str, str]:
    """Return cells by the header's positions or, if they do not fit, by blanks.

    A number or a coordinator can be wider than its column, and blanks get lost on the way.
    """
    cells = _below(line, header.starts)
    misplaced = any(cell.startswith(" ") for cell in cells)
    values = [cell.strip() for cell in cells]
    patterns = [_CELLS[column] for column in header.columns]
    fits = [bool(re.fullmatch(p, cell)) for p, cell in zip(patterns, values, strict=True)]
    if misplaced or not all(fits):
        match = _by_blanks(header.columns).fullmatch(line.rstrip())
        if match is not None:
            values = [cell or "" for cell in match.groups()]
        else:
            _refuse(line, where, header, values, fits)
    return dict(zip(header.columns, values, strict=True))


def _below(line: str, starts: tuple[int, ...]) -> list[str]:
    """Cut a line where the columns begin, as Java counts: in units of 16 bits.

    A cell that begins with a blank, and is not empty, does not begin below its heading.
    """
    units = _BEYOND_16_BITS.sub(r"\g<0>\0", line).replace("\t", " ")
    cells = [units[: starts[0]].strip() + units[starts[0] : starts[1]]]
    for start, end in zip(starts[1:], (*starts[2:], len(units)), strict=True):
        is_cut = units[start - 1 : start].strip()
        cells.append(f" {units[start:end]}" if is_cut else units[start:end])
    return [cell.replace("\0", "") if cell.strip() else "" for cell in cells]


@cache
def _by_blanks(columns: tuple[str, ...]) -> re.Pattern[str]:
    """Return cells with blanks between them; where two names meet, neither may have any inside."""
    parts = []
    for place, column in enumerate(columns):
        names = column in ("GROUP", "CONSUMER-ID") and {"GROUP", "CONSUMER-ID"} & {
            *columns[max(0, place - 1) : place],
            *columns[place + 1 : place + 2],
        }
        cell = r"\S+" if names else _CELLS[column]
        gap = r"\s*" if place == 0 else r"\s+"
        may_be_empty = place > 0 and re.fullmatch(cell, "")
        parts.append(f"(?:{gap}({cell}))?" if may_be_empty else f"{gap}({cell})")
    return re.compile("".join(parts))


def _refuse(line: str, where: str, header: _Header, values: list[str], fits: list[bool]) -> None:
    cells = line.split()
    if len(cells) < len(header.columns) - sum(
        bool(re.fullmatch(_CELLS[column], "")) for column in header.columns
    ):
        raise InputError(
            f"{where}: {plural(len(cells), 'cell')}, where the header ({header.where}) has "
            f"{len(header.columns)}"
        )
    for column, cell, fit in zip(header.columns, values, fits, strict=True):
        if not fit:
            kind = "number" if _CELLS[column] in (_NUMBER, _COUNT) else f"{column} of such a text"
            raise InputError(f"{where}, column {column}: {format_value(cell)} is not a {kind}")
    raise InputError(f"{where}: its cells are not below the header's ({header.where})")
