"""The commands, run in this process on the session of the tests."""

import argparse
import contextlib
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import cli
from kassign_spark.assignors.task_groups import assign_in_tasks
from kassign_spark.commands import COMMANDS
from kassign_spark.commands.assign_lines import lines as assign_lines
from kassign_spark.commands.common import Outcome, announced
from kassign_spark.errors import InputError
from kassign_spark.spark.spark_errors import SparkError
from tests.small_fleet import MEMBERS, write_small_fleet

_PLAN = """\
3 groups, 6 members, 19 partitions, no violations

group    assignor            members  partitions  min  max  mean  stddev  kept  moved  cross-rack
search   roundrobin                2           8    2    6  4.00    2.00     0      0           0
mail     cooperative-sticky        2           3    0    3  1.50    1.50     3      0           0
billing  range                     2           8    3    5  4.00    1.00     1      0           0

search (roundrobin)
  search-a  6  orders[0-4]  payments[1]
  search-b  2  payments[0,2]

mail (cooperative-sticky)
  mail-a  3  orders[0-2]
  mail-b  0

billing (range)
  billing-a  5  orders[0-2]  payments[0,2]
  billing-b  3  orders[3-4]  payments[1]

the plan is in {output}: assignment, balance
"""


@pytest.fixture(scope="module", autouse=True)
def _patience() -> Iterator[None]:
    """A busy machine makes short work long; what is said then has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kassign_spark.commands.common._LONG_SECONDS", 600)
        yield


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_fleet(tmp_path_factory.mktemp("cli") / "fleet")


@pytest.fixture(scope="module")
def planned(spark: SparkSession, fleet: Path) -> tuple[Path, str, str]:
    """A plan in JSON, and what was said on the two streams."""
    output = fleet.parent / "plan"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert cli.main(["assign", str(fleet), "--output", str(output), "--format", "json"]) == 0
    return output, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def plan(planned: tuple[Path, str, str]) -> Path:
    return planned[0]


def _read(folder: Path) -> list[dict[str, Any]]:
    parts = sorted(folder.glob("part-*"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def _visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0] not in "._")


def test_assign_prints_the_plan(planned: tuple[Path, str, str]) -> None:
    output, printed, errors = planned
    assert printed == _PLAN.replace("{output}", str(output))
    assert errors == ""
    assert _visible(output) == ["assignment", "balance"]


def test_assign_writes_what_it_prints(plan: Path) -> None:
    assignment = _read(plan / "assignment")
    assert len(assignment) == 8 + 8 + 3
    assert sorted(row["partition"] for row in assignment if row["member_id"] == "billing-a") == [
        0,
        0,
        1,
        2,
        2,
    ]
    balance = {row["group_id"]: row for row in _read(plan / "balance")}
    assert balance["mail"]["assignor"] == "cooperative-sticky"
    # With racks range is answered in tasks, and what else there is with it.
    assert {row["path"] for row in balance.values()} == {"task"}
    assert balance["search"]["sum_of_squares"] == 40


def test_assign_for_programs(
    fleet: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["assign", str(fleet), "--output", str(tmp_path / "plan"), "--json"]
    assert cli.main([*arguments, "--show", "1", "--assignor", "roundrobin"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert spark.read.parquet(str(tmp_path / "plan" / "assignment")).count() == 21
    assert {key: facts[key] for key in list(facts)[2:7]} == {
        "group_count": 3,
        "member_count": 6,
        "partition_count": 21,
        "idle_group_count": 0,
        "violation_count": 0,
    }
    assert facts["groups_not_shown"] == 2
    assert [row["group_id"] for row in facts["balance"]] == ["search"]
    assert facts["paths"] == {"windows": 3}
    assert facts["assignments"] == [
        {
            "group_id": "search",
            "assignor": "roundrobin",
            "members": [
                {
                    "member_id": "search-a",
                    "partition_count": 6,
                    "topics": [
                        {"topic": "orders", "partition_count": 5, "ranges": [[0, 4]]},
                    ],
                    "topics_not_shown": 1,
                }
            ],
            "members_not_shown": 1,
        }
    ]


@pytest.mark.slow
def test_the_paths_of_groups_that_are_too_large_for_a_task(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("bytes_per_task = 1600\nuse_graphframes = false\n")
    output = str(tmp_path / "plan")
    assert cli.main(["assign", "examples/fleet", "--output", output, "--assignor", "sticky",
                     "--settings", str(settings), "--json", "--show", "100"]) == 0  # fmt: skip
    facts = json.loads(capsys.readouterr().out)
    assert sum(facts["paths"].values()) == facts["group_count"]
    of_group = {row["group_id"]: row["path"] for row in facts["balance"]}
    assert of_group["orders-notifications"] == "rounds"
    assert set(of_group.values()) == {"task", "rounds"}
    assert set(facts["rounds"]) == {"claims", "components", "quotas", "distances", "transfers"}
    assert sum(facts["rounds"].values()) == facts["round_count"]
    rows = spark.read.parquet(f"{output}/balance").collect()
    assert {row.group_id: row.path for row in rows} == of_group
    lines = "\n".join(assign_lines(facts))
    assert "\nnot in one task: " in lines
    assert f"{facts['paths']['rounds']} groups by rounds: 1 for claims, " in lines
    assert f", {facts['rounds']['distances']} for distances" in lines


def test_a_plan_that_violates_rules_and_what_is_not_shown_of_it(
    fleet: Path,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgetful(*args: Any, **kwargs: Any) -> DataFrame:
        return assign_in_tasks(*args, **kwargs).where("group_id <> 'billing' OR partition <> 1")

    monkeypatch.setattr("kassign_spark.plans.assign.assign_in_tasks", forgetful)
    output = tmp_path / "plan"
    arguments = ["assign", str(fleet), "--output", str(output), "--format", "csv"]
    assert cli.main([*arguments, "--show", "1"]) == 1
    printed = capsys.readouterr().out
    assert "3 groups, 6 members, 17 partitions, 2 violations" in printed
    (line,) = (x for x in printed.splitlines() if "unassigned" in x)
    assert re.split("  +", line) == [
        *("billing", "unassigned", "-", "orders", "1"),
        "subscribed to, but assigned to no member",
    ]
    assert _visible(output) == ["assignment", "balance", "violations"]
    assert "... 1 more violations" in printed
    assert "2 more groups, better balanced, not shown (--show 3 shows all)" in printed
    assert "search-a  6  orders[0-4]  ... 1 more topic\n  ... 1 more member\n" in printed


def test_validate(
    spark: SparkSession, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", str(fleet)]) == 0
    assert capsys.readouterr().out == f"{fleet}: all well\n"
    more = "mail,mail-c,orders;gone;gone2,sticky,,\nmail,mail-c,orders,sticky,,\n"
    odd = write_small_fleet(tmp_path / "odd", members=MEMBERS + more)
    output = tmp_path / "found"
    arguments = ["validate", str(odd), "--output", str(output), "--format", "json", "--show", "2"]
    assert cli.main(arguments) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{odd}: 4 problems"
    assert printed[2].split() == [
        "problem", "group_id", "member_id", "topic", "partition", "detail",
    ]  # fmt: skip
    assert re.split("  +", printed[3])[:5] == ["assignor_unusable", "mail", "-", "-", "-"]
    assert printed[4].startswith("duplicate_member ")
    assert printed[5] == "2 more problems not shown (--show 4 shows all)"
    assert printed[7] == f"the table problems is in {output}"
    assert len(_read(output / "problems")) == 4


def test_diff(
    spark: SparkSession, fleet: Path, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "changes"
    assert cli.main(["diff", str(fleet), str(plan), "--output", str(output), "--show", "2"]) == 0
    assert capsys.readouterr().out == (
        "3 groups, 21 partitions: 4 kept, 0 moved, 15 new, 2 dropped; 3 groups changed\n\n"
        "group    kept  moved  new  dropped\n"
        "search      0      0    8        0\n"
        "billing     1      0    7        0\n"
        "1 more changed group not shown (--show 3 shows all)\n\n"
        "search\n"
        "  new  - -> search-a  orders[0-4]  payments[1]\n"
        "  new  - -> search-b  payments[0,2]\n\n"
        "billing\n"
        "  new  - -> billing-a  orders[0-2]  payments[0,2]\n"
        "  new  - -> billing-b  orders[3]  payments[1]\n\n"
        f"the table diff is in {output}\n"
    )
    assert cli.main(["diff", str(plan), str(plan), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kept_count"], facts["changed_group_count"], facts["groups"]) == (19, 0, [])


def test_long_work_is_announced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with announced("short work"):
        pass
    monkeypatch.setattr("kassign_spark.commands.common._LONG_SECONDS", 0)
    with announced("long work"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "long work ...\n"


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    def run(*argv: str) -> str:
        try:
            code = cli.main(argv)
        except SystemExit as ended:
            code = ended.code  # type: ignore[assignment]
        printed = capsys.readouterr()
        assert code == 2
        assert printed.out == ""
        assert printed.err.startswith("kassign-spark: error: ")
        assert printed.err.count("\n") == 1
        return printed.err.removeprefix("kassign-spark: error: ").rstrip("\n")

    return run  # type: ignore[return-value]


def test_usage(refused: Any) -> None:
    see = "(see kassign-spark assign --help)"
    assert refused() == ("the following arguments are required: COMMAND (see kassign-spark --help)")
    assert refused("plans").startswith("argument COMMAND: invalid choice: 'plans' (choose from ")
    assert refused("snapshot", "--bootstrap-server", "x:1") == (
        "the following arguments are required: --output (see kassign-spark snapshot --help)"
    )
    assert refused("graph", "x", "--group", "g", "--format", "dot") == (
        "--format dot writes a drawing: name a folder with --output"
    )
    assert refused("assign", "x", "--output", "y", "--show", "-1") == (
        f"argument --show: '-1' is not a whole number >= 0 {see}"
    )
    assert refused("assign", "x", "--output", "y", "--assignor", "fair").startswith(
        "argument --assignor: invalid choice: 'fair' (choose from "
    )
    assert refused("assign", "x", "--outp", "y") == (
        "unrecognized arguments: --outp y (see kassign-spark --help)"
    )
    assert (
        refused("snapshot", "--output", "y")
        == "--bootstrap-server, --from-log or --from-describe is needed"
    )
    assert refused("snapshot", "--output", "y", "--from-log").startswith(
        "--from-log without a folder needs --bootstrap-server"
    )
    assert refused("snapshot", "--output", "y", "--from-log", "z").startswith(
        "--from-log needs --bootstrap-server or --topics"
    )
    assert refused("log", "--bootstrap-server", "x", "--save", "y").startswith(
        "bootstrap server 'x' is not host:port"
    )


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"] if command else ["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    example = printed.partition("example:\n")[2]
    assert example.split()[:2] == ["kassign-spark", command or "assign"]
    assert max(map(len, printed.splitlines())) <= 100


def test_examples_of_the_help_can_be_parsed() -> None:
    parser = cli._parser()
    (actions,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    assert len(actions.choices) == len(COMMANDS)
    for name, each in actions.choices.items():
        example = each.epilog.splitlines()[1].split()
        args = parser.parse_args(example[1:])
        assert args.command == name
        # What is written first is of the example fleet.
        folder = Path(getattr(args, "snapshot", None) or "examples/fleet")
        for option, table in (("group", "members"), ("topics", "topics")):
            values = getattr(args, option, None) or []
            known = (folder / table / f"{table}.json").read_text()
            assert [
                one for one in ([values] if isinstance(values, str) else values) if one not in known
            ] == []


def test_settings(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    arguments = ("assign", "x", "--output", str(tmp_path / "p"), "--settings", str(path))
    assert refused(*arguments) == f"settings file {path}: No such file or directory"
    path.write_text("batches = [")
    assert refused(*arguments).startswith(f"settings file {path}: not valid TOML: ")
    path.write_text("speed = 1\n")
    assert refused(*arguments).startswith(f"settings file {path}: unknown setting speed; known: ")
    path.write_text("batches = 'many'\n")
    assert refused(*arguments) == "setting batches: 'many' is not a whole number >= 1"
    path.write_bytes(b"\xff")
    assert refused(*arguments).startswith(f"settings file {path}: not valid TOML: ")


def test_bad_input_leaves_nothing(spark: SparkSession, refused: Any, tmp_path: Path) -> None:
    output = tmp_path / "new" / "plan"
    bad = write_small_fleet(tmp_path / "bad", members=MEMBERS.replace("range,4,west", "fair,4,x"))
    assert refused("assign", str(bad), "--output", str(output)) == (
        'table members, column assignor: "fair", "range" of group "billing": unknown assignor; '
        "known are cooperative-sticky, range, roundrobin, sticky"
    )
    gap = '{"topic": "orders", "partition": 1}\n'
    bad = write_small_fleet(tmp_path / "gap", topics=gap)
    assert refused("assign", str(bad), "--output", str(output)).startswith(
        'table topics, column partition: topic "orders" has 1 of the partitions 0..1: '
    )
    nobody = '{"group_id": "g", "member_id": "", "topic": "t0", "partition": 0}\n'
    bad = write_small_fleet(tmp_path / "nobody", owned=nobody)
    for command in (("assign", str(bad)), ("diff", str(bad), str(bad))):
        assert refused(*command, "--output", str(output)) == (
            'table owned, column member_id: "" (at group_id="g" member_id="" topic="t0" '
            "partition=0): every row needs a member_id, not null or empty"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "gap", "nobody"]


def test_output_that_cannot_be(
    spark: SparkSession, refused: Any, fleet: Path, plan: Path, tmp_path: Path
) -> None:
    def assign(output: Path, *more: str) -> str:
        return str(refused("assign", str(fleet), "--output", str(output), *more))

    assert assign(plan) == f"output {plan}: exists; name a new folder, or say --overwrite"
    for output in (fleet, fleet / "inside", fleet.parent):
        assert assign(output, "--overwrite") == (
            f"output {output}: would replace the input {fleet}; name a new folder"
        )
    (tmp_path / "notes").write_text("precious")
    assert "holds what kassign-spark did not write (notes)" in assign(tmp_path, "--overwrite")
    assert refused("diff", str(fleet), str(plan), "--output", str(plan), "--overwrite") == (
        f"output {plan}: would replace the input {plan}; name a new folder"
    )
    # Before a command that writes at its end begins to read.
    assert refused("predict", "nowhere", "--output", str(plan)).endswith("or say --overwrite")
    assert "not write (notes)" in refused(
        "validate", "nowhere", "--output", str(tmp_path), "--overwrite"
    )
    assert refused("diff", str(tmp_path), str(plan)) == (
        f"folder {tmp_path}: has neither the table assignment nor the table owned"
    )


@pytest.mark.parametrize(
    "command",
    [
        "assign",
        pytest.param("rebalance", marks=pytest.mark.slow),
        pytest.param("rebalance --exact", marks=pytest.mark.slow),
        "graph",
    ],
)
def test_without_an_output_it_prints_and_writes_nothing(
    spark: SparkSession,
    fleet: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    def printed(*more: str) -> str:
        assert cli.main([*command.split(), str(fleet), *more]) == 0
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    before = sorted(fleet.parent.rglob("*"))
    alone = printed()
    assert list(tmp_path.iterdir()) == []
    assert sorted(fleet.parent.rglob("*")) == before
    output = tmp_path / "out"
    text, sentence = printed("--output", str(output)).rstrip("\n").rsplit("\n\n", 1)
    assert alone == f"{text}\n"
    assert f" in {output}" in sentence


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that raises."""

    def run(error: BaseException, *more: str) -> tuple[int, str]:
        def fail(args: argparse.Namespace) -> Outcome:
            raise error

        monkeypatch.setattr("kassign_spark.commands.validate_command.run", fail)
        code = cli.main(["validate", "x", *more])
        return code, capsys.readouterr().err

    return run


def test_errors_of_each_kind(spark: SparkSession, ends_with: Any) -> None:
    head = "kassign-spark: error: "
    assert ends_with(InputError("two\nlines\x1b[31m")) == (2, f"{head}two\\nlines\\x1b[31m\n")
    assert ends_with(KeyboardInterrupt()) == (130, f"{head}interrupted; nothing was written\n")
    code, text = ends_with(ZeroDivisionError("by zero"))
    assert (code, text) == (
        2,
        f"{head}this is a bug of kassign-spark (ZeroDivisionError: by zero); --verbose shows the "
        "trace\n",
    )
    code, text = ends_with(ZeroDivisionError("by zero"), "--verbose")
    assert "Traceback" in text
    for query in ("SELECT raise_error('wrong')", "SELECT nonsense", "SELECT assert_true(false)"):
        with pytest.raises(SparkError) as error:
            spark.sql(query).collect()
        code, text = ends_with(error.value)
        assert code == 2
        assert text.startswith(f"{head}Spark: ")
        assert text.count("\n") == 1
