"""The columns that tasks answer with: those that a result declares."""

from kassign_spark.results import RESULTS
from kassign_spark.schemas import CLUSTER_ID


def columns_of(result: str) -> str:
    """Return a result's columns (``RESULTS``) as Spark reads a schema, ``cluster_id`` first."""
    columns = {CLUSTER_ID: "string", **RESULTS[result]}
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())
