"""``kassign-spark plan`` and ``tradeoff`` through ``cli.main``."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli, write_snapshot
from kassign_spark.schemas import OFFSETS, WEIGHTS
from kassign_spark.tables.snapshots import Snapshot
from tests import builders

_ENDS = {"now": (9_000, 3_000, 3_000, 600), "before": (3_000, 2_400, 2_400, 0)}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weighted")
    members = builders.members(
        spark,
        [
            {"group_id": "g", "member_id": m, "topics": ["t"], "assignor": "cooperative-sticky"}
            for m in ("a", "b")
        ],
    )
    topics = builders.topics(spark, {"t": 4})
    owned = builders.owned(spark, builders.owner_rows("a: tp0 tp1 tp2; b: tp3", "g"))
    for name, ends in _ENDS.items():
        write_snapshot(Snapshot(members, topics, owned), path / name)
        at = datetime(2026, 3, 1, 12) - timedelta(seconds=600 * (name == "before"))
        offsets = builders.table(
            spark,
            OFFSETS,
            [
                {
                    "group_id": "g",
                    "topic": "t",
                    "partition": p,
                    "begin_offset": 0,
                    "end_offset": end,
                    "committed_offset": end - end // 10,
                    "as_of": at,
                }
                for p, end in enumerate(ends)
            ],
        )
        offsets.write.parquet(str(path / name / "offsets"))
    weights = [
        {"topic": "t", "partition": p, "weight": float(w)} for p, w in enumerate((6, 3, 3, 2))
    ]
    builders.table(spark, WEIGHTS, weights).coalesce(1).write.csv(
        str(path / "told" / "weights"), header=True
    )
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    code = cli.main([*map(str, arguments), "--json"])
    output = capsys.readouterr()
    assert output.out, output.err
    return code, json.loads(output.out)


def test_plan_of_told_weights(
    spark: SparkSession, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan"
    code, facts = run(
        capsys, "plan", folder / "now", "--weights", folder / "told", "--output", output
    )
    assert code == 0
    assert facts["verdicts"] == {"within_limit": 1}
    (group,) = facts["groups"]
    assert (group["moves"], group["max_load"], group["load_bound"]) == (1, 8, 7)
    file = tmp_path / "told.csv"
    file.write_text("topic,partition,weight\nt,0,6\nt,1,3\nt,2,3\nt,3,2\n")
    assert run(capsys, "plan", folder / "now", "--weights", file)[1]["groups"] == [group]
    assert spark.read.parquet(str(output / "assignment")).count() == 4
    code = cli.main(["diff", str(folder / "now"), str(output), "--json"])
    assert code == 0
    assert json.loads(capsys.readouterr().out)["moved_count"] == 1


def test_plan_of_lag_and_rate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, facts = run(capsys, "plan", folder / "now", "--weights", "lag", "--max-moves", "0")
    assert facts["groups"][0]["max_load"] == 1_500
    before = ("--weights", "rate", "--before", folder / "before", "--horizon", "600s")
    _, facts = run(capsys, "plan", folder / "now", *before, "--max-moves", "0")
    # 10 + 1 + 1 records/s more, and 1500 records in ten minutes.
    assert facts["groups"][0]["max_load"] == 12 + 2.5


@pytest.mark.slow
def test_a_plan_by_weight_is_reported(
    spark: SparkSession, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loads before and after, the curve, and moves as members are told them: with no round."""
    weights_option = ("--weights", folder / "told")
    code, _ = run(capsys, "plan", folder / "now", *weights_option, "--output", tmp_path / "plan")
    assert code == 0
    code, facts = run(
        capsys, "report", tmp_path / "plan", "--output", tmp_path / "page.html", *weights_option
    )
    assert code == 0
    assert facts["weighed_group_count"] == 1
    assert (facts["moved"], facts["planned_paused"], facts["planned_rounds"]) == (1, 1, 1)
    assert facts["withheld_count"] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    row = re.search(r'<tr><th scope="row">g</th>(.*?)</tr>', page)
    assert row is not None
    cells = re.findall(r">([^<]*)</td>", row[1])
    # 12 of 14 before, 8 after the one of 6 has moved: 7 is fair.
    assert cells == ["7.00", "12.00", "8.00", "1.71", "1.14", "6.00"]
    assert "g: no plan is below 1.00 times the fair load" in page
    assert cli.main(["report", str(tmp_path / "plan"), "--output", str(tmp_path / "p.html")]) == 0
    assert 'id="weights"' not in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_groups_of_every_type_are_reported(
    spark: SparkSession, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``plan`` takes: of the new protocol, without an assignor, with one that nobody knows."""
    kinds = {"g": "range", "mixed": None, "new": "uniform", "none": None, "own": "com.example.Own"}
    rows = [
        {
            "group_id": group,
            "member_id": member,
            "topics": ["t"],
            "assignor": assignor if (group, member) != ("mixed", "b") else "sticky",
            "group_type": "consumer" if group == "new" else "classic",
        }
        for group, assignor in kinds.items()
        for member in "ab"
    ]
    claims = [
        row for group in kinds for row in builders.owner_rows("a: tp0 tp1 tp2; b: tp3", group)
    ]
    tables = builders.members(spark, rows), builders.topics(spark, {"t": 4})
    write_snapshot(Snapshot(*tables, builders.owned(spark, claims)), tmp_path / "types")
    weights_option = ("--weights", folder / "told")
    code, facts = run(
        capsys, "plan", tmp_path / "types", *weights_option, "--output", tmp_path / "plan"
    )
    assert (code, facts["verdicts"]) == (0, {"within_limit": 5})
    code, facts = run(
        capsys, "report", tmp_path / "plan", "--output", tmp_path / "page.html", *weights_option
    )
    assert (code, facts["weighed_group_count"], facts["moved"]) == (0, 5, 5)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(f'<tr><th scope="row">{group}</th>' in page for group in kinds)


def test_tradeoff_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tradeoff", str(folder / "now"), "--weights", str(folder / "told")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 group with weights"
    assert any("1.71x -> " in line and "no plan below 1x" in line for line in lines)


def test_compare_says_what_assignors_cost_in_load(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, facts = run(capsys, "compare", folder / "now", "--weights", folder / "told")
    assert code == 0
    (group,) = facts["groups"]
    way = ("range", "eager")
    by_range = next(
        row for row in group["by_assignor"] if (row["assignor"], row["protocol"]) == way
    )
    assert (by_range["max_load"], by_range["load_skew"], by_range["load_bound"]) == (9, 9 / 7, 7)
    assert by_range["moved_weight"] == 3
    (of_all,) = (row for row in facts["assignors"] if (row["assignor"], row["protocol"]) == way)
    assert (of_all["max_load_skew"], of_all["max_least_skew"]) == (9 / 7, 1)
    assert cli.main(["compare", str(folder / "now"), "--weights", str(folder / "told")]) == 0
    assert "no load below" in capsys.readouterr().out


def test_a_snapshot_without_offsets_says_how_to_take_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bare").mkdir()
    for table in ("members", "topics", "owned"):
        (folder / "bare" / table).symlink_to(folder / "now" / table)
    assert cli.main(["plan", str(folder / "bare"), "--weights", "lag"]) == 2
    output = capsys.readouterr().err.splitlines()[-1]
    assert "has no table offsets" in output
    assert "kassign-spark snapshot --offsets" in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--weights", "rate"), "needs --before SNAPSHOT"),
        (("--weights", "lag", "--before", "x"), "lag is of one moment"),
        (("--weights", "lag", "--max-load", "-1"), "is not a number >= 0"),
        (("--weights", "nowhere"), "folder nowhere: not found"),
        (("--weights", "nowhere.csv"), "table weights in nowhere.csv: cannot be read: "),
    ],
)
def test_bad_usage_is_one_line(
    folder: Path, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = cli.main(["plan", str(folder / "now"), *arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    assert code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "plan",
        pytest.param("tradeoff", marks=pytest.mark.slow),
        pytest.param("compare", marks=pytest.mark.slow),
    ],
)
def test_weights_of_what_is_not_there(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Nothing is planned by them, and nobody may take that for a plan by weight."""
    file = tmp_path / "weights.csv"
    own = "".join(f",t,{p},{w}\n" for p, w in enumerate((100, 1, 1, 0)))
    strangers = "nobody,t,0,5\n,nope,0,5\n,t,2147483647,5\n"
    file.write_text(f"group_id,topic,partition,weight\n{own}{strangers}")
    arguments = [command, str(folder / "now"), "--weights", str(file)]
    code, facts = run(capsys, *arguments)
    assert (code, facts["unused_weight_count"]) == (1, 3)
    assert [(row["group_id"], row["topic"], row["detail"]) for row in facts["unused_weights"]] == [
        ("nobody", "t", "the table members does not have the group; the weight is passed over"),
        (None, "nope", "the table topics does not have the topic; the weight is passed over"),
        (None, "t", "the topic has only 4 partitions; the weight is passed over"),
    ]
    assert cli.main(arguments) == 1
    text = capsys.readouterr().out
    assert "3 weights not used, of missing partitions or groups" in text
    # One partition weighs 100 of 102: no plan is below 1.96 times what each of two should have.
    times = {"plan": "max 102 (2x the fair load)", "tradeoff": "1.96x", "compare": " 1.96 "}
    assert times[command] in text
    file.write_text(f"group_id,topic,partition,weight\n{own}")
    code, facts = run(capsys, *arguments)
    assert (code, facts["unused_weight_count"], facts["unused_weights"]) == (0, 0, [])
