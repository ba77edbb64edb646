"""``report`` through ``cli.main``: from a snapshot by way of a plan to the data in the page."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.commands import report_command
from kassign_spark.errors import OutputError
from kassign_spark.report.render import MARK
from kassign_spark.tables.output_file import write_file
from tests.small_fleet import MEMBERS, write_small_fleet

_ODD = "<script>alert(1)</script>"
_MEMBERS = MEMBERS + f"{_ODD},a,orders,range,1,\n{_ODD},b,lost,range,1,\n"


def _data(page: str) -> dict[str, Any]:
    """What the page's script is given, a dict a group."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(text)
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data["groups"]]
    return {**data, "groups": rows}


def _fail(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of an error."""
    capsys.readouterr()
    assert cli.main(arguments) == 2
    [line] = [text for text in capsys.readouterr().err.splitlines() if not text.endswith("...")]
    return line.removeprefix("kassign-spark: error: ")


def test_a_plan_becomes_a_page(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = write_small_fleet(tmp_path / "fleet", members=_MEMBERS)
    leaders = [
        {"topic": "__consumer_offsets", "partition": p, "leader": int(p == 49)} for p in range(50)
    ]
    (fleet / "leaders.jsonl").write_text("\n".join(map(json.dumps, leaders)) + "\n")
    plan, output = str(tmp_path / "plan"), tmp_path / "new" / "report.html"
    assert cli.main(["assign", str(fleet), "--output", plan, "--format", "csv"]) == 1  # topic lost
    capsys.readouterr()
    assert cli.main(["report", plan, "--output", str(output), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["page_bytes"] == output.stat().st_size
    totals = {name: facts[name] for name in ("group_count", "member_count", "partition_count")}
    assert totals == {"group_count": 4, "member_count": 8, "partition_count": 26}
    assert (facts["withheld_count"], facts["problem_count"]) == (2, 1)
    assert [path.name for path in output.parent.iterdir()] == [output.name]

    page = output.read_text(encoding="utf-8")
    assert "computed: 4 groups by task</p>" in page
    assert page.count("<script") == 2
    assert page.count("&lt;script&gt;alert(1)") > 0
    data = _data(page)
    groups = {row["name"]: row for row in data["groups"]}
    details = {row["name"]: of for row, of in zip(data["groups"], data["details"], strict=True)}
    mail = groups["mail"]
    expected = {
        **{"protocol": 1, "min_before": 0, "max_before": 5, "min_assigned": 2, "max_assigned": 3},
        **{"moved": 2, "least_moves": 2, "withheld_count": 2, "planned_rounds": 2},
        **{"planned_paused": 2, "eager_rounds": 1, "eager_paused": 5, "cooperative_paused": 2},
        **{"problem_count": 0, "violation_count": 0, "planned_settles": 1},
    }
    assert {name: mail[name] for name in expected} == expected
    assert details["mail"]["members"] == [["mail-a", 5, 3, 0], ["mail-b", 0, 2, 0]]
    [move] = details["mail"]["moves"]
    assert move[:4] == ["moved", "mail-a", "mail-b", 2]
    assert re.fullmatch(r"orders\[[0-9,-]+\]", move[4])
    odd = groups[_ODD]
    assert (odd["problem_count"], odd["idle_after"], odd["max_assigned"]) == (1, 1, 5)
    [problem] = details[_ODD]["problems"]
    assert problem[0] == "topic_without_metadata"
    assert data["problems"][0][:5] == ["snapshot", "topic_without_metadata", _ODD, "", "lost"]
    why = details["search"]["why"]
    assert why["reason"] == (
        "only member search-a can read orders (5 partitions), so 5 is the least maximum, where 4 "
        "would be even, and roundrobin gives 6"
    )
    assert why["rows"] == [[["search-a"], 1, 1, "11"], [["search-b"], 1, 0, "01"]]
    assert why["classes"] == [[["orders"], 1, 5, 1], [["payments"], 1, 3, 0]]
    assert ["let member search-b read orders as well", 4, 0] in [row[:3] for row in why["advice"]]
    assert (details["mail"]["why"], details[_ODD]["why"]["before"]) == (None, [5, 5])
    spreads = {name: row["max_assigned"] - row["min_assigned"] for name, row in groups.items()}
    assert next(iter(groups)) == _ODD == max(spreads, key=lambda name: spreads[name])
    assert {row["coordinator"] for row in groups.values()} <= {0, 1}

    errors = {
        "exists; name a new file": ["report", plan, "--output", str(output)],
        "has no table balance": ["report", str(fleet), "--output", str(tmp_path / "r")],
        "would replace the input": ["report", plan, "--output", f"{plan}/r.html"],
    }
    for message, arguments in errors.items():
        assert message in _fail(arguments, capsys)
    other = write_small_fleet(tmp_path / "other")
    arguments = ["report", plan, "--output", str(tmp_path / "r"), "--snapshot", str(other)]
    assert f"is not of snapshot {other}" in _fail(arguments, capsys)
    shutil.rmtree(fleet)
    gone = _fail(["report", plan, "--output", str(output), "--overwrite"], capsys)
    assert "not found" in gone
    assert "--snapshot names the snapshot of" in gone
    (tmp_path / "plan" / "_kassign_spark").write_text("{}")
    unknown = _fail(["report", plan, "--output", str(tmp_path / "r")], capsys)
    assert "does not say of which snapshot it was made" in unknown
    assert output.read_text(encoding="utf-8") == page


@pytest.mark.slow
def test_without_what_was_owned(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing tells who had what before, nor which broker coordinates: the page says so."""
    fleet = write_small_fleet(tmp_path / "fleet")
    (fleet / "owned.json").unlink()
    plan, output = str(tmp_path / "plan"), tmp_path / "report.html"
    assert cli.main(["assign", str(fleet), "--output", plan]) == 0
    command = ["report", plan, "--output", str(output), "--details", "1"]
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert "What moves is not known" in printed
    page = output.read_text(encoding="utf-8")
    assert "the snapshot has no table owned" in page
    assert "the snapshot has no table leaders" in page
    data = _data(page)
    assert len(data["details"]) == 1
    assert {row["moved"] for row in data["groups"]} == {None}
    assert {row["max_before"] for row in data["groups"]} == {None}


def test_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report_command, "find_spec", lambda name: None)
    output = _fail(["report", "plan", "--output", str(tmp_path / "r")], capsys)
    assert output.endswith("pip install 'kassign-spark[report]'")


