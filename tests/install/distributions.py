"""The wheel and the source archive of this checkout, as ``pip`` would have them built."""

from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.docs.reader import ROOT


def build_wheel(folder: Path, root: Path = ROOT) -> Path:
    (wheel,) = WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"])
    return Path(wheel)


def build_sdist(folder: Path) -> Path:
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(archive)
