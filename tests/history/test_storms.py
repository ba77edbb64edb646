"""Who rebalances too often, who causes it, and what other settings would have saved."""

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError, SettingsError
from kassign_spark.history.rebalance_columns import REBALANCES
from kassign_spark.history.rebalances_kernel import ROWS, rebalances_arrow
from kassign_spark.history.storms import rebalances_without, storms, storms_arrow
from tests.history.logs import Client, Made, Partition, at

_MINUTE = 60_000_000
Row = dict[str, Any]


def _find_storms(table: pa.Table, within: int = 10 * _MINUTE, at_least: int = 5) -> list[Row]:
    return [
        row
        for part in storms_arrow(table, within=within, at_least=at_least)
        for row in part.to_pylist()
    ]


@pytest.mark.parametrize(
    ("kind", "away_s", "rebalances"),
    [
        ("left", 10, False),
        ("left", 45, True),
        ("crashed", 44, False),
        ("crashed", 60, True),
        ("too_slow", 1, True),
    ],
)
def test_a_static_member_starts_no_rebalance_while_its_session_lasts(
    kind: str, away_s: int, rebalances: bool
) -> None:
    assert rebalances_without(kind, away_s * 1000, 45_000) is rebalances


@pytest.mark.parametrize("seed", range(5))
def test_storms_are_where_the_rebalances_stand_close(seed: int) -> None:
    rng = random.Random(seed)
    rows = []
    for group in ("a", "b", "c"):
        seconds = sorted(rng.sample(range(2000), rng.randrange(2, 40)))
        rows += [_row(group, place, second) for place, second in enumerate(seconds)]
    at_least, within = rng.randrange(2, 5), rng.choice([30, 60, 200])
    rng.shuffle(rows)
    result = _find_storms(pa.Table.from_pylist(rows, ROWS), within * 1_000_000, at_least)
    storm_rows = [(s["group_id"], s["begins"], s["rebalances"], s["most_within"]) for s in result]
    assert storm_rows == _slowly(rows, timedelta(seconds=within), at_least)


def _slowly(rows: list[Row], within: timedelta, at_least: int) -> list[tuple[Any, ...]]:
    result = []
    for group in sorted({row["group_id"] for row in rows}):
        times = sorted(r["at"] for r in rows if r["group_id"] == group and r["reason"] != "first")
        spans = [[t for t in times if begin <= t <= begin + within] for begin in times]
        joint: list[list[Any]] = []
        for span in (span for span in spans if len(span) >= at_least):
            # Spans are one storm when a rebalance is of both, or none lies between them.
            if joint and times.index(span[0]) <= times.index(joint[-1][-1]) + 1:
                joint[-1] = sorted({*joint[-1], *span})
            else:
                joint.append(span)
        for storm in joint:
            most = max(len([t for t in storm if b <= t <= b + within]) for b in storm)
            result.append((group, storm[0], len(storm), most))
    return result


def _row(group: str, number: int, seconds: float) -> Row:
    lists = {field.name: [] for field in ROWS if pa.types.is_list(field.type)}
    numbers = {
        field.name: 0 for field in ROWS if not field.nullable and pa.types.is_integer(field.type)
    }
    return {
        **lists,
        **numbers,
        "group_id": group,
        "group_type": "classic",
        "generation": number,
        "at": at(seconds),
        "reason": "first" if number == 0 else "unknown",
        "offset": number,
    }


def _t(*numbers: int) -> list[Partition]:
    return [("t", number) for number in numbers]


def _flapping(away: list[float], assignor: str = "range") -> Made:
    """Beside one that stays another that leaves, and is back after so many seconds."""
    made, number, now = Made(), 1, 0.0
    made.classic("g", 0, 0, {})
    stays = Client(owned=_t(0, 1))
    for turn, seconds in enumerate(away):
        made.classic(
            "g", number, now, {"a-1": stays, f"b-{turn}": Client(owned=_t(2, 3))}, assignor
        )
        for second in range(4):
            for partition in range(4):
                made.commit("g", "t", partition, now + 5 * second + 1)
        now += 20
        made.classic("g", number + 1, now, {"a-1": Client(owned=_t(0, 1, 2, 3))}, assignor)
        now += seconds
        number += 2
    return made


def test_one_client_that_comes_and_goes_is_named() -> None:
    (storm,) = _find_storms(rebalances_arrow(_flapping([10, 20, 70, 5]).log()))
    assert storm["cause"] == "restarts"
    assert (storm["client_id"], storm["client_host"]) == ("b", "/10.0.0.1")
    assert (storm["rebalances"], storm["joins"], storm["leaves"]) == (8, 4, 4)
    # Three times it came back, twice of them within 45 s; its first join and last leave stay.
    assert storm["saved_by_static"] == 4
    assert (storm["saved_by_session"], storm["session_needed_ms"]) == (6, 71_000)
    assert storm["detail"] == (
        "a client leaves and comes back, over and over; b at /10.0.0.1 joined 4 times and left 4 "
        "times; a group.instance.id would have saved 4; with session.timeout.ms=71000 it would "
        "have saved 6"
    )


def test_crashes_slow_polls_and_two_deployments_are_told_apart() -> None:
    made = Made()
    _dropped(made, "crash", silent=52)
    _dropped(made, "slow", silent=320)
    _fighting(made, "fight")
    result = {
        row["group_id"]: row for row in _find_storms(rebalances_arrow(made.log()), 60 * _MINUTE)
    }
    assert {group: row["cause"] for group, row in result.items()} == {
        "crash": "crashes",
        "slow": "polls_too_slow",
        "fight": "two_deployments",
    }
    # A group.instance.id does not help who polls too slowly.
    assert result["slow"]["saved_by_static"] == result["slow"]["saved_by_session"] == 0


def _dropped(made: Made, group: str, silent: int) -> None:
    now, number = 0.0, 1
    for turn in range(4):
        members = {"a-1": Client(owned=_t(0)), f"b-{turn}": Client(owned=_t(1))}
        made.classic(group, number, now, members)
        for second in range(1, 20, 5):
            made.commit(group, "t", 0, now + second)
            made.commit(group, "t", 1, now + second)
        now += 16 + silent
        made.classic(group, number + 1, now, {"a-1": Client(owned=_t(0, 1))})
        now, number = now + 5, number + 2


def _fighting(made: Made, group: str) -> None:
    """Two applications, each of which comes back when the other has made it leave."""
    one, other = Client(("t",), _t(0)), Client(("u",), [("u", 0)])
    stays = {"s-1": Client(("t",), _t(1)), "z-1": Client(("u",), [("u", 1)])}
    for turn in range(6):
        mine = {f"a-{turn}": one} if turn % 2 else {f"b-{turn}": other}
        made.classic(group, turn + 1, turn * 30.0, {**stays, **mine})


def test_a_frame_of_storms(spark: SparkSession) -> None:
    rows = rebalances_arrow(_flapping([10, 20, 70, 5]).log()).to_pylist()
    frame = spark.createDataFrame(rows, REBALANCES.columns)
    (storm,) = storms(frame, within="10m", at_least=5).collect()
    assert (storm.rebalances, storm.saved_by_static, storm.session_needed_ms) == (8, 4, 71_000)
    assert storms(frame, within="1m", at_least=5).count() == 0
    with pytest.raises(SettingsError, match="within '10 fortnights' is not a length of time"):
        storms(frame, within="10 fortnights")
    with pytest.raises(InputError, match="at_least is 1"):
        storms(frame, at_least=1)
