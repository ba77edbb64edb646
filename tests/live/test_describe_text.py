"""Snapshots of texts of Kafka's tools: what each version printed of one broker, and bad texts.

``described`` and, of 4.4.0, ``examples`` have what ``kafka-consumer-groups.sh --describe
--all-groups`` (with nothing more, with ``--members --verbose``, with ``--state``) and
``kafka-topics.sh --describe`` of Kafka 2.4.1, 3.9.1 and 4.4.0 printed about the same groups of one
broker of 4.4.0, without the lines of loggers.
``test_from_describe.py`` asks the tools anew.
"""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.errors import InputError
from kassign_spark.live import text_lines
from kassign_spark.live.from_describe import Described, read_described

_TEXTS = Path(__file__).parent / "described"
_EXAMPLES = Path(__file__).parents[2] / "examples"
_GROUPS = {
    "2.4.1": _TEXTS / "2.4.1.txt",
    "3.9.1": _TEXTS / "3.9.1.txt",
    "4.4.0": _EXAMPLES / "described-groups.txt",
}
_DESCRIBED_TOPICS = {
    "2.4.1": _TEXTS / "2.4.1-topics.txt",
    "4.4.0": _EXAMPLES / "described-topics.txt",
}
_P, _Q = "p-40e60bc3-1ab6-49ad-9a54-d16363bc5881", "q-fb2bac47-08c3-4cc2-b345-b3dc08bd80ca"
_ONE, _TWO = (
    "c one-acd9a8f0-660a-412d-aaf5-0f2aa2c8436c",
    "static-1-ccac9aea-8b9a-4747-bc99-0aa3bdf4c0dd",
)
_IDLE = (
    "ic-b4b9b319-156d-4fd0-8472-433f8e516bea",
    "ia-3c856d3a-20c4-45f5-b1ba-747c516cbda3",
    "ib-42b26a34-610e-4ae3-b86d-ee6c792c50d6",
)
_N1, _N2 = "gNBRH4PIRzS3GKP_zb97rw", "Q1poZMcWSPCc4SFh9JWwVg"
_BOTH = ["orders.v1", "pay_ments"]
_OWNED = {
    ("idle", _IDLE[1]): {"lone": [0]},
    ("idle", _IDLE[2]): {"lone": [1]},
    ("plain-sticky", _P): {"orders.v1": [0, 2, 4, 6, 8, 10], "pay_ments": [0, 2]},
    ("plain-sticky", _Q): {"orders.v1": [1, 3, 5, 7, 9, 11], "pay_ments": [1]},
    ("the group", _ONE): {"orders.v1": [6, 7, 8, 9, 10, 11], "pay_ments": [2]},
    ("the group", _TWO): {"orders.v1": [0, 1, 2, 3, 4, 5], "pay_ments": [0, 1]},
}
_OWNED_NEW = {
    ("newp", _N1): {"orders.v1": [0, 1, 2, 3, 4, 5, 6, 7]},
    ("newp", _N2): {"orders.v1": [8, 9, 10, 11], "pay_ments": [0, 1, 2]},
}
_ASSIGNORS = {
    "idle": "roundrobin",
    "plain-sticky": "cooperative-sticky",
    "the group": "range",
    "newp": "uniform",
}


def owned_of(tables: Any) -> dict[tuple[str, str], dict[str, list[int]]]:
    result: dict[tuple[str, str], dict[str, list[int]]] = {}
    for _, group, member, topic, partition in tables.owned:
        result.setdefault((group, member), {}).setdefault(topic, []).append(partition)
    return result


def parts_of(version: str, folder: Path) -> list[str]:
    """The text of a version as three files: one for each command in it."""
    commands = re.split(r"(?m)^(?=\$ )", _GROUPS[version].read_text())[1:]
    assert len(commands) == 3
    files = [folder / f"{version}-{name}" for name in ("plain", "members", "state")]
    for file, command in zip(files, commands, strict=True):
        file.write_text(command)
    return [str(file) for file in files]


