"""``__consumer_offsets`` of a live cluster through Spark's own Kafka source."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.errors import ClusterError, KassignError, SettingsError
from kassign_spark.live.admin import check_answers, refuse_login
from kassign_spark.live.client_properties import refuse_fragments
from kassign_spark.spark.spark_errors import SparkError
from kassign_spark.spark.spark_versions import KAFKA_PACKAGE

BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Spark asks for partitions and offsets by an admin client, and leaves out internal topics then; by
a consumer, the older way, it does not."""

SEES_INTERNAL_TOPICS = {BY_CONSUMER: "true"}
"""Settings of a session that reads the log from a cluster."""

READERS = "kassign-spark-log"
"""Prefixes of the group names with which Spark reads the log: each run leaves some in it."""

_SERVERS = "kafka.bootstrap.servers"
_DEFAULTS = {
    "subscribe": OFFSETS_TOPIC,
    "groupIdPrefix": READERS,
    "startingOffsets": "earliest",
    # Commits of transactions that were aborted are in the topic too.
    "kafka.isolation.level": "read_committed",
    # Compaction takes records away; that is no loss.
    "failOnDataLoss": "false",
}
_WHY = {
    "TopicAuthorizationException": "this user may not read {topic}: it needs READ and DESCRIBE on "
    "that topic",
    "GroupAuthorizationException": "this user may not use the consumer group that Spark reads "
    f"with: it needs READ on groups {READERS}*, or name one with the option kafka.group.id",
    "SaslAuthenticationException": "the cluster refused the login; check security.protocol, "
    "sasl.mechanism and sasl.jaas.config in the client properties file",
    "SslAuthenticationException": "the TLS handshake failed; check security.protocol and ssl.* in "
    "the client properties file",
    "UnknownTopicOrPartitionException": "there is no topic {topic}: no group has ever committed",
    "TimeoutException": "no answer; check the address, that a broker listens there, and that the "
    "client properties file fits that listener (security.protocol)",
}
"""Advice by the class that a Java client throws; its own text may contain settings."""


def kafka_options(bootstrap_server: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return options of Spark's Kafka source from an address and a Java client's properties.

    Raises:
        SettingsError: the properties name a cluster of their own, or a line is not a key=value.
    """
    refuse_fragments(properties)
    if "bootstrap.servers" in properties:
        raise SettingsError(
            "client properties: bootstrap.servers: give the address as --bootstrap-server instead"
        )
    return {_SERVERS: bootstrap_server, **{f"kafka.{k}": v for k, v in properties.items()}}


def read_topic(options: Mapping[str, str], spark: SparkSession, *, stream: bool) -> DataFrame:
    """Return the records as a batch or a stream; options that are not given have defaults.

    Raises:
        SettingsError: the options name no cluster, or another topic, or the session is not set to
            see internal topics.
        ClusterError: the session lacks the Spark package of the source, or the source refuses, or
            the address has a login, or nobody answers there.
    """
    if _SERVERS not in options:
        raise SettingsError(f"options of the group log: {_SERVERS} is missing (host:port)")
    refuse_login(options[_SERVERS])
    lower = {name.lower() for name in options}
    topics = {name: options[name] for name in options if name.lower() in _TOPIC_OPTIONS}
    if not all(_is_the_log(value) for value in topics.values()):
        raise SettingsError(
            f"options of the group log: {', '.join(topics)} must name {OFFSETS_TOPIC}, the topic "
            "that groups are recorded in, or be left out"
        )
    # Of the options that name topics only one may be there.
    taken = lower | _TOPIC_OPTIONS if topics else lower
    settings = {k: v for k, v in _DEFAULTS.items() if k.lower() not in taken} | dict(options)
    reader = (spark.readStream if stream else spark.read).format("kafka")
    try:
        records = reader.options(**settings).load()
        _ = records.schema  # a server of Spark Connect looks for the source when it is asked
    except SparkError as error:
        raise explain_source_error(error, options) from None
    # It counts when the frame is computed, so it cannot be ours for a moment.
    if str(spark.conf.get(BY_CONSUMER, "false")).lower() != "true":
        raise SettingsError(
            f"the session leaves out {OFFSETS_TOPIC}, an internal topic of Kafka: set "
            f"{BY_CONSUMER} to true first"
        )
    properties = {name.removeprefix("kafka."): value for name, value in options.items()}
    check_answers(options[_SERVERS], properties)
    return records


def explain_source_error(error: Exception, options: Mapping[str, str]) -> KassignError:
    """Explain an error in one line, without a text that may contain settings."""
    text = " ".join([str(error), *_classes(error)])
    if "Failed to find data source: kafka" in text or "DATA_SOURCE_NOT_FOUND" in text:
        return ClusterError(
            "reading the group log from Kafka needs the Spark package "
            f"{KAFKA_PACKAGE}; start Spark with it (spark.jars.packages, spark-submit --packages, "
            "or kassign-spark serve --package)"
        )
    address = options.get(_SERVERS, "")
    for name, advice in _WHY.items():
        if name in text:
            return ClusterError(f"Kafka at {address}: {advice.format(topic=OFFSETS_TOPIC)}")
    return ClusterError(
        f"reading {OFFSETS_TOPIC} of Kafka at {address} failed ({type(error).__name__})"
    )


@contextmanager
def kafka_errors(source: str | Mapping[str, str]) -> Iterator[None]:
    """Explain with ``explain_source_error`` what a Java client throws while it reads a log."""
    try:
        yield
    except SparkError as error:
        text = " ".join([str(error), *_classes(error)])
        if isinstance(source, Mapping) and "org.apache.kafka.c" in text:  # clients and common
            raise explain_source_error(error, source) from None
        raise


def _is_the_log(value: str) -> bool:
    """Return whether it is the topic's name or, for option assign, its partitions too."""
    with suppress(ValueError):
        assigned = json.loads(value)
        return isinstance(assigned, dict) and set(assigned) == {OFFSETS_TOPIC}
    return value == OFFSETS_TOPIC


def _classes(error: Exception) -> Iterator[str]:
    """Return the classes of a Java exception, from the outermost to its cause."""
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while thrown is not None:
        yield thrown.getClass().getName()
        thrown = thrown.getCause()


_TOPIC_OPTIONS = frozenset({"subscribe", "subscribepattern", "assign"})
