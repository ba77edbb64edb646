"""``table:CATALOG.SCHEMA`` where a folder is taken: here Parquet tables of Spark's own catalog."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import Snapshot, read_snapshot, write_snapshot
from kassign_spark.cli import main
from kassign_spark.errors import InputError, OutputError
from kassign_spark.schemas import WEIGHTS
from kassign_spark.tables.catalog_paths import CatalogPath
from kassign_spark.tables.snapshots import new_folder, read_named_table, write_text
from tests import catalog_runs
from tests.docs.reader import ROOT

_SCHEMA = "kassign_tests"
_PLACE = f"table:spark_catalog.{_SCHEMA}"


@pytest.fixture
def place(spark: SparkSession) -> Iterator[str]:
    spark.sql(f"CREATE SCHEMA {_SCHEMA}")
    yield _PLACE
    spark.sql(f"DROP SCHEMA {_SCHEMA} CASCADE")


@pytest.fixture(scope="module")
def fleet(spark: SparkSession) -> Snapshot:
    return read_snapshot(ROOT / "examples" / "fleet", spark)


@pytest.mark.slow
def test_snapshots_over_time_and_plans(spark: SparkSession, place: str, fleet: Snapshot) -> None:
    catalog_runs.snapshots_over_time(spark, place, fleet)
    catalog_runs.plans_of_runs(spark, place, catalog_runs.in_process)


def test_unfinished_runs(spark: SparkSession, place: str, fleet: Snapshot) -> None:
    catalog_runs.unfinished_runs_are_not_read(spark, place, fleet)


def test_tables_that_somebody_else_made(spark: SparkSession, place: str, fleet: Snapshot) -> None:
    """Without the columns of a run they are read whole, and never appended to."""
    for name in ("members", "topics"):
        fleet.tables()[name].write.saveAsTable(f"{_SCHEMA}.{name}")
    read = read_snapshot(place, spark)
    assert read.owned is None
    catalog_runs.assert_same(read, Snapshot(fleet.members, fleet.topics, None))
    with pytest.raises(InputError, match="no column run_id, so no times to choose from"):
        read_snapshot(f"{place}@2026-01-01", spark)
    with pytest.raises(OutputError, match="table members there has no columns run_id and run_at"):
        write_snapshot(fleet, place)
    spark.sql(f"CREATE VIEW {_SCHEMA}.my_weights AS SELECT 't' topic, 0 partition, 1D weight")
    table = read_named_table(spark, f"{place}.my_weights", WEIGHTS)
    assert table.collect() == [("t", 0, 1.0)]
    spark.sql(f"DROP VIEW {_SCHEMA}.my_weights")


def test_what_is_refused(spark: SparkSession, place: str, fleet: Snapshot, capsys: Any) -> None:
    missing = "table:spark_catalog.no_such"
    for wrong, error in [
        (lambda: read_snapshot(place, spark), "table members: not found in"),
        (lambda: read_snapshot(missing, spark), "schema `spark_catalog`.`no_such`: not found"),
        (lambda: read_snapshot("table:", spark), "is not a name of tables"),
        (lambda: read_snapshot("table:a..b", spark), "is not a name of tables"),
        (lambda: read_snapshot("table:no_such_catalog.a.b", spark), "no_such_catalog"),
        (lambda: write_snapshot(fleet, "build/x", as_of=catalog_runs.FIRST), "is a folder"),
    ]:
        with pytest.raises(InputError, match=error) as raised:
            wrong()
        assert "\n" not in str(raised.value)
    for wrong, error in [
        (lambda: write_snapshot(fleet, missing), "in memory here and ends with the session"),
        (lambda: write_snapshot(fleet, f"{place}@2026-01-01"), "leave @... out"),
        (lambda: write_snapshot(fleet, place, overwrite=True), "nothing to overwrite"),
        (lambda: write_snapshot(fleet, place, table_format="csv"), "the catalog chooses"),
    ]:
        with pytest.raises(OutputError, match=error):
            wrong()
    with (
        pytest.raises(OutputError, match="is a file, which no catalog takes"),
        new_folder(spark, place) as run,
    ):
        write_text(spark, "", run, "graph.dot")
    assert main(["assign", "examples/fleet", "--as-of", "2026-01-01", "--output", place]) == 2
    assert "is a folder, which holds one snapshot" in capsys.readouterr().err
    spark.sql(f"CREATE TABLE {_SCHEMA}.members (run_id STRING, run_at TIMESTAMP) USING parquet")
    with pytest.raises(InputError, match="has no table runs"):
        read_snapshot(place, spark)


@pytest.mark.parametrize(
    ("text", "parts", "when"),
    [
        ("table:c.s", ("c", "s"), None),
        ("table:s", ("s",), None),
        ("table:c.s@2026-01-31 08:00", ("c", "s"), "2026-01-31 08:00"),
        ("table:my-c.`a.b@c`.`d``e`@x", ("my-c", "a.b@c", "d`e"), "x"),
    ],
)
def test_names(text: str, parts: tuple[str, ...], when: str | None) -> None:
    place = CatalogPath.of(text)
    assert (place.parts, place.when) == (parts, when)
    assert CatalogPath.of(str(place)) == place


@pytest.mark.parametrize("text", ["table:", "table:.s", "table:c.s@", "table:a b", "table:c/s"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="is not a name of tables"):
        CatalogPath.of(text)