@pytest.mark.parametrize("version", list(_GROUPS))
def test_what_each_version_prints(version: str, tmp_path: Path) -> None:
    """All three texts together, one file or three, and the plain one and the members alone."""
    has_new = version != "2.4.1"
    owned = _OWNED | (_OWNED_NEW if has_new else {})
    snapshot, notes = read_described([str(_GROUPS[version])])
    assert owned_of(snapshot) == owned
    instances = {} if version == "2.4.1" else {_TWO: "static-1", _N2: "st2"}
    epoch = 3 if version == "4.4.0" else None
    expected = [
        *(("idle", member, ["lone"], seq) for seq, member in enumerate(_IDLE)),
        *(("newp", member, _BOTH, seq) for seq, member in enumerate((_N1, _N2)) if has_new),
        *(("plain-sticky", member, _BOTH, seq) for seq, member in enumerate((_P, _Q))),
        *(("the group", member, _BOTH, seq) for seq, member in enumerate((_ONE, _TWO))),
    ]
    assert snapshot.members == [
        (
            *(None, group, member, instances.get(member), None, topics, None),
            *(epoch if group == "newp" else None, seq, _ASSIGNORS[group], None),
            "consumer" if group == "newp" else None,
        )
        for group, member, topics, seq in expected
    ]
    assert snapshot.topics == [
        (None, "lone", 2, None, None),
        (None, "orders.v1", 12, None, None),
        (None, "pay_ments", 3, None, None),
    ]
    reasons = {"gone": "no members"} | ({} if has_new else {"newp": "does not exist"})
    assert {o.name: o.reason for o in snapshot.omitted} == reasons
    assert snapshot.offsets is not None
    assert [row[:7] for row in snapshot.offsets] == [
        (None, "plain-sticky", topic, partition, 0, 0, 0)
        for topic, count in (("orders.v1", 12), ("pay_ments", 3))
        for partition in range(count)
    ]
    # The target of a settled group is what it owns, whether the text has it or not.
    assert {row[1:5] for row in snapshot.target} == {
        row[1:] for row in snapshot.owned if row[1] == "newp"
    }
    assert not any("assignor" in note or "no table of members" in note for note in notes)

    files = parts_of(version, tmp_path)
    again = read_described(list(reversed(files)))
    assert again.tables[:3] == snapshot[:3]
    plain = read_described(files[:1])
    assert owned_of(plain.tables) == owned
    assert _IDLE[0] not in {row[2] for row in plain.tables.members}  # it owns nothing
    assert {row[7:] for row in plain.tables.members} == {(None,) * 5}
    assert any("no table of members" in note for note in plain.notes)
    assert any("assignor of" in note for note in plain.notes)
    if version == "3.9.1":  # it leaves topics out
        with pytest.raises(InputError, match="add one of --describe, without --members"):
            read_described(files[1:2])
    else:
        alone = read_described(files[1:2]).tables
        assert owned_of(alone) == owned
        assert alone.offsets is None


@pytest.mark.parametrize("version", list(_DESCRIBED_TOPICS))
def test_topics_of_a_text(version: str) -> None:
    snapshot, notes = read_described(
        [str(_GROUPS[version])], str(_DESCRIBED_TOPICS[version]), cluster_id="east"
    )
    ids = [row[4] for row in snapshot.topics]
    assert [row[:4] for row in snapshot.topics] == [
        ("east", name, count, None)
        for name, count in (
            ("__consumer_offsets", 4),
            ("lone", 2),
            ("orders.v1", 12),
            ("pay_ments", 3),
        )
    ]
    assert all(topic_id is None for topic_id in ids) == (version == "2.4.1")
    assert version == "2.4.1" or ids[1] == "GKy29KijQm6agLJBcEGuWw"
    assert snapshot.leaders == [("east", "__consumer_offsets", p, 1) for p in range(4)]
    assert {
        row[0] for table in (snapshot.members, snapshot.owned, snapshot.offsets) for row in table
    } == {"east"}
    assert not any("topics" in note and "--topics" in note for note in notes)


def changed(text: str, change: Callable[[str], str], folder: Path) -> Described:
    file = folder / "changed.txt"
    file.write_bytes(change(text).encode())
    return read_described([str(file)])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: re.sub("(?m)^", "    ", text),  # indented in an e-mail
        lambda text: re.sub("(?m) +$", "", text),  # trailing blanks lost in an editor
        lambda text: text.replace("the group  ", "the groüp😀"),  # as Java pads it, by 16 bits
        lambda text: text + text,  # twice the same
        lambda text: "\n".join(line for line in text.split("\n") if line),
        lambda text: (
            "[2026-01-05 10:00:00,123] WARN [AdminClient clientId=a] Disconnected (o.a.k.Client)\n"
            'SLF4J: Failed to load class "x".\nOpenJDK 64-Bit Server VM warning: Sharing\n'
            f"java.util.concurrent.TimeoutException: a\n\tat a.b.C(D.java:1)\n\n{text}\n```\n"
        ),
    ],
)
def test_what_happens_to_a_text_on_its_way(change: Callable[[str], str], tmp_path: Path) -> None:
    text = _GROUPS["4.4.0"].read_text()
    names = {"the group": "the groüp😀" if "😀" in change(text) else "the group"}
    expected = {(names.get(g, g), m): of for (g, m), of in (_OWNED | _OWNED_NEW).items()}
    assert owned_of(changed(text, change, tmp_path).tables) == expected


