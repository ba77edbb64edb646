"""Every assignor on the same state, beside the best that there is."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.measures.balance import balance, loads
from kassign_spark.measures.variants import Variants, by_variant, make_variants
from kassign_spark.pipeline import assign
from kassign_spark.prediction.predict import PREDICTED
from kassign_spark.prediction.state import FAILING, NEVER_SETTLES, OK
from kassign_spark.rebalancing.protocol import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.rebalancing.steps import rebalance
from kassign_spark.rebalancing.summary import final_assignment, summarize
from kassign_spark.rounds import hold
from kassign_spark.schemas import (
    ASSIGNMENT,
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    conform,
    fill_cluster_id,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.settings import Settings

_PASSES: tuple[tuple[str | None, list[str]], ...] = (
    (None, list(PREDICTED)),
    (EAGER, sorted(COOPERATIVE_ASSIGNORS)),
)
"""Protocols that assignors are held to; None: each to its own."""
_WHOLE = "range"
"""Gives out every partition in one round, whatever the state: the optimum is of these."""
_VARIANT = [CLUSTER_ID, "variant_id"]
_RESULT = [
    *("verdict", "detail", "member_count", "partition_count", "kept", "moved", "least_moves"),
    *("spread", "topic_spread", "sum_of_squares", "least_sum_of_squares", "rounds", "paused"),
    "cross_rack",
]


def compare(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    exact: bool = False,
    settings: Settings = Settings(),
) -> DataFrame:
    """Follow a rebalance of every group under every assignor of Kafka's; runs jobs.

    Args:
        members: ``schemas.MEMBERS``; ``assignor`` is not looked at.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``, what members own before.
        exact: with Kafka's own answers, as ``rebalance`` gives them; it may then end in verdicts
            other than ok. Otherwise with those of ``assign``, which are the best there are where
            subscriptions differ.
        settings: how to compute it; not used with ``exact``.

    Returns:
        One row a group, assignor and protocol: cluster_id string (where the inputs have it),
        group_id string, assignor string, protocol string: `eager` or `cooperative`,
        verdict string: as of ``rebalance(..., exact=True)``, detail string,
        member_count int, partition_count bigint: assigned in the end, kept bigint: of these, with a
        member that had them, moved bigint: with another member than before, also one that left,
        least_moves bigint: the fewest that can move at the best balance (a worse balance may need
        fewer), spread bigint: between the members with the most and the
        fewest partitions, topic_spread bigint: the same among the subscribers of one topic, of the
        topic where it is largest, sum_of_squares bigint: of the members' loads,
        least_sum_of_squares bigint: at the best balance, rounds int, paused bigint: partitions that
        their member stops reading for a while, though it is still there, cross_rack bigint: as
        cross_rack_count of ``balance``.
        kept, moved and least_moves are null without ``owned``; the optimum is null where nothing is
        assigned, and all that an answer would tell where there is none (throws, never_ends). Of a
        partition that several members claim, any of them keeps it; the optimum knows one of them.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    inputs = conform_inputs(members, topics, owned)
    look(inputs, known_assignors=None)
    given = has_cluster_id(members)
    parts = []
    for protocol, names in _PASSES:
        keys = inputs.members.select(*GROUP_KEY).distinct().select(*GROUP_KEY, _each(names))
        variants = make_variants(inputs, keys.withColumn("without", _no_text()), given)
        parts.append(_measure(variants, topics, protocol, exact, settings, given))
    compared = reduce(DataFrame.unionByName, parts)
    best = _optimum(members, topics, owned, settings)
    unknown = F.lit(owned is None)
    whole = compared.join(best, on=list(GROUP_KEY), how="left").withColumn(
        "least_moves", F.when(~unknown, F.col("least_moves"))
    )
    return restore_cluster_id(whole.select(*GROUP_KEY, "assignor", "protocol", *_RESULT), given)


