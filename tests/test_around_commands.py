"""``deliver``, ``coordinators`` and ``check-settings`` through ``cli.main``."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return write_small_fleet(tmp_path / "fleet")


def test_members_get_their_own_part(
    spark: SparkSession, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    options = ["--group", "mail", "--output", str(output), "--format", "csv"]
    assert cli.main(["deliver", str(fleet), *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    [member] = facts["members"]
    assert (member["group_id"], member["member_id"], member["partition_count"]) == (
        "mail",
        "mail-a",
        5,
    )
    assert member["spark_assign"] == {"orders": [0, 1, 2, 3, 4]}
    assert member["topic_partitions"][4] == {"topic": "orders", "partition": 4}
    assert (output / "delivery").is_dir()
    assert cli.main(["deliver", str(fleet), "--show", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "2 members",
        "",
        "billing billing-b: 1 partition",
        '  [{"topic":"orders","partition":4}]',
        '  {"orders":[4]}',
    ]
    assert lines[5] == "1 more member not shown (--show 2 shows all)"


def test_groups_find_their_coordinators(
    spark: SparkSession, fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["coordinators", str(fleet), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    result = {row["group_id"]: row["coordinator_partition"] for row in facts["groups"]}
    java = spark._jvm.org.apache.kafka.common.utils.Utils
    hashes = {name: spark._jvm.java.util.Objects.hashCode(name) for name in result}
    assert result == {name: java.abs(value) % 50 for name, value in hashes.items()}
    assert facts["brokers"] == []
    lines = [
        json.dumps({"topic": "__consumer_offsets", "partition": p, "leader": p % 2})
        for p in range(4)
    ]
    (fleet / "leaders.jsonl").write_text("\n".join(lines) + "\n")
    assert cli.main(["coordinators", str(fleet)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("3 groups, 1 hot coordinator\n")
    assert "offsets partitions" in output


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_group_without_a_name_has_no_coordinator(
    spark: SparkSession, fleet: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    (fleet / "members.csv").unlink()
    texts = {
        "csv": "group_id,member_id,topics\n,a,orders\n",
        "jsonl": '{"group_id": "", "member_id": "a", "topics": ["orders"]}\n',
    }
    (fleet / f"members.{ending}").write_text(texts[ending])
    assert cli.main(["coordinators", str(fleet)]) == 2
    output = capsys.readouterr().err.splitlines()[-1]
    assert "table members, column group_id" in output
    assert 'member_id="a"' in output


@pytest.mark.slow
def test_settings_are_checked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.properties", tmp_path / "bad.properties"
    good.write_text("group.id=g\n")
    bad.write_text("group.id=g\nheartbeat.interval.ms=60000\nsasl.jaas.config=a secret\n")
    command = ["check-settings", "--client-version", "4.1.0"]
    assert cli.main([*command, str(good)]) == 0
    assert capsys.readouterr().out == (
        "1 client of version 4.1.0: 0 refused, 0 advised against, 0 unknown\n"
    )
    assert cli.main([*command, str(good), str(bad), "--json"]) == 1
    output = capsys.readouterr().out
    assert "secret" not in output
    facts = json.loads(output)
    assert facts["refused_count"] == 1
    assert facts["findings"][0]["setting"] == "heartbeat.interval.ms"
    spring, passwd = tmp_path / "application.properties", tmp_path / "passwd"
    spring.write_text(
        "spring.kafka.consumer.auto-offset-reset=Earliest\nspring.kafka.consumer.group-idd=g\n"
        "my.own.setting=a secret\n"
    )
    passwd.write_text("root:x:0:0:root:/root:/bin/bash\n")
    assert cli.main([*command, str(spring)]) == 1
    output = capsys.readouterr().out
    assert output.startswith(
        "1 client of version 4.1.0: 1 refused, 0 advised against, 2 unknown\n\nseverity "
    )
    rows = [line.split()[0:3:2] for line in output.splitlines()[3:]]
    assert rows == [
        ["refused", "auto.offset.reset"],
        ["unknown", "my.own.setting"],
        ["unknown", "spring.kafka.consumer.group-idd"],
    ]
    assert "the nearest is spring.kafka.consumer.group-id" in output
    assert "secret" not in output
    good.write_text("group.id=g\nmy.own.setting=a secret\n")
    assert cli.main([*command, str(good), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["unknown_count"], facts["misspelled_count"]) == (1, 0)
    assert cli.main([*command, str(passwd)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "0 clients of version 4.1.0: 0 refused, 0 advised against, 0 unknown",
        f"{passwd}: has no setting of a Kafka consumer; give its properties file",
    ]
    assert cli.main([*command[:-1], "four", str(good)]) == 2
    assert cli.main([*command, str(tmp_path / "none")]) == 2
    output = capsys.readouterr().err.splitlines()
    errors = [line for line in output if line.startswith("kassign-spark: error: ")]
    assert len(errors) == 2
    assert '"four"' in errors[0]
    assert "No such file" in errors[1]
