"""Tables as text, CSV and JSON lines: cells get their declared types, or are refused by name.

Nothing turns into a null, or another character, because it could not be read. One job a table looks
for what cannot be read; the frame itself stays lazy.
"""

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from kassign_spark.errors import InputError
from kassign_spark.inputs.rules import sql_sentence
from kassign_spark.schemas import TOPIC_PARTITIONS, TOPICS, Table
from kassign_spark.tables.catalog_paths import quote_identifier
from kassign_spark.tables.encoding import (
    LOST,
    NOT_UTF8,
    UNREADABLE,
    has_lone_surrogate,
    refuse_lines,
)

_CORRUPT = "_corrupt_record"
_SHOWN = 200
"""Characters of an unreadable record that an error repeats."""

_BYTE_ORDER_MARK = "\ufeff"

_RFC_4180: dict[str, bool | str] = {"header": True, "escape": '"'}


TIMESTAMPS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""Format of timestamps: complete; Spark's own format keeps milliseconds."""


def write_csv(frame: DataFrame, path: str) -> None:
    """Write CSV files with a header line.

    Lists become JSON arrays, bytes base64, and an empty string is ``""``.
    """
    for field in frame.schema:
        if isinstance(field.dataType, ArrayType):
            frame = frame.withColumn(field.name, F.to_json(field.name))
        elif isinstance(field.dataType, BinaryType):
            # Some versions of Spark write lines of 76 characters.
            in_lines = F.base64(field.name)
            frame = frame.withColumn(field.name, F.regexp_replace(in_lines, r"\s", ""))
    frame.write.options(
        **_RFC_4180,
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
        timestampFormat=TIMESTAMPS,
    ).csv(path)


def read_csv(spark: SparkSession, path: str, table: Table, where: str) -> DataFrame:
    """Read CSV files with a header line, every file the same one.

    Raises:
        InputError: there is no header line, or it has a name twice, a line has more or fewer
            cells than the header, a cell is no value of its column, or a file is not UTF-8;
            ``where`` begins the text.
    """
    header = _header(spark, path, where)
    strings = StructType([StructField(name, StringType()) for name in [*header, _CORRUPT]])
    text = spark.read.options(
        **_RFC_4180, multiLine=True, enforceSchema=False, columnNameOfCorruptRecord=_CORRUPT
    ).csv(path, schema=strings)
    present = [field for field in fields_of(table) if field.name in header]
    if not present:  # refused for its columns by whoever makes it conform, before a line is read
        return text.drop(_CORRUPT)
    few = sql_sentence(f": a line has not the {len(header)} cells of the header: {{}}", _CORRUPT)
    cases = [f"when {_CORRUPT} is not null then {few}"]
    for field in present:
        cell, type_name = f"`{field.name}`", field.dataType.simpleString()
        wrong = sql_sentence(f", column {field.name}: {{}} is not of type {type_name}", cell)
        cases.append(f"when {cell} is not null and {_is_wrong(field)} then {wrong}")
    lost = " or ".join(
        f"contains({quote_identifier(name)}, '{LOST}')" for name in [*header, _CORRUPT]
    )
    (checked,) = text.selectExpr(
        f"min(case {' '.join(cases)} end) as problem", f"bool_or({lost}) as may_be_lost"
    ).collect()
    if checked.may_be_lost:
        refuse_lines(spark, path, where, NOT_UTF8)
    _refuse(checked.problem, where)
    parsed = {field.name: F.expr(_parse_cell(field)) for field in present}
    return text.select(
        *(parsed.get(name, F.col(quote_identifier(name))).alias(name) for name in header)
    )


def _header(spark: SparkSession, path: str, where: str) -> list[str]:
    header = spark.read.options(**_RFC_4180).csv(path).columns
    if not header:
        raise InputError(f"{where}: is a table without a header line")
    if LOST in "".join(header):
        refuse_lines(spark, path, where, NOT_UTF8)
    if "\0" in "".join(header):
        raise InputError(f"{where}: its header holds zero bytes, as UTF-16 does; save it as UTF-8")
    if len(header) == 1 and (other := re.search(r"[;|\t]", header[0])):
        raise InputError(f"{where}: its header holds {other[0]!r}: cells are separated by commas")
    # Spark puts the place of a column behind a name that appears twice, or for one that is empty.
    if any(name.endswith(str(place)) for place, name in enumerate(header)):
        _refuse_header(spark, path, len(header), where)
    return header


def _refuse_header(spark: SparkSession, path: str, width: int, where: str) -> None:
    """Refuse a header in which a name appears twice, or a cell is empty."""
    cells = StructType([StructField(f"_{place}", StringType()) for place in range(width)])
    first = spark.read.options(**_RFC_4180 | {"header": False}).csv(path, schema=cells).first()
    names = [cell or "" for cell in first or ()]
    for place, name in enumerate(names):
        if not name:
            raise InputError(f"{where}: cell {place + 1} of its header is empty")
        before = [earlier for earlier in names[:place] if earlier.lower() == name.lower()]
        if before:
            twice = "appears twice" if name in before else f"and {before[0]} are the same to Spark"
            raise InputError(f"{where}: column {name} {twice} in its header")


