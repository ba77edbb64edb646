"""The picture of the README: small, and what its script makes."""

import os
import shutil
import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.picture import make
from tests.docs.reader import ROOT

_KEPT = ROOT / "docs" / "images" / "report.png"
_MAX_BYTES = 300_000


def _size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_it_is_small() -> None:
    assert _KEPT.stat().st_size < _MAX_BYTES
    assert _size(_KEPT)[0] == 1280


@pytest.mark.slow
def test_its_script(spark: SparkSession, own_processes: None, tmp_path: Path) -> None:
    """Fonts differ from machine to machine, so points are not compared."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("chromium and chromedriver are not installed: make browser installs them")
    make(tmp_path / "images" / "report.png")
    assert _size(tmp_path / "images" / "report.png") == _size(_KEPT)
    assert (tmp_path / "images" / "report.png").stat().st_size > _KEPT.stat().st_size / 2
