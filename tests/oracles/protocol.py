"""The bytes that consumers exchange through the group coordinator, one message at a time.

Subscriptions and assignments follow Kafka's ``ConsumerProtocol`` (message formats
``ConsumerProtocolSubscription`` and ``ConsumerProtocolAssignment``, versions 0 to 3), user data
follows ``StickyAssignor`` and ``CooperativeStickyAssignor``. Numbers are big-endian. Every read is
checked against the bytes that are there (``wire``).

What cannot be read or written raises ``ProtocolError``: bytes that end early, a count, a length or
a text that cannot be; an unknown version, or a value that does not fit into its field.
"""

from typing import NamedTuple

from kassign_spark.client.hash_order import bucket, java_hash, java_string_key
from kassign_spark.conforming import short_assignor
from tests.oracles import wire
from tests.oracles.wire import Partitions, ProtocolError

NEWEST_VERSION = 3
"""A message of a higher version is read as this one, as Kafka does."""


class Subscription(NamedTuple):
    """What a member says when it joins: ``metadata`` in DescribeGroups.

    ``owned`` and ``generation`` are the subscription's own fields (versions 1 and 2); what an
    assignor makes of them and of the user data is ``claims``.
    """

    topics: tuple[str, ...]
    owned: Partitions = ()
    generation: int | None = None
    rack_id: str | None = None
    user_data: bytes | None = None


class Assignment(NamedTuple):
    """What the leader sends to a member: ``assignment`` in DescribeGroups."""

    partitions: Partitions
    user_data: bytes | None = None


class Claims(NamedTuple):
    """The partitions that a member says it owns, and in which generation it did."""

    owned: Partitions
    generation: int | None = None


def decode_subscription(data: bytes) -> Subscription:
    """Read a subscription; bytes behind its end are ignored.

    A negative generation and an empty rack are absent.
    """
    reader = wire.Reader(data)
    version = reader.version(NEWEST_VERSION)
    topics = tuple(reader.string("topic") for _ in range(reader.count("topics")))
    user_data = reader.nullable_bytes("user data")
    owned = reader.partitions_by_topic("owned partitions") if version >= 1 else ()
    generation = reader.int32("generation") if version >= 2 else -1
    rack_id = reader.nullable_string("rack") if version >= 3 else None
    return Subscription(
        topics, owned, generation if generation >= 0 else None, rack_id or None, user_data
    )


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Write a subscription as Kafka's client does: topics sorted, owned partitions by topic.

    What the version has no field for is left out.
    """
    owned = sorted(subscription.owned, key=lambda tp: (java_string_key(tp[0]), tp[1]))
    parts = [wire.int16(_known_version(version), "version")]
    topics = sorted(subscription.topics, key=java_string_key)
    parts += [wire.count(topics), *(wire.string(topic) for topic in topics)]
    parts.append(wire.nullable_bytes(subscription.user_data))
    if version >= 1:
        parts.append(wire.partitions_by_topic(owned))
    if version >= 2:
        generation = subscription.generation
        parts.append(wire.int32(-1 if generation is None else generation, "generation"))
    if version >= 3:
        parts.append(
            wire.int16(-1, "rack")
            if subscription.rack_id is None
            else wire.string(subscription.rack_id)
        )
    return b"".join(parts)


def decode_assignment(data: bytes) -> Assignment:
    """Read an assignment; all versions are alike, and bytes behind its end are ignored."""
    reader = wire.Reader(data)
    reader.version(NEWEST_VERSION)
    partitions = reader.partitions_by_topic("assigned partitions")
    return Assignment(partitions, reader.nullable_bytes("user data"))


def encode_assignment(assignment: Assignment, version: int = NEWEST_VERSION) -> bytes:
    """Write an assignment: topics by first appearance, partitions in the order given."""
    return b"".join(
        [
            wire.int16(_known_version(version), "version"),
            wire.partitions_by_topic(assignment.partitions),
            wire.nullable_bytes(assignment.user_data),
        ]
    )


def decode_sticky_user_data(data: bytes) -> Claims:
    """Read the user data of ``StickyAssignor``: version 1, else 0, which has no generation.

    Raises:
        ProtocolError: it is neither. Kafka goes on as if the member owned nothing, in
            generation -1.
    """
    reader = wire.Reader(data)
    owned = reader.partitions_by_topic("owned partitions")
    # Version 0 is what does not go on with four more bytes; fewer than four are ignored.
    return Claims(owned, reader.int32("generation") if reader.remaining() >= 4 else None)


def encode_sticky_user_data(claims: Claims) -> bytes:
    """Write the user data of ``StickyAssignor``: version 1, or 0 without a generation.

    Topics are in the iteration order of the Java hash map of their names, as the client writes
    them (a bucket of nine or more topics apart, whose order in Java is another).
    """
    by_topic: dict[str, list[int]] = {}
    table = 16
    for topic, partition in claims.owned:
        # The client fills the map by computeIfAbsent: that doubles the table when it is called
        # again, for whichever key, and puts a new key at the head of its bucket.
        if 4 * len(by_topic) > 3 * table:
            table *= 2
        by_topic.setdefault(topic, []).append(partition)
    newest_first = list(by_topic)[::-1]
    in_hash_order = sorted(newest_first, key=lambda topic: bucket(java_hash(topic), table))
    owned = [(topic, partition) for topic in in_hash_order for partition in by_topic[topic]]
    generation = b"" if claims.generation is None else wire.int32(claims.generation, "generation")
    return wire.partitions_by_topic(owned) + generation


def decode_cooperative_sticky_user_data(data: bytes) -> int:
    """Read the generation, all that ``CooperativeStickyAssignor`` keeps in its user data.

    Raises:
        ProtocolError: there are fewer than four bytes. Kafka goes on with -1.
    """
    return wire.Reader(data).int32("generation")


def encode_cooperative_sticky_user_data(generation: int | None) -> bytes:
    """Write the user data of ``CooperativeStickyAssignor``; -1 before the first assignment."""
    return wire.int32(-1 if generation is None else generation, "generation")


def claims(subscription: Subscription, assignor: str) -> Claims:
    """Give what an assignor believes that a member owns (``memberData`` of the sticky assignors).

    `sticky` reads the user data alone. `cooperative-sticky` reads the owned partitions of the
    subscription, and its generation from there or, before version 2, from the user data. Other
    assignors remember nothing; for them it is what the subscription says.

    Returns:
        Claims; the generation is absent (None) where Kafka takes it as absent or as -1, which
        come to the same.

    Raises:
        ProtocolError: the user data is broken. Kafka goes on with generation -1, `sticky` also
            without partitions.
    """
    assignor = short_assignor(assignor)
    owned, generation = subscription.owned, subscription.generation
    user_data = subscription.user_data
    if assignor == "sticky":
        owned, generation = decode_sticky_user_data(user_data) if user_data else Claims(())
    elif assignor == "cooperative-sticky" and generation is None and user_data is not None:
        generation = decode_cooperative_sticky_user_data(user_data)
    return Claims(owned, None if generation is None or generation < 0 else generation)


def _known_version(version: int) -> int:
    if not 0 <= version <= NEWEST_VERSION:
        raise ProtocolError(f"version {version} is not one of 0 to {NEWEST_VERSION}")
    return version
