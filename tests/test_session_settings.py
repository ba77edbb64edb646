"""Which settings the command's own session has: those of small inputs only for what is small."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kassign_spark.launch.command_session import LOCAL_DEFAULTS, SMALL_DEFAULTS, local_settings
from kassign_spark.launch.small_inputs import SMALL_BYTES, SMALL_PARTITIONS, are_small


def _folder(path: Path, size: int) -> str:
    (path / "members").mkdir(parents=True)
    (path / "members" / "part").write_bytes(b"0" * size)
    return str(path)


def test_small_folders_of_this_machine(tmp_path: Path) -> None:
    most = SMALL_BYTES
    one, other = _folder(tmp_path / "a", most // 2), _folder(tmp_path / "b", most // 2)
    result = local_settings(one, other)
    assert {name: result[name] for name in SMALL_DEFAULTS} == SMALL_DEFAULTS
    assert {name: result[name] for name in LOCAL_DEFAULTS if name not in SMALL_DEFAULTS} == {
        name: value for name, value in LOCAL_DEFAULTS.items() if name not in SMALL_DEFAULTS
    }


@pytest.mark.parametrize("other", ["hdfs://name/fleet", "s3a://bucket/fleet", "missing"])
def test_what_is_not_known_to_be_small(tmp_path: Path, other: str) -> None:
    small = _folder(tmp_path / "small", 10)
    assert local_settings(small, other) == LOCAL_DEFAULTS
    assert local_settings() == LOCAL_DEFAULTS


def test_large_folders(tmp_path: Path) -> None:
    large = _folder(tmp_path / "large", SMALL_BYTES + 1)
    assert local_settings(large) == LOCAL_DEFAULTS
    half = [_folder(tmp_path / name, SMALL_BYTES * 2 // 3) for name in "ab"]
    assert local_settings(*half) == LOCAL_DEFAULTS


@pytest.mark.parametrize(
    "name", ["topics.csv", "topics/part-0.json", "run-1/topics/part-0.parquet"]
)
def test_a_short_list_of_large_topics(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(*counts: int) -> None:
        if path.suffix == ".parquet":
            pq.write_table(pa.table({"num_partitions": pa.array(counts, pa.int32())}), path)
        elif path.suffix == ".csv":
            lines = ["topic,num_partitions", *(f'"t,{n}",{c}' for n, c in enumerate(counts))]
            path.write_text("\n".join(lines))
        else:
            path.write_text("".join(f'{{"topic": "t", "num_partitions": {c}}}\n' for c in counts))

    write(SMALL_PARTITIONS - 1, 1)
    assert are_small([str(tmp_path)])
    write(SMALL_PARTITIONS - 1, 2)
    assert not are_small([str(tmp_path)])


@pytest.mark.parametrize("text", ["", "topic,num_partitions\nt,many\n", "topic\nt\n", '"'])
def test_topics_that_are_refused_later(tmp_path: Path, text: str) -> None:
    (tmp_path / "topics.csv").write_text(text)
    assert are_small([str(tmp_path)])


def test_topics_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "topics.jsonl").write_bytes(b'{"topic": "t", "num_partitions": "\xff"}\n')
    assert are_small([str(tmp_path)])
