"""A report of a fleet in which another library would make a group more even."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.tables.snapshots import Snapshot, write_snapshot
from tests import builders

_TOPICS = {f"t{n}": 1 for n in range(6)}


@pytest.mark.parametrize(
    "client",
    [
        "kafka-go",
        pytest.param("sarama", marks=pytest.mark.slow),
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
def test_a_report_names_the_group(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: str | None
) -> None:
    of_group = {"group_id": "g", "topics": [*_TOPICS], "assignor": "roundrobin", "client": client}
    members = builders.members(spark, [of_group | {"member_id": f"m{n}"} for n in range(3)])
    snapshot = Snapshot(members, builders.topics(spark, _TOPICS), None)
    write_snapshot(snapshot, tmp_path / "snapshot")
    plan, page = str(tmp_path / "plan"), str(tmp_path / "page.html")
    assert cli.main(["assign", str(tmp_path / "snapshot"), "--output", plan]) == 0
    capsys.readouterr()
    assert cli.main(["report", plan, "--output", page, "--json"]) == 0
    findings = {
        row["title"]: row["text"] for row in json.loads(capsys.readouterr().out)["findings"]
    }
    title = "1 group would be more even with another client library"
    assert (title in findings) == (client == "kafka-go")
    if client == "kafka-go":
        assert findings[title] == (
            "g: 6 partitions at most now, 2 then (let Java's client or franz-go lead, whose "
            "roundrobin is not kafka-go's)."
        )
        assert "would be more even with another client library" in Path(page).read_text()
