"""The same commands on a cluster and in one process give the same rows."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kassign_spark import cli
from tests.cluster.fleet_files import write_fleet
from tests.cluster.standalone import Standalone

pytestmark = pytest.mark.slow


def test_executors_have_no_package_of_their_own(cluster: Standalone) -> None:
    """So what they run came with the job."""
    python = str(cluster.folder / "python")
    has_spark = subprocess.run([python, "-c", "import pyspark, pyarrow, pandas"], check=False)
    has_package = subprocess.run(
        [python, "-c", "import kassign_spark"],
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert has_spark.returncode == 0
    assert "No module named 'kassign_spark'" in has_package.stderr


@pytest.mark.parametrize(
    "command",
    [["assign", "--settings"], ["rebalance"], ["predict", "--assignor", "sticky"]],
    ids=lambda command: command[0],
)
def test_equal_rows(
    spark: SparkSession,
    cluster: Standalone,
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *options = command
    if options == ["--settings"]:  # the general pass by rounds over the executors
        settings = tmp_path / "settings.toml"
        settings.write_text('engine = "rounds"\nuse_graphframes = false\n')
        options.append(str(settings))
    fleet = write_fleet(tmp_path / "fleet")
    arguments = [name, str(fleet), *options, "--json"]
    submitted = cluster.submit(*arguments, "--output", tmp_path / "there")
    code = cli.main([*arguments, "--output", str(tmp_path / "here")])
    here = json.loads(capsys.readouterr().out)
    printed, _ = submitted.communicate(timeout=600)
    assert submitted.returncode == code, printed
    there = json.loads(printed)
    assert there | {"output": ""} == here | {"output": ""}
    if name == "assign":
        assert here["round_count"] > 0
    tables = sorted(path.name for path in (tmp_path / "here").iterdir() if path.is_dir())
    assert tables
    for table in tables:
        result, expected = (_rows(spark, tmp_path / where / table) for where in ("there", "here"))
        assert expected
        assert result == expected


def _rows(spark: SparkSession, folder: Path) -> "Counter[Row]":
    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, list) else value

    frame = spark.read.parquet(str(folder))
    return Counter(Row(*map(plain, row)) for row in frame.collect())
