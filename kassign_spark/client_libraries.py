"""The client libraries that lead groups: their assignors, and what they differ in.

In a classic group the leader's client computes the assignment. Libraries that bind librdkafka
(confluent-kafka and others) are librdkafka.
"""

JAVA, LIBRDKAFKA, FRANZ_GO, SARAMA, KAFKA_PYTHON, AIOKAFKA, KAFKA_GO, KAFKAJS = (
    "java",
    "librdkafka",
    "franz-go",
    "sarama",
    "kafka-python",
    "aiokafka",
    "kafka-go",
    "kafkajs",
)
COORDINATOR_ASSIGNORS = ("uniform", "range")
"""The coordinator's (KIP-848), by ``group.consumer.assignors``; the first is for groups without a
vote."""
_STICKY, _COOPERATIVE = "sticky", "cooperative-sticky"
_EAGER = ("range", "roundrobin")
RACK_AFFINITY = "rack-affinity"
"""An assignor of kafka-go's, which no other library has."""
ASSIGNORS_OF_CLIENT = {
    JAVA: (*_EAGER, _STICKY, _COOPERATIVE),
    LIBRDKAFKA: (*_EAGER, _COOPERATIVE),
    FRANZ_GO: (*_EAGER, _STICKY, _COOPERATIVE),
    SARAMA: (*_EAGER, _STICKY, _COOPERATIVE),
    KAFKA_PYTHON: (*_EAGER, _STICKY, _COOPERATIVE),
    AIOKAFKA: (*_EAGER, _STICKY),
    KAFKA_GO: (*_EAGER, RACK_AFFINITY),
    KAFKAJS: ("roundrobin",),
}
"""The assignors that each library has, by the names of Java's that come nearest."""
ASSIGNORS = tuple(dict.fromkeys(name for names in ASSIGNORS_OF_CLIENT.values() for name in names))
"""Those of all libraries, by number: Java's come first."""
CLIENTS = tuple(ASSIGNORS_OF_CLIENT)
KAFKAJS_PROTOCOL = "RoundRobinAssigner"
"""The name of kafkajs' only assignor, which no other library uses."""
CLIENT_OF_ASSIGNOR = {KAFKAJS_PROTOCOL: KAFKAJS, RACK_AFFINITY: KAFKA_GO}
"""The library that the name of an assignor tells."""

KNOWS_INSTANCES = (JAVA, FRANZ_GO, LIBRDKAFKA, KAFKA_PYTHON)
"""Libraries in which ``group.instance.id`` has a say in the order of members."""
ORDERS_BY_UTF_16 = (JAVA, KAFKAJS)
"""Libraries that compare ids by UTF-16 units; the others compare bytes of UTF-8."""
DRAWS_LOTS = (FRANZ_GO, SARAMA)
"""Libraries whose sticky assignors go through a Go map, whose order is another one each time."""
LOOKS_AT_RACKS = (JAVA, LIBRDKAFKA)
"""Libraries whose `range` looks at racks without being told to."""

CLIENT_IDS = {
    "rdkafka": LIBRDKAFKA,
    "kgo": FRANZ_GO,
    "sarama": SARAMA,
    # Before 2.3 it was what aiokafka is made from.
    **{f"kafka-python-{version}": AIOKAFKA for version in ("0.", "1.", "2.0.", "2.1.", "2.2.")},
    "kafka-python-": KAFKA_PYTHON,
    "aiokafka-": AIOKAFKA,
}
"""What the client ids of libraries begin with, where nobody has set another; the first counts."""


def clients_with(assignor: str) -> list[int]:
    """Return the places in ``CLIENTS`` of the libraries that have an assignor."""
    return [n for n, client in enumerate(CLIENTS) if assignor in ASSIGNORS_OF_CLIENT[client]]