def test_blanks_that_were_lost(tmp_path: Path) -> None:
    """Cells one blank apart: read by what each can be, names without blanks only."""
    text = _GROUPS["4.4.0"].read_text().replace("the group", "the-group").replace("c one", "c-1")
    snapshot = changed(text, lambda text: re.sub("[ \t]+", " ", text), tmp_path).tables
    assert {member for _, member in owned_of(snapshot)} >= {_P, _N1, _N2, _TWO}
    instances = {row[2]: row[3] for row in snapshot.members if row[3]}
    assert instances == {_TWO: "static-1", _N2: "st2"}


def test_columns_in_the_order_of_the_header_and_wide_numbers(tmp_path: Path) -> None:
    lines = [
        "TOPIC CLIENT-ID PARTITION GROUP LOG-END-OFFSET CURRENT-OFFSET LAG CONSUMER-ID HOST",
        "a     my client 0         g     9123456789012345679 9123456789012345678 1 c-1 /10.0.0.1",
    ]
    snapshot = changed("\n".join(lines), str, tmp_path).tables
    assert snapshot.owned == [(None, "g", "c-1", "a", 0)]
    assert snapshot.offsets is not None
    assert snapshot.offsets[0][4:7] == (
        9123456789012345678,
        9123456789012345679,
        9123456789012345678,
    )


def test_a_wide_coordinator_and_the_states_of_a_group(tmp_path: Path) -> None:
    members = _MEMBERS.lstrip()
    header = "GROUP COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE  #MEMBERS\n"
    row = "g     broker-17.kafka.example.org:9092 (17) sticky               {}  2\n"
    snapshot = changed(members + header + row.format("Stable"), str, tmp_path).tables
    assert snapshot.members[0][9] == "sticky"
    for text in (
        members + header + row.format("PreparingRebalance"),
        "\nWarning: Consumer group 'g' is rebalancing.\n" + members,
    ):
        with pytest.raises(InputError, match="group 'g': it was rebalancing"):
            changed(text, str, tmp_path)


def test_a_text_without_the_group(tmp_path: Path) -> None:
    """As Kafka 2.0 and 2.1 print it, one group a call."""
    file = tmp_path / "old.txt"
    file.write_text(
        "\nTOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "a     0         5              7              2   c-1         /h   c\n"
        "-     -         -              -              -   c-2         /h   c\n"
    )
    with pytest.raises(InputError, match=r"line 2: there is no column GROUP.*GROUP=FILE"):
        read_described([str(file)])
    snapshot = read_described([f"mygroup={file}"]).tables
    assert snapshot.owned == [(None, "mygroup", "c-1", "a", 0)]
    assert snapshot.offsets is not None
    assert snapshot.offsets[0][4:7] == (5, 7, 5)


