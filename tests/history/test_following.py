"""A log that comes piece by piece tells what the whole one does, once, and keeps little."""

import random
from importlib import import_module

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kassign_spark.history import following
from kassign_spark.history.following import FollowState, follow, rest
from kassign_spark.history.log_arrays import Log
from kassign_spark.history.rebalances_kernel import ROWS, rebalances_arrow
from kassign_spark.history.whole_groups import NAME, InPieces, _call_by_whole_groups, _portions
from kassign_spark.log.log_schemas import LOG_TARGETS, RECORDS
from kassign_spark.spark.spark_versions import arrow_schema
from tests.history.random_logs import random_log
from tests.history.raw import records

rebalances = import_module("kassign_spark.history.rebalances")  # its function hides it in the room
_GROUPS = 6
_SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]


@pytest.mark.parametrize("seed", _SEEDS)
def test_pieces_tell_what_the_whole_log_does(seed: int) -> None:
    rng = random.Random(seed)
    made = random_log(seed, groups=_GROUPS)
    log = made.log()
    targets = pa.Table.from_pylist(made.computed, arrow_schema(LOG_TARGETS.columns))
    for number in range(_GROUPS):
        mine, computed = _of_group(f"g{number:02}", log, targets)
        whole = rebalances_arrow(mine)
        read_rows, kept, begin = ROWS.empty_table(), None, 0
        while begin <= made.offset:
            end = begin + rng.choice([2, 20, 60, 200])
            rows, kept = follow(kept, *_between(begin, end, mine, computed))
            read_rows = pa.concat_tables([read_rows, rows])
            begin = end
        # What waits at the end is the last generation at most.
        assert len(whole) - len(read_rows) in (0, 1)
        assert read_rows.to_pylist() == whole.slice(0, len(read_rows)).to_pylist()
        _keeps_little(kept)


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_is_too_much_at_once_is_read_in_pieces(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = random_log(seed, groups=_GROUPS)
    log = made.log()
    targets = pa.Table.from_pylist(made.computed, arrow_schema(LOG_TARGETS.columns))
    expected = [rebalances_arrow(_of_group(f"g{n:02}", log, targets)[0]) for n in range(_GROUPS)]
    monkeypatch.setattr(following, "MOST_PRESENT", 12)
    cut = 0
    for number, whole in enumerate(expected):
        mine, computed = _of_group(f"g{number:02}", log, targets)
        cut += len(list(following._pieces(None, mine, computed))) > 2
        rows, kept = follow(None, mine, computed)
        assert pa.concat_tables([rows, rest(kept)]).to_pylist() == whole.to_pylist()
    assert cut == _GROUPS // 3  # those of the new protocol
    # A task does so with those that need it; of the others it takes some at once.
    at_most = following.present_at_most(log.generations, log.log_members)["present"].to_pylist()
    for most in (12, max(at_most) - 1, max(at_most), sum(at_most)):
        monkeypatch.setattr(rebalances, "MOST_PRESENT", most)
        read_rows = pa.concat_tables(rebalances._rows_of_some(log, targets))
        by_group = read_rows.sort_by([("group_id", "ascending"), ("offset", "ascending")])
        assert by_group.to_pylist() == pa.concat_tables(expected).to_pylist()


def test_tasks_read_large_groups_in_pieces() -> None:
    rng = random.Random(5)
    rows = [
        dict(zip(RECORDS.columns.names, row, strict=True)) | {NAME: row[0][4:7]}
        for row in records(random_log(5, groups=9, new=False))
    ]
    table = pa.Table.from_pylist(
        sorted(rows, key=lambda row: (row[NAME], row["offset"])),
        arrow_schema(RECORDS.columns).append(pa.field(NAME, pa.binary())),
    )
    expected = rebalances._rows(table).to_pylist()
    pieces = InPieces(rebalances._follow, rebalances._rest)
    for most_bytes in (1, 5_000, 40_000, 1 << 20):
        begin, batches = 0, []
        while begin < len(table):
            end = begin + rng.choice([1, 20, 300])
            batches += table.slice(begin, end - begin).combine_chunks().to_batches()
            begin = end
        portions = list(_portions(most_bytes, batches, cut_groups=True))
        assert any(not ends for _, ends in portions) == (most_bytes < 1 << 20)
        read_rows = list(_call_by_whole_groups(rebalances._rows, pieces, most_bytes, batches))
        assert pa.Table.from_batches(read_rows).to_pylist() == expected


def _keeps_little(kept: FollowState | None) -> None:
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
