"""Answer what-if questions about numbers of members and partitions, all at once."""

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.conforming import has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, run_in_tasks, target_rows
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.regexes import with_regex_topics
from kassign_spark.limits import SWEEPS
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.settings.computing import Settings
from kassign_spark.simulation.questions import Growth, Sweep
from kassign_spark.simulation.sweep_kernel import SWEPT, Variant, sweep_arrow
from kassign_spark.spark.spark_versions import union_by_name


def sweep(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    sweeps: Sequence[Sweep],
    *,
    target: DataFrame | None = None,
    settings: Settings = Settings(),
) -> DataFrame:
    """Answer what-if questions about the current fleet, all in one pass; runs a query.

    A new member subscribes as one that is there, by turns, and knows of nothing that it owns; the
    members that go are the last by member_id. In groups of the new protocol members draw their
    ids: those of new ones are drawn, always the same, and ``detail`` says what depends on them.

    Args:
        members: ``schemas.MEMBERS``, each group with its assignor.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, or None.
        sweeps: the questions.
        target: ``schemas.TARGET``, as for ``simulate``.
        settings: how to compute it.

    Returns:
        One row per group and variant: cluster_id string (where the inputs have it), group_id
        string, sweep int (from 1), variant string (such as `members +1, partitions x2`),
        member_change int, partition_times int, partition_more int, member_count bigint,
        partition_count bigint, min_assigned bigint, max_assigned bigint, idle_count bigint: members
        with nothing, moved_count bigint, paused_count bigint, rounds int, settles boolean (as
        ``summarize``), detail string: how sure the answer is (groups of the new protocol), what
        claims of partitions that do not exist make Kafka's client do, or why there is no answer (it
        throws, no member is left, or there are more partitions than
        ``limits.PARTITIONS_OF_A_GROUP``), then all counts but member_count are null.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or a sweep of an unknown group or topic.
    """
    if len(sweeps) > SWEEPS:
        raise InputError(f"{len(sweeps):,} sweeps; at most {SWEEPS:,}")
    inputs = conform_inputs(members, topics, owned, target)
    if inputs.has_regexes:
        inputs = inputs._replace(members=with_regex_topics(inputs.members, inputs.topics))
    eligible = inspect_inputs(inputs, ASSIGNORS, both_types=True).eligible
    _check_names(eligible, sweeps)
    kernel = partial(
        sweep_arrow,
        variants=_variants(sweeps),
        racks_before_moves=settings.racks_before_moves,
        max_rounds=settings.max_rounds,
    )
    table = fold(eligible)
    if inputs.target is not None:
        table = table.unionByName(target_rows(inputs.target))
    swept = run_in_tasks(table, kernel, SWEPT, settings.batches or eligible.batches)
    return to_result(swept, "sweep", has_cluster_id=has_cluster_id(members))


def _variants(sweeps: Sequence[Sweep]) -> list[Variant]:
    variants = []
    for number, sweep in enumerate(sweeps, start=1):
        for change in sweep.members:
            for growth in sweep.partitions:
                changes = [f"members {change:+d}"] if list(sweep.members) != [0] else []
                if list(sweep.partitions) != [Growth()]:
                    grown = f"+{growth.more}" if growth.more else f"x{growth.times}"
                    changes.append(f"partitions {grown}")
                variants.append(Variant(number, ", ".join(changes), change, growth, sweep))
    return variants


def _check_names(eligible: Eligible, sweeps: Sequence[Sweep]) -> None:
    """Refuse sweeps of missing groups or topics; runs a query where they name something.

    Raises:
        InputError: lists every one.
    """
    references = [
        (column, name, "" if sweep.line is None else f"line {sweep.line}: ")
        for sweep in sweeps
        for column in (CLUSTER_ID, "group_id", "topic")
        if (name := getattr(sweep, column)) is not None
    ]
    if not references:
        return
    parts = []
    for column in dict.fromkeys(column for column, _, _ in references):
        frame = eligible.topics if column == "topic" else eligible.members
        names = sorted({name for named_column, name, _ in references if named_column == column})
        parts.append(
            frame.where(F.col(column).isin(names)).select(
                F.lit(column).alias("column"), F.col(column).alias("name")
            )
        )
    existing = {tuple(row) for row in union_by_name(parts).distinct().collect()}
    problems = [
        f'{where}sweep: {column} "{name}" does not exist'
        for column, name, where in references
        if (column, name) not in existing
    ]
    if problems:
        raise InputError("; ".join(problems))
