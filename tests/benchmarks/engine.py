"""The general pass on counts inside one process: seconds, memory, and supersteps by kind.

    python -m tests.benchmarks.engine [CASE ...] [--blocks N] [--than FILE]

A case is one group of members x classes with a tenth of all edges, or many small groups in one
call; `fresh` owns nothing, `join` has 5 % of its members replaced. ``--than`` names a Python file
with another ``settle``, such as ``flow/arrays.py`` of commit 900ca55: both run in turn in this
process, and their results are compared. Memory is the most that a process of its own had beyond
its input; it is left out with ``--than``.
"""

import argparse
import importlib.util
import resource
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from kassign_spark.engine.commands import InProcess
from kassign_spark.engine.edges import compact_edges
from kassign_spark.engine.program import settle_blocks
from kassign_spark.engine.segments import Longs
from kassign_spark.engine.task import settle
from tests.engine.block_cutting import cut_into_blocks

SEED = 5


class Shape(NamedTuple):
    """Groups of the same make, settled in one call."""

    groups: int
    members: int
    classes: int
    density: float
    partitions: tuple[int, int]


SHAPES = {
    "1e5": Shape(1, 1_000, 1_000, 0.1, (50, 150)),
    "1e6": Shape(1, 5_000, 2_000, 0.1, (50, 150)),
    "1e7": Shape(1, 20_000, 5_000, 0.1, (50, 150)),
    "fleet": Shape(1_000, 20, 20, 0.5, (20, 20)),
    "small": Shape(10_000, 5, 5, 0.5, (8, 8)),
    "tiny": Shape(1, 6, 6, 0.5, (8, 8)),
}
Arrays = tuple[Longs, Longs, Longs, Longs, Longs]


def main() -> None:
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join(SHAPES))
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--than", type=Path, metavar="FILE", help="with another settle")
    args = parser.parse_args()
    other = _settle_of(args.than) if args.than else None
    for case in args.cases or SHAPES:
        for change in ("fresh", "join"):
            arrays = _arrays(SHAPES[case], change)
            line = f"{case} {change}: {len(arrays[0]):,} edges"
            seconds, (assigned, steps) = _best_of(_settle, arrays, args.blocks)
            line += f", {seconds:.4f} s"
            if other:
                other_seconds, other_assigned = _best_of(other, *arrays)
                same = "same" if np.array_equal(assigned, other_assigned) else "NOT the same"
                line += f" (before {other_seconds:.4f} s, x {other_seconds / seconds:.1f}, {same})"
            else:
                line += f", {_memory(arrays, args.blocks) / 2**20:.2f} GiB"
            print(f"{line}; {dict(steps)}", flush=True)


def _settle_of(path: Path) -> Callable[..., Longs]:
    spec = importlib.util.spec_from_file_location("other", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    settle: Callable[..., Longs] = module.settle
    return settle


def _settle(arrays: Arrays, blocks: int) -> tuple[Longs, Counter[str]]:
    engine = InProcess(cut_into_blocks(compact_edges(*arrays), blocks))
    steps = settle_blocks(engine, int(arrays[1].max()) + 1)
    return np.concatenate([block.result for block in engine.blocks]).astype(np.int64), steps


def _best_of(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Repeat for two seconds, once at least."""
    best, spent = float("inf"), 0.0
    while spent < 2:
        began = time.perf_counter()
        answer = function(*arguments)
        seconds = time.perf_counter() - began
        best, spent = min(best, seconds), spent + seconds
    return best, answer


def _memory(arrays: Arrays, blocks: int) -> int:
    """KiB that a new process has at most beyond what it has once it has read its input."""
    with TemporaryDirectory() as folder, get_context("spawn").Pool(1) as pool:
        for number, column in enumerate(arrays):
            np.save(f"{folder}/{number}.npy", column)
        growth: int = pool.apply(_growth, (folder, blocks))
    return growth


def _growth(folder: str, blocks: int) -> int:
    columns = [np.load(f"{folder}/{number}.npy") for number in range(5)]
    before = _peak()
    _settle((columns[0], columns[1], columns[2], columns[3], columns[4]), blocks)
    return _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _arrays(shape: Shape, change: str) -> Arrays:
    """Draw the edges; for a join, settle the group of before first."""
    rng = np.random.default_rng(SEED)
    size = (shape.groups, shape.classes, shape.members)
    is_edge = rng.random(size, np.float32) < shape.density
    supply = rng.integers(*shape.partitions, size[:2], endpoint=True)
    owned = np.zeros(size, np.int32)
    if change == "join":
        owned[is_edge] = settle(*_columns(is_edge, owned, supply))
        for group in range(shape.groups):
            replaced = rng.choice(shape.members, max(shape.members // 20, 1), replace=False)
            owned[group, :, replaced] = 0
            drawn = rng.random((len(replaced), shape.classes)) < shape.density
            is_edge[group, :, replaced] = drawn
    return _columns(is_edge, owned, supply)


def _columns(is_edge: Any, owned: Longs, supply: Longs) -> Arrays:
    group, class_, member = np.nonzero(is_edge)
    groups, classes, members = is_edge.shape
    return (
        group * classes + class_,
        np.unique(group * members + member, return_inverse=True)[1],
        owned[is_edge],
        supply.ravel(),
        np.tile(np.arange(classes), groups),
    )


if __name__ == "__main__":
    main()
