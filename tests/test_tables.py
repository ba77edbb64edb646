"""Snapshots in three formats; folders that appear whole or not at all."""

import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType

from kassign_spark import assign
from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.conforming import conform
from kassign_spark.display import printable
from kassign_spark.errors import InputError, OutputError, SchemaError
from kassign_spark.schemas import (
    LEADERS,
    MEMBERS,
    OFFSETS,
    OWNED,
    TARGET,
    TOPICS,
)
from kassign_spark.spark.spark_errors import SparkError, spark_message
from kassign_spark.tables import output_folder
from kassign_spark.tables.local_files import LocalFiles
from kassign_spark.tables.snapshots import (
    Snapshot,
    empty_table,
    new_folder,
    read_named_table,
    read_snapshot,
    read_table,
    write_snapshot,
    write_table,
)
from tests import builders
from tests.builders import owner_rows

_FORMATS = ("parquet", "csv", "json")
_STRANGE = "quote\" comma, back\\slash ; 组😀 ' space "


@pytest.fixture(scope="module")
def snapshot(spark: SparkSession) -> Snapshot:
    """Two clusters with a group of the same name, strange names, nulls beside empty lists."""
    rows = [
        {"cluster_id": "east", "member_id": "C0", "topics": ["t0", "t1"], "assignor": "range"},
        {"cluster_id": "east", "member_id": _STRANGE, "topics": [], "assignor": "range"},
        {"cluster_id": "west", "member_id": "C0", "topics": ["t1"], "assignor": "roundrobin"},
        {"cluster_id": "west", "member_id": "line\nbreak", "topics": ["t1"], "rack_id": " a "},
    ]
    more = {"group_id": "g", "generation": 7, "member_seq": 0}
    return Snapshot(
        builders.members(spark, [{**more, "assignor": "roundrobin", **row} for row in rows]),
        builders.topics(
            spark,
            [
                {"cluster_id": "east", "topic": "t0", "num_partitions": 3},
                {"cluster_id": "east", "topic": "t1", "num_partitions": 2},
                {
                    "cluster_id": "west",
                    "topic": "t1",
                    "num_partitions": 2,
                    "replica_racks": [["a", 'b"'], []],
                },
            ],
        ),
        builders.owned(spark, owner_rows("C0: t1p0 t1p1", "g", cluster_id="west")),
        builders.table(spark, TARGET, owner_rows("C0: t1p1", "g", cluster_id="west", position=0)),
        builders.table(
            spark,
            OFFSETS,
            [
                {
                    **{"cluster_id": "west", "group_id": "g", "topic": "t1", "partition": 1},
                    "begin_offset": 3,
                    "end_offset": 2**40,
                    "committed_offset": 5,
                    "as_of": datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
                }
            ],
        ),
        builders.table(
            spark,
            LEADERS,
            [
                {"cluster_id": "west", "topic": OFFSETS_TOPIC, "partition": p, "leader": leader}
                for p, leader in ((0, 1), (1, -1))
            ],
        ),
    )


def _assert_same(actual: Snapshot, expected: Snapshot) -> None:
    assert actual.tables().keys() == expected.tables().keys()
    for table in (MEMBERS, TOPICS, OWNED, TARGET, OFFSETS, LEADERS):
        one, other = (snapshot.tables()[table.name] for snapshot in (actual, expected))
        integers = [f.name for f in table.columns if isinstance(f.dataType, IntegerType)]
        wide = {f"`{f}`": "bigint" for f in integers if f in other.columns}
        columns = [f"cast({c} as {wide[c]})" if c in wide else c for c in _quoted(other)]
        assert_df_equality(
            one.selectExpr(*columns),
            other.selectExpr(*columns),
            ignore_row_order=True,
            ignore_nullable=True,
        )


def _quoted(frame: DataFrame) -> list[str]:
    return [f"`{name}`" for name in frame.columns]


@pytest.mark.parametrize("table_format", _FORMATS)
def test_round_trip(
    spark: SparkSession, snapshot: Snapshot, tmp_path: Path, table_format: str
) -> None:
    folder = tmp_path / "a [strange] {name}"
    write_snapshot(snapshot, folder, table_format=table_format)
    result = read_snapshot(folder, spark)
    _assert_same(result, snapshot)
    assert_df_equality(assign(*result), assign(*snapshot), ignore_row_order=True)
    assert list(tmp_path.iterdir()) == [folder]


