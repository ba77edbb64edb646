"""The constrained pass of the sticky assignors for giant groups, too large for one task.

A group is cut into slices (``slices``), each of some partition numbers of all its topics, which are
settled in rounds.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.equal import hold_claims
from kassign_spark.assignors.slices import Slice, SliceClaims, SliceGroups, settle_slices
from kassign_spark.assignors.task_groups import most_partitions
from kassign_spark.engine.rounds import BLOCKS, Rounds, block_row
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.group_names import ASSIGNED
from kassign_spark.groups.large_claims import subscribed_topics
from kassign_spark.groups.numbers import place_in_run, starts
from kassign_spark.groups.paths import ROUNDS
from kassign_spark.groups.read import CLAIM, MEMBER, ROWS, SUBSCRIPTION, TOPIC, read_batch
from kassign_spark.groups.rows import all_rows, rows_of_kind
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import Budget, OnRound
from kassign_spark.spark.spark_versions import union_by_name

_MOST_PARTITIONS = 500_000
"""Size of a slice: small enough that slices weigh little beside a task and tasks fill evenly."""
_SLICE = "slice"
"""Key of a slice in one text, so that not all columns of a group's rows are those of each claim."""
_ROW = {"member_id": "string", "topic": "string", "number": "bigint", "place": "bigint"}
_Names = tuple[tuple[str, str, int], pa.Array, pa.Array]
"""Key of a slice, its topics, its members."""


def assign_constrained(
    eligible: Eligible, settings: Settings, on_round: OnRound | None = None
) -> DataFrame:
    """Assign giant groups, each by many tasks; runs jobs.

    Args:
        eligible: these groups.
        settings: ``bytes_per_task``, ``max_rounds``.
        on_round: called after every round, with what is unfinished.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: another member owns the
        partition now, or several dispute it, so that a cooperative rebalance withholds it.

    Raises:
        NotConvergedError: more rounds than ``max_rounds``.
    """
    budget = Budget(settings.max_rounds, on_round)
    rows = _cut(eligible, settings).repartition(eligible.tasks, _SLICE)
    engine = Rounds(rows.mapInArrow(all_rows(_slices), BLOCKS), budget)
    settle_slices(engine)
    eligible.note_path(ROUNDS, budget.counts)
    return engine.results(_name_owners, f"{ASSIGNED}, is_moving boolean")


