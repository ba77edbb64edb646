"""Columns of protocol messages decoded and encoded: ``protocol`` batch by batch, through Arrow.

All functions take a frame and give it with new columns; all other columns stay as they are. The
last new one is ``error`` string (null: none): broken bytes, or values that cannot be encoded, give
a row with that filled, never an exception, and null in the other new columns but where a function
says otherwise. A list of partitions is array<struct<topic string, partition int>>.

All raise ``SchemaError`` where a column that they read is missing or of a wrong type, or a new
column is there already.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, DataType, StringType

from kassign_spark.conforming import short_assignor
from kassign_spark.live import protocol
from kassign_spark.live.arrow_rows import PARTITIONS, Row, map_rows, struct_of
from kassign_spark.live.protocol import Assignment, Claims, Subscription
from kassign_spark.live.wire import Partitions, ProtocolError

_CLAIMS = f"owned {PARTITIONS}, generation INT"
_SUBSCRIPTION = f"topics ARRAY<STRING>, {_CLAIMS}, rack_id STRING, user_data BINARY"
_UNREADABLE = -1
"""The generation that Kafka takes from user data that it cannot read."""
_ASSIGNMENT = f"assigned {PARTITIONS}, user_data BINARY"


def decode_subscriptions(frame: DataFrame, column: str = "subscription") -> DataFrame:
    """Decode the subscriptions that members sent with JoinGroup: the binary ``column``.

    DescribeGroups calls it member metadata. Versions above 3 are read as 3.

    Returns:
        The frame and: topics array<string>, owned partitions (empty in version 0), generation int
        (null: none), rack_id string (null: none), user_data binary (null: none), error string.
    """
    return map_rows(frame, {column: BinaryType()}, _SUBSCRIPTION, _subscription)


def decode_assignments(frame: DataFrame, column: str = "assignment") -> DataFrame:
    """Decode the assignments that the leader sent with SyncGroup: the binary ``column``.

    Returns:
        The frame and: assigned partitions, in the order of the bytes; user_data binary (null:
        none); error string.
    """
    return map_rows(frame, {column: BinaryType()}, _ASSIGNMENT, _assignment)


def decode_claims(
    frame: DataFrame, column: str = "subscription", assignor: str = "assignor"
) -> DataFrame:
    """Decode subscriptions as the group's assignor understands them: the rows of a snapshot.

    `sticky` finds what a member owns in the user data, the others in the subscription; see
    ``protocol.claims``.

    Args:
        frame: any frame with both columns.
        column: name of the binary column with the subscription.
        assignor: name of the string column with the group's assignor; where it is null, the
            subscription's own fields count.

    Returns:
        The frame and: topics array<string>, owned partitions, generation int (null: none), rack_id
        string (null: none), error string. Broken user data alone gives ``error`` beside the claims
        that Kafka goes on with: for `sticky` nothing owned, for both no generation.
    """
    columns = f"topics ARRAY<STRING>, {_CLAIMS}, rack_id STRING"
    inputs = {column: BinaryType(), assignor: StringType()}
    return map_rows(frame, inputs, columns, _claims)


def encode_subscriptions(
    frame: DataFrame, column: str = "subscription", version: int = protocol.NEWEST_VERSION
) -> DataFrame:
    """Encode subscriptions; the reverse of ``decode_subscriptions``.

    Args:
        frame: a frame with topics array<string>, owned partitions, generation int, rack_id string
            and user_data binary; each may be null.
        column: name of the new binary column.
        version: 0 to 3; what a version has no field for is left out.
    """

    def encode(topics: Any, owned: Any, *others: Any) -> Row:
        said = Subscription(_without_nulls(topics), _pairs(owned), *others)
        return (protocol.encode_subscription(said, version),)

    return map_rows(frame, _types(_SUBSCRIPTION), f"`{column}` BINARY", encode)


def encode_assignments(
    frame: DataFrame, column: str = "assignment", version: int = protocol.NEWEST_VERSION
) -> DataFrame:
    """Encode assignments; the reverse of ``decode_assignments``.

    Args:
        frame: a frame with assigned partitions and user_data binary; each may be null.
        column: name of the new binary column.
        version: 0 to 3; they differ in the first two bytes only.
    """

    def encode(assigned: Any, data: bytes | None) -> Row:
        return (protocol.encode_assignment(Assignment(_pairs(assigned), data), version),)

    return map_rows(frame, _types(_ASSIGNMENT), f"`{column}` BINARY", encode)


def decode_sticky_user_data(frame: DataFrame, column: str = "user_data") -> DataFrame:
    """Decode the user data of ``StickyAssignor``, versions 0 and 1: the binary ``column``.

    Null and empty are nothing owned, and no generation.

    Returns:
        The frame and: owned partitions, generation int (null: none), error string. Where there is
        an error the member owns nothing and the generation is -1, as for Kafka.
    """
    return map_rows(frame, {column: BinaryType()}, _CLAIMS, _sticky_user_data)


def encode_sticky_user_data(frame: DataFrame, column: str = "user_data") -> DataFrame:
    """Encode the user data of ``StickyAssignor``; the reverse of ``decode_sticky_user_data``.

    Args:
        frame: a frame with owned partitions and generation int; without a generation the bytes are
            of version 0.
        column: name of the new binary column.
    """

    def encode(owned: Any, generation: int | None) -> Row:
        return (protocol.encode_sticky_user_data(Claims(_pairs(owned), generation)),)

    return map_rows(frame, _types(_CLAIMS), f"`{column}` BINARY", encode)


def decode_cooperative_sticky_user_data(frame: DataFrame, column: str = "user_data") -> DataFrame:
    """Decode the user data of ``CooperativeStickyAssignor``: the binary ``column``.

    Returns:
        The frame and: generation int (null: none; -1: before the first assignment), error string.
        Where there is an error the generation is -1, as for Kafka.
    """
    return map_rows(frame, {column: BinaryType()}, "generation INT", _cooperative_user_data)


def encode_cooperative_sticky_user_data(frame: DataFrame, column: str = "user_data") -> DataFrame:
    """Encode the user data of ``CooperativeStickyAssignor``.

    Args:
        frame: a frame with generation int; null is written as -1.
        column: name of the new binary column.
    """

    def encode(generation: int | None) -> Row:
        return (protocol.encode_cooperative_sticky_user_data(generation),)

    return map_rows(frame, _types("generation INT"), f"`{column}` BINARY", encode)


def _subscription(data: bytes | None) -> Row:
    return tuple(protocol.decode_subscription(_present(data)))


def _assignment(data: bytes | None) -> Row:
    return tuple(protocol.decode_assignment(_present(data)))


def _claims(data: bytes | None, assignor: str | None) -> Row:
    said = protocol.decode_subscription(_present(data))
    try:
        claims, error = protocol.claims(said, assignor or ""), None
    except ProtocolError as broken:
        claims = Claims(() if short_assignor(assignor) == "sticky" else said.owned)
        error = f"user data: {broken}"
    return said.topics, claims.owned, claims.generation, said.rack_id, error


def _sticky_user_data(data: bytes | None) -> Row:
    try:
        return tuple(protocol.decode_sticky_user_data(data) if data else Claims(()))
    except ProtocolError as broken:
        return (), _UNREADABLE, str(broken)


def _cooperative_user_data(data: bytes | None) -> Row:
    try:
        return (None if data is None else protocol.decode_cooperative_sticky_user_data(data),)
    except ProtocolError as broken:
        return _UNREADABLE, str(broken)


def _present(data: bytes | None) -> bytes:
    if data is None:
        raise ProtocolError("there are no bytes")
    return data


def _without_nulls(topics: list[str | None] | None) -> tuple[str, ...]:
    given = tuple(topic for topic in topics or () if topic is not None)
    if len(given) < len(topics or ()):
        raise ProtocolError("a topic is null")
    return given


def _pairs(structs: list[dict[str, Any] | None] | None) -> Partitions:
    pairs = tuple((tp["topic"], tp["partition"]) for tp in structs or () if tp)
    if len(pairs) < len(structs or ()) or any(None in pair for pair in pairs):
        raise ProtocolError("a partition or its topic is null")
    return pairs


def _types(ddl: str) -> dict[str, DataType]:
    return {field.name: field.dataType for field in struct_of(ddl)}