def test_a_table_is_replaced_and_the_others_stay(snapshot: Snapshot) -> None:
    before = snapshot.tables()
    after = snapshot._replace(owned=None, leaders=snapshot.topics).tables()
    assert after.keys() == before.keys() - {"owned"}
    assert after["leaders"] is snapshot.topics
    assert all(after[name] is before[name] for name in after if name != "leaders")


@pytest.mark.parametrize("table_format", _FORMATS)
@pytest.mark.parametrize("cluster_id", [True, False])
def test_round_trip_of_empty_tables(
    spark: SparkSession, tmp_path: Path, table_format: str, cluster_id: bool
) -> None:
    row = {"topic": "t0", "num_partitions": 1, **({"cluster_id": "east"} if cluster_id else {})}
    empty = Snapshot(
        empty_table(spark, MEMBERS, cluster_id=cluster_id),
        builders.topics(spark, [row]),
        empty_table(spark, OWNED, cluster_id=cluster_id),
    )
    write_snapshot(empty, tmp_path / "s", table_format=table_format)
    result = read_snapshot(tmp_path / "s", spark)
    assert assign(*result).collect() == []
    assert ("cluster_id" in result.members.columns) is cluster_id


def test_snapshots_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    """Files beside each other, with a byte order mark, blank lines, and no table owned."""
    (tmp_path / "members.csv").write_text(
        "\ufeffgroup_id,member_id,topics,assignor,note\n"
        'g,C0,t0;t1,range,mine\ng,C1,"[""t0""]",range,\n',
        encoding="utf-8",
    )
    (tmp_path / "topics.jsonl").write_text(
        '{"topic": "t0", "num_partitions": 2}\n\n{"num_partitions": 1, "topic": "t1"}\n'
    )
    result = read_snapshot(tmp_path, spark)
    assert result.owned is None
    expected = builders.assignment(spark, owner_rows("C0: t0p0 t1p0; C1: t0p1", "g"))
    assert_df_equality(
        assign(*result),
        expected.select("group_id", "member_id", "topic", "partition"),
        ignore_row_order=True,
        ignore_nullable=True,
    )


