"""Messages of one shape read by their description: fields, versions, flexible or not.

The description follows Kafka's message definitions: a field has versions from ``since`` to
``until``; of a flexible version lengths are variable and tagged fields follow each struct.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kassign_spark.groups.numbers import ranges
from kassign_spark.log.cursor import FINE, SHORT, WRONG_LENGTH, Cursors, Ints, Span
from kassign_spark.log.long_lists import Shape, ends_well, starts_of
from kassign_spark.log.value_columns import (
    Column,
    Columns,
    Items,
    concatenate,
    numbers,
    spread,
    take,
)

Primitive = Literal["int8", "int16", "int32", "int64", "string", "bytes", "uuid"]
_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
_NEVER = 1 << 15
_FEW_LISTS, _LONG_LIST = 32, 64
"""Number of lists, and of elements left in each, from which lists are read one by one."""
_NO_ROWS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Field:
    """A field of a struct: a primitive, or a list of ``of``; a primitive is one without a name."""

    name: str
    type: Primitive | Literal["list"]
    since: int = 0
    until: int = _NEVER
    nullable: bool = False
    of: "Struct | None" = None


_NUMBERS = (Field("", "int32"),)
"""The fields of lists of numbers."""


@dataclass(frozen=True)
class Struct:
    """Fields in order; of the versions from ``flexible`` on, tagged fields after them.

    ``open`` is false of what stands alone as a tagged field: none follow.
    """

    fields: tuple[Field, ...]
    flexible: int = _NEVER
    tags: dict[int, "Tagged"] = field(default_factory=dict, hash=False)
    open: bool = True

    def least(self, version: int) -> int:
        """Return the least bytes that one takes."""
        flexible = version >= self.flexible
        sizes = [_least(f, flexible) for f in self.fields if f.since <= version <= f.until]
        return sum(sizes) + (flexible and self.open)

    def read(self, cursors: Cursors, version: int) -> Columns:
        """Read one struct of each message; of what a version lacks, -1, null or no elements."""
        flexible = version >= self.flexible
        columns: dict[str, Column] = {}
        for f in self.fields:
            is_present = f.since <= version <= f.until
            read = _read if is_present else _lacking
            columns[f.name] = read(cursors, f, version, flexible)
        return {**columns, **self._tagged(cursors, version)}

    def _tagged(self, cursors: Cursors, version: int) -> Columns:
        """Read the tagged fields, if any; those that nobody knows are passed over by their size.

        One that is known is read as it is, whatever its size is said to be: so does Kafka.
        """
        counts = np.zeros(len(cursors.position), dtype=np.int64)
        by_tag = {
            tag: dict(spread(tagged.read(cursors.at(_NO_ROWS), version), _NO_ROWS, len(counts)))
            for tag, tagged in self.tags.items()
        }
        if version >= self.flexible and self.open:
            # A negative count is none, as Kafka's loop over them has it.
            counts = cursors.count(np.maximum(cursors.unsigned_varint(), 0), least=2)
        for rows in _steps(cursors, counts):
            subset = cursors.at(rows)
            tags, sizes = subset.unsigned_varint(), subset.unsigned_varint()
            unknown = np.ones(len(rows), dtype=np.bool_)
            for tag, tagged in self.tags.items():
                of_tag = np.flatnonzero((tags == tag) & (subset.wrong == FINE))
                unknown[of_tag] = False
                inner = subset.at(of_tag)
                _put(by_tag[tag], rows[of_tag], tagged.read(inner, version))
                subset.back(of_tag, inner)
            subset.span(np.where(unknown, sizes, 0), nullable=False)
            cursors.back(rows, subset)
        return {name: column for columns in by_tag.values() for name, column in columns.items()}


@dataclass(frozen=True)
class Tagged:
    """A tagged field by what it holds; a ``nullable`` struct has a 1 before it, or is a 0.

    Numbers and spans in it are columns of the struct that it is in; lists are passed over.
    """

    struct: Struct
    nullable: bool = False

    def read(self, cursors: Cursors, version: int) -> Columns:
        """Read it of rows that have it."""
        has_tags = np.ones(len(cursors.position), dtype=np.bool_)
        if self.nullable:
            has_tags = cursors.unsigned_varint() > 0
        rows = np.flatnonzero(has_tags)
        subset = cursors.at(rows)
        columns = self.struct.read(subset, version)
        cursors.back(rows, subset)
        kept = {name: column for name, column in columns.items() if not isinstance(column, Items)}
        return spread(kept, rows, len(has_tags))


def struct(
    fields: str,
    flexible: int = _NEVER,
    tags: dict[int, Tagged] | None = None,
    *,
    open: bool = True,
    **lists: Struct,
) -> Struct:
    """Describe a struct by its fields: "name string, partitions []int32? 3+, time int64 1".

    Types are as in Kafka's definitions, with `?` where null is allowed; then come the versions that
    have the field, if not all do. An element of a list `[]` stands in ``lists``, by the field.
    """
    described = tuple(_field(flexible, lists, *text.split()) for text in fields.split(", "))
    return Struct(described, flexible, tags or {}, open)


def _field(
    flexible: int, lists: Mapping[str, Struct], name: str, kind: str, versions: str = "0+"
) -> Field:
    since = int(versions.removesuffix("+"))
    until = _NEVER if versions.endswith("+") else since
    type_: Any = kind.removesuffix("?")
    items_struct = None
    if type_.startswith("[]"):
        element = Field("", type_.removeprefix("[]"))
        items_struct = lists[name] if type_ == "[]" else Struct((element,), flexible, open=False)
        type_ = "list"
    return Field(name, type_, since, until, kind.endswith("?"), items_struct)


def _put(columns: dict[str, Column], rows: Ints, new_columns: Columns) -> None:
    for name, values in new_columns.items():
        column = columns[name]
        if isinstance(column, Span) and isinstance(values, Span):
            column.start[rows], column.length[rows] = values
        else:
            numbers(column)[rows] = numbers(values)


def _least(field: Field, flexible: bool) -> int:
    if field.type == "uuid":
        return 16
    if field.type in _SIZES:
        return _SIZES[field.type]
    return 1 if flexible else 2 if field.type == "string" else 4


def _read(cursors: Cursors, field: Field, version: int, flexible: bool) -> Column:
    if field.type == "uuid":
        return cursors.span(np.full(len(cursors.position), 16), nullable=False)
    if field.type in _SIZES:
        return cursors.number(_SIZES[field.type])
    width = 2 if field.type == "string" else 4
    length = cursors.unsigned_varint() - 1 if flexible else cursors.number(width)
    if field.of is None:
        return cursors.span(length, nullable=field.nullable)
    # A null list is read as an empty one.
    counts = np.maximum(length, 0) if field.nullable else length
    return _read_list(cursors, field.of, counts, version)


def _lacking(cursors: Cursors, field: Field, version: int, flexible: bool) -> Column:
    nothing = np.full(len(cursors.position), -1, dtype=np.int64)
    if field.of is not None:
        return Items(np.zeros_like(nothing), field.of.read(cursors.at(_NO_ROWS), version))
    return nothing if field.type in _SIZES else Span(cursors.position.copy(), nothing)


def _read_list(cursors: Cursors, struct: Struct, counts: Ints, version: int) -> Items:
    """Read lists, one element of every list one step."""
    counts = cursors.count(counts, least=max(1, struct.least(version)))
    if struct.fields == _NUMBERS:
        return _read_numbers(cursors, counts)
    parts = [struct.read(cursors.at(_NO_ROWS), version)]
    read: list[Ints] = [_NO_ROWS]
    index: list[Ints] = [_NO_ROWS]
    for step, rows in enumerate(_steps(cursors, counts)):
        if len(rows) <= _FEW_LISTS and counts[rows].max() - step > _LONG_LIST:
            for row in rows.tolist():
                part, many = _read_rest(cursors, row, struct, int(counts[row]) - step, version)
                parts.append(part)
                read.append(np.full(many, row))
                index.append(np.arange(step, step + many))
            break
        subset = cursors.at(rows)
        parts.append(struct.read(subset, version))
        cursors.back(rows, subset)
        read.append(rows)
        index.append(np.full(len(rows), step))
    # A message that turned out broken has fewer than it said.
    counts = np.bincount(np.concatenate(read), minlength=len(counts))
    starts = np.cumsum(counts) - counts
    places = starts[np.concatenate(read)] + np.concatenate(index)
    order = np.empty(len(places), dtype=np.int64)
    order[places] = np.arange(len(places))
    return Items(counts, take(concatenate(parts), order))


def _read_rest(
    cursors: Cursors, row: int, struct: Struct, count: int, version: int
) -> tuple[Columns, int]:
    """Read the rest of a row's list at once; gives its elements up to a broken one, and how many.

    Where an element does not end where the next was thought to begin, as none of Kafka's does, the
    message is broken.
    """
    starts = np.array(starts_of(cursors, row, count, _shape(struct, version)), dtype=np.int64)
    subset = Cursors(cursors.source, starts, np.full(len(starts), cursors.end[row]))
    part = struct.read(subset, version)
    is_chain, fine = ends_well(subset, starts)
    last = min(fine, len(starts) - 1)
    cursors.position[row] = subset.position[last]
    wrong = SHORT if fine == len(starts) < count else subset.wrong[last]
    cursors.wrong[row] = wrong if is_chain else WRONG_LENGTH
    return take(part, np.arange(last + 1)), last + 1


def _shape(struct: Struct, version: int) -> Shape:
    flexible = version >= struct.flexible
    fields = [
        _field_shape(f, version, flexible) for f in struct.fields if f.since <= version <= f.until
    ]
    return tuple(fields), flexible and struct.open


def _field_shape(field: Field, version: int, flexible: bool) -> Any:
    if field.type == "uuid":
        return 16
    if field.type in _SIZES:
        return _SIZES[field.type]
    width = 0 if flexible else 2 if field.type == "string" else 4
    if field.of is None:
        return width, 1
    return width, 4 if field.of.fields == _NUMBERS else _shape(field.of, version)


def _read_numbers(cursors: Cursors, counts: Ints) -> Items:
    span = cursors.span(4 * counts, nullable=False)
    counts = span.length // 4
    positions = np.repeat(span.start, counts) + 4 * ranges(np.zeros_like(counts), counts)
    return Items(counts, {"": cursors.source.numbers[4][positions].astype(np.int64)})


def _steps(cursors: Cursors, counts: Ints) -> Iterator[Ints]:
    """Yield the rows that have a first element, a second one, and so on, until they break."""
    rows = np.flatnonzero(counts > 0)
    step = 0
    while len(rows):
        yield rows
        step += 1
        rows = rows[(counts[rows] > step) & (cursors.wrong[rows] == FINE)]
