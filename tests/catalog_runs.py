"""What holds of tables of a catalog, whatever keeps them: asked of Spark's own and of others."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import KassignError, Snapshot, read_snapshot, write_snapshot
from kassign_spark.cli import main
from kassign_spark.errors import InputError
from kassign_spark.tables.origin import noted_snapshot
from kassign_spark.tables.snapshots import has_table, new_folder, write_table

FIRST, SECOND = (datetime(2026, 3, day, 12, 0, 0, 5, tzinfo=UTC) for day in (1, 2))


def snapshots_over_time(spark: SparkSession, place: str, snapshot: Snapshot) -> None:
    """Two snapshots of other columns: each comes back as it was written, by its time."""
    fewer = Snapshot(snapshot.members.drop("rack_id", "generation"), snapshot.topics, None)
    write_snapshot(fewer, place, as_of=FIRST)
    write_snapshot(snapshot, place, as_of=SECOND)
    assert_same(read_snapshot(place, spark), snapshot)
    assert_same(read_snapshot(f"{place}@2026-03-02T12:00:00.000005Z", spark), snapshot)
    assert_same(read_snapshot(f"{place}@2026-03-02T12:00:00Z", spark), fewer)
    assert_same(read_snapshot(f"{place}@2026-03-01 14:00:00+01:00", spark), fewer)
    _refused(
        lambda: read_snapshot(f"{place}@2026-03-01", spark),
        "no run is as old as 2026-03-01; the earliest is of 2026-03-01 ",
    )
    _refused(lambda: read_snapshot(f"{place}@soon", spark), "soon is not a time")
    _refused(
        lambda: read_snapshot(f"{place}@20260301T120000000006Z-00000000", spark),
        "no complete run has it",
    )


def unfinished_runs_are_not_read(spark: SparkSession, place: str, snapshot: Snapshot) -> None:
    """Readers see nothing of a run while it writes, and nothing of one that failed."""
    write_snapshot(snapshot, place, as_of=SECOND)
    with suppress(ZeroDivisionError), new_folder(spark, place) as run:
        write_table(snapshot.members.limit(1), run, "members")
        write_table(snapshot.topics.limit(1), run, "topics")
        assert_same(read_snapshot(place, spark), snapshot)
        assert read_snapshot(run, spark).members.count() == 1  # who writes it reads it
        raise ZeroDivisionError
    assert_same(read_snapshot(place, spark), snapshot)


def two_writers_at_once(spark: SparkSession, place: str, snapshot: Snapshot) -> None:
    """Both are there, whole, whichever was first."""
    with ThreadPoolExecutor(2) as writers:
        for written in [
            writers.submit(write_snapshot, snapshot, place, as_of=at) for at in (FIRST, SECOND)
        ]:
            written.result()
    for at in (FIRST, SECOND):
        assert_same(read_snapshot(f"{place}@{at.isoformat()}", spark), snapshot)


Command = Callable[[list[str]], tuple[int, str]]


def plans_of_runs(spark: SparkSession, place: str, command: Command) -> None:
    """Commands on tables: plans say what they were made from, and are told apart by run."""
    early = ["--as-of", "2026-03-01T23:00:00Z"]
    first = _json(command, "assign", place, *early, "--output", place)
    second = _json(command, "assign", place, "--output", place, "--assignor", "range")
    assert first["snapshot"].startswith(f"{place}@20260301T120000000005Z-")
    assert second["snapshot"].startswith(f"{place}@20260302T120000000005Z-")
    schema = place.removeprefix("table:")
    runs = spark.table(f"{schema}.runs").where("made_from IS NOT NULL").orderBy("run_at").collect()
    assert [row.made_from for row in runs] == [first["snapshot"], second["snapshot"]]
    assert [row.made_from_at.astimezone(UTC) for row in runs] == [FIRST, SECOND]
    assert all(set(row.tables) == {"assignment", "balance"} for row in runs)
    moved = _json(command, "diff", f"{place}@{runs[0].run_id}", place)["moved_count"]
    was = _json(command, "diff", f"{place}@2026-03-03", place)  # owned, before any plan
    assert was["group_count"] == 25
    assert moved > 0 == _json(command, "diff", place, place)["moved_count"]
    # What another run has found is none of the newest plan's.
    with new_folder(spark, place) as run:
        write_table(spark.range(1).toDF("broken"), run, "violations")
    assert has_table(spark, place, "violations")
    assert not has_table(spark, f"{place}@{runs[1].run_id}", "violations")
    assert noted_snapshot(spark, place, "balance") == second["snapshot"]


def in_process(arguments: list[str]) -> tuple[int, str]:
    """Run a command in the session of this process."""
    out = StringIO()
    with redirect_stdout(out):
        code = main(arguments)
    return code, out.getvalue()


def _json(command: Command, *arguments: str) -> dict[str, Any]:
    code, out = command([*arguments, "--json"])
    assert code == 0, out
    answer: dict[str, Any] = json.loads(out)
    return answer


def _refused(call: Any, text: str) -> None:
    with pytest.raises(KassignError) as error:
        call()
    assert text in str(error.value), str(error.value)
    assert isinstance(error.value, InputError)


def assert_same(snapshot: Snapshot, expected: Snapshot) -> None:
    assert snapshot.tables().keys() == expected.tables().keys()
    for name, frame in expected.tables().items():
        assert snapshot.tables()[name].columns == frame.columns
        _same_rows(snapshot.tables()[name], frame)


def _same_rows(one: DataFrame, other: DataFrame) -> None:
    types = {f.name: f.dataType for f in other.schema}
    assert_df_equality(
        one.select(*(one[name].cast(types[name]).alias(name) for name in types)),
        other.select(*types),
        ignore_row_order=True,
        ignore_nullable=True,
    )
