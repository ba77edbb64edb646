"""``kassign-spark graph`` and ``touched-by`` through ``cli.main``."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import MEMBERS, write_small_fleet


def test_the_example(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "graph")
    assert cli.main(["graph", "examples/fleet", "--output", output, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["group_count"], facts["member_count"], facts["uneven_count"]) == (25, 142, 1)
    (row,) = facts["groups"]
    assert (row["group_id"], row["least_max"], row["even_max"]) == ("orders-notifications", 36, 11)
    tables = {name: spark.read.parquet(f"{output}/{name}") for name in ("vertices", "edges")}
    assert tables["vertices"].where("kind = 'member'").count() == 142
    assert tables["edges"].count() == facts["edge_count"]
    assert spark.read.parquet(f"{output}/bottlenecks").where("kind = 'dense'").count() == 1
    # What it wrote it replaces.
    assert cli.main(["graph", "examples/fleet", "--output", output, "--overwrite"]) == 0
    printed_lines = capsys.readouterr().out.splitlines()
    assert printed_lines[0].startswith("25 groups, 142 members, ")
    assert printed_lines[1] == "1 is kept from being even by subscriptions"
    assert printed_lines[-3].endswith("(36 partitions): it has at least 36; 11 would be even")


@pytest.mark.parametrize("kind", ["dot", pytest.param("graphml", marks=pytest.mark.slow)])
def test_a_drawing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    output = tmp_path / "graph"
    arguments = ["graph", "examples/fleet", "--output", str(output), "--format", kind]
    assert cli.main(arguments) == 2
    assert "draws one group: name it with --group" in capsys.readouterr().err
    assert cli.main([*arguments, "--group", "orders-notifications"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"the drawing graph.{kind} is in {output}"
    text = (output / f"graph.{kind}").read_text()
    assert "orders.created, orders.shipped" in text
    assert cli.main([*arguments, "--group", "orders-notifications", "--overwrite"]) == 0


def test_unknown_and_ambiguous_groups(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--output", str(tmp_path / "out"), "--format", "dot", "--group"]
    assert cli.main(["graph", "examples/fleet", *arguments, "orders-notification"]) == 2
    output = capsys.readouterr().err
    assert (
        "kassign-spark: error: unknown group 'orders-notification'; the nearest are "
        "orders-notifications, "
    ) in output
    head, *lines = MEMBERS.splitlines()
    members = [f"cluster_id,{head}", *(f"{c},{line}" for c in "ab" for line in lines)]
    topics = "".join(
        json.dumps({"cluster_id": c, "topic": t, "num_partitions": 3}) + "\n"
        for c in "ab"
        for t in ("orders", "payments")
    )
    fleet = write_small_fleet(
        tmp_path / "two", members="\n".join(members) + "\n", topics=topics,
        owned='{"cluster_id": "a", "group_id": "mail", "member_id": "mail-a", "topic": "orders", '
        '"partition": 0}\n',
    )  # fmt: skip
    assert cli.main(["graph", str(fleet), *arguments, "mail"]) == 2
    assert "group 'mail' is in several clusters: name a/mail or b/mail" in capsys.readouterr().err
    assert cli.main(["graph", str(fleet), *arguments, "b/mail"]) == 0
    assert not (tmp_path / "out" / "vertices").exists()


@pytest.mark.slow
def test_what_a_topic_touches(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "touched"
    topics = ["payments.refunds", "payments.captured"]
    arguments = ["touched-by", "examples/fleet", *topics, "--output", str(output)]
    for more in ([], ["--overwrite"]):
        assert cli.main([*arguments, "--json", *more]) == 0
        facts = json.loads(capsys.readouterr().out)
    assert facts["topics"] == sorted(topics)
    assert spark.read.parquet(str(output / "touched")).count() == facts["row_count"]
    by_group: dict[str, list[dict]] = {}
    for row in facts["rows"]:
        by_group.setdefault(row["group_id"], []).append(row)
    # Two topics of an eager group are one rebalance of all that it reads.
    assert [row["reassigned_count"] for row in by_group["data-lake-payments"]] == [41, 41]
    per_group = {
        name: rows[0]["reassigned_count"]
        if rows[0]["reassigned_count"] > rows[0]["partition_count"]
        else sum(row["reassigned_count"] for row in rows)
        for name, rows in by_group.items()
    }
    assert facts["reassigned_count"] == sum(per_group.values())
    assert facts["group_count"] == len(by_group)
    assert cli.main(["touched-by", "examples/fleet", topics[0], "--show", "1"]) == 0
    printed_lines = capsys.readouterr().out.splitlines()
    assert printed_lines[0] == "payments.refunds: 2 groups, 8 members, 50 partitions reassigned"
    assert printed_lines[3].split()[:6] == [
        "payments.refunds",
        "data-lake-payments",
        "4",
        "4",
        "9",
        "41",
    ]
    assert printed_lines[-1] == "1 more row not shown (--show 2 shows all)"
    assert cli.main(["touched-by", "examples/fleet", "payment.refunds"]) == 2
    printed_lines = capsys.readouterr().err.splitlines()
    assert printed_lines == [
        "kassign-spark: error: unknown topic 'payment.refunds'; the nearest are "
        "payments.refunds, payments.captured, payments.authorised"
    ]