_HEADER = "group_id,member_id,topic,partition\n"
_RECORD = '{"group_id": "g", "member_id": "C0", "topic": "t0", "partition": 0}\n'
_RECORDS = (
    "is no JSON record of some of (cluster_id string, group_id string, member_id string, "
    "topic string, partition int)"
)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("owned.csv", _HEADER + "g,C0,t0,x1\n", ", column partition: x1 is not of type int"),
        ("owned.csv", _HEADER + "g,C0,t0,1.5\n", ", column partition: 1.5 is not of type int"),
        (
            "owned.csv",
            _HEADER + "g,C0,t0,99999999999999999999\n",
            ", column partition: 99999999999999999999 is not of type int",
        ),
        (
            "owned.csv",
            _HEADER + "g,C0,t0\n",
            ": a line has not the 4 cells of the header: g,C0,t0",
        ),
        (
            "owned.csv",
            _HEADER + "g,C0,t0,0,more\n",
            ": a line has not the 4 cells of the header: g,C0,t0,0,more",
        ),
        ("owned.json", _RECORD + "nonsense\n", f": nonsense {_RECORDS}"),
        ("owned.json", f"[{_RECORD.strip()}]\n", f": [{_RECORD.strip()}] {_RECORDS}"),
        ("owned.json", _RECORD[:-9] + "\n", f": {_RECORD[:-9]} {_RECORDS}"),
        (
            "owned.json",
            '{"group_id": "g", "partition": "zero"}\n',
            f': {{"group_id": "g", "partition": "zero"}} {_RECORDS}',
        ),
        (
            "owned.json",
            '{"group_id": "g", "partition": 1.5}\n',
            f': {{"group_id": "g", "partition": 1.5}} {_RECORDS}',
        ),
    ],
)
def test_text_that_is_no_value(
    spark: SparkSession, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_table(spark, str(tmp_path), OWNED)
    assert str(error.value) == f"table owned in {tmp_path}{expected}"


_UTF_16 = "group_id,member_id,topics\ng,C0,t0\n".encode("utf-16")
_OTHER_TEXT = {
    "members.csv": {
        b"group_id,member_id,topics\ng,C0,t0\ng\xe9,C1,t0\ng\xe8,C2,t0\n": (
            ": file members.csv, line 3: byte 0xe9 is not UTF-8; save the file as UTF-8"
        ),
        b'group_id,member_id,topics,note\ng,C0,t0,"two\nlines \xfc"\n': (
            ": file members.csv, line 3: byte 0xfc is not UTF-8; save the file as UTF-8"
        ),
        b"group_id,member_id,topics,n\xf6te\ng,C0,t0,\n": (
            ": file members.csv, line 1: byte 0xf6 is not UTF-8; save the file as UTF-8"
        ),
        b"group_id,member_id,topics\ng\xed\xa0\x80,C0,t0\n": (
            ": file members.csv, line 2: byte 0xed is not UTF-8; save the file as UTF-8"
        ),
        _UTF_16: ": file members.csv, line 1: byte 0xff is not UTF-8; save the file as UTF-8",
        _UTF_16[2:]: ": its header holds zero bytes, as UTF-16 does; save it as UTF-8",
        b"": ": is a table without a header line",
        b"\n\n": ": is a table without a header line",
        b"group_id,member_id,topics,group_id\n": ": column group_id appears twice in its header",
        b"Group_id,member_id,group_id\ng,C0,g\n": (
            ": column group_id and Group_id are the same to Spark in its header"
        ),
        b"group_id,,topics\ng,C0,t0\n": ": cell 2 of its header is empty",
        b"group_id;member_id;topics\ng;C0;t0\n": (
            ": its header holds ';': cells are separated by commas"
        ),
        b'group_id,member_id,topics\ng,C0,"[""t0"",7]"\n': (
            ', column topics: ["t0",7] is not of type array<string>'
        ),
        b'group_id,member_id,topics\ng,C0,"[""\\ud800""]"\n': (
            r', column topics: ["\ud800"] is not of type array<string>'
        ),
    },
    "members.jsonl": {
        b'{"group_id": "g"}\n{"group_id": "g\xe9"}\n': (
            ": file members.jsonl, line 2: byte 0xe9 is not UTF-8; save the file as UTF-8"
        ),
        _UTF_16: ": file members.jsonl, line 1: byte 0xff is not UTF-8; save the file as UTF-8",
        **{
            b'{"group_id": "g"}\n\n{"group_id": "' + half + b'"}\n': (
                ": file members.jsonl, line 3: half a character "
                r"(a lone surrogate, \ud800 to \udfff) is not text"
            )
            for half in (rb"\ud800", rb"\uDC00x", rb"\ud83d\\\ude00", rb"\ud83d\ud83d\ude00")
        },
        b'{"group_id": "g", "member_id": "a", "group_id": "h"}\n': (
            ': {"group_id": "g", "member_id": "a", "group_id": "h"} has a key twice'
        ),
        **{
            line: f": {line.decode()} is no JSON record of some of ("
            for line in (
                *(b'{"group_id": true}', b'{"member_id": 1}', b'{"rack_id": 1.5}'),
                *(
                    b'{"topics": ["t0", 7]}',
                    b'{"topics": [false]}',
                    b'{"group_instance_id": ["x"]}',
                ),
                *(b'{"group_id": "g"}{"group_id": "h"}', b'{"group_id": "g"},'),
            )
        },
    },
}


def test_text_that_is_not_read_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """No byte becomes another character, and nothing of a line is passed over."""
    for name, cases in _OTHER_TEXT.items():
        for text, expected in cases.items():
            (tmp_path / name).write_bytes(text)
            with pytest.raises(InputError) as error:
                read_table(spark, str(tmp_path), MEMBERS)
            message = str(error.value)
            assert message.startswith(f"table members in {tmp_path}{printable(expected)}"[:200]), (
                text
            )
        (tmp_path / name).unlink()


def test_text_that_is_read_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Also a character that stands for a lost one, marks of byte order, and a strange column."""
    folder = tmp_path / "a b%20ü" / "owned"
    folder.mkdir(parents=True)
    header = _HEADER.replace("member_id", "member_id,a`b")
    for part in "ab":
        text = f"\ufeff{header}g\ufffd{part},C\\ud800,x,t0,0\n"
        (folder / f"{part}.csv").write_text(text, encoding="utf-8")
    result = read_table(spark, str(folder.parent), OWNED)
    rows = {(row.group_id, row.member_id, row["a`b"]) for row in result.collect()}
    assert rows == {("g\ufffda", r"C\ud800", "x"), ("g\ufffdb", r"C\ud800", "x")}
    (folder / "c.csv").write_bytes(f"{header}g".encode() + b"\xe9,C0,x,t0,0\n")
    with pytest.raises(InputError, match=r": file c\.csv, line 2: byte 0xe9 is not UTF-8"):
        read_table(spark, str(folder.parent), OWNED)
    texts = [r"\\ud800", r"\ud83d\ude00", r"\\\ud83d\ude00", "\ufffd", "[1]", "true"]
    lines = "".join(f'{{"group_id": "{text}", "a`b": {{"b": 1, "b": 2}}}}\n' for text in texts)
    (tmp_path / "members.json").write_text(f"\ufeff{lines}", encoding="utf-8")
    named = [row.group_id for row in read_table(spark, str(tmp_path), MEMBERS).collect()]
    assert named == [json.loads(f'"{text}"') for text in texts]


@pytest.mark.parametrize("name", ["owned.csv", "owned.jsonl", "owned.parquet", "owned/part.csv"])
def test_a_table_that_is_no_regular_file(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "owned").mkdir()
    (tmp_path / "owned").rmdir() if "/" not in name else None
    os.mkfifo(tmp_path / name)
    link = tmp_path / "weights.csv"
    link.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=rf": {name.split('/')[-1]} is not a regular file$"):
        read_table(spark, str(tmp_path), OWNED)
    with pytest.raises(InputError, match=r": weights.csv is not a regular file$"):
        read_named_table(spark, str(link), OWNED)


_NO_TEXTS = [
    '"group_instance_id": ["x"]',
    '"group_instance_id": {"x": 1}',
    '"topics": ["t0", ["t1"]]',
    '"topics": [{"name": "t0"}]',
]


@pytest.mark.parametrize("value", _NO_TEXTS)
def test_lists_and_records_in_json_where_a_text_belongs(
    spark: SparkSession, tmp_path: Path, value: str
) -> None:
    line = f'{{"group_id": "g", "member_id": "C0", {value}}}'
    (tmp_path / "members.jsonl").write_text(line + "\n")
    with pytest.raises(InputError) as error:
        read_table(spark, str(tmp_path), MEMBERS)
    assert str(error.value).startswith(
        f"table members in {tmp_path}: {line} is no JSON record of some of (cluster_id string, "
    )


def test_lists_in_lists_of_json_where_a_text_belongs(spark: SparkSession, tmp_path: Path) -> None:
    line = '{"topic": "t0", "replica_racks": [["a"], [["b"]]]}'
    (tmp_path / "topics.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"\[\[\"b\"\]\]\]\} is no JSON record of some of"):
        read_table(spark, str(tmp_path), TOPICS)


def test_texts_in_json_that_look_like_lists(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "members.jsonl").write_text(
        '{"member_id": "[1]", "topics": ["{}", null, "7"], "rack_id": null, "note": ["mine"]}\n'
    )
    row = read_table(spark, str(tmp_path), MEMBERS).first()
    assert row is not None
    assert (row.member_id, row.topics, row.rack_id) == ("[1]", ["{}", None, "7"], None)


@pytest.mark.parametrize("cell", ['"[""t0"""', '"[""t0"" x]"'])
def test_lists_in_csv_that_are_none(spark: SparkSession, tmp_path: Path, cell: str) -> None:
    (tmp_path / "members.csv").write_text(f"group_id,member_id,topics\ng,C0,{cell}\n")
    with pytest.raises(InputError, match=r"column topics: \[.* is not of type array<string>$"):
        read_table(spark, str(tmp_path), MEMBERS)


def test_csv_files_with_different_headers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "owned").mkdir()
    (tmp_path / "owned" / "a.csv").write_text(_HEADER + "g,C0,t0,0\n")
    (tmp_path / "owned" / "b.csv").write_text("member_id,group_id,topic,partition\nC0,g,t0,1\n")
    with pytest.raises(InputError, match=r"^table owned in .*CSV header does not"):
        read_table(spark, str(tmp_path), OWNED)


