"""What older versions of PySpark lack gives the same there: here both ways are run side by side."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.inputs.linear import match_each
from kassign_spark.inputs.regexes import _matching, _problems
from kassign_spark.spark.spark_versions import (
    _by_pandas,
    _from_rows,
    _reflect_in_sum,
    arrow_udf,
    to_arrow,
    try_reflect,
)


def test_functions_on_arrow_arrays_give_the_same_by_pandas(spark: SparkSession) -> None:
    rows = [
        ("a.*", ["a", "ab", "b"], ["a.*", "b"]),
        ("(", ["a", "é"], ["é"]),
        (None, [], ["a"]),
        ("b|c", None, []),
    ]
    columns = "pattern string, names array<string>, regexes array<string>"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    named = F.coalesce("names", F.array(F.lit("a")))
    calls = [
        (_problems, "string", ["pattern"]),
        (match_each, "array<string>", [F.coalesce("pattern", F.lit("a")), "names"]),
        (_matching, "array<array<string>>", ["regexes", named]),
    ]
    for function, data_type, arguments in calls:
        in_arrow, by_pandas = (
            udf(function, data_type)(*arguments) for udf in (arrow_udf, _by_pandas)
        )
        answers = frame.select(in_arrow.alias("arrow"), by_pandas.alias("pandas")).collect()
        assert [row.pandas for row in answers] == [row.arrow for row in answers]
        assert any(row.arrow for row in answers)


def test_what_java_refuses_is_null_in_a_sum_as_well(spark: SparkSession) -> None:
    patterns = [("a.*",), ("(",), ("[b",), (None,), ("",)]
    frame = spark.createDataFrame(patterns, "pattern string")
    call = ("java.util.regex.Pattern", "compile", "pattern")
    older = _reflect_in_sum(f"('{call[0]}', '{call[1]}', {call[2]})")
    rows = frame.selectExpr(f"{try_reflect(*call)} as newer", f"{older} as older").collect()
    assert [row.older for row in rows] == [row.newer for row in rows]
    assert [row.older for row in rows] == ["a.*", None, None, None, ""]


def test_rows_are_collected_as_the_same_table_of_arrow(spark: SparkSession) -> None:
    rows = [("t", 3, None, True), ("u", None, "[]", None)]
    frame = spark.createDataFrame(rows, "topic string, size bigint, racks string, differs boolean")
    for some in (frame, frame.limit(0)):
        assert _from_rows(some).equals(to_arrow(some))
