"""What differs between the versions of PySpark that the package runs on."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F


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
