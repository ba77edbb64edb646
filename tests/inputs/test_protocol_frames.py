from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.errors import SchemaError
from kassign_spark.live import protocol_frames as frames
from tests.inputs.test_protocol import (
    ASSIGNMENT_VECTOR,
    STICKY_V1,
    SUBSCRIPTION,
    SUBSCRIPTION_VECTORS,
)

OWNED = [("t0", 0), ("t0", 1), ("t1", 2)]


def messages(spark: SparkSession, column: str, *hex_bytes: str | None) -> DataFrame:
    rows = [(i, None if h is None else bytearray.fromhex(h)) for i, h in enumerate(hex_bytes)]
    return spark.createDataFrame(rows, f"id INT, {column} BINARY").repartition(2)


def rows_by_id(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("id").collect()]


def test_subscriptions_decode_and_encode_back(spark: SparkSession) -> None:
    frame = messages(spark, "subscription", *SUBSCRIPTION_VECTORS)
    decoded = frames.decode_subscriptions(frame)
    got = rows_by_id(decoded)
    assert [row["topics"] for row in got] == [["t0", "t1"]] * 4
    assert [row["owned"] for row in got] == [[], OWNED, OWNED, OWNED]
    assert [row["generation"] for row in got] == [None, None, 5, 5]
    assert [row["rack_id"] for row in got] == [None, None, None, "r1"]
    assert [row["user_data"] for row in got] == [SUBSCRIPTION.user_data] * 4
    assert [row["error"] for row in got] == [None] * 4
    written = decoded
    for version in range(4):
        written = frames.encode_subscriptions(written.drop("error"), f"v{version}", version)
    got = [row[f"v{version}"].hex() for version, row in enumerate(rows_by_id(written))]
    assert got == SUBSCRIPTION_VECTORS


def test_broken_and_absent_subscriptions_are_rows_with_an_error(spark: SparkSession) -> None:
    vector = SUBSCRIPTION_VECTORS[3]
    cut = [vector[: 2 * n] for n in range(len(vector) // 2)]
    got = rows_by_id(
        frames.decode_subscriptions(messages(spark, "subscription", None, vector, *cut))
    )
    assert got[0]["error"] == "there are no bytes"
    assert got[1]["error"] is None
    assert len(got) == len(cut) + 2
    for row in [got[0], *got[2:]]:
        assert row["error"]
        assert [row[c] for c in ("topics", "owned", "generation", "rack_id", "user_data")] == [
            None
        ] * 5


def test_assignments_decode_and_encode_back(spark: SparkSession) -> None:
    frame = messages(spark, "assignment", ASSIGNMENT_VECTOR, ASSIGNMENT_VECTOR[:-2])
    decoded = frames.decode_assignments(frame)
    good, broken = rows_by_id(decoded)
    assert good["assigned"] == [("t1", 2), ("t0", 0), ("t0", 1)]
    assert (good["user_data"], good["error"]) == (None, None)
    assert (broken["assigned"], broken["user_data"]) == (None, None)
    assert "length of user data" in broken["error"]
    back = frames.encode_assignments(decoded.drop("error"), "written")
    assert rows_by_id(back)[0]["written"].hex() == ASSIGNMENT_VECTOR


def test_sticky_user_data_decodes_and_encodes_back(spark: SparkSession) -> None:
    cases = [STICKY_V1, STICKY_V1[:-8], STICKY_V1[:-10], "", None]
    decoded = frames.decode_sticky_user_data(messages(spark, "user_data", *cases))
    got = rows_by_id(decoded)
    owned = [("t0", 1), ("t0", 0), ("t1", 2)]
    assert [row["owned"] for row in got] == [owned, owned, [], [], []]
    assert [row["generation"] for row in got] == [5, None, -1, None, None]
    assert [row["error"] is None for row in got] == [True, True, False, True, True]
    back = rows_by_id(frames.encode_sticky_user_data(decoded.drop("error"), "written"))
    assert [row["written"].hex() for row in back[:2]] == cases[:2]


def test_cooperative_sticky_user_data_decodes_and_encodes_back(spark: SparkSession) -> None:
    cases = ["00000005", "ffffffff", None, "", "000000"]
    decoded = frames.decode_cooperative_sticky_user_data(messages(spark, "user_data", *cases))
    got = rows_by_id(decoded)
    assert [row["generation"] for row in got] == [5, -1, None, -1, -1]
    assert [row["error"] is None for row in got] == [True, True, True, False, False]
    written = frames.encode_cooperative_sticky_user_data(decoded.drop("error"), "written")
    assert [row["written"].hex() for row in rows_by_id(written)[:3]] == [
        "00000005",
        "ffffffff",
        "ffffffff",
    ]


def test_claims_follow_the_assignor(spark: SparkSession) -> None:
    sticky = SUBSCRIPTION_VECTORS[3].replace("0000000400000005", "00000024" + STICKY_V1)
    cases = [
        (0, sticky, "sticky"),
        (1, sticky, "range"),
        (2, sticky, None),
        (3, SUBSCRIPTION_VECTORS[3], "sticky"),  # four bytes are no user data of `sticky`
        (4, SUBSCRIPTION_VECTORS[1], "cooperative-sticky"),
        (
            5,
            SUBSCRIPTION_VECTORS[1].replace("0000000400000005", "0000000105"),
            "cooperative-sticky",
        ),
        (6, "0003", "sticky"),
    ]
    frame = spark.createDataFrame(
        [(i, bytearray.fromhex(h), a) for i, h, a in cases],
        "id INT, subscription BINARY, assignor STRING",
    )
    got = rows_by_id(frames.decode_claims(frame))
    by_user_data = [("t0", 1), ("t0", 0), ("t1", 2)]
    assert [row["owned"] for row in got] == [by_user_data, OWNED, OWNED, [], OWNED, OWNED, None]
    assert [row["generation"] for row in got] == [5, 5, 5, None, 5, None, None]
    assert [row["rack_id"] for row in got] == ["r1"] * 4 + [None] * 3
    assert [row["error"] is None for row in got] == [True, True, True, False, True, False, False]
    assert got[3]["error"].startswith("user data: ")


def test_what_cannot_be_encoded_is_a_row_with_an_error(spark: SparkSession) -> None:
    cases = [
        ([None], [], 1, "a topic is null"),
        (["t"], [("t", None)], 1, "a partition or its topic is null"),
        (["t"], [None], 1, "a partition or its topic is null"),
        (["t"], [], 2**31, "generation 2147483648 does not fit into its field"),
        (None, None, None, None),
    ]
    frame = spark.createDataFrame(
        [(i, *case, None, None) for i, case in enumerate(cases)],
        "id INT, topics ARRAY<STRING>, owned ARRAY<STRUCT<topic: STRING, partition: INT>>, "
        "generation BIGINT, expected STRING, rack_id STRING, user_data BINARY",
    )
    got = rows_by_id(frames.encode_subscriptions(frame))
    assert [row["error"] for row in got] == [row["expected"] for row in got]
    assert [row["subscription"] for row in got[:-1]] == [None] * 4
    assert got[-1]["subscription"].hex() == "000300000000ffffffff00000000ffffffffffff"


def test_columns_that_do_not_fit_are_named_at_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("x", 1)], "subscription STRING, Error INT")
    with pytest.raises(SchemaError) as caught:
        frames.decode_claims(frame)
    assert str(caught.value) == (
        "column subscription must be binary, not string; column assignor (string) is missing; "
        "column error is there already: rename or drop it"
    )
