"""The general pass on counts in rounds over a DataFrame of blocks: seconds and memory by superstep.

    python -m tests.benchmarks.rounds [CASE ...] [--change fresh|join] [--memory 8g] [--only]

From a Parquet file of one group's edges to what each member gets of each class. Cases are those of
``tests.benchmarks.engine``, and 1e8. The same edges are settled in this process as well, and must
give the same (``--only`` leaves that out); the seconds that takes are what cores share. The rest of
the supersteps is Spark's own, planning, starting tasks, keeping blocks, and does not shrink with
cores. Memory is of all Python workers together at most, spill what tasks wrote to disk for want
of memory.
"""

import argparse
import tempfile
import time
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kassign_spark.engine.commands import Answer, Command
from kassign_spark.engine.edge_rows import cut_edges, settled_edges
from kassign_spark.engine.program import settle_blocks
from kassign_spark.engine.rounds import Rounds
from kassign_spark.engine.task import settle
from kassign_spark.groups.rows import tasks_for
from kassign_spark.spark.iteration import Budget
from tests.benchmarks.engine import SEED, SHAPES, Shape, _arrays
from tests.benchmarks.load import _sampling, _stages
from tests.spark_session import start_session

_SHAPES = {**SHAPES, "1e8": Shape(1, 50_000, 20_000, 0.1, (50, 150))}
_CHUNK = 500
"""Classes drawn at once."""


def main() -> None:
    """Print a table a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join(_SHAPES))
    parser.add_argument("--change", choices=("fresh", "join"), default="join")
    parser.add_argument("--memory", default="8g", help="spark.driver.memory")
    parser.add_argument("--only", action="store_true", help="do not settle them here as well")
    parser.add_argument("--scratch", help="folder for edges and spill")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        spark = None
        for case in args.cases or ["1e5", "1e6", "1e7"]:
            path = Path(scratch, f"{case}.parquet")
            here = write_edges(path, _SHAPES[case], args.change, settled=not args.only)
            spark = spark or _warm(Path(scratch), args.memory)
            _run(spark, case, path, here)
        if spark:
            spark.stop()


def _warm(folder: Path, memory: str) -> SparkSession:
    spark = start_session(folder, memory=memory, plain=True)
    path = folder / "warm.parquet"
    write_edges(path, _SHAPES["tiny"], "fresh", settled=False)
    settle_edges(spark, path)
    return spark


class Here(NamedTuple):
    """What settling the edges in this process gave, and took."""

    checksum: int
    seconds: float


def write_edges(path: Path, shape: Shape, change: str, *, settled: bool = True) -> Here | None:
    """Write the edges; settle them in this process, if that is asked for."""
    if shape.classes * shape.members > 5e8:
        _write_fresh(path, shape)
        return None
    class_of, member_of, owned, supply, turn = _arrays(shape, change)
    table = _table(class_of, member_of, owned, supply[class_of], turn[class_of])
    pq.write_table(table, path, row_group_size=1_000_000)
    if not settled:
        return None
    began = time.perf_counter()
    assigned = settle(class_of, member_of, owned, supply, turn)
    seconds = time.perf_counter() - began
    return Here(_checksum(class_of, member_of, assigned), seconds)


def _write_fresh(path: Path, shape: Shape) -> None:
    rng = np.random.default_rng(SEED)
    with pq.ParquetWriter(path, _table(*np.zeros((5, 0), np.int64)).schema) as writer:
        for first in range(0, shape.classes, _CHUNK):
            is_edge = rng.random((_CHUNK, shape.members), np.float32) < shape.density
            class_of, member_of = np.nonzero(is_edge)
            supply = rng.integers(*shape.partitions, _CHUNK, endpoint=True)[class_of]
            class_of += first
            none = np.zeros(len(class_of), np.int64)
            writer.write_table(_table(class_of, member_of, none, supply, class_of))


def _table(*columns: Any) -> pa.Table:
    names = ("class", "member", "owned", "supply", "turn")
    return pa.table(dict(zip(names, (column.astype(np.int64) for column in columns), strict=True)))


def _checksum(class_of: Any, member_of: Any, assigned: Any) -> int:
    rows = np.flatnonzero(assigned)
    order = rows[np.lexsort((member_of[rows], class_of[rows]))]
    columns = (of[order].astype("<i8").tobytes() for of in (class_of, member_of, assigned))
    return zlib.crc32(b"".join(columns))


class TimedRounds(Rounds):
    """Notes what each superstep took."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def step(self, commands: list[Command]) -> list[Answer]:
        """Have every block do the commands."""
        began = time.perf_counter()
        answers = super().step(commands)
        self.seconds[commands[-1].name].append(time.perf_counter() - began)
        return answers


def settle_edges(spark: SparkSession, path: Path) -> tuple[TimedRounds, pa.Table]:
    """Settle the edges of the file; the table is as of ``settled_edges``."""
    edges = spark.read.parquet(str(path))
    count = pq.read_metadata(path).num_rows
    members = int(pq.read_table(path, columns=["member"])["member"].to_numpy().max()) + 1
    engine = TimedRounds(cut_edges(edges, tasks_for(count, spark)), Budget(1_000))
    settle_blocks(engine, members)
    return engine, settled_edges(engine).toArrow()


def checksum(settled: pa.Table) -> int:
    """What ``Here.checksum`` is for the same."""
    class_of, member_of, assigned = (
        settled[name].to_numpy() for name in ("class", "member", "assigned")
    )
    return _checksum(class_of, member_of, assigned)


def _run(spark: SparkSession, case: str, path: Path, here: Here | None) -> None:
    earlier = _stages(spark)
    with _sampling() as most:
        began = time.perf_counter()
        engine, rows = settle_edges(spark, path)
        whole = time.perf_counter() - began
    spilled = sum(to_disk for stage, (_, to_disk) in _stages(spark).items() if stage not in earlier)
    judged = "not compared"
    if here is not None:
        is_same = here.checksum == checksum(rows)
        judged = f"{'same' if is_same else 'NOT the same'} as {here.seconds:.1f} s in this process"
    state = engine._states.selectExpr("sum(length(state))").first()
    count = sum(map(len, engine.seconds.values()))
    inside = sum(map(sum, engine.seconds.values()))
    print(
        f"{case}: {pq.read_metadata(path).num_rows:,} edges, {whole:.1f} s, {judged}; {count} "
        f"supersteps, {inside:.1f} s; workers {most[0] / 2**30:.2f} GiB, blocks "
        f"{len(engine._numbers)}, {(state[0] if state else 0) / 2**20:.0f} MB at the end, "
        f"{spilled / 2**20:.0f} MB spilled to disk",
        flush=True,
    )
    for name, seconds in engine.seconds.items():
        print(f"  {name:<8}{len(seconds):>4}  {sum(seconds):6.2f} s, {np.median(seconds):.2f} each")


if __name__ == "__main__":
    main()