def _each(names: list[str]) -> Column:
    return F.explode(F.array(*map(F.lit, names))).alias("assignor")


def _no_text() -> Column:
    return F.lit(None).cast("string")


def _measure(
    variants: Variants,
    topics: DataFrame,
    protocol: str | None,
    exact: bool,
    settings: Settings,
    given: bool,
) -> DataFrame:
    """Follow the variants and measure them: what ``compare`` gives, but for the optimum."""
    state = variants.members, topics, variants.owned
    verdicts = None
    if exact:
        followed, verdicts = rebalance(*state, protocol=protocol, exact=True)
    else:
        followed = rebalance(*state, protocol=protocol, settings=settings)
    steps, _ = hold(followed, {"steps": F.count(F.lit(1))})
    after = final_assignment(steps)
    rounds = by_variant(summarize(steps), given).select(
        *_VARIANT, "rounds", F.col("paused_count").alias("paused"), "settles"
    )
    measured = by_variant(loads(after, variants.members, variants.owned, topics), given)
    found = (
        variants.keys.join(measured, on=_VARIANT, how="inner")
        .join(_topic_spread(after, variants.members), on=_VARIANT, how="left")
        .join(rounds, on=_VARIANT, how="left")
    )
    if verdicts is None:
        settles = F.coalesce("settles", F.lit(True))
        found = found.withColumns(
            {"verdict": F.when(settles, OK).otherwise(NEVER_SETTLES), "detail": _no_text()}
        )
    else:
        found = found.join(by_variant(verdicts, given), on=_VARIANT, how="inner")
    own = F.when(F.col("assignor").isin(*COOPERATIVE_ASSIGNORS), COOPERATIVE).otherwise(EAGER)
    has_answer = ~F.col("verdict").isin(*FAILING)
    none = F.lit(0).cast("bigint")
    numbers = {
        "partition_count": F.col("partition_count"),
        "kept": F.col("kept_count"),
        "moved": F.col("moved_count"),
        "spread": F.col("max_assigned") - F.col("min_assigned"),
        "topic_spread": F.coalesce("topic_spread", none),
        "sum_of_squares": F.col("sum_of_squares"),
        "rounds": F.coalesce("rounds", F.lit(1)),
        "paused": F.coalesce("paused", none),
        "cross_rack": F.col("cross_rack_count"),
    }
    return found.select(
        *GROUP_KEY,
        "assignor",
        (own if protocol is None else F.lit(protocol)).alias("protocol"),
        "verdict",
        "detail",
        "member_count",
        *(F.when(has_answer, value).alias(name) for name, value in numbers.items()),
    )


def _topic_spread(assignment: DataFrame, members: DataFrame) -> DataFrame:
    """How unevenly the most uneven topic is spread over its subscribers: _VARIANT, topic_spread."""
    key = [*GROUP_KEY, "member_id", "topic"]
    held = conform(assignment, ASSIGNMENT).groupBy(*key).agg(F.count("*").alias("held"))
    count = F.coalesce("held", F.lit(0))
    by_topic = (
        conform(members, MEMBERS)
        .select(*GROUP_KEY, "member_id", F.explode(F.array_distinct("topics")).alias("topic"))
        .join(held, on=key, how="left")
        .groupBy(*GROUP_KEY, "topic")
        .agg((F.max(count) - F.min(count)).alias("spread"))
    )
    largest = by_topic.groupBy(*GROUP_KEY).agg(F.max("spread").alias("topic_spread"))
    return largest.withColumnRenamed("group_id", "variant_id")


def _optimum(
    members: DataFrame, topics: DataFrame, owned: DataFrame | None, settings: Settings
) -> DataFrame:
    """The least sum of squares and the fewest moves: GROUP_KEY and these two."""
    everything = assign(members, topics, assignor=_WHOLE, settings=settings)
    best = fill_cluster_id(balance(everything, members, owned))
    return best.select(*GROUP_KEY, "least_moves", "least_sum_of_squares")
