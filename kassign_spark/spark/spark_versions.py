"""What differs between the versions of PySpark that the package runs on, from 3.5 on."""

from collections.abc import Callable, Iterable
from functools import reduce
from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

_MAJOR, _SCALA = ("3", "2.12") if pyspark.__version__.startswith("3.") else ("4", "2.13")
KAFKA_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_{_SCALA}:{pyspark.__version__}"
"""The Spark package with Spark's Kafka source."""
GRAPHFRAMES_PACKAGE = f"io.graphframes:graphframes-spark{_MAJOR}_{_SCALA}"
"""The Spark package of GraphFrames, without its version."""
HAS_CONNECT_CHECKPOINTS = _MAJOR != "3"
"""Whether Spark Connect has checkpoints, which commands need; from 4.0 on it has tokens, too."""

_MOST_PARTITIONS = 1_000_000


def arrow_udf(function: Callable[..., pa.Array], data_type: str) -> Callable[..., Column]:
    """Return a function of columns that Python computes, from Arrow arrays to an Arrow array.

    PySpark has it from 4.1 on. Before, pandas carries the same values.
    """
    if hasattr(F, "arrow_udf"):
        in_arrow: Callable[..., Column] = F.arrow_udf(function, data_type)
        return in_arrow
    return _by_pandas(function, data_type)


def _by_pandas(function: Callable[..., pa.Array], data_type: str) -> Callable[..., Column]:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql.pandas.functions import pandas_udf

    def in_pandas(*columns: Any) -> Any:
        arrays = (pa.array(column, from_pandas=True) for column in columns)
        return pd.Series(function(*arrays).to_pylist(), dtype=object)

    in_pandas.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    by_hints: Any = pandas_udf  # its stub wants the kind of function, which it reads from the hints
    udf: Callable[..., Column] = by_hints(in_pandas, data_type)
    return udf


def try_reflect(java_class: str, method: str, argument: str) -> str:
    """Return in SQL what a static Java method returns; null where it throws.

    PySpark has it from 4.0 on. Before, the sum of a date tolerates what its operands throw.
    """
    arguments = f"('{java_class}', '{method}', {argument})"
    return f"try_reflect{arguments}" if hasattr(F, "try_reflect") else _reflect_in_sum(arguments)


def _reflect_in_sum(arguments: str) -> str:
    is_returned = f"try_add(date'1970-01-01', length(reflect{arguments})) is not null"
    return f"if({is_returned}, reflect{arguments}, null)"


def union_by_name(frames: Iterable[DataFrame], *, allow_missing: bool = False) -> DataFrame:
    """Return the rows of all frames, of which there is at least one, by the names of their columns.

    The frames of Spark Connect have the methods of ``DataFrame`` itself from PySpark 4.0 on only.
    """
    return reduce(
        lambda rows, more: rows.unionByName(more, allowMissingColumns=allow_missing), frames
    )


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect a small frame as an Arrow table.

    PySpark does so itself from 4.0 on.
    """
    return frame.toArrow() if hasattr(frame, "toArrow") else _from_rows(frame)


def _from_rows(frame: DataFrame) -> pa.Table:
    rows = [row.asDict() for row in frame.collect()]
    return pa.Table.from_pylist(rows, schema=arrow_schema(frame.schema))


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the same columns in Arrow, as Spark exchanges them with Python: times are in UTC.

    PySpark assumes it; from 4.2 on it has to be told.
    """
    is_asked = "timezone" in signature(to_arrow_schema).parameters
    options: dict[str, Any] = {"timezone": "UTC"} if is_asked else {}
    return to_arrow_schema(columns, **options)


def for_checkpoint(frame: DataFrame) -> DataFrame:
    """Return the frame as it is to be cut from its lineage.

    Before 4.0, and without adaptive execution, a checkpoint keeps by which columns the rows are
    distributed, and a join may take them for those of the frame itself: an internal error.
    ``coalesce`` to the same number of partitions forgets it, and changes nothing else.
    """
    return frame.coalesce(_MOST_PARTITIONS) if _MAJOR == "3" else frame


def error_condition(error: Exception) -> str | None:
    """Return the name of a Spark error's condition; PySpark 3.5 calls it a class."""
    if not isinstance(error, PySparkException):
        return None
    if hasattr(error, "getCondition"):
        return error.getCondition()
    return error.getErrorClass()


def static_int(java_class: str, method: str, *arguments: Column) -> Column:
    """Call a static Java method that returns an int; null where an argument is null.

    Spark has the expression (``StaticInvoke``, behind many of its own functions), but no function
    of PySpark for it; ``reflect`` takes strings only, and counts as non-deterministic. Not for
    columns of Spark Connect.
    """
    from pyspark import SparkContext  # a client of Spark Connect need not have it

    context = SparkContext._active_spark_context
    assert context is not None  # the arguments have needed it already
    jvm: Any = context._jvm
    spark = jvm.org.apache.spark.sql
    java_columns: Any = [argument._jc for argument in arguments]
    if _MAJOR == "3":
        expressions, to_column = [column.expr() for column in java_columns], spark.Column
        scalar_function = []
    else:
        utils = spark.classic.ExpressionUtils
        expressions, to_column = [*map(utils.expression, java_columns)], utils.column
        scalar_function = [jvm.scala.Option.empty()]
    called = spark.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName(java_class),
        spark.types.DataTypes.IntegerType,
        method,
        jvm.PythonUtils.toSeq(expressions),
        jvm.PythonUtils.toSeq([]),
        True,  # null if an argument is
        False,  # else never
        True,  # deterministic
        *scalar_function,
    )
    return Column(to_column(called))