def test_names_of_columns_that_are_not_ours_are_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "members.json").write_text('{"group": "g", "member_id": "C0", "topics": []}\n')
    (tmp_path / "topics.csv").write_text("topic,count\nt0,1\n")
    result = read_snapshot(tmp_path, spark)
    with pytest.raises(
        SchemaError,
        match=r"group_id \(string\) is missing, the columns are member_id, topics, group$",
    ):
        assign(*result)
    for names, meant in {
        "consumergroup,consumer-id,host": {"group_id": "consumergroup", "member_id": "consumer-id"},
        "consumer_group,consumerId": {"group_id": "consumer_group", "member_id": "consumerId"},
        "GROUP,MEMBER_ID,CLIENT-RACK": {"group_id": "GROUP", "rack_id": "CLIENT-RACK"},
        "topic_name,partition_id,groupid,member": {"group_id": "groupid", "member_id": "member"},
        "group,client_id,topic": {"group_id": "group", "member_id": "client_id", "topics": "topic"},
        "gruop_id,member_id": {"group_id": "gruop_id"},
    }.items():
        frame = spark.createDataFrame(
            [], ", ".join(f"`{name}` string" for name in names.split(","))
        )
        with pytest.raises(SchemaError) as error:
            conform(frame, MEMBERS)
        for column, name in meant.items():
            assert f"column {name} may be {column}: then name it so; " in str(error.value)
    with pytest.raises(SchemaError, match="the columns are topic, count"):
        assign(builders.members(spark, []), result.topics)
    (tmp_path / "topics.csv").write_text("name,count\nt0,1\n")
    with pytest.raises(SchemaError, match="the columns are name, count"):
        assign(builders.members(spark, []), read_snapshot(tmp_path, spark).topics)