def test_only_a_page_of_ours_is_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "report.html", tmp_path / "latest.html"
    write_file(str(file), f"{MARK} one", mark=MARK)
    with pytest.raises(OutputError, match="exists; name a new file"):
        write_file(str(file), "two", mark=MARK)
    write_file(str(file), f"{MARK} two", mark=MARK, overwrite=True)
    assert re.fullmatch(rf"{MARK} two<!-- kassign-spark [0-9a-f]{{64}} -->\n", file.read_text())
    link.symlink_to(file.name)  # the link stays, and what it leads to is replaced
    write_file(str(link), f"{MARK} three", mark=MARK, overwrite=True)
    assert link.is_symlink()
    assert file.read_text().startswith(f"{MARK} three")
    link.unlink()
    with pytest.raises(OutputError, match="is a folder"):
        write_file(str(tmp_path), "three", mark=MARK, overwrite=True)
    with pytest.raises(OutputError, match="is not a folder that can be written to"):
        write_file(str(file / "inside"), "three", mark=MARK)
    whole = file.read_text()
    for theirs, message in {
        "theirs": "is not a file that kassign-spark wrote",
        whole.replace("three", "tree!"): "was changed since kassign-spark wrote it",
        f"{whole}<p>my notes</p>": "was changed since kassign-spark wrote it",
        f"{MARK} of before there were digests": "or an earlier version wrote it",
    }.items():
        file.write_text(theirs)
        with pytest.raises(OutputError, match=f"{message}.*, so it is not overwritten"):
            write_file(str(file), "four", mark=MARK, overwrite=True)
        assert file.read_text() == theirs
    assert list(tmp_path.iterdir()) == [file]
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OutputError, match="is not a regular file, so it is not overwritten"):
        write_file(str(file), "four", mark=MARK, overwrite=True)


def test_a_page_that_is_edited_while_the_new_one_is_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.html"
    write_file(str(file), f"{MARK} one", mark=MARK)
    synced = os.fsync

    def edit(number: int) -> None:
        file.write_text(f"{file.read_text()}<p>my notes</p>")
        synced(number)

    monkeypatch.setattr(os, "fsync", edit)
    with pytest.raises(OutputError, match="was changed since kassign-spark wrote it"):
        write_file(str(file), f"{MARK} two", mark=MARK, overwrite=True)
    assert file.read_text().startswith(f"{MARK} one")
    assert file.read_text().endswith("<p>my notes</p>")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
def test_a_history_is_on_the_page(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = write_small_fleet(tmp_path / "fleet")
    plan, history, output = (str(tmp_path / name) for name in ("plan", "history", "report.html"))
    assert cli.main(["assign", str(fleet), "--output", plan]) == 0
    log = str(Path(__file__).parents[1] / "examples" / "group-log")
    assert cli.main(["history", "--log", log, "--output", history]) == 1
    capsys.readouterr()
    assert cli.main(["report", plan, "--history", history, "--output", output, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["past_rebalance_count"] == 14
    page = Path(output).read_text(encoding="utf-8")
    assert f"3 groups of <b>{history}</b> rebalanced 14 times, 1 storm." in page
    [table] = re.findall(r'id="past-table">(.*?)</table>', page, re.DOTALL)
    rows = [re.findall(r">([^<>]+)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    assert [row[:2] for row in rows] == [["billing", "10"], ["search", "3"], ["audit", "1"]]
    assert rows[0][2:] == ["36", "20.00", "a member left", "1"]
    sentence = "billing, 2026-11-22 03:01:03, generation 2: a member left; "
    assert page.count(sentence) == 1
    line = _fail(["report", plan, "--history", plan, "--output", f"{output}2"], capsys)
    assert line.startswith(f"table rebalances: not found in {plan}")
