"""The names of Kafka's settings, and which of them is meant by one that Kafka does not know."""

import difflib
import re
from collections.abc import Iterable

from kassign_spark.settings.broker_rules import BROKER_SETTINGS

_CONSUMER_TEXT = """
allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset
bootstrap.resolve.timeout.ms bootstrap.servers check.crcs client.dns.lookup client.id
client.rack config.providers connections.max.idle.ms default.api.timeout.ms
enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes
fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
group.remote.assignor heartbeat.interval.ms interceptor.classes internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
max.partition.fetch.bytes max.poll.interval.ms max.poll.records metadata.cluster.check.enable
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms
reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism sasl.oauthbearer.allow.unverified.audience
sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes
session.timeout.ms share.acknowledgement.mode share.acquire.mode
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites
ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type value.deserializer
"""
CONSUMER_NAMES = frozenset(_CONSUMER_TEXT.split())
"""Names that the Java consumer of some version from 2.0 to 4.4 knows."""
_OTHER_TEXT = """
acks batch.size bootstrap.controllers buffer.memory buffer.memory.allocation.strategy
cleanup.policy compression.gzip.level compression.lz4.level compression.type
compression.zstd.level delete.retention.ms delivery.timeout.ms enable.idempotence
errors.deadletterqueue.group.enable file.delete.delay.ms flush.messages flush.ms
index.interval.bytes key.serializer linger.ms local.retention.bytes local.retention.ms
max.block.ms max.compaction.lag.ms max.decompressed.message.bytes
max.in.flight.requests.per.connection max.message.bytes max.request.size
message.downconversion.enable message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.type metadata.max.idle.ms min.cleanable.dirty.ratio min.compaction.lag.ms
min.insync.replicas partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
partitioner.rack.aware preallocate remote.copy.lag.bytes remote.copy.lag.ms
remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
retention.ms retries segment.bytes segment.index.bytes segment.jitter.ms segment.ms
transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
unclean.leader.election.enable value.serializer
"""
_OTHER_NAMES = frozenset(_OTHER_TEXT.split())
"""Names that producers, admin clients and topics know, and consumers do not."""
_OTHER_FAMILIES = re.compile(
    r"(?:ssl|sasl|admin|producer|listeners?|advertised|log|num|socket|offsets|transaction|replica|"
    r"controller|process|node|broker|zookeeper|inter|schema|confluent|interceptor|streams|key|value|"
    r"header|config|status|plugin|connector|tasks|rest|errors|specific|basic|bearer|"
    r"offset[.](?:storage|flush)|group[.](?:coordinator|consumer|share|streams|initial|min|max))[.].*"
)
"""Names of brokers, Connect, schema registries, and what plugins of the client read themselves."""
_LIKENESS = 0.84
"""The least likeness (0 to 1) of a misspelled name; units left out and words swapped have it."""
_LIKENESS_OF_WORDS = 0.5
_KNOWN = sorted(CONSUMER_NAMES.union(BROKER_SETTINGS))


def squash_name(name: str) -> str:
    """Remove word separators and case: ``groupInstance-id`` is ``groupinstanceid``."""
    return re.sub("[^a-z0-9]", "", name.lower())


_BY_SQUASHED = {squash_name(name): name for name in _KNOWN}
_BY_WORDS = {tuple(sorted(name.split("."))): name for name in _KNOWN}


def is_of_another_family(name: str) -> bool:
    """Return whether the consumer ignores a name without harm: another client's, or a plugin's."""
    return name in _OTHER_NAMES or _OTHER_FAMILIES.fullmatch(name) is not None


def nearest_name(name: str, names: Iterable[str] = ()) -> str | None:
    """Find the known name that a misspelled one is most like.

    Args:
        name: not of ``CONSUMER_NAMES``.
        names: others to compare it with; left out, those of consumers and of brokers' groups.

    Returns:
        The name, or null: none is near.
    """
    by_squashed = {squash_name(known): known for known in names} or _BY_SQUASHED
    words = _words(name)
    if not names and tuple(sorted(words)) in _BY_WORDS:
        return _BY_WORDS[tuple(sorted(words))]
    near = difflib.get_close_matches(squash_name(name), by_squashed, cutoff=_LIKENESS)
    return next((by_squashed[each] for each in near if _are_alike(words, by_squashed[each])), None)


def _words(name: str) -> list[str]:
    return [*filter(None, re.split("[^a-z0-9]+", name.lower()))]


def _are_alike(words: list[str], name: str) -> bool:
    """Return whether no word is a different one: names may begin alike and mean two things."""
    others = _words(name)
    return len(words) != len(others) or all(
        difflib.SequenceMatcher(None, *pair).ratio() >= _LIKENESS_OF_WORDS
        for pair in zip(words, others, strict=True)
    )