_PLAIN = """
GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST      CLIENT-ID
g     a     0         5              7              2   c-1         /10.0.0.1 c
g     a     1         -              7              -   c-2         /10.0.0.1 c
"""
_MEMBERS = """
GROUP CONSUMER-ID HOST      CLIENT-ID #PARTITIONS ASSIGNMENT
g     c-1         /10.0.0.1 c         1           a(0)
g     c-2         /10.0.0.1 c         1           a(1)
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("root:x:0:0:root:/root:/bin/bash\n", "line 1: is not a line of kafka-consumer-groups.sh"),
        ("group_id,member_id\ng,m\n", "line 1: is not a line of"),
        (
            "\nGROUP STATE\ng     Stable\n",
            "line 2: GROUP STATE: are columns of no",
        ),
        (_PLAIN.replace(" LAG", " LOG"), 'line 2: column "LOG" is unknown'),
        (_PLAIN.replace("HOST ", "LAG  "), "line 2: column LAG appears twice"),
        (
            _PLAIN.replace("1         -", "one       -"),
            'line 4, column PARTITION: "one" is not a number',
        ),
        (
            _PLAIN.replace("1         -", "1.5       -"),
            'line 4, column PARTITION: "1.5" is not a number',
        ),
        (
            _PLAIN.replace("1         -", "-1        -"),
            'line 4, column PARTITION: "-1" is not a whole',
        ),
        (
            _PLAIN.replace("1         -", "2147483647 -"),
            "is not a whole number from 0 to 2147483646",
        ),
        (
            _PLAIN.replace("0         5 ", "0         x "),
            'line 3, column CURRENT-OFFSET: "x" is no',
        ),
        (
            _PLAIN.replace("a     1 ", "a b/c 1 "),
            'line 4, column TOPIC: "a b/c"',
        ),
        (_PLAIN[: _PLAIN.index("c-2")], "line 4: 6 cells, where the header .* has 9"),
        (_PLAIN + "and so on\n", "line 5: 3 cells"),
        (_MEMBERS.replace("a(1)", "a(1"), 'line 4: "a\\(1" is not a topic with its partitions'),
        (_MEMBERS.replace("a(1)", "a(1,x)"), "line 4: .* is not a topic with its partitions"),
        (
            _MEMBERS.replace("a(1)", "a(1,2)"),
            "#PARTITIONS is 1, and the assignment has 2: the line is",
        ),
        (_MEMBERS.replace("c-2 ", "c-1 "), "line 4: member 'c-1' is in .* line 3 too"),
        (
            _PLAIN + _MEMBERS.replace("c-2", "c-3"),
            "'c-2' is not a member of group 'g' in its table",
        ),
        (_PLAIN + _MEMBERS.replace("(1)", "(2)"), "a-1 is with nobody and with c-2 .* one moment"),
        (_MEMBERS + _MEMBERS.replace("c-2", "c-3"), 'member "c-2" of .* line 4 is in no other'),
        (_MEMBERS + _MEMBERS.replace("(1)", "(2)"), "'c-2' is not the same in .* line 4 and in"),
        (
            _PLAIN + _PLAIN.replace("c-2", "c-1"),
            r"a-1 is with c-2 \(.*line 4\) and with c-1 \(.*line 8",
        ),
        (
            "Error: Executing consumer group command failed due to x\n",
            "no group can be read: Error: E",
        ),
        (
            "Consumer group 'x' has no active members.\n",
            "no group can be read: group 'x': no members",
        ),
    ],
)
def test_bad_texts(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        read_described([str(file)])
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_owners_in_one_table_are_what_the_cluster_said(tmp_path: Path) -> None:
    """An assignor of one's own can do that: ``validate`` tells it."""
    snapshot = changed(_PLAIN + _PLAIN.splitlines()[3].replace("c-2", "c-1"), str, tmp_path).tables
    assert [row[2:] for row in snapshot.owned] == [
        ("c-1", "a", 0),
        ("c-1", "a", 1),
        ("c-2", "a", 1),
    ]


def test_texts_of_two_files_that_contradict_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text(_PLAIN)
    other.write_text(_MEMBERS.replace("(0)", "(1)").replace("c-2", "c-1").replace("c-1", "c-2", 1))
    with pytest.raises(InputError, match=r"group 'g': a-0 is with nobody and with c-1 \(.*one.txt"):
        read_described([str(one), str(other)])
    # Offsets go on, and the later file is the newer.
    other.write_text(_PLAIN.replace(" 5  ", " 6  "))
    os.utime(other, (0, time.time()))
    snapshot = read_described([str(one), str(other)]).tables
    assert snapshot.offsets is not None
    assert [row[6] for row in snapshot.offsets] == [6]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GROUP\xff\n", "line 1: is not UTF-8 text"),
        (b"\n\nGROUP\xe9\n", "line 3: is not UTF-8 text"),
        (_PLAIN.encode("utf-16"), "line 1: is UTF-16, as PowerShell writes it; save it as UTF-8"),
        (b"\0" * 50, "line 1: is not text: it has a byte 0"),
        (b"x" * 300, "has more than 200 bytes"),
    ],
)
def test_files_that_are_no_text(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "LARGEST_FILE", 200 if content[:1] == b"x" else 10_000)
    file = tmp_path / "no.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_described([str(file)])


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, message in {
        "fifo": "is not a regular",
        ".": "is not a regular",
        "none": "No such",
    }.items():
        with pytest.raises(InputError, match=message):
            read_described([str(tmp_path / name)])
    with pytest.raises(InputError, match="is not a regular file"):
        read_described(["/dev/zero"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Topic: a\tPartitionCount: x\tReplicationFactor: 1\tConfigs: \n",
            'line 1, PartitionCount: "x"',
        ),
        (
            "Topic: a\tPartitionCount: 99999999999\tReplicationFactor: 1\tConfigs: \n",
            "is not a whole",
        ),
        (
            "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n",
            "no line before says how many",
        ),
        (
            "Topic:a\tPartitionCount:2\tReplicationFactor:1\tConfigs:\n"
            "\tTopic: a\tPartition: 0\tLeader: 1\n",
            "line 1: topic a has PartitionCount 2, and lines of 1 partitions",
        ),
        (
            "Topic:a\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
            "\tTopic: a\tPartition: 1\tLeader: 1\n",
            'line 2, Partition: "1" is not a whole number from 0 to 0',
        ),
        (
            "Topic:a\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
            "Topic:a\tPartitionCount:2\tReplicationFactor:1\tConfigs:\n",
            "line 2: topic a differs from that of .* line 1",
        ),
        (_PLAIN, "line 2: is not a line of kafka-topics.sh --describe"),
        ("Error while executing topic command : x\n", "has no topic"),
    ],
)
def test_bad_texts_of_topics(text: str, message: str, tmp_path: Path) -> None:
    groups, topics = tmp_path / "groups.txt", tmp_path / "topics.txt"
    groups.write_text(_PLAIN)
    topics.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        read_described([str(groups)], str(topics))
    assert str(topics) in str(refused.value)


