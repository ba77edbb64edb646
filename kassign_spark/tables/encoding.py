"""Invalid UTF-8 and half characters in JSON: Spark would replace them silently."""

import json
from collections.abc import Iterator
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import InputError
from kassign_spark.tables.files import pattern_of

LOST = "\ufffd"
"""The character that Spark reads in place of invalid bytes."""


def has_lone_surrogate(value: str) -> str:
    """Return in SQL whether JSON names half a character, such as ``\\ud800`` alone."""
    half = r"r'(?i)\\ud[89a-f]'"
    whole = r"r'(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}'"
    escapes = rf"replace({value}, r'\\', ' ')"  # a backslash that is meant as one begins none
    return f"({value} rlike {half} and regexp_replace({escapes}, {whole}, '') rlike {half})"


NOT_UTF8 = "value <> format_string('%s', value)"
"""Whether a line has another encoding, in SQL: what Java formats has ``LOST`` for invalid bytes."""
UNREADABLE = f"({NOT_UTF8} or {has_lone_surrogate('value')})"
"""The same of a line of JSON, which may also name half a character."""


def refuse_lines(spark: SparkSession, path: str, place: str, fault: str) -> None:
    """Refuse files with a line that is ``NOT_UTF8`` or ``UNREADABLE``; runs a job.

    CSV in which a character may be lost may also hold ``LOST`` itself: then nothing is wrong.

    Raises:
        InputError: it names the first such file and its first such line; ``where`` begins.
    """
    lines = spark.read.text(path)
    (first,) = lines.selectExpr(
        f"min_by(struct(_metadata.file_path as path, _metadata.file_name as name), "
        f"_metadata.file_path) filter (where {fault}) as file"
    ).collect()
    if first.file is None:
        return
    raise InputError(f"{place}: file {first.file.name}{_first_fault(spark, first.file.path)}")


def _first_fault(spark: SparkSession, file: str) -> str:
    """Return the first invalid line, and what is wrong with it."""
    for number, line in enumerate(_lines(spark, file), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            return f", line {number}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            half = "half a character (a lone surrogate, \\ud800 to \\udfff)"
            return f", line {number}: {half} is not text"
        except (ValueError, RecursionError):
            continue  # no JSON
    return " has changed meanwhile"


def _lines(spark: SparkSession, file: str) -> Iterator[bytes]:
    """Return the lines of a file as bytes, in their order."""
    lines = spark.read.text(pattern_of(unquote(file)), lineSep="\n").select(
        F.col("value").cast("binary")
    )
    return (bytes(row.value) for row in lines.toLocalIterator())
