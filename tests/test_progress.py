"""The general pass tells its rounds."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet

_DIFFERING = """group_id,member_id,topics,assignor
mixed,a,orders;payments,sticky
mixed,b,orders,sticky
mixed,c,payments,sticky
"""


@pytest.mark.slow
def test_progress_shows_each_round_and_the_result_counts_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = write_small_fleet(tmp_path / "fleet", members=_DIFFERING, owned="")
    (fleet / "owned.json").unlink()
    settings = tmp_path / "settings.toml"
    settings.write_text('engine = "rounds"')
    arguments = ["assign", str(fleet), "--output", str(tmp_path / "plan"), "--json"]
    assert cli.main([*arguments, "--settings", str(settings), "--progress"]) == 0
    shown = capsys.readouterr()
    rounds = [line for line in shown.err.splitlines() if line.startswith("round ")]
    assert rounds
    assert "open partitions 0, " in rounds[-1]
    facts = json.loads(shown.out)
    assert facts["round_count"] == len(rounds)
    (group,) = facts["balance"]
    assert (group["is_balance_optimal"], group["is_optimal"]) == (True, True)