@pytest.mark.parametrize("length", [0, 20, -100])
def test_truncated_parquet(
    spark: SparkSession, snapshot: Snapshot, tmp_path: Path, length: int
) -> None:
    with new_folder(spark, str(tmp_path / "s")) as folder:
        write_table(snapshot.members, folder, "members")
    for file in (tmp_path / "s" / "members").glob("part-*"):
        file.write_bytes(file.read_bytes()[:length])
        (file.parent / f".{file.name}.crc").unlink()
    with pytest.raises(InputError) as error:
        read_table(spark, str(tmp_path / "s"), MEMBERS)
    # Without a byte it is passed over from PySpark 4.2 on.
    assert re.fullmatch(
        r"table members in \S+: cannot be read: (the Parquet file \S+/part-\S+\.parquet is damaged "
        r"\(.*\)|all its files are empty)",
        str(error.value),
    )


def test_parquet_that_is_damaged_inside(spark: SparkSession, tmp_path: Path) -> None:
    """It shows when the rows are read: the footer is whole."""
    folder = tmp_path / "a b%20"
    spark.range(20000).selectExpr("sha2(cast(id as string), 256) as topic").coalesce(1).write.json(
        str(tmp_path / "text")
    )
    spark.read.json(str(tmp_path / "text")).coalesce(1).write.parquet(str(folder / "topics"))
    (file,) = (folder / "topics").glob("part-*")
    whole = file.read_bytes()
    file.write_bytes(whole[:1000] + bytes(2000) + whole[3000:])
    (file.parent / f".{file.name}.crc").unlink()
    with pytest.raises(SparkError) as error:
        read_table(spark, str(folder), TOPICS).agg({"topic": "max"}).collect()
    assert re.fullmatch(
        r"the Parquet file file:/\S+/a b%20/topics/part-\S+\.parquet is damaged \(.*\)",
        spark_message(error.value),
    )


def test_missing_folders_and_tables(spark: SparkSession, tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(InputError) as error:
            read_snapshot(path, spark)
        return str(error.value)

    nowhere = tmp_path / "nowhere"
    assert refused(nowhere) == f"folder {nowhere}: not found"
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file") == (
        f"folder {tmp_path / 'file'}: is a file; name the folder that holds the tables"
    )
    assert refused(tmp_path) == (
        f"table members: not found in {tmp_path}; looked for members, members.parquet, "
        "members.csv, members.json, members.jsonl"
    )
    (tmp_path / "members").mkdir()
    assert refused(tmp_path) == (
        f"table members in {tmp_path}: holds no file at all; needed are files of one of parquet, "
        "csv, json, jsonl"
    )
    (tmp_path / "members" / "members.xlsx").touch()
    assert "holds members.xlsx; needed are" in refused(tmp_path)
    (tmp_path / "members.csv").touch()
    assert f"table members: {tmp_path} has it more than once (members, members.csv)" == refused(
        tmp_path
    )
    assert "no address that Spark knows" in refused(Path("nonsense:x"))
    assert refused(Path("nonsense")).endswith("nonsense: not found")
    with pytest.raises(InputError, match=r"^folder http://x/y: is an address on the web"):
        read_snapshot("http://x/y", spark)
    with pytest.raises(InputError, match=r"^folder s3a://x/y: Spark has no file system for S3; "):
        read_snapshot("s3a://x/y", spark)


