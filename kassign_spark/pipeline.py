"""How an assignment comes about, top to bottom: input, checks, eligibility, strategy, result."""

from functools import reduce

from pyspark.sql import DataFrame

from kassign_spark.assignors import ASSIGNORS, Assignor
from kassign_spark.eligibility.prepare import prepare, restrict
from kassign_spark.errors import InputError
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.schemas import ASSIGNMENT, declare, has_cluster_id, restore_cluster_id
from kassign_spark.settings import Settings


def assign(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    assignor: str | Assignor | None = None,
    settings: Settings = Settings(),
) -> DataFrame:
    """Assign the partitions of every group, as each group's assignor does in one rebalance.

    The inputs are read once, checked and folded to one row a group, which runs a job for each; the
    assignment itself is lazy.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row a partition (topic, partition). A topic that members
            subscribe to and that is missing here is left out, as Kafka does.
        owned: ``schemas.OWNED``, what members own before; `range` and `roundrobin` do not look
            at it.
        assignor: None for each group's own (``members.assignor``), a name in ``ASSIGNORS``, or a
            function of your own from ``Eligible`` and ``Settings`` to the columns of
            ``schemas.ASSIGNMENT``.
        settings: how to compute it.

    Returns:
        cluster_id string (where the inputs have it), group_id string, member_id string,
        topic string, partition int: one row for each partition of a subscribed topic, but for
        those that `cooperative-sticky` withholds for one rebalance.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or an unknown assignor; lists every one.
    """
    chosen = strategy_of(assignor)
    inputs = conform_inputs(members, topics, owned)
    if chosen is not None:
        assignment = chosen(prepare(inputs, known_assignors=None).eligible, settings)
    else:
        eligible, names = prepare(inputs, known_assignors=ASSIGNORS)
        by_name = [ASSIGNORS[name](restrict(eligible, name), settings) for name in names]
        assignment = reduce(DataFrame.unionByName, by_name) if by_name else _no_assignment(members)
    return restore_cluster_id(declare(assignment, ASSIGNMENT), has_cluster_id(members))


def strategy_of(assignor: str | Assignor | None) -> Assignor | None:
    """Look up an assignor by name; a function is its own, None is each group's own.

    Raises:
        InputError: no assignor has that name.
    """
    if not isinstance(assignor, str):
        return assignor
    if assignor not in ASSIGNORS:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(ASSIGNORS))}")
    return ASSIGNORS[assignor]


def _no_assignment(inputs: DataFrame) -> DataFrame:
    """What an assignment is where there is no member at all."""
    return inputs.sparkSession.createDataFrame([], ASSIGNMENT.columns)
