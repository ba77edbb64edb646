"""Tell the library that a member runs from what it sends: its bytes, client id and protocol.

Users often set ``client.id``, so the bytes of the subscription come first. They tell few libraries
for certain: Java's consumers before 3.2 write what sarama's do, for one.
"""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.client_libraries import (
    CLIENT_IDS,
    CLIENTS,
    FRANZ_GO,
    KAFKA_GO,
    LIBRDKAFKA,
    RACK_AFFINITY,
)
from kassign_spark.conforming import BY_ASSIGNOR

SIGNS = ("client_id", "subscription")
"""Columns of members that tell it."""
CLIENT_COLUMNS = ("client", "is_leader", *SIGNS)
"""Columns of members about the library that they run."""


def _number(first: str, count: int) -> str:
    return f"cast(conv(hex(substring(subscription, {first}, {count})), 16, 10) as bigint)"


# ConsumerProtocolSubscription: version, topics, user data, and from version 1 on what is owned, 2
# the generation, 3 the rack.
_VERSION = _number("1", 2)
_TOPICS_END = "6 + aggregate(topics, 0, (size, topic) -> size + 2 + octet_length(topic))"
_USER_DATA_SIZE = _number(f"{_TOPICS_END} + 1", 4)
_HAS_NO_USER_DATA = f"{_USER_DATA_SIZE} = 4294967295"
_END = f"{_TOPICS_END} + 4 + if({_HAS_NO_USER_DATA}, 0, {_USER_DATA_SIZE})"
_USER_DATA = f"hex(substring(subscription, {_TOPICS_END} + 5, 4))"
# kafka-go has no rack in its subscription but for this assignor's user data.
_RACK = f"""
if(assignor = '{RACK_AFFINITY}' and rack_id is null and not {_HAS_NO_USER_DATA}, nullif(cast(
substring(subscription, {_TOPICS_END} + 5, cast({_USER_DATA_SIZE} as int)) as string), ''), rack_id)
"""
IS_UNREADABLE = (
    "subscription is not null and topics is not null and not coalesce("
    f"{_number('3', 4)} = size(topics) and length(subscription) >= {_END}, false)"
)
"""Whether bytes are no subscription to the member's topics, in SQL."""


def _client_cases(clients: Collection[str]) -> str:
    return " ".join(
        f"when startswith(client_id, '{prefix}') then '{client}'"
        for prefix, client in CLIENT_IDS.items()
        if client in clients
    )


# Java and franz-go write null where librdkafka writes an empty rack and no bytes. Under the sticky
# assignors franz-go always writes a list, Java's `cooperative-sticky` a generation above 0.
_BY_BYTES = f"""
when {_VERSION} = 1 and length(subscription) = {_END} then '{KAFKA_GO}'
when {_VERSION} >= 3 and ({_USER_DATA_SIZE} = 0 or hex(substring(subscription, -2, 2)) = '0000')
then '{LIBRDKAFKA}'
when {_VERSION} >= 3 and assignor like '%sticky' and {_USER_DATA_SIZE} = 4
and {_USER_DATA} = '00000000' then '{FRANZ_GO}'
when {_VERSION} >= 3 and assignor = 'cooperative-sticky' and not {_HAS_NO_USER_DATA}
and {_USER_DATA_SIZE} > 4 then '{FRANZ_GO}'
when {_VERSION} >= 3 then case {_client_cases([FRANZ_GO])} end
"""
_BY_EMPTY_RACK = f"when rack_id = '' then '{LIBRDKAFKA}'"


def with_clients(members: DataFrame) -> DataFrame:
    """Add the column ``client``, or fill it where it is null, by what the ``SIGNS`` tell.

    Args:
        members: ``schemas.MEMBERS``; ``client`` may be missing, and in the group log's members
            ``subscription``: there an empty rack_id is librdkafka's.
    """
    by_bytes = _BY_BYTES if "subscription" in members.columns else _BY_EMPTY_RACK
    if "subscription" in members.columns:
        members = members.withColumn("rack_id", F.expr(_RACK))
    signs = f"{BY_ASSIGNOR}, case {by_bytes} {_client_cases(CLIENTS)} end"
    named = "client, " if "client" in members.columns else ""
    return members.withColumn("client", F.expr(f"coalesce({named}{signs})"))
