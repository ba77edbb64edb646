"""Compute an assignment, top to bottom: input, checks, eligibility, strategy, result."""

from pyspark.sql import DataFrame

from kassign_spark.assignors import ASSIGNORS, BY_WINDOWS, Assignor
from kassign_spark.assignors.task_groups import assign_in_tasks, fits_all
from kassign_spark.conforming import fill_cluster_id, has_cluster_id, short_assignor
from kassign_spark.groups.eligible import Eligible, restrict
from kassign_spark.groups.paths import OWN, TASK, Paths
from kassign_spark.plans.consumer_groups import (
    check_assignor,
    inspect_by_type,
    predict_consumer_groups,
)
from kassign_spark.plans.misled_groups import note_claims
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.spark_versions import union_by_name


def assign(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    settings: Settings = Settings(),
) -> DataFrame:
    """Assign the partitions of every group, as each group's assignor does in one rebalance.

    One query looks at the inputs, whether they are fit and how large they are; the assignment
    itself is lazy, but for groups that do not fit a task. Groups of group_type `consumer` get what
    their coordinator would give them; see ``predict_consumer_groups``.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition (topic, partition). A topic that
            members subscribe to and that is missing here is left out, as Kafka does.
        owned: ``schemas.OWNED``, what members own before; `range` and `roundrobin` do not look
            at it. Claims of partitions that do not exist are dropped; the client of a sticky
            assignor may throw because of them, which ``predict`` and ``validate`` say.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`.
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
    return assign_on_paths(
        members, topics, owned, target=target, assignor=assignor, settings=settings
    )


def assign_on_paths(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | Assignor | None = None,
    settings: Settings = Settings(),
    paths: Paths | None = None,
) -> DataFrame:
    """Assign as ``assign`` does, and record in ``paths`` which engine computes each group."""
    assignor = short_assignor(assignor)
    strategy = strategy_of(assignor)
    known_assignors = None if strategy is not None else ASSIGNORS
    eligible, names, consumer = inspect_by_type(
        members, topics, owned, target, known_assignors, assignor
    )
    if strategy is None or isinstance(assignor, str):
        eligible = eligible._replace(paths=paths)
        note_claims(eligible, paths, assignor)
    elif paths is not None:
        paths.note(eligible.groups, OWN)
    plan = _own(eligible, names, settings) if strategy is None else strategy(eligible, settings)
    has_clusters = has_cluster_id(members)
    assignment = to_result(plan, ASSIGNMENT, has_cluster_id=has_clusters)
    if consumer is None:
        return assignment
    of_consumers = predict_consumer_groups(consumer, with_steps=False, has_cluster_id=has_clusters)
    if paths is not None:
        paths.note(fill_cluster_id(of_consumers.verdicts), TASK)
    return assignment.unionByName(of_consumers.assignment)


def _own(eligible: Eligible, names: list[str], settings: Settings) -> DataFrame:
    """Assign each group by its own assignor, all of them in tasks if some need one and all fit."""
    needs_tasks = eligible.has_racks or eligible.has_clients or not {*names} <= {*BY_WINDOWS}
    if needs_tasks and fits_all(eligible, settings):
        return assign_in_tasks(eligible, settings)
    parts = [ASSIGNORS[name](restrict(eligible, {name}, names), settings) for name in names]
    if not parts:  # there is no member at all
        return eligible.members.sparkSession.createDataFrame([], ASSIGNMENT.columns)
    return union_by_name(parts)


def strategy_of(assignor: str | Assignor | None) -> Assignor | None:
    """Look up an assignor by name; a function is its own, None is each group's own.

    Raises:
        InputError: no assignor has that name.
    """
    if not isinstance(assignor, str):
        return assignor
    check_assignor(assignor, ASSIGNORS)
    return ASSIGNORS[assignor]
