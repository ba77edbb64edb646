"""The Java consumers report what happens to them, as the client's listener is told it."""

import pytest
from pyspark.sql import SparkSession

from tests.kafka.consumers import java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics


@pytest.mark.slow
def test_a_cooperative_join_takes_two_rebalances(
    spark: SparkSession, broker: SecuredBroker
) -> None:
    create_topics(broker.bootstrap_server, {"consumers-coop": 4})
    with java_consumers(spark, broker.bootstrap_server) as consumers:
        consumers.start("a", "consumers-coop", ["consumers-coop"], "cooperative-sticky")
        before = consumers.wait_until_joined(1)["a"]
        consumers.start("b", "consumers-coop", ["consumers-coop"], "cooperative-sticky")
        after = consumers.wait_until_joined(2)
    assert len(before.assignment) == 4
    kept, assigned = after["a"].assignment, after["b"].assignment
    assert len(kept) == len(assigned) == 2
    assert sorted(kept + assigned) == before.assignment
    assert after["a"].generation == before.generation + 2
    assert after["a"].events == [
        ("assigned", before.assignment),
        ("revoked", assigned),
        ("assigned", []),
        ("assigned", []),
    ]
    # Its first sync may come when the second rebalance has begun already, and is then told nothing.
    assert after["b"].events in (
        [("assigned", []), ("assigned", assigned)],
        [("assigned", assigned)],
    )


@pytest.mark.slow
def test_an_eager_join_stops_everyone(spark: SparkSession, broker: SecuredBroker) -> None:
    create_topics(broker.bootstrap_server, {"consumers-eager": 3})
    with java_consumers(spark, broker.bootstrap_server) as consumers:
        consumers.start("a", "consumers-eager", "consumers-e.*", "range")
        before = consumers.wait_until_joined(1)["a"].assignment
        consumers.start("b", "consumers-eager", ["consumers-eager"], "range")
        a = consumers.wait_until_joined(2)["a"]
        consumers.stop("b")
        consumers.wait_until(lambda states: states["a"].assignment == before)
    assert a.events == [("assigned", before), ("revoked", before), ("assigned", a.assignment)]
    assert len(a.assignment) == 2


def test_a_consumer_that_fails_is_reported(spark: SparkSession, broker: SecuredBroker) -> None:
    with java_consumers(spark, broker.bootstrap_server) as consumers:
        consumers.start("a", "consumers-fail", ["no spaces"], "range")
        with pytest.raises(RuntimeError, match=r"consumer a: .*InvalidTopicException"):
            consumers.wait_until_joined(1, seconds=20)