def read_json(spark: SparkSession, path: str, table: Table, where: str) -> DataFrame:
    """Read JSON lines; a column is there when some record has it.

    Returns:
        The table's columns as far as they are there; none where there is no record at all.

    Raises:
        InputError: a line is no JSON object, or has a key twice, a value is not of its column's
            type, or a file is not UTF-8; ``where`` begins the text.
    """
    fields = fields_of(table)
    types = ", ".join(f"`{f.name}` {_read_type(f)}" for f in fields)
    parsed = F.from_json(
        "value", f"{types}, {_CORRUPT} STRING", {"columnNameOfCorruptRecord": _CORRUPT}
    ).alias("parsed")
    expected = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in fields)
    keys = "json_object_keys(value)"
    # In brackets: whatever stands behind the object would be passed over.
    in_brackets = f"concat('[', trim(leading '{_BYTE_ORDER_MARK}' from value), ']')"
    # Behind a wildcard the path gives a string as JSON, in quotes, and not its text.
    cells = {f: f"get_json_object({in_brackets}, '$[*].{f.name}')" for f in fields}
    no_texts = [_has_no_text(cells[f], f) for f in fields if "string" in _read_type(f)]
    is_record = (
        f"coalesce({keys} is not null and json_array_length({in_brackets}) = 1 "
        f"and parsed.{_CORRUPT} is null and not ({' or '.join(no_texts) or 'false'}), false)"
    )
    no_record = sql_sentence(f": {{}} is no JSON record of some of ({expected})", "value")
    twice = sql_sentence(": {} has a key twice", "value")
    problem = (
        f"case when not {is_record} then {no_record} "
        f"when size(array_distinct({keys})) < size({keys}) then {twice} end"
    )
    lines = spark.read.text(path).where(F.trim("value") != "").select("value", parsed)
    (checked,) = lines.selectExpr(
        f"array_distinct(flatten(collect_set({keys}))) as keys",
        f"min({problem}) as problem",
        f"coalesce(bool_or({UNREADABLE}), false) as is_lost",
    ).collect()
    if checked.is_lost:
        refuse_lines(spark, path, where, UNREADABLE)
    _refuse(checked.problem, where)
    declared = {field.name: _read_type(field) for field in fields}
    others = sorted(set(checked["keys"]) - declared.keys())
    names = [*(name for name in declared if name in checked["keys"]), *others]
    columns = ", ".join(
        f"{quote_identifier(name)} {declared.get(name, 'STRING')}" for name in names
    )
    return spark.read.json(path, schema=columns or StructType([]))


def fields_of(table: Table) -> list[StructField]:
    """Return a table's columns; for topics those of both forms."""
    fields = list(table.columns)
    if table is TOPICS:
        fields += [f for f in TOPIC_PARTITIONS.columns if f.name == "partition"]
    return fields


def _refuse(problem: str | None, where: str) -> None:
    if problem is not None:
        cut = problem if len(problem) <= _SHOWN else f"{problem[:_SHOWN]} ..."
        raise InputError(where + cut)


def _read_type(field: StructField) -> str:
    """Return the type to read: wide for whole numbers, so that one out of range is shown."""
    integer = isinstance(field.dataType, IntegerType)
    return "BIGINT" if integer else field.dataType.simpleString()


def _has_no_text(json: str, field: StructField) -> str:
    """Return in SQL whether JSON has anything but text, or null, where the field has strings.

    Spark would read it as its JSON.
    """
    without_texts = rf"""regexp_replace({json}, r'"(?:[^"\\]|\\.)*+"', '')"""
    shape = rf"^\s*(?:{_shape_without_texts(field.dataType)})?\s*$"
    return f"coalesce(not rlike({without_texts}, r'{shape}'), false)"


def _shape_without_texts(data_type: DataType) -> str:
    """Return a pattern for the JSON of strings, or lists of them, with the strings cut out."""
    if not isinstance(data_type, ArrayType):
        return "null"
    return rf"(?:\[(?:{_shape_without_texts(data_type.elementType)}|[,\s])*+\]|null)"


def _is_wrong(field: StructField) -> str:
    """Return in SQL whether a cell is not a value of its column."""
    no_value = f"{_parse_cell(field)} is null"
    cell, type_name = f"`{field.name}`", _read_type(field)
    if not isinstance(field.dataType, ArrayType) or "string" not in type_name:
        return no_value
    is_json = f"startswith(trim({cell}), '[')"
    no_text = _has_no_text(cell, field)
    return f"({no_value} or ({is_json} and ({no_text} or {has_lone_surrogate(cell)})))"


def _parse_cell(field: StructField) -> str:
    """Return the value of a cell, in SQL; null where it has none of the type."""
    cell, type_name = f"`{field.name}`", _read_type(field)
    if isinstance(field.dataType, StringType):
        return cell
    if isinstance(field.dataType, BinaryType):
        return f"try_to_binary({cell}, 'base64')"
    if not isinstance(field.dataType, ArrayType):
        return f"try_cast({cell} as {type_name})"
    as_json = f"from_json({cell}, '{type_name}')"
    if not isinstance(field.dataType.elementType, StringType):
        return as_json
    return f"if(startswith(trim({cell}), '['), {as_json}, split({cell}, ';'))"
