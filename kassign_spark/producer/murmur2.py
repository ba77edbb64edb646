"""Kafka's murmur2 hash of binary columns, as a Spark expression that Spark compiles.

Spark itself uses Apache Commons Codec, whose ``MurmurHash2.hash32`` is Kafka's ``Utils.murmur2``:
the same algorithm, the same seed (0x9747b28c), the bytes of the tail without their sign. The
expression calls it in place, on each executor's JVM. Spark Connect has no way to say so; there the
keys go to Python workers, which takes several times as long.
"""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from kassign_spark.producer.murmur2_kernel import murmur2_of
from kassign_spark.sessions import columns_are_of_connect

_CLASS = "org.apache.commons.codec.digest.MurmurHash2"


def murmur2(data: Column) -> Column:
    """Give the hash that Kafka's producer takes of a key's bytes (``Utils.murmur2``).

    Args:
        data: binary; null gives null.

    Returns:
        bigint in 0..2^32-1: Java's int without its sign.

    Example:
        >>> keys = spark.createDataFrame([("21",), ("foobar",), ("",)], "key STRING")
        >>> keys.select(murmur2(F.col("key").cast("binary")).alias("hash")).show()
        +----------+
        |      hash|
        +----------+
        |3321034988|
        |3504634814|
        | 275646681|
        +----------+
        <BLANKLINE>
    """
    if columns_are_of_connect():
        in_python: Any = arrow_udf  # its stub wants the kind of function, which it finds by itself
        hashed_there: Column = in_python(murmur2_of, "bigint")(data)
        return hashed_there
    hashed = _static_call("hash32", data, F.length(data))
    return hashed.cast("bigint").bitwiseAND(F.lit(0xFFFF_FFFF))


def _static_call(method: str, *arguments: Column) -> Column:
    """Call a static method that returns an int; null where an argument is null.

    Spark has the expression (``StaticInvoke``, behind many of its own functions), but no function
    of PySpark for it; ``reflect`` takes strings only, and counts as non-deterministic.
    """
    from pyspark import SparkContext  # a client of Spark Connect need not have it

    context = SparkContext._active_spark_context
    assert context is not None  # F.length has needed it already
    jvm: Any = context._jvm
    columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
    called = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName(_CLASS),
        jvm.org.apache.spark.sql.types.DataTypes.IntegerType,
        method,
        jvm.PythonUtils.toSeq([columns.expression(of._jc) for of in arguments]),
        jvm.PythonUtils.toSeq([]),
        True,  # null if an argument is
        False,  # else never
        True,  # deterministic
        jvm.scala.Option.empty(),
    )
    return Column(columns.column(called))
