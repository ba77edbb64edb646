"""Which settings the command's own session has: those of small inputs only for what is small."""

from pathlib import Path

import pytest

from kassign_spark import session
from kassign_spark.session import LOCAL_DEFAULTS, SMALL_DEFAULTS, local_settings


def _folder(path: Path, size: int) -> str:
    (path / "members").mkdir(parents=True)
    (path / "members" / "part").write_bytes(b"0" * size)
    return str(path)


def test_small_folders_of_this_machine(tmp_path: Path) -> None:
    most = session.SMALL_BYTES
    one, other = _folder(tmp_path / "a", most // 2), _folder(tmp_path / "b", most // 2)
    found = local_settings(one, other)
    assert {name: found[name] for name in SMALL_DEFAULTS} == SMALL_DEFAULTS
    assert {name: found[name] for name in LOCAL_DEFAULTS if name not in SMALL_DEFAULTS} == {
        name: value for name, value in LOCAL_DEFAULTS.items() if name not in SMALL_DEFAULTS
    }


@pytest.mark.parametrize("other", ["hdfs://name/fleet", "s3a://bucket/fleet", "missing"])
def test_what_is_not_known_to_be_small(tmp_path: Path, other: str) -> None:
    small = _folder(tmp_path / "small", 10)
    assert local_settings(small, other) == LOCAL_DEFAULTS
    assert local_settings() == LOCAL_DEFAULTS


def test_large_folders(tmp_path: Path) -> None:
    large = _folder(tmp_path / "large", session.SMALL_BYTES + 1)
    assert local_settings(large) == LOCAL_DEFAULTS
    half = [_folder(tmp_path / name, session.SMALL_BYTES * 2 // 3) for name in "ab"]
    assert local_settings(*half) == LOCAL_DEFAULTS