def _one_row(spark: SparkSession) -> DataFrame:
    return builders.topics(spark, {"t0": 1})


def test_an_existing_folder_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match=r"exists; name a new folder, or say --overwrite$"),
        new_folder(spark, str(tmp_path)),
    ):
        raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_ours_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "plan"
    for name in ("topics", "owned"):
        with new_folder(spark, str(target), overwrite=True) as folder:
            write_table(_one_row(spark), folder, name, "json")
    assert sorted(p.name for p in target.iterdir()) == ["_kassign_spark", "owned"]
    assert list(tmp_path.iterdir()) == [target]


_FOREIGN = [
    *("notes.txt", ".git/config", ".notes.txt.crc", "empty/", "graph.dot", "owned/part-0.csv"),
    *("topics/part-my-thesis.docx", "topics/part-time/a.txt", "topics/_SUCCESS_STORY.md"),
    *("topics/_SUCCESS (1)", "_SUCCESS", "_kassign_spark.txt", "_kassign_spark (1)"),
]
"""Also what has the names of tables, of parts of them and of what Spark writes beside them."""


def _add(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if name.endswith("/") else path.write_text("precious")
    return path


def _contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def _refused_over(spark: SparkSession, target: Path) -> str:
    """Why a folder is not replaced; all in it stays."""
    before = _contents(target)
    with pytest.raises(OutputError) as error, new_folder(spark, str(target), overwrite=True):
        raise AssertionError
    assert _contents(target) == before
    assert [path for path in target.parent.iterdir() if path.name.startswith(".")] == []
    return str(error.value).replace(str(target), "plan")


@pytest.fixture(params=["renamed", "marked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As on a file system that renames folders, and as in an object store."""
    way: str = request.param
    if way == "marked":
        monkeypatch.setattr(LocalFiles, "renames_at_once", lambda *_: False)
    return way


def test_what_somebody_added_or_changed_is_not_overwritten(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    target, notes = tmp_path / "plan", tmp_path / "notes"
    notes.write_text("precious")
    with new_folder(spark, str(target)) as folder:
        write_table(_one_row(spark), folder, "topics")
    where = target if way == "renamed" else next(target.glob("run-*"))
    for name in _FOREIGN:
        foreign = _add(where, name)
        refusal = _refused_over(spark, target)
        assert "holds what kassign-spark did not write (" in refusal
        assert refusal.endswith("), so it is not overwritten; name another folder")
        assert name.split("/")[0] in refusal, refusal
        shutil.rmtree(foreign) if name.endswith("/") else foreign.unlink()
        if foreign.parent not in (where, where / "topics"):
            foreign.parent.rmdir()
    for name, leads_to in {"link": notes, "lost": tmp_path / "gone", "topics/link": where}.items():
        (where / name).symlink_to(leads_to)
        assert name in _refused_over(spark, target)
        (where / name).unlink()
    for pattern in ("part-*", "_SUCCESS", ".*.crc"):
        file = next((where / "topics").glob(pattern))
        before = file.read_bytes()
        file.write_bytes(before + b"x")
        assert f"topics/{file.name}, whose size has changed)" in _refused_over(spark, target)
        file.write_bytes(before)
    (where / "_kassign_spark").rename(tmp_path / "list")
    assert "did not write (" in _refused_over(spark, target)
    for older in ("", '{"snapshot": "file:/fleets/today"}'):
        (where / "_kassign_spark").write_text(older)
        assert _refused_over(spark, target) == (
            "output plan: is of an earlier version of kassign-spark, which left no list of its "
            "files, so it is not overwritten; remove it yourself, or name another folder"
        )
    (tmp_path / "list").rename(where / "_kassign_spark")
    next((where / "topics").glob("part-*")).unlink()  # what is gone cannot be lost
    with new_folder(spark, str(target), overwrite=True) as folder:
        write_table(_one_row(spark), folder, "owned", "json")
    assert [path.name for path in tmp_path.iterdir() if path != notes] == ["plan"]
    assert list(target.rglob("topics")) == []
    assert len(list(target.rglob("owned"))) == 1


@pytest.mark.parametrize("name", ["notes.txt", "topics/part-my-thesis.docx", "empty/"])
def test_what_somebody_adds_meanwhile_is_not_overwritten(
    spark: SparkSession, tmp_path: Path, way: str, name: str
) -> None:
    target = tmp_path / "plan"
    with new_folder(spark, str(target)) as folder:
        write_table(_one_row(spark), folder, "topics")
    where = target if way == "renamed" else next(target.glob("run-*"))

    def write() -> None:
        with new_folder(spark, str(target), overwrite=True) as folder:
            write_table(_one_row(spark), folder, "owned")
            _add(where, name)

    before = _contents(target)
    with pytest.raises(OutputError, match=r"did not write \(.*, so it is not overwritten"):
        write()
    after = _contents(target)
    assert after.pop(where / name) in (b"precious", None)
    assert after == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_to_a_plan_stays(spark: SparkSession, tmp_path: Path) -> None:
    """What it leads to is replaced, by the same rules."""
    (tmp_path / "of").mkdir()
    link, target = tmp_path / "latest", tmp_path / "of" / "plan"
    link.symlink_to("of/plan")
    for name in ("topics", "owned"):
        with new_folder(spark, str(link), overwrite=name == "owned") as folder:
            write_table(_one_row(spark), folder, name)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert sorted(path.name for path in target.iterdir()) == ["_kassign_spark", name]
    with pytest.raises(OutputError, match="latest: exists"), new_folder(spark, str(link)):
        raise AssertionError
    (target / "notes.txt").write_text("precious")
    with pytest.raises(OutputError, match=r"latest: holds what .* did not write \(notes.txt\)"):  # noqa: SIM117
        with new_folder(spark, str(link), overwrite=True):
            raise AssertionError
    assert output_folder.same_or_inside(spark, str(link), str(target))
    link.unlink()
    link.symlink_to("latest")  # to itself
    with pytest.raises(OutputError, match=r"^output .*latest: "), new_folder(spark, str(link)):
        raise AssertionError


@pytest.mark.parametrize("names", [["members", "topics"], [], ["_kassign_spark.txt"]])
def test_a_foreign_folder_is_never_overwritten(
    spark: SparkSession, tmp_path: Path, names: list[str]
) -> None:
    """Also where its names are those of our tables: without our mark it is not ours."""
    target = tmp_path / "plan"
    target.mkdir()
    for name in names:
        (target / name).mkdir()
    with (
        pytest.raises(OutputError, match="so it is not overwritten; name another folder"),
        new_folder(spark, str(target), overwrite=True),
    ):
        raise AssertionError
    assert sorted(p.name for p in target.iterdir()) == sorted(names)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_failure_leaves_nothing(spark: SparkSession, tmp_path: Path, overwrite: bool) -> None:
    target = tmp_path / "some" / "where" / "plan"
    with pytest.raises(KeyboardInterrupt), new_folder(spark, str(target), overwrite=overwrite):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_failure_keeps_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "plan"
    with new_folder(spark, str(target)) as folder:
        write_table(_one_row(spark), folder, "topics")
    before = sorted(target.rglob("*"))

    def write_half() -> None:
        with new_folder(spark, str(target), overwrite=True) as folder:
            write_table(_one_row(spark), folder, "owned")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write_half()
    assert sorted(target.rglob("*")) == before
    assert list(tmp_path.iterdir()) == [target]


def test_another_run_took_the_folder(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "plan"

    def write_late() -> None:
        with new_folder(spark, str(target)) as folder:
            write_table(_one_row(spark), folder, "topics")
            target.mkdir()
            (target / "theirs").touch()

    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        write_late()
    assert [p.name for p in target.iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [target]


def test_places_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, expected in (
        (str(tmp_path / "file"), "exists"),
        (str(tmp_path / "file" / "plan"), "Not a directory"),
        ("", "name of the folder is empty"),
        ("/", "root of its file system"),
        ("nonsense://x/y", "No FileSystem for scheme"),
        ("https://x/y", "is an address on the web"),
        ("plan:today", "Spark takes no name with ':'; name another folder"),
        (str(tmp_path / "plan:today"), "Spark takes no name with ':'; name another folder"),
        ("s3a://x/y", "no file system for S3; give it the package org.apache.hadoop:hadoop-aws"),
    ):
        with (
            pytest.raises(OutputError, match=f"^output.*{expected}"),
            new_folder(spark, path),
        ):
            raise AssertionError
