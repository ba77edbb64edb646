"""Tables of the example as JSON lines: small, and a change of them can be read in a diff."""

import json
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql.types import StructType

from kassign_spark.inputs.live import ClusterTables, Row
from kassign_spark.schemas import CLUSTER_ID, MEMBERS, OWNED, TOPICS


def write_example(tables: ClusterTables, folder: Path) -> None:
    """Write ``members``, ``topics`` and ``owned``, each a folder with one file; nulls left out."""
    for name, rows, schema in (
        ("members", tables.members, MEMBERS.columns),
        ("topics", tables.topics, TOPICS.columns),
        ("owned", tables.owned, OWNED.columns),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{name}.json").write_text("".join(_lines(rows, schema)))


def _lines(rows: Iterable[Row], schema: StructType) -> Iterable[str]:
    for row in rows:
        values = zip(schema.names, row, strict=True)
        given = {name: v for name, v in values if v is not None and name != CLUSTER_ID}
        yield json.dumps(given, separators=(",", ":")) + "\n"
