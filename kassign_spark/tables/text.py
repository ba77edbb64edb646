"""Tables as text, CSV and JSON lines: cells get their declared types, or are refused by name.

Nothing turns into a null because it could not be read. One job a table looks for what cannot be
read; the frame itself stays lazy.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from kassign_spark.errors import InputError
from kassign_spark.inputs.rules import says
from kassign_spark.schemas import TOPIC_PARTITIONS, TOPICS, Table

_CORRUPT = "_corrupt_record"
_SHOWN = 200
"""Characters of an unreadable record that an error repeats."""

_RFC_4180: dict[str, bool | str] = {"header": True, "escape": '"'}


TIMESTAMPS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""How moments are written: whole; Spark's own way keeps milliseconds."""


def write_csv(frame: DataFrame, path: str) -> None:
    """Write CSV files with a header line; lists become JSON arrays, an empty string is ``""``."""
    lists = [f.name for f in frame.schema if isinstance(f.dataType, ArrayType)]
    frame = frame.withColumns({column: F.to_json(column) for column in lists})
    frame.write.options(
        **_RFC_4180,
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
        timestampFormat=TIMESTAMPS,
    ).csv(path)


def read_csv(spark: SparkSession, path: str, table: Table, where: str) -> DataFrame:
    """Read CSV files with a header line, every file the same one.

    Raises:
        InputError: a line has more or fewer cells than the header, or a cell is no value of its
            column; ``where`` begins the text.
    """
    header = spark.read.options(**_RFC_4180).csv(path).columns
    strings = StructType([StructField(name, StringType()) for name in [*header, _CORRUPT]])
    text = spark.read.options(
        **_RFC_4180, multiLine=True, enforceSchema=False, columnNameOfCorruptRecord=_CORRUPT
    ).csv(path, schema=strings)
    given = [field for field in fields_of(table) if field.name in header]
    if not given:  # refused for its columns by whoever makes it conform, before a line is read
        return text.drop(_CORRUPT)
    few = says(f": a line has not the {len(header)} cells of the header: {{}}", _CORRUPT)
    cases = [f"when {_CORRUPT} is not null then {few}"]
    for field in given:
        cell, wanted = f"`{field.name}`", field.dataType.simpleString()
        wrong = says(f", column {field.name}: {{}} is no {wanted}", cell)
        cases.append(f"when {cell} is not null and {_parsed(field)} is null then {wrong}")
    (found,) = text.selectExpr(f"min(case {' '.join(cases)} end) as problem").collect()
    _refuse(found.problem, where)
    parsed = {field.name: F.expr(_parsed(field)) for field in given}
    return text.select(*(parsed.get(name, F.col(f"`{name}`")).alias(name) for name in header))


def read_json(spark: SparkSession, path: str, table: Table, where: str) -> DataFrame:
    """Read JSON lines; a column is there when some record has it.

    Returns:
        The table's columns as far as they are there; none where there is no record at all.

    Raises:
        InputError: a line is no JSON object, or a value is not of its column's type; ``where``
            begins the text.
    """
    fields = fields_of(table)
    # A list or record where a string belongs would be read as its text.
    types = ", ".join(f"`{f.name}` {_read_type(f).replace('string', 'variant')}" for f in fields)
    parsed = F.from_json(
        "value", f"{types}, {_CORRUPT} STRING", {"columnNameOfCorruptRecord": _CORRUPT}
    ).alias("parsed")
    expected = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in fields)
    has_no_text = " or ".join(
        _has_no_text(f"parsed.`{f.name}`", f.dataType) for f in fields if "string" in _read_type(f)
    )
    is_record = F.expr(
        f"json_object_keys(value) is not null and parsed.{_CORRUPT} is null "
        f"and not coalesce({has_no_text}, false)"
    )
    problem = F.expr(says(f": {{}} is no JSON record of some of ({expected})", "value"))
    lines = spark.read.text(path).where(F.trim("value") != "").select("value", parsed)
    (found,) = lines.select(
        F.array_distinct(F.flatten(F.collect_set(F.json_object_keys("value")))).alias("keys"),
        F.min(F.when(~is_record, problem)).alias("problem"),
    ).collect()
    _refuse(found.problem, where)
    declared = {field.name: _read_type(field) for field in fields}
    others = sorted(set(found["keys"]) - declared.keys())
    given = [*(name for name in declared if name in found["keys"]), *others]
    columns = ", ".join(f"`{name}` {declared.get(name, 'STRING')}" for name in given)
    return spark.read.json(path, schema=columns or StructType([]))


def fields_of(table: Table) -> list[StructField]:
    """The columns of a table, for topics those of both forms."""
    fields = list(table.columns)
    if table is TOPICS:
        fields += [f for f in TOPIC_PARTITIONS.columns if f.name == "partition"]
    return fields


def _refuse(problem: str | None, where: str) -> None:
    if problem is not None:
        cut = problem if len(problem) <= _SHOWN else f"{problem[:_SHOWN]} ..."
        raise InputError(where + cut)


def _read_type(field: StructField) -> str:
    """Whole numbers are read wide: what is out of range is then refused by its value."""
    integer = isinstance(field.dataType, IntegerType)
    return "BIGINT" if integer else field.dataType.simpleString()


def _has_no_text(value: str, type_: DataType) -> str:
    """Whether a list or record is where strings belong, in SQL; ``value`` has variants there."""
    if isinstance(type_, ArrayType):
        return f"exists({value}, each -> {_has_no_text('each', type_.elementType)})"
    return f"schema_of_variant({value}) rlike '^(ARRAY|OBJECT)'"


def _parsed(field: StructField) -> str:
    """The value of a cell, in SQL; null where it has none of the type."""
    cell, wanted = f"`{field.name}`", _read_type(field)
    if isinstance(field.dataType, StringType):
        return cell
    if not isinstance(field.dataType, ArrayType):
        return f"try_cast({cell} as {wanted})"
    as_json = f"from_json({cell}, '{wanted}')"
    if not isinstance(field.dataType.elementType, StringType):
        return as_json
    return f"if(startswith(trim({cell}), '['), {as_json}, split({cell}, ';'))"
