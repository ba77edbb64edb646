"""A rebalance round by round: what each member keeps, gives up and receives."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, overload

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS, Assignor
from kassign_spark.assignors.assignor_protocols import check_protocol, own_protocol
from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, KAFKAS, numbers_of
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.conforming import declare, has_cluster_id, short_assignor
from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.paths import Paths
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.plans.assign import strategy_of
from kassign_spark.plans.consumer_groups import inspect_by_type, predict_consumer_groups
from kassign_spark.plans.misled_groups import note_claims
from kassign_spark.plans.predict import PREDICTED, PredictedRebalance, predict_rebalance
from kassign_spark.plans.rebalance_rounds import STEPS, follow, step_tables
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY
from kassign_spark.settings.computing import Settings


@overload
def rebalance(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    protocol: str | None = None,
    exact: Literal[False] = False,
    settings: Settings = Settings(),
) -> DataFrame: ...


@overload
def rebalance(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    protocol: str | None = None,
    exact: Literal[True],
    settings: Settings = Settings(),
) -> PredictedRebalance: ...


def rebalance(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    protocol: str | None = None,
    exact: bool = False,
    settings: Settings = Settings(),
) -> DataFrame | PredictedRebalance:
    """Follow the rebalance of every group until nothing is withheld any more.

    All rounds of a group are followed in one task, and the result is lazy. Where neither
    ``assignor`` nor ``protocol`` is given, groups of group_type `consumer` move by heartbeats to
    the target that their coordinator computes; see ``predict_consumer_groups``.

    Args:
        members: ``schemas.MEMBERS``; all of them take part in every round.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, what members own before; rows of members that are not in
            ``members`` are those of members that left.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`.
        assignor: as for ``assign``; with ``exact`` as for ``predict``.
        protocol: `eager` or `cooperative`; None for the assignor's own: `cooperative-sticky` is
            cooperative, the others are eager. `cooperative-sticky` under `eager` knows nothing of
            what members owned (its user data has a generation only) and assigns afresh.
        exact: answer each round as ``predict`` does, exactly as Kafka's client, and give verdicts
            too. Otherwise each round is one of ``assign``.
        settings: how to compute it; not used with ``exact``.

    Claims of partitions that do not exist are dropped, but with ``exact``: the client of a sticky
    assignor may throw because of them, which ``predict`` and ``validate`` say.

    Returns:
        steps: cluster_id string (where the inputs have it), group_id string, round int (from 1),
        member_id string, topic string, partition int, action string:
        `retained` the member has it before and after the round, `revoked` it gives it up,
        `assigned` it receives it, `withheld` it is to receive it in a later round, when the owner
        has given it up. Under `eager` nothing is retained: all that members own is revoked.
        A group whose last round withholds something never settles: its state repeated.

        With ``exact`` two frames, (steps, verdicts), as ``predict`` gives two. verdicts:
        cluster_id string (where the inputs have it), group_id string, verdict string (ok | throws
        | never_ends | inexact | never_settles), detail string; one row per group. never_settles:
        the members come back to what they owned after an earlier round, and so on for ever. The
        steps of a group that throws or never ends are those of the rounds before that one, and
        under `eager` what its members gave up.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, an unknown assignor or protocol, an assignor that
            does not know the cooperative protocol, or with ``exact`` one that is not Kafka's own.
    """
    if exact:
        if callable(assignor):
            names = ", ".join(sorted(PREDICTED))
            raise InputError(f"exact=True follows Kafka's own assignors only: name one of {names}")
        return predict_rebalance(
            members, topics, owned, target=target, assignor=assignor, protocol=protocol
        )
    return rebalance_on_paths(
        members,
        topics,
        owned,
        target=target,
        assignor=assignor,
        protocol=protocol,
        settings=settings,
    )


def rebalance_on_paths(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    protocol: str | None = None,
    settings: Settings = Settings(),
    paths: Paths | None = None,
) -> DataFrame:
    """Do as ``rebalance`` without ``exact``, and record in ``paths`` what misleads the client."""
    assignor = short_assignor(assignor)
    chosen = strategy_of(assignor)
    check_protocol(protocol)
    known_assignors = None if chosen is not None else ASSIGNORS
    eligible, names, consumer = inspect_by_type(
        members, topics, owned, target, known_assignors, assignor, protocol
    )
    if not callable(assignor):
        note_claims(eligible, paths, assignor, protocol)
    strategies = {name: ASSIGNORS[name] for name in names} if chosen is None else {"": chosen}
    for name, strategy in strategies.items():
        if protocol == COOPERATIVE and own_protocol(strategy) == EAGER:
            raise InputError(
                f"assignor {name or assignor!r} does not know the cooperative protocol; "
                "only cooperative-sticky does"
            )
    followed = _follow(eligible, strategies, protocol, settings)
    has_clusters = has_cluster_id(members)
    steps = to_result(followed, "rebalance", has_cluster_id=has_clusters)
    if consumer is None:
        return steps
    consumer_steps = predict_consumer_groups(consumer, has_cluster_id=has_clusters).steps
    return steps.unionByName(consumer_steps)


def _follow(
    eligible: Eligible,
    strategies: dict[str, Assignor],
    protocol: str | None,
    settings: Settings,
) -> DataFrame:
    """Follow groups of Kafka's assignors in tasks, and those of the caller's own over DataFrames.

    ``strategies`` are by the names that groups have; by an empty name that of all groups.
    """
    numbers = {ASSIGNORS[name]: number for number, name in enumerate(KAFKAS)}
    strategy = strategies.get("")
    if strategy is not None and strategy not in numbers:
        return _follow_own(eligible, strategy, settings)
    kernel = partial(
        _follow_arrow,
        assignor=None if strategy is None else numbers[strategy],
        protocol=protocol,
        settings=settings,
    )
    return run_in_tasks(fold(eligible), kernel, STEPS, settings.batches or eligible.batches)


def _follow_own(eligible: Eligible, strategy: Assignor, settings: Settings) -> DataFrame:
    """Return the round of the caller's own assignor: all is given up, then all is received."""
    received = declare(strategy(eligible, settings), ASSIGNMENT)
    return _to_steps(_owned_by_members(eligible), "revoked").unionByName(
        _to_steps(received, "assigned")
    )


def _owned_by_members(eligible: Eligible) -> DataFrame:
    """Select the existing partitions that members own, each partition of a member once."""
    members = eligible.members
    if eligible.owned is None:
        nothing = members.where(F.lit(False))
        return nothing.selectExpr(*GROUP_KEY, "member_id", "'' as topic", "0 as partition")
    present = members.select(*GROUP_KEY, "member_id")
    owned = eligible.owned.join(present, on=[*GROUP_KEY, "member_id"], how="left_semi")
    return owned.withColumn("partition", F.col("partition").cast("int")).distinct()


def _to_steps(partitions: DataFrame, action: str) -> DataFrame:
    return partitions.selectExpr(
        *GROUP_KEY, "1 as round", "member_id", "topic", "partition", f"'{action}' as action"
    )


def _follow_arrow(
    table: pa.Table, *, assignor: int | None, protocol: str | None, settings: Settings
) -> Iterator[pa.Table]:
    """Follow the groups of a task (rows of ``rows.fold``); the columns of ``STEPS``, in pieces.

    ``assignor`` is a number of ``KAFKAS`` for all of them, None: each its own; ``protocol`` that of
    all, None: their assignors' own.
    """
    batch, claims = read_batch(table)
    assignors = numbers_of(batch, assignor)
    followed = follow(
        batch,
        claims,
        assignors,
        (assignors == COOPERATIVE_STICKY) & (protocol != EAGER),
        racks_before_moves=settings.racks_before_moves,
        max_rounds=settings.max_rounds,
    )
    yield from step_tables(batch, followed.steps)
