"""Check every generation of the group log against the model of Kafka's assignors."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.conforming import conform
from kassign_spark.display import printable
from kassign_spark.errors import InputError
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.read import TOPIC
from kassign_spark.history.explain_read import SIZES, Generations, read_generations, rows_of
from kassign_spark.history.rebalance_columns import EXPLAINED
from kassign_spark.history.whole_groups import HasRecords, records_of, run_by_whole_groups
from kassign_spark.inputs.rules import any_broken, rules_of_topics
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.log.decode import DecodedTables, decode_table
from kassign_spark.log.group_log import has_type
from kassign_spark.schemas import TOPICS
from kassign_spark.spark.spark_versions import arrow_schema, to_arrow
from kassign_spark.spark.workers import check_workers
from kassign_spark.whatif.explain_kernel import explain_generations_arrow

AS_ASSIGNED = "as if topics had no more partitions than are assigned or claimed"
OTHERS = "the assignor is none of Kafka's"
UNREADABLE = "the bytes of a member cannot be read"
TOO_MANY = "a partition has a number that cannot be"
_WORK = 500_000
"""Partitions and members that the assignors answer together."""

_ROWS = arrow_schema(EXPLAINED.columns)
_GENERATIONS = 2
"""The type of records of classic generations."""


def explain_history(log: HasRecords | DataFrame, topics: DataFrame | None = None) -> DataFrame:
    """Check for each generation whether its leader used the assignor that it names.

    A record of a classic generation has everything that the leader received, in its order: members
    with their subscriptions and what they claim, of `sticky` in its user data. So Kafka's own
    answer to the same is known, and an assignment that is another one was made by another client
    (librdkafka, franz-go, sarama, ...) under the same name, or by other metadata of the topics. The
    assignors that the group does not name are asked where the one that it names does not explain.

    Of groups of the new protocol there is no row: the coordinator computes their assignments.
    Neither is there one of a generation without members, or of another protocol type. One job;
    ``topics`` are collected by another one before.

    Args:
        log: a batch: what ``read_group_log`` gives, or its raw records
        (``log.log_schemas.RECORDS``).
        topics: ``schemas.TOPICS``. A generation that they do not explain, and topics that are not
            in them, are also asked about as if there were no partitions but those that the
            generation shows, as topics grow; so is everything without ``topics``. Racks of
            replicas are known from here only.

    Returns:
        One row per generation: group_id string, generation int, at timestamp, assignor string: as
        the group says, explained_by string: the assignor of Kafka's whose answer it is, the
        group's own before others; null where it is that of none; is_explained boolean: whether
        that is the group's own; null where it is unknown, as that is none of Kafka's or a
        member's bytes cannot be read; leader_client string: the leader's ``client.id``, detail
        string: which assignor is the nearest and the first partition that differs, and whether
        partitions were counted by what the generation shows.

    Raises:
        SchemaError: columns of ``topics`` are missing or of the wrong type.
        InputError: ``log`` is a stream, or ``topics`` have values without meaning, or one topic
            with two numbers of partitions.
        WorkerError: Spark's Python workers cannot run what they are handed.
    """
    records = records_of(log)
    if records.isStreaming:
        raise InputError("explain_history reads a batch of the log, this is a stream")
    check_workers(records.sparkSession)
    sizes = None if topics is None else _sizes(topics)
    of_generations = records.where(has_type([_GENERATIONS]))
    return run_by_whole_groups(of_generations, partial(_explain_records, sizes), EXPLAINED.columns)


def _explain_records(sizes: pa.Table | None, records: pa.Table) -> pa.Table:
    return explain_generations(decode_table(records, owned=True), sizes)


def _sizes(topics: DataFrame) -> pa.Table:
    """Collect topics as ``explain_read.SIZES``."""
    topic_rows = conform(topics, TOPICS)
    broken = F.expr(any_broken(rules_of_topics(TOPICS)))
    by_topic = topic_rows.groupBy("topic").agg(
        F.max("num_partitions").alias("size"),
        F.max(F.to_json("replica_racks")).alias("racks"),
        F.bool_or(broken).alias("is_broken"),
        (F.min("num_partitions") < F.max("num_partitions")).alias("differs"),
    )
    problems = to_arrow(by_topic).sort_by("topic")
    for row in problems.filter(problems["is_broken"]).slice(0, 1).to_pylist():
        raise InputError(
            f"table topics: topic {printable(row['topic'])} with num_partitions {row['size']}: "
            "Kafka has no such topic; it takes a name of at most 249 letters, digits, ., _ and -, "
            f"and a number of partitions from 0 to {PARTITIONS_OF_A_TOPIC:,}"
        )
    for row in problems.filter(problems["differs"]).slice(0, 1).to_pylist():
        raise InputError(
            f"table topics, column num_partitions: topic {row['topic']} has different numbers; "
            "give the topics of one cluster"
        )
    return problems.select(SIZES.names).cast(SIZES)


def explain_generations(decoded: DecodedTables, sizes: pa.Table | None) -> pa.Table:
    """Explain the classic generations of a log.

    Args:
        decoded: of whole groups, with what members claim.
        sizes: ``SIZES``; None: topics are as large as each generation shows.

    Returns:
        The columns of ``rebalance_columns.EXPLAINED``, by group and then as the log has them.
    """
    generations = read_generations(decoded, SIZES.empty_table() if sizes is None else sizes)
    count = len(generations.head)
    explained_by: list[str | None] = [None] * count
    detail: list[str | None] = [None] * count
    is_other = np.ones(count, bool)
    is_readable = ~generations.is_unreadable & ~generations.is_too_large
    has_all_sizes = is_readable & generations.is_sized
    for groups, size, reason in (
        (has_all_sizes, generations.size, None),
        (is_readable, generations.own, AS_ASSIGNED),
    ):
        for group, assignor, differs in _ask(generations, groups & is_other, size):
            explained_by[group] = assignor
            is_other[group] = assignor != generations.assignors[group]
            # What the second asking says counts only where it explains more.
            if not (reason and has_all_sizes[group] and is_other[group]):
                detail[group] = "; ".join(filter(None, (differs, reason))) or None
    unknown = np.array([name not in KAFKAS for name in generations.assignors], bool)
    for groups, sentence in (
        (unknown & is_readable, OTHERS),
        (generations.is_unreadable, UNREADABLE),
        (generations.is_too_large, TOO_MANY),
    ):
        for group in np.flatnonzero(groups).tolist():
            detail[group] = sentence
    heads = decoded.generations.take(pa.array(generations.head))
    return pa.table(
        {
            **{name: heads[name] for name in ("group_id", "generation", "at", "assignor")},
            "explained_by": pa.array(explained_by, pa.string()),
            "is_explained": pa.array(~is_other, mask=unknown | ~is_readable),
            "leader_client": generations.leader_client,
            "detail": pa.array(detail, pa.string()),
        }
    ).cast(_ROWS)


def _ask(
    generations: Generations, groups: Flags, size: Longs
) -> Iterator[tuple[int, str | None, str | None]]:
    """Ask the assignors for some generations, as many together as ``_WORK`` allows."""
    count = len(generations.head)
    work = np.bincount(generations.of_topic, size, count) + np.bincount(
        generations.of_member, minlength=count
    )
    piece = (np.cumsum(np.where(groups, work, 0)) // _WORK).astype(np.int64)
    exists = size > 0
    for number in np.unique(piece[groups]).tolist():
        in_piece = groups & (piece == number)
        topics = np.flatnonzero(exists & in_piece[generations.of_topic])
        racks = pc.if_else(
            pa.array(size == generations.size), generations.racks, pa.scalar(None, pa.string())
        )
        table = pa.concat_tables(
            [
                generations.members.filter(pa.array(in_piece[generations.of_member])),
                generations.others.filter(pa.array(in_piece[generations.of_other])),
                rows_of(
                    generations.of_topic[topics],
                    TOPIC,
                    topic=generations.topics.take(pa.array(topics)),
                    number=size[topics],
                    texts=racks.take(pa.array(topics)),
                ),
            ]
        )
        answers = explain_generations_arrow(table)
        columns = (answers[name].to_pylist() for name in ("group_id", "assignor", "detail"))
        for group, assignor, detail in zip(*columns, strict=True):
            yield int(group), assignor, detail
