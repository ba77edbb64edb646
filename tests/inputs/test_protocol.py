"""The vectors of the protocol, and Kafka's own reader and writer as oracle."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.oracles.protocol import (
    Assignment,
    Claims,
    Subscription,
    claims,
    decode_assignment,
    decode_cooperative_sticky_user_data,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_sticky_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from tests.oracles.wire import ProtocolError

SEED = 20260419
OWNED = (("t0", 0), ("t0", 1), ("t1", 2))
SUBSCRIPTION = Subscription(("t0", "t1"), OWNED, 5, "r1", bytes.fromhex("00000005"))
SUBSCRIPTION_VECTORS = [
    "00000000000200027430000274310000000400000005",
    "000100000002000274300002743100000004000000050000000200027430000000020000000000000001000274"
    "310000000100000002",
    "000200000002000274300002743100000004000000050000000200027430000000020000000000000001000274"
    "31000000010000000200000005",
    "000300000002000274300002743100000004000000050000000200027430000000020000000000000001000274"
    "3100000001000000020000000500027231",
]
ASSIGNMENT = Assignment((("t1", 2), ("t0", 0), ("t0", 1)))
ASSIGNMENT_VECTOR = "00030000000200027431000000010000000200027430000000020000000000000001ffffffff"
STICKY_V1 = "000000020002743000000002000000010000000000027431000000010000000200000005"


def fields_of_version(version: int) -> Subscription:
    return SUBSCRIPTION._replace(
        owned=OWNED if version >= 1 else (),
        generation=5 if version >= 2 else None,
        rack_id="r1" if version >= 3 else None,
    )


@pytest.mark.parametrize("version", range(4))
def test_subscription_vectors(version: int) -> None:
    data = bytes.fromhex(SUBSCRIPTION_VECTORS[version])
    assert decode_subscription(data) == fields_of_version(version)
    unsorted = SUBSCRIPTION._replace(topics=("t1", "t0"), owned=OWNED[::-1])
    assert encode_subscription(unsorted, version) == data


def test_assignment_vector() -> None:
    data = bytes.fromhex(ASSIGNMENT_VECTOR)
    assert decode_assignment(data) == ASSIGNMENT
    assert encode_assignment(ASSIGNMENT) == data
    for version in range(4):
        older = encode_assignment(ASSIGNMENT, version)
        assert older == version.to_bytes(2) + data[2:]
        assert decode_assignment(older) == ASSIGNMENT


def test_sticky_user_data_vector() -> None:
    data = bytes.fromhex(STICKY_V1)
    written = Claims((("t0", 1), ("t0", 0), ("t1", 2)), 5)
    assert decode_sticky_user_data(data) == written
    assert encode_sticky_user_data(Claims((("t1", 2), ("t0", 1), ("t0", 0)), 5)) == data
    assert decode_sticky_user_data(data[:-4]) == written._replace(generation=None)
    assert encode_sticky_user_data(written._replace(generation=None)) == data[:-4]


def test_cooperative_sticky_user_data() -> None:
    assert decode_cooperative_sticky_user_data(bytes.fromhex("00000005")) == 5
    assert encode_cooperative_sticky_user_data(5) == bytes.fromhex("00000005")
    assert encode_cooperative_sticky_user_data(None) == bytes.fromhex("ffffffff")


@pytest.mark.parametrize("version", [4, 9, 2**15 - 1])
def test_an_unknown_higher_version_is_read_as_the_newest(version: int) -> None:
    subscription = version.to_bytes(2) + bytes.fromhex(SUBSCRIPTION_VECTORS[3])[2:]
    assert decode_subscription(subscription) == SUBSCRIPTION
    assert (
        decode_assignment(version.to_bytes(2) + bytes.fromhex(ASSIGNMENT_VECTOR)[2:]) == ASSIGNMENT
    )


def test_trailing_bytes_are_ignored() -> None:
    for version, vector in enumerate(SUBSCRIPTION_VECTORS):
        assert decode_subscription(bytes.fromhex(vector + "00ff")) == fields_of_version(version)
    assert decode_assignment(bytes.fromhex(ASSIGNMENT_VECTOR + "07")) == ASSIGNMENT
    assert decode_sticky_user_data(bytes.fromhex(STICKY_V1 + "07")).generation == 5
    assert decode_sticky_user_data(bytes.fromhex(STICKY_V1)[:-1]).generation is None


@pytest.mark.parametrize(
    ("decode", "data", "whole"),
    [
        *[(decode_subscription, vector, 0) for vector in SUBSCRIPTION_VECTORS],
        (decode_assignment, ASSIGNMENT_VECTOR, 0),
        (decode_sticky_user_data, STICKY_V1, 4),  # without the generation it is version 0
        (decode_cooperative_sticky_user_data, "00000005", 0),
    ],
)
def test_every_truncation_is_an_error(
    decode: Callable[[bytes], object], data: str, whole: int
) -> None:
    message = bytes.fromhex(data)
    for length in range(len(message) - whole):
        with pytest.raises(ProtocolError):
            decode(message[:length])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("ffff00000000ffffffff", "version -1 is negative"),
        ("00007fffffffffffffff", "number of topics is 2147483647, with 4 bytes left"),
        ("0000ffffffffffffffff", "number of topics is -1"),
        ("000000000001ffffffffffff", "topic has a negative length"),
        ("000000000001000274", "the bytes end within topic: 2 needed at 8, 1 left"),
        ("0000000000010002ff30ffffffff", "topic is not UTF-8"),
    ],
)
def test_broken_bytes_say_where(data: str, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode_subscription(bytes.fromhex(data))


def test_random_bytes_are_read_or_refused_but_never_break() -> None:
    chosen = random.Random(SEED)
    refused = 0
    for _ in range(5000):
        data = bytearray(bytes.fromhex(chosen.choice(SUBSCRIPTION_VECTORS)))
        for _ in range(chosen.randrange(1, 4)):
            data[chosen.randrange(len(data))] = chosen.choice([0, 1, 2, 255, chosen.randrange(256)])
        for decode in (decode_subscription, decode_assignment, decode_sticky_user_data):
            try:
                decode(bytes(data))
            except ProtocolError:
                refused += 1
    assert 1000 < refused < 15000


@pytest.mark.parametrize(
    "write",
    [
        lambda: encode_subscription(SUBSCRIPTION, 4),
        lambda: encode_subscription(SUBSCRIPTION, -1),
        lambda: encode_subscription(Subscription(("t" * 2**15,))),
        lambda: encode_subscription(Subscription(("\ud800",))),
        lambda: encode_subscription(Subscription(("t",), generation=2**31)),
        lambda: encode_assignment(Assignment((("t", 2**31),))),
        lambda: encode_assignment(ASSIGNMENT, 4),
        lambda: encode_sticky_user_data(Claims((), 2**31)),
        lambda: encode_cooperative_sticky_user_data(-(2**31) - 1),
    ],
)
def test_what_does_not_fit_is_refused(write: Callable[[], bytes]) -> None:
    with pytest.raises(ProtocolError):
        write()


# --- Kafka's own classes -------------------------------------------------------------------------


def java_bytes(buffer: Any) -> bytes:
    start = buffer.arrayOffset()
    return bytes(buffer.array()[start + buffer.position() : start + buffer.limit()])


def java_partitions(spark: SparkSession, pairs: Any) -> Any:
    partitions = spark._jvm.java.util.ArrayList()
    for topic, partition in pairs:
        partitions.add(spark._jvm.org.apache.kafka.common.TopicPartition(topic, partition))
    return partitions


def java_subscription(spark: SparkSession, subscription: Subscription) -> Any:
    jvm = spark._jvm
    topics = jvm.java.util.ArrayList()
    for topic in subscription.topics:
        topics.add(topic)
    data = subscription.user_data
    return jvm.org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription(
        topics,
        None if data is None else jvm.java.nio.ByteBuffer.wrap(bytearray(data)),
        java_partitions(spark, subscription.owned),
        -1 if subscription.generation is None else subscription.generation,
        jvm.java.util.Optional.ofNullable(subscription.rack_id),
    )


def from_java(subscription: Any) -> Subscription:
    data = subscription.userData()
    return Subscription(
        tuple(subscription.topics()),
        tuple((tp.topic(), tp.partition()) for tp in subscription.ownedPartitions()),
        subscription.generationId().orElse(None),
        subscription.rackId().orElse(None),
        None if data is None else java_bytes(data),
    )


def random_partitions(chosen: random.Random) -> tuple[tuple[str, int], ...]:
    pairs = [(topic, p) for topic in random_topics(chosen) for p in range(chosen.randrange(4))]
    return tuple(chosen.sample(pairs, len(pairs)))


def random_topics(chosen: random.Random) -> list[str]:
    names = ["t", "topic-1", "a.b_c", "組", "😀￮", "￮"] + [f"topic-{i}" for i in range(30)]
    return chosen.sample(names, chosen.randrange(20))


def random_subscription(chosen: random.Random) -> Subscription:
    return Subscription(
        tuple(random_topics(chosen)),
        random_partitions(chosen),
        chosen.choice([None, 0, 7, 2**31 - 1]),
        chosen.choice([None, "r1", "räck"]),
        chosen.choice([None, b"", b"\x00\xff"]),
    )


def test_subscriptions_are_written_and_read_as_by_kafka(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    protocol = spark._jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    for _ in range(60):
        subscription = random_subscription(chosen)
        java = java_subscription(spark, subscription)
        for version in range(4):
            written = encode_subscription(subscription, version)
            assert written == java_bytes(protocol.serializeSubscription(java, version)), SEED
            buffer = spark._jvm.java.nio.ByteBuffer.wrap(bytearray(written))
            assert decode_subscription(written) == from_java(
                protocol.deserializeSubscription(buffer)
            )


def test_assignments_are_written_and_read_as_by_kafka(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    jvm = spark._jvm
    protocol = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    java_assignment = jvm.org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment
    for _ in range(60):
        pairs = random_partitions(chosen)
        java = java_assignment(java_partitions(spark, pairs))
        for version in range(4):
            written = encode_assignment(Assignment(pairs), version)
            assert written == java_bytes(protocol.serializeAssignment(java, version)), SEED
        read = protocol.deserializeAssignment(jvm.java.nio.ByteBuffer.wrap(bytearray(written)))
        expected = tuple((tp.topic(), tp.partition()) for tp in read.partitions())
        assert decode_assignment(written).partitions == expected


def test_broken_subscriptions_are_refused_when_kafka_refuses_them(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    jvm = spark._jvm
    protocol = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    outcomes = set()
    for _ in range(400):
        data = bytearray(bytes.fromhex(chosen.choice(SUBSCRIPTION_VECTORS)))
        data[chosen.randrange(len(data))] = chosen.choice([0, 1, 2, 127, 255])
        try:
            expected = from_java(
                protocol.deserializeSubscription(jvm.java.nio.ByteBuffer.wrap(data))
            )
        except Py4JJavaError:
            expected = None
        try:
            got = decode_subscription(bytes(data))
        except ProtocolError as error:
            if "is not UTF-8" in str(error):
                continue  # Java reads such bytes as U+FFFD: no topic or rack is called that
            got = None
        assert got == expected, (SEED, data.hex())
        outcomes.add(got is None)
    assert outcomes == {True, False}


def test_sticky_user_data_is_written_as_by_its_assignor(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    consumer = spark._jvm.org.apache.kafka.clients.consumer
    none = spark._jvm.java.util.Optional.empty()
    for _ in range(60):
        pairs, generation = random_partitions(chosen), chosen.choice([0, 7, 2**31 - 1])
        assignor = consumer.StickyAssignor()
        assignor.onAssignment(
            consumer.ConsumerPartitionAssignor.Assignment(java_partitions(spark, pairs)),
            consumer.ConsumerGroupMetadata("g", generation, "m", none),
        )
        java = java_bytes(assignor.subscriptionUserData(spark._jvm.java.util.HashSet()))
        assert encode_sticky_user_data(Claims(pairs, generation)) == java, SEED
        read = decode_sticky_user_data(java)
        assert read.generation == generation
        assert sorted(read.owned) == sorted(pairs)


def test_claims_are_what_the_assignors_take_them_for(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    consumer = spark._jvm.org.apache.kafka.clients.consumer
    assignors = {
        "sticky": consumer.StickyAssignor(),
        "cooperative-sticky": consumer.CooperativeStickyAssignor(),
    }
    user_data = [None, b"", b"\x00\x00", bytes.fromhex("00000005"), bytes.fromhex("ffffffff")]
    user_data += [bytes.fromhex(STICKY_V1)[:n] for n in (20, 31, 32, 35, 36)]
    seen = set()
    for data in user_data:
        for name, assignor in assignors.items():
            method = assignor.getClass().getDeclaredMethod(
                "memberData", class_array(spark, java_subscription(spark, SUBSCRIPTION).getClass())
            )
            method.setAccessible(True)
            written = random_subscription(chosen)._replace(user_data=data)
            for subscription in (written, written._replace(generation=None)):
                argument = object_array(spark, java_subscription(spark, subscription))
                java = method.invoke(assignor, argument)
                owned = tuple((tp.topic(), tp.partition()) for tp in get_field(java, "partitions"))
                generation = get_field(java, "generation").orElse(-1)
                expected = Claims(owned, None if generation < 0 else generation)
                try:
                    assert claims(subscription, name) == expected, (name, data)
                except ProtocolError:
                    assert generation == -1
                    assert name == "cooperative-sticky" or owned == ()
                    seen.add(name)
    assert seen == set(assignors)


def test_claims_of_other_assignors_are_the_subscriptions_own() -> None:
    broken = SUBSCRIPTION._replace(user_data=b"\x00")
    assert claims(broken, "range") == Claims(OWNED, 5)


def class_array(spark: SparkSession, item: Any) -> Any:
    array = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Class, 1)
    array[0] = item
    return array


def object_array(spark: SparkSession, item: Any) -> Any:
    array = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 1)
    array[0] = item
    return array