def test_topics_that_only_some_texts_know(tmp_path: Path) -> None:
    groups, topics = tmp_path / "groups.txt", tmp_path / "topics.txt"
    groups.write_text(_PLAIN + _PLAIN.replace(" a  ", " b  ").replace("g    ", "h    "))
    # As 2.0 prints it; of a topic without a leader, and of one that moves.
    topics.write_text(
        "Topic:a\tPartitionCount:5\tReplicationFactor:1\tConfigs:\tMarkedForDeletion:true\n"
        + "".join(
            f"\tTopic: a\tPartition: {p}\tLeader: {leader}\tReplicas: 1\tAdding Replicas: 2\n"
            for p, leader in enumerate(["1", "none", "-1", "2", "3"])
        )
    )
    snapshot, notes = read_described([str(groups)], str(topics))
    assert snapshot.topics == [(None, "a", 5, None, None), (None, "b", 2, None, None)]
    assert any(note.startswith("1 topic --topics does not have") for note in notes)


def test_a_text_and_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark starts, in one line, and nothing is written."""
    groups, output = str(_GROUPS["4.4.0"]), tmp_path / "new"
    bad = tmp_path / "bad.txt"
    bad.write_text(_PLAIN.replace("1         -", "one       -"))
    for options, message in (
        ([str(bad)], f'{bad} line 4, column PARTITION: "one" is not a number'),
        ([groups, "--topics", str(bad)], f"{bad} line 2: is not a line of kafka-topics.sh"),
        ([groups, "--bootstrap-server", "h:1"], "--bootstrap-server: --from-describe reads texts"),
        ([groups, "--from-log", str(tmp_path)], "--from-log: --from-describe reads texts only"),
    ):
        command = ["snapshot", "--output", str(output), "--from-describe", *options]
        assert cli.main(command) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"kassign-spark: error: {message}")
        assert printed.err.count("\n") == 1
        assert printed.out == ""
        assert not output.exists()


@pytest.mark.slow
def test_commands_take_a_snapshot_of_texts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settled groups stay as they are: subscriptions and static members are read as they were."""
    folder, text = str(tmp_path / "snapshot"), str(_GROUPS["3.9.1"])
    topics = str(_DESCRIBED_TOPICS["4.4.0"])
    options = ["--from-describe", text, "--topics", topics, "--output", folder, "--format", "csv"]
    assert cli.main(["snapshot", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["from_describe"] == [text]
    assert document["tables"] == ["members", "topics", "owned", "target", "offsets", "leaders"]
    counts = [document[f"{of}_count"] for of in ("group", "member", "owned", "offset")]
    assert counts == [4, 9, 47, 15]
    assert len(document["notes"]) == 3
    cli.main(["validate", folder, "--json"])
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [p for p in problems if p["problem"] != "assignor_unusable"] == []
    assert cli.main(["predict", folder]) == 0
    assert "4 answered exactly" in capsys.readouterr().out
    assert cli.main(["assign", folder, "--output", str(tmp_path / "plan")]) == 0
    assert "no violations" in capsys.readouterr().out
    assert cli.main(["diff", folder, str(tmp_path / "plan"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept_count"] == 47
