"""A log that comes piece by piece tells what the whole one does, once, and keeps little."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kassign_spark.history.following import Kept, follow
from kassign_spark.history.log_arrays import Log
from kassign_spark.history.rebalances_kernel import ROWS, rebalances_arrow
from kassign_spark.log.schemas import LOG_TARGETS
from tests.history.random_logs import random_log

_GROUPS = 6


@pytest.mark.parametrize("seed", range(4))
def test_pieces_tell_what_the_whole_log_does(seed: int) -> None:
    rng = random.Random(seed)
    made = random_log(seed, groups=_GROUPS)
    log = made.log()
    targets = pa.Table.from_pylist(made.computed, to_arrow_schema(LOG_TARGETS.columns))
    for number in range(_GROUPS):
        mine, computed = _of_group(f"g{number:02}", log, targets)
        whole = rebalances_arrow(mine)
        told, kept, begin = ROWS.empty_table(), None, 0
        while begin <= made.offset:
            end = begin + rng.choice([2, 20, 60, 200])
            rows, kept = follow(kept, *_between(begin, end, mine, computed))
            told = pa.concat_tables([told, rows])
            begin = end
        # What waits at the end is the last generation at most.
        assert len(whole) - len(told) in (0, 1)
        assert told.to_pylist() == whole.slice(0, len(told)).to_pylist()
        _keeps_little(kept)


def _keeps_little(kept: Kept | None) -> None:
    assert kept is not None
    heads = len(pc.unique(kept.log.generations["generation"]))
    assert heads <= 4  # two, and tombstones of a group that began anew
    per_partition = kept.log.commits.group_by(["topic", "partition"]).aggregate(
        [("offset", "count")]
    )
    assert max(per_partition["offset_count"].to_pylist(), default=0) <= 7


def _of_group(group: str, log: Log, targets: pa.Table) -> tuple[Log, pa.Table]:
    tables = [table.filter(pc.equal(table["group_id"], group)) for table in (*log, targets)]
    return Log(*tables[:-1]), tables[-1]


def _between(begin: int, end: int, log: Log, targets: pa.Table) -> tuple[Log, pa.Table]:
    tables = [
        table.filter(
            pc.and_(pc.greater_equal(table["offset"], begin), pc.less(table["offset"], end))
        )
        for table in (*log, targets)
    ]
    return Log(*tables[:-1]), tables[-1]
