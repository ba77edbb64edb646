"""The rounds of every group's rebalance, each answered exactly as Kafka's client does it."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.look import look
from kassign_spark.errors import InputError
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.prediction.arrow_states import states_of
from kassign_spark.prediction.predict import PREDICTED, VERDICTS, predict, route_groups
from kassign_spark.prediction.rounds import Rebalance, follow_rounds
from kassign_spark.prediction.states import collect_states, topics_with_racks
from kassign_spark.rebalancing.protocol import COOPERATIVE, COOPERATIVE_ASSIGNORS, protocol_column
from kassign_spark.rounds import hold
from kassign_spark.schemas import (
    GROUP_KEY,
    MEMBERS,
    OWNED,
    conform,
    declare,
    has_cluster_id,
    restore_cluster_id,
)

if TYPE_CHECKING:
    import pyarrow as pa

_STEP = [*GROUP_KEY, "round", "member_id", "topic", "partition", "action"]
_FOLLOWED = (
    "cluster_id string, group_id string, verdict string, detail string, steps array<struct<"
    "round: int, member_id: string, action: string, topic: string, partitions: array<int>>>"
)


class PredictedRebalance(NamedTuple):
    """All steps, and how they end; see ``predict_rebalance``."""

    steps: DataFrame
    verdicts: DataFrame


def predict_rebalance(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    assignor: str | None = None,
    protocol: str | None = None,
) -> PredictedRebalance:
    """Follow the rebalance of every group as ``rebalance`` does, with the client's own answers.

    Args:
        members: ``schemas.MEMBERS``; all of them take part in every round.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``, what members own before.
        assignor: as for ``predict``.
        protocol: `eager` or `cooperative`; None for the assignor's own. Under `eager`
            `cooperative-sticky` knows nothing of what members owned.

    Returns:
        steps: as ``rebalance`` gives them.
        verdicts: as of ``predict``, and verdict never_settles: the members come back to what they
            owned after an earlier round, and would go on for ever.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, an unknown assignor or protocol, or an assignor
            that does not know the cooperative protocol.
    """
    if assignor is not None and assignor not in PREDICTED:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(PREDICTED))}")
    is_cooperative = protocol_column(assignor, protocol) == COOPERATIVE
    name = F.col("assignor") if assignor is None else F.lit(assignor)
    inputs = conform_inputs(members, topics, owned)
    look(inputs, known_assignors=PREDICTED if assignor is None else None)
    knows_both = name.isin(*COOPERATIVE_ASSIGNORS)
    kinds = {
        "refused": is_cooperative & ~knows_both,
        "cooperative": is_cooperative & knows_both,
        "forgetful": ~is_cooperative & knows_both,
        "eager": ~is_cooperative & ~knows_both,
    }
    found = members.agg(*(F.count_if(is_it).alias(kind) for kind, is_it in kinds.items())).first()
    assert found is not None
    if found.refused:
        raise InputError("only cooperative-sticky knows the cooperative protocol")
    parts = []
    if found.cooperative:
        parts.append(_cooperative(members.where(kinds["cooperative"]), topics, owned))
    for kind, seen in (("forgetful", None), ("eager", owned)):
        if found[kind]:
            of_kind = members.where(kinds[kind])
            predicted = predict(of_kind, topics, seen, assignor=assignor)
            steps = _eager(predicted.assignment, of_kind, owned)
            parts.append(PredictedRebalance(steps, predicted.verdicts))
    if not parts:
        nothing = predict(members, topics, owned, assignor=assignor)
        parts.append(
            PredictedRebalance(_eager(nothing.assignment, members, owned), nothing.verdicts)
        )
    return PredictedRebalance(
        reduce(DataFrame.unionByName, [part.steps for part in parts]),
        reduce(DataFrame.unionByName, [part.verdicts for part in parts]),
    )


def _eager(assignment: DataFrame, members: DataFrame, owned: DataFrame | None) -> DataFrame:
    """All members give up everything, then receive everything."""
    received = _in_first_round(assignment, "assigned")
    if owned is None:
        return received
    present = conform(members, MEMBERS).select(*GROUP_KEY, "member_id")
    given_up = (
        conform(owned, OWNED)
        .join(present, on=[*GROUP_KEY, "member_id"], how="left_semi")
        .distinct()
    )
    kept = restore_cluster_id(declare(given_up, OWNED), has_cluster_id(members))
    return _in_first_round(kept, "revoked").unionByName(received)


def _in_first_round(frame: DataFrame, action: str) -> DataFrame:
    values: dict[str, Column] = {"round": F.lit(1), "action": F.lit(action)}
    names = [name for name in _STEP if name in values or name in frame.columns]
    return frame.select(*(values[n].alias(n) if n in values else F.col(n) for n in names))


def _cooperative(
    members: DataFrame, topics: DataFrame, owned: DataFrame | None
) -> PredictedRebalance:
    inputs = conform_inputs(members, topics, owned)
    eligible = look(inputs, known_assignors=None).eligible
    groups = route_groups(eligible.groups, "cooperative-sticky")
    sized = topics_with_racks(eligible)
    states = collect_states(groups, eligible.members, sized, eligible.owned)
    followed, _ = hold(states.mapInArrow(_follow_batches, _FOLLOWED), {"groups": F.count("*")})
    steps = followed.select(*GROUP_KEY, F.inline("steps")).select(
        *(F.explode("partitions").alias(n) if n == "partition" else n for n in _STEP)
    )
    given = has_cluster_id(members)
    verdicts = declare(followed.select(*VERDICTS.columns.names), VERDICTS)
    return PredictedRebalance(restore_cluster_id(steps, given), restore_cluster_id(verdicts, given))


def _follow_batches(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    for batch in batches:
        states = list(states_of(batch))
        followed = [follow_rounds(state) for state in states]
        steps = [
            _flat(state.member_ids, rebalance)
            for state, rebalance in zip(states, followed, strict=True)
        ]
        step = pa.struct(
            {
                "round": pa.int32(),
                "member_id": pa.string(),
                "action": pa.string(),
                "topic": pa.string(),
                "partitions": pa.list_(pa.int32()),
            }
        )
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("cluster_id"),
                batch.column("group_id"),
                pa.array([rebalance.verdict for rebalance in followed], type=pa.string()),
                pa.array([rebalance.detail for rebalance in followed], type=pa.string()),
                pa.array(steps, type=pa.list_(step)),
            ],
            names=["cluster_id", "group_id", "verdict", "detail", "steps"],
        )


def _flat(member_ids: Iterable[str], rebalance: Rebalance) -> list[tuple[object, ...]]:
    """One element a round, member, action and topic, in that order."""
    ids = list(member_ids)
    flat: list[tuple[object, ...]] = []
    for step in rebalance.steps:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(step.partitions):
            by_topic.setdefault(topic, []).append(partition)
        flat += [
            (step.round, ids[step.member], step.action, topic, partitions)
            for topic, partitions in by_topic.items()
        ]
    return flat
