"""Groups of thousands of members: one record has them all, or thousands of epochs have."""

import base64
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kassign_spark.history import following
from kassign_spark.history.following import follow, rest
from kassign_spark.history.log_arrays import EarlierLog, Log
from kassign_spark.history.rebalances_kernel import RebalanceRows, read_rebalances, rebalances_arrow
from kassign_spark.log.log_schemas import LOG_TARGETS
from kassign_spark.spark.spark_versions import arrow_schema
from tests.history.logs import Client, Made
from tests.kafka.log_records import Record, write
from tests.log.batches import decoded, differences
from tests.log.expected_rows import TABLES, ExpectedRows
from tests.oracles import protocol

_MEMBERS = 5_000
_TOPICS = tuple(f"orders-of-shop-{number:02}" for number in range(40))
_OWNED_COUNT = 3
"""Topics of which each member has a partition."""


def test_a_record_of_thousands_of_members(spark: SparkSession) -> None:
    """Megabytes, which the jar has written; the last member leaves, and no partition moves."""
    records = [_generation(1, _MEMBERS, 3), _generation(2, _MEMBERS - 1, 4)]
    written = write(spark, records)
    assert all(len(value or b"") > 4_000_000 for _, value in written)
    expected, read = ExpectedRows().all(records), decoded(written)
    tables = {table.name: read[place].to_pylist() for place, table in enumerate(TABLES)}
    assert differences(tables, expected.tables) == []
    assert len(read.unread) == 0
    first, second = rebalances_arrow(Log(*read[:4])).to_pylist()
    assert (first["member_count"], first["reason"]) == (_MEMBERS, "first")
    assert (second["member_count"], second["reason"]) == (_MEMBERS - 1, "member_left")
    assert (second["left"], second["joined"]) == ([_member(_MEMBERS - 1)["memberId"]], [])
    assert (second["moved"], second["kept"], second["idle"]) == (
        0,
        _OWNED_COUNT * (_MEMBERS - 1),
        0,
    )


def _generation(number: int, members: int, version: int) -> Record:
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": "range",
        "leader": _member(0)["memberId"],
        "currentStateTimestamp": 1_700_000_000_000 + number,
        "members": [_member(place) for place in range(members)],
    }
    return Record(2, {"group": "giant"}, version, value)


def _member(place: int) -> dict[str, Any]:
    owned = tuple((topic, place) for topic in _TOPICS[:_OWNED_COUNT])
    return {
        "memberId": f"consumer-{place:05}-3f2a54b0-77c1-4c0f-9d52-8d5a7c1be0f4",
        "groupInstanceId": None,
        "clientId": f"consumer-{place:05}",
        "clientHost": "/10.0.0.7",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": _SUBSCRIPTION,
        "assignment": _text(protocol.encode_assignment(protocol.Assignment(owned))),
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


_SUBSCRIPTION = _text(protocol.encode_subscription(protocol.Subscription(_TOPICS)))


@pytest.mark.slow
def test_thousands_join_a_new_group_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each brings an epoch, so that members and epochs multiply; they are never seen at once."""
    at_once = 50
    made = Made()
    for place in range(_MEMBERS):
        made.member("g", f"m{place:05}", place / 10, Client())
        made.epoch("g", place + 2, place / 10)
        if (place + 1) % at_once == 0:
            for late in range(place + 1 - at_once, place + 1):
                made.target("g", f"m{late:05}", place / 10, [("t", late)])
            made.computes("g", place + 2, place / 10)
    most = 0

    def measured(log: Log, earlier: EarlierLog) -> RebalanceRows:
        nonlocal most
        made_of = read_rebalances(log, earlier)
        most = max(most, len(made_of.view.present.row))
        return made_of

    monkeypatch.setattr(following, "read_rebalances", measured)
    targets = pa.Table.from_pylist(made.computed, arrow_schema(LOG_TARGETS.columns))
    summaries, kept = follow(None, made.log(), targets)
    rows = pa.concat_tables([summaries, rest(kept)]).to_pylist()
    assert [row["member_count"] for row in rows] == list(range(1, _MEMBERS + 1))
    assert {row["reason"] for row in rows[1:]} == {"member_joined"}
    assert all(row["joined"] == [f"m{place:05}"] for place, row in enumerate(rows) if place)
    assert sum(row["moved"] for row in rows) == 0
    assert most < following.MOST_PRESENT + 3 * _MEMBERS
