"""Each rebalance of a log, without Spark: by hand, and beside a slow reading of seeded logs."""

import random
from functools import cache

import pyarrow as pa
import pytest

from kassign_spark.history.log_arrays import Log
from kassign_spark.history.rebalance_columns import REASONS
from kassign_spark.history.rebalances_kernel import rebalances_arrow
from tests.history import plain
from tests.history.logs import Client, Made, Partition
from tests.history.random_logs import random_log


@cache
def _read_slowly(seed: int) -> tuple[Made, list[plain.Row]]:
    made = random_log(seed)
    return made, plain.read(made)


@pytest.mark.parametrize("seed", range(12))
def test_it_reads_what_a_slow_reading_does(seed: int) -> None:
    made, expected_rows = _read_slowly(seed)
    result = rebalances_arrow(_shuffled(made.log(), seed)).to_pylist()
    assert len(result) == len(expected_rows)
    for row, expected in zip(result, expected_rows, strict=True):
        assert {name: row[name] for name in expected} == expected, row


def test_the_seeded_logs_have_every_reason_but_that_of_another_protocol() -> None:
    result = {row["reason"] for seed in range(12) for row in _read_slowly(seed)[1]}
    assert result == set(REASONS) - {"protocol_changed", "damaged"}


def _t(*numbers: int) -> list[Partition]:
    return [("t", number) for number in numbers]


_A, _B = Client(owned=_t(0, 1)), Client(owned=_t(2, 3))
_ALL = Client(owned=_t(0, 1, 2, 3))


def _reasons(made: Made) -> list[tuple[str, str | None]]:
    rows = rebalances_arrow(made.log()).to_pylist()
    return [(row["reason"], row["reason_detail"]) for row in rows]


def _commits(made: Made, begin: int, end: int) -> None:
    for seconds in range(begin, end, 5):
        for number in range(4):
            made.commit("g", "t", number, seconds)


def test_a_day_of_a_group_in_words() -> None:
    made = Made()
    made.classic("g", 0, 0, {})
    made.classic("g", 1, 3, {"a-1": _ALL})
    made.classic("g", 2, 60, {"a-1": _A, "b-1": _B})
    _commits(made, 65, 120)
    made.classic("g", 3, 167, {"a-1": _ALL})
    made.classic("g", 4, 170, {"a-1": _A, "b-2": _B})
    _commits(made, 175, 200)
    made.classic("g", 5, 520, {"a-1": _ALL})
    made.classic("g", 6, 900, {"a-1": Client(owned=_t(0, 1, 2, 3, 4))})
    made.classic("g", 7, 901, {"a-1": Client(owned=_t(0, 1, 2, 3, 4))}, "sticky")
    made.classic("g", 8, 910, {"a-1": Client(("t", "u"), _t(0, 1, 2, 3, 4))}, "sticky")
    made.classic("g", 11, 920, {"a-1": Client(("t", "u"), _t(0, 1, 2, 3, 4))}, "sticky")
    made.classic("g", 12, 930, {})
    made.deleted("g", "classic", 1000)
    made.classic("g", 1, 1100, {"a-9": _ALL})
    assert _reasons(made) == [
        ("first", None),
        ("member_joined", "joined a"),
        ("member_joined", "joined b"),
        ("member_crashed", "left b; silent for 52.0 s, allowed 45.0 s"),
        ("member_restarted", "joined b; away for 3.0 s"),
        ("member_too_slow", "left b; silent for 325.0 s, allowed 300.0 s"),
        ("partitions_added", "grown: t"),
        ("assignor_changed", "assignor range -> sticky"),
        ("subscription_changed", "subscription changed of a"),
        ("gap", "generations 9 to 10 are not in the log"),
        ("member_left", "left a"),
        ("first", None),
    ]


def test_a_static_member_that_comes_back_is_nobody_new() -> None:
    made = Made()
    a, b = Client(owned=_t(0, 1), instance="i1"), Client(owned=_t(2, 3), instance="i2")
    made.classic("g", 1, 0, {"a-1": a, "b-1": b})
    made.classic("g", 1, 60, {"a-2": a, "b-1": b})
    made.classic("g", 2, 120, {"a-2": a, "b-1": b, "c-1": Client()})
    made.classic("g", 3, 180, {"a-3": a, "b-1": b, "c-1": Client()})
    made.classic("g", 4, 240, {"a-3": a, "c-1": Client()})
    rows = rebalances_arrow(made.log()).to_pylist()
    assert [(row["generation"], row["reason"], row["static_restarts"]) for row in rows] == [
        (1, "first", 0),
        (2, "member_joined", 1),
        (3, "member_restarted", 0),
        (4, "member_crashed", 0),
    ]
    assert [(row["moved"], row["kept"], row["idle"]) for row in rows] == [
        (0, 0, 0), (0, 4, 1), (0, 4, 1), (0, 2, 1),
    ]  # fmt: skip


def test_of_the_new_protocol_a_static_return_is_no_reason() -> None:
    """As a real broker does: the return makes no epoch, and the next one is of something else."""
    made = Made()
    made.member("g", "a-1", 0, Client(instance="i1"))
    made.epoch("g", 1, 0)
    made.target("g", "a-1", 0, _t(0, 1))
    made.member("g", "a-1", 60, None)
    made.target("g", "a-1", 60, None)
    made.member("g", "a-2", 60, Client(instance="i1"))
    made.target("g", "a-2", 60, _t(0, 1))
    made.epoch("g", 2, 120)
    made.target("g", "a-2", 120, _t(0, 1, 2))
    rows = rebalances_arrow(made.log()).to_pylist()
    assert [(row["reason"], row["static_restarts"], row["moved"]) for row in rows] == [
        ("first", 0, 0),
        ("partitions_added", 1, 0),
    ]


def test_the_second_round_of_a_cooperative_rebalance_hands_over() -> None:
    made = Made()
    made.classic("g", 1, 0, {"a-1": _ALL}, "cooperative-sticky")
    made.classic("g", 2, 10, {"a-1": _A, "b-1": Client()}, "cooperative-sticky")
    made.classic("g", 3, 11, {"a-1": _A, "b-1": _B}, "cooperative-sticky")
    assert _reasons(made)[1:] == [
        ("member_joined", "joined b"),
        ("handover", "2 partitions handed over"),
    ]
    assert [row["moved"] for row in rebalances_arrow(made.log()).to_pylist()] == [0, 0, 2]


def test_a_group_that_goes_to_the_new_protocol_goes_on() -> None:
    made = Made()
    made.classic("g", 4, 0, {"a-1": _ALL})
    made.deleted("g", "classic", 10)
    made.member("g", "a-1", 10, Client())
    made.member("g", "b-1", 10, Client())
    made.epoch("g", 5, 10)
    made.target("g", "a-1", 10, _t(0, 1))
    made.target("g", "b-1", 10, _t(2, 3))
    assert _reasons(made)[1:] == [("protocol_changed", "to the protocol consumer; joined b")]


def _shuffled(log: Log, seed: int) -> Log:
    rng = random.Random(seed)

    def mixed(table: pa.Table) -> pa.Table:
        return table.take(pa.array(rng.sample(range(len(table)), len(table)), pa.int64()))

    return Log(*map(mixed, log))
