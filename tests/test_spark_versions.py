"""What older versions of PySpark lack gives the same there: here both ways are run side by side."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.inputs.linear import match_each
from kassign_spark.inputs.regexes import _matching, _problems
from kassign_spark.spark_versions import _by_pandas, arrow_udf


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