def _cut(eligible: Eligible, settings: Settings) -> DataFrame:
    """Give every slice its topics, all members and its claims, as ``rows.fold`` gives a group's.

    A topic's size and a claim's partition count from the slice's first partition.

    Returns:
        slice string, kind tinyint and the columns of ``_ROW``.
    """
    topics = subscribed_topics(eligible)
    of_slice = max(1, min(_MOST_PARTITIONS, most_partitions(settings)))
    slice_count = F.ceil(F.sum("num_partitions") / of_slice)
    largest = F.max("num_partitions")
    # Columns of their own, though of the same names: Spark 3.5 does not part them by itself.
    keys = [F.col(name).alias(name) for name in GROUP_KEY]
    groups = F.broadcast(
        topics.groupBy(*keys).agg(
            largest.alias("largest"), F.ceil(largest / slice_count).cast("int").alias("width")
        )
    )
    first = F.explode(F.sequence(F.lit(0), F.col("largest") - 1, F.col("width")))
    size = "greatest(least(num_partitions - first_partition, width), 0)"
    of_topics, of_members = (
        frame.join(groups, on=list(GROUP_KEY)).select("*", first.alias("first_partition"))
        for frame in (topics, eligible.members.drop("topics"))
    )
    member = {"number": "coalesce(generation, -1)", "place": "coalesce(member_seq, -1)"}
    kinds = [(of_members, MEMBER, member), (of_topics, TOPIC, {"number": size})]
    if eligible.owned is not None:
        claims = (
            eligible.owned.join(groups, on=list(GROUP_KEY))
            .where("partition < largest")
            .withColumn("first_partition", F.expr("int(partition div width * width)"))
        )
        kinds.append((claims, CLAIM, {"number": "partition - first_partition"}))
    key = f"concat_ws(':', first_partition, length(cluster_id), cluster_id, group_id) as {_SLICE}"
    parts = (
        rows_of_kind(frame, kind, _ROW, (key,), ("bigint",), **values)
        for frame, kind, values in kinds
    )
    return union_by_name(parts)


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    """Read the slices of a task, each as a group of its own, and what members own of it."""
    batch, claims = read_batch(_to_group_rows(table))
    existing = claims.where((claims.slot >= 0) & (claims.member >= 0))
    claimed, claimant, disputed = hold_claims(batch, existing, batch.generation)
    member, topic = batch.first_member, batch.first_topic
    slot = batch.first_slot[topic]
    visit = batch.hash_rank - member[batch.member_group]
    claim, dispute = (
        starts(np.bincount(batch.slot_group[slots], minlength=batch.group_count))
        for slots in (claimed, disputed)
    )
    for number, name in enumerate(batch.group_names.take(pa.array(batch.group - 1)).to_pylist()):
        members, topics, own, contested = (
            slice(first[number], first[number + 1]) for first in (member, topic, claim, dispute)
        )
        slice_claims = SliceClaims(
            claimed[own] - slot[number],
            claimant[own] - member[number],
            disputed[contested] - slot[number],
        )
        key = _key_of(name)
        names = (
            key,
            batch.topic_names.take(pa.array(batch.topic_name[topics] - 1)),
            batch.member_names.take(pa.array(batch.member_name[members] - 1)),
        )
        groups = SliceGroups(
            batch.member_group[members] - number,
            visit[members],
            batch.topic_group[topics] - number,
            batch.size[topics],
        )
        state = Slice(groups, slice_claims, key)
        yield pa.Table.from_batches([block_row(name, fixed=names, state=state)])


def _to_group_rows(table: pa.Table) -> pa.Table:
    """Return slices with the columns of groups (``rows.fold``).

    Who subscribes to what is no question here: one list without topics is enough.
    """
    slices, count = table[_SLICE].unique(), len(table)
    of_members = pc.equal(table["kind"], MEMBER)
    rows = {
        "cluster_id": pa.nulls(count, pa.string()),
        "group_id": table[_SLICE],
        **{name: table[name] for name in ("kind", *_ROW)},
        "list_number": np.zeros(count, np.int64),
        "texts": pc.if_else(of_members, "[null,null,null]", pa.scalar(None, pa.string())),
    }
    lists = {
        name: np.zeros(len(slices), np.int64) if pa.types.is_int64(type_) else [None] * len(slices)
        for name, type_ in zip(ROWS.names, ROWS.types, strict=True)
    } | {
        "group_id": slices,
        "kind": np.full(len(slices), SUBSCRIPTION, np.int8),
        "texts": ["[]"] * len(slices),
    }
    return pa.concat_tables([pa.table(rows, ROWS), pa.table(lists, ROWS)])


def _key_of(slice_name: str) -> tuple[str, str, int]:
    """Return cluster_id, group_id and first_partition, as ``_cut`` has put them into one text."""
    first_partition, length, ids = slice_name.split(":", 2)
    return ids[: int(length)], ids[int(length) + 1 :], int(first_partition)


def _name_owners(names: _Names, of_slice: Slice) -> pa.RecordBatch:
    """Name the owners."""
    (cluster_id, group_id, first_partition), topics, members = names
    topic, count = of_slice.topic, len(of_slice.owner)
    partition = first_partition + place_in_run(topic)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(cluster_id, pa.string()), count),
            pa.repeat(pa.scalar(group_id, pa.string()), count),
            members.take(pa.array(of_slice.owner)),
            topics.take(pa.array(topic)),
            pa.array(partition.astype(np.int32)),
            pa.array(of_slice.is_moving),
        ],
        [*GROUP_KEY, "member_id", "topic", "partition", "is_moving"],
    )
