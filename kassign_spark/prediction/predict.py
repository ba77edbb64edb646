"""What Kafka itself will do with every group in its next rebalance, and whether it will end."""

from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.groups.look import look
from kassign_spark.errors import InputError
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.prediction.arrow_states import predict_states
from kassign_spark.prediction.state import OK
from kassign_spark.prediction.states import collect_states, topics_with_racks
from kassign_spark.rounds import hold
from kassign_spark.schemas import (
    ASSIGNMENT,
    CLUSTER_ID,
    GROUP_KEY,
    Table,
    declare,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.settings import Settings

PREDICTED = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors of Kafka's Java client."""

_VECTORISED = ("range", "roundrobin")
MODELLED = "model"

VERDICTS = Table(
    "verdicts",
    StructType(
        [
            StructField(CLUSTER_ID, StringType()),
            StructField("group_id", StringType(), nullable=False),
            StructField("verdict", StringType(), nullable=False),
            StructField("detail", StringType()),
        ]
    ),
)


class Prediction(NamedTuple):
    """What the client does: an assignment, and how it comes to one; see ``predict``."""

    assignment: DataFrame
    verdicts: DataFrame


def predict(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    assignor: str | None = None,
) -> Prediction:
    """Give the exact answer of Kafka's Java client for every group, as of clients 3.8 and later.

    `roundrobin`, and `range` where no member has a rack, are the strategies of ``assign``. The
    others are followed step by step, one group after the other in each task, racks included; that
    is computed, and held, before this returns.

    ``owned`` and ``members.generation`` are what the leader is told. `sticky` reads them from its
    user data: version 1 with a generation, version 0 without. `cooperative-sticky` reads them from
    the subscription. ``members.member_seq`` is the order of the JoinGroup response, which decides
    between members in one bucket of a Java hash map.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row a partition (topic, partition). Of the racks of a
            topic that is given twice, the greater count.
        owned: ``schemas.OWNED``: claimed partitions, whether they exist and are the member's
            own or not. Rows of members that are not in ``members`` are left out.
        assignor: one of ``PREDICTED`` for all groups, or None for each group's own
            (``members.assignor``).

    Returns:
        assignment: the columns of ``schemas.ASSIGNMENT``; no rows of groups that throw or never
            end. A partition that was claimed but does not exist can be in it, and can lead to
            others being there twice: so the client does it.
        verdicts: cluster_id string (where the inputs have it), group_id string, verdict string
            (ok | throws | never_ends | inexact), detail string (null where ok: else the exception
            and what led to it, the pass after which a state came back or that the bound of passes
            was reached, or why the client may answer something else); one row a group.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or an unknown assignor; lists every one.
    """
    if assignor is not None and assignor not in PREDICTED:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(PREDICTED))}")
    inputs = conform_inputs(members, topics, owned)
    known = PREDICTED if assignor is None else None
    eligible = prepare(inputs, known_assignors=known).eligible
    groups, counted = hold(
        route_groups(eligible.groups, assignor),
        {name: F.count_if(F.col("route") == name) for name in (*_VECTORISED, MODELLED)}
        | {"groups": F.count("*")},
    )
    assigned, verdicts = [], []
    for name in _VECTORISED:
        if counted[name]:
            keys = groups.where(F.col("route") == name).select(*GROUP_KEY)
            plain = eligible._replace(has_racks=False)
            chosen = _restrict(plain, keys, counted[name] == counted["groups"])
            assigned.append(ASSIGNORS[name](chosen, Settings()))
            verdicts.append(_all_ok(keys))
    if counted[MODELLED]:
        states = collect_states(
            groups.where(F.col("route") == MODELLED),
            eligible.members,
            topics_with_racks(eligible),
            eligible.owned,
        )
        # Held: the two results are of one computation.
        predicted, _ = hold(predict_states(states), {"groups": F.count("*")})
        assigned.append(_explode(predicted))
        verdicts.append(predicted.select(*GROUP_KEY, "verdict", "detail"))
    return Prediction(_whole(assigned, ASSIGNMENT, members), _whole(verdicts, VERDICTS, members))


def route_groups(groups: DataFrame, assignor: str | None) -> DataFrame:
    """Say for each group how its answer is found: by a strategy's name, or by the model.

    Args:
        groups: as of ``Eligible``.
        assignor: takes the place of each group's own.

    Returns:
        cluster_id string, group_id string, assignor string, has_racks boolean, route string.
    """
    name = F.col("assignor") if assignor is None else F.lit(assignor)
    is_plain = (name == "roundrobin") | ((name == "range") & ~F.col("has_racks"))
    route = F.when(is_plain, name).otherwise(MODELLED)
    return groups.select(*GROUP_KEY, name.alias("assignor"), "has_racks", route.alias("route"))


def _restrict(eligible: Eligible, keys: DataFrame, is_all: bool) -> Eligible:
    if is_all:
        return eligible
    return eligible._replace(
        members=eligible.members.join(keys, on=list(GROUP_KEY), how="left_semi"),
        groups=eligible.groups.join(keys, on=list(GROUP_KEY), how="left_semi"),
    )


def _all_ok(keys: DataFrame) -> DataFrame:
    no_detail: Column = F.lit(None).cast("string")
    return keys.select(*GROUP_KEY, F.lit(OK).alias("verdict"), no_detail.alias("detail"))


def _explode(predicted: DataFrame) -> DataFrame:
    """One row a partition; first one a member and topic, which is small to copy."""
    runs = predicted.select(*GROUP_KEY, F.inline("assigned"))
    return runs.select(*GROUP_KEY, "member_id", "topic", F.explode("partitions").alias("partition"))


def _whole(parts: list[DataFrame], table: Table, members: DataFrame) -> DataFrame:
    if not parts:
        parts = [members.sparkSession.createDataFrame([], table.columns)]
    whole = reduce(DataFrame.unionByName, parts)
    return restore_cluster_id(declare(whole, table), has_cluster_id(members))
