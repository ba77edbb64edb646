"""The constrained pass of the sticky assignors for a giant group, which is no single task's work.

A group is cut into slices, each of some partition numbers of all its topics. Members keep their
lowest partition numbers first, so a slice must know only how many each member owns in the slices
before it; and free partitions are handed out by topic, so it must know how many are free of each
topic in the other slices. Between the steps over slices, such counts alone come together:

1. slice: what each member owns (``equal.hold_claims``);
2. group: what each may keep in each slice, by prefix sums over slices;
3. slice: who keeps what, and how much of each topic is free;
4. group: the first place of each topic in each slice, by prefix sums over (topic, slice);
5. slice: who takes the place of each free partition, which has a closed form.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.arrow_lists import each_row, lists_of, matrix_of, numbers_in, one_row
from kassign_spark.assignors.equal import hold_claims, quotas
from kassign_spark.assignors.sizes import most_partitions
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import subscribed_topics
from kassign_spark.groups.named import ASSIGNED
from kassign_spark.groups.numbers import Longs, place_in_run, starts
from kassign_spark.groups.paths import SLICES
from kassign_spark.groups.read import CLAIM, MEMBER, ROWS, SUBSCRIPTION, TOPIC, read_batch
from kassign_spark.groups.rows import all_rows, rows_of_kind
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings

_MOST_PARTITIONS = 500_000
"""Of a slice: so slices weigh little beside a task, and tasks fill all alike."""

_SLICE_KEY = (*GROUP_KEY, "first_partition")
_SLICE = "slice"
"""The three in one text, so that not all columns of a group's rows are those of each claim."""
_ROW = {"member_id": "string", "topic": "string", "number": "bigint", "place": "bigint"}
_KEYS = "cluster_id string, group_id string, first_partition int, "
_NAMES = "topics array<string>, sizes array<bigint>, members array<string>, "
_HELD = (
    f"{_KEYS}{_NAMES}visit array<bigint>, owned array<bigint>, "
    "claimed array<bigint>, claimant array<bigint>, disputed array<bigint>"
)
_LIMITS = f"{_KEYS}may_keep array<bigint>, missing array<bigint>, extras bigint"
_KEPT = (
    f"{_KEYS}{_NAMES}missing array<bigint>, extras bigint, "
    "owner array<bigint>, moving array<boolean>, free array<bigint>"
)
_FIRST_PLACES = f"{_KEYS}first_places array<bigint>"


def assign_constrained_in_slices(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign giant groups, each by many tasks; runs jobs.

    Args:
        eligible: these groups. ``owned`` must be there.
        settings: ``bytes_per_task``.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: another member owns the
        partition now, or several dispute it, so that a cooperative rebalance withholds it.
    """
    eligible.note_path(SLICES)
    tasks = eligible.tasks
    table = _cut(eligible, settings).repartition(tasks, _SLICE)
    held, _ = hold(table.mapInArrow(all_rows(_held), _HELD), {"slices": F.count(F.lit(1))})
    counts = held.select(*_SLICE_KEY, "sizes", "visit", "owned")
    limits = counts.groupBy(*GROUP_KEY).applyInArrow(_limits, _LIMITS)
    of_slices = held.join(limits, on=list(_SLICE_KEY), how="inner").repartition(tasks, *_SLICE_KEY)
    kept, _ = hold(of_slices.mapInArrow(each_row(_kept), _KEPT), {"slices": F.count(F.lit(1))})
    first_places = (
        kept.select(*_SLICE_KEY, "free")
        .groupBy(*GROUP_KEY)
        .applyInArrow(_first_places, _FIRST_PLACES)
    )
    ready = kept.join(first_places, on=list(_SLICE_KEY), how="inner").repartition(
        tasks, *_SLICE_KEY
    )
    return ready.mapInArrow(each_row(_assigned), f"{ASSIGNED}, is_moving boolean")


def _cut(eligible: Eligible, settings: Settings) -> DataFrame:
    """Give every slice its topics, all members and its claims, as ``rows.fold`` gives a group's.

    A topic's size and a claim's partition count from the slice's first partition.

    Returns:
        slice string, kind tinyint and the columns of ``_ROW``.
    """
    assert eligible.owned is not None
    topics = subscribed_topics(eligible)
    of_slice = max(1, min(_MOST_PARTITIONS, most_partitions(settings)))
    slice_count = F.ceil(F.sum("num_partitions") / of_slice)
    largest = F.max("num_partitions")
    groups = F.broadcast(
        topics.groupBy(*GROUP_KEY).agg(
            largest.alias("largest"), F.ceil(largest / slice_count).cast("int").alias("width")
        )
    )
    first = F.explode(F.sequence(F.lit(0), F.col("largest") - 1, F.col("width")))
    size = "greatest(least(num_partitions - first_partition, width), 0)"
    of_topics, of_members = (
        frame.join(groups, on=list(GROUP_KEY)).select("*", first.alias("first_partition"))
        for frame in (topics, eligible.members.drop("topics"))
    )
    claims = (
        eligible.owned.join(groups, on=list(GROUP_KEY))
        .where("partition < largest")
        .withColumn("first_partition", F.expr("int(partition div width * width)"))
    )
    member = {"number": "coalesce(generation, -1)", "place": "coalesce(member_seq, -1)"}
    kinds = (
        (of_members, MEMBER, member),
        (of_topics, TOPIC, {"number": size}),
        (claims, CLAIM, {"number": "partition - first_partition"}),
    )
    key = f"concat_ws(':', first_partition, length(cluster_id), cluster_id, group_id) as {_SLICE}"
    parts = (
        rows_of_kind(frame, kind, _ROW, (key,), ("bigint",), **given)
        for frame, kind, given in kinds
    )
    return reduce(DataFrame.unionByName, parts)


def _held(table: pa.Table) -> Iterator[pa.Table]:
    """Step 1: what members own, each slice as a group of its own."""
    batch, claims = read_batch(_as_groups(table))
    existing = claims.where((claims.slot >= 0) & (claims.member >= 0))
    held = hold_claims(batch, existing, batch.generation)
    owned = np.bincount(held.claimant, minlength=len(batch.member_group))
    first_member, first_topic = batch.first_member, batch.first_topic
    first_slot = batch.first_slot[first_topic]
    of_claim, of_disputed = batch.slot_group[held.claimed], batch.slot_group[held.disputed]
    keys = [_key_of(name) for name in batch.group_names.take(pa.array(batch.group - 1)).to_pylist()]
    claim_ends = starts(np.bincount(of_claim, minlength=batch.group_count))
    disputed_ends = starts(np.bincount(of_disputed, minlength=batch.group_count))
    columns = {
        "topics": (first_topic, batch.topic_names.take(pa.array(batch.topic_name - 1))),
        "sizes": (first_topic, batch.size),
        "members": (first_member, batch.member_names.take(pa.array(batch.member_name - 1))),
        "visit": (first_member, batch.hash_rank - first_member[batch.member_group]),
        "owned": (first_member, owned),
        "claimed": (claim_ends, held.claimed - first_slot[of_claim]),
        "claimant": (claim_ends, held.claimant - first_member[of_claim]),
        "disputed": (disputed_ends, held.disputed - first_slot[of_disputed]),
    }
    yield pa.table(
        {
            "cluster_id": pa.array([cluster_id for cluster_id, _, _ in keys], pa.string()),
            "group_id": pa.array([group_id for _, group_id, _ in keys], pa.string()),
            "first_partition": pa.array([first for _, _, first in keys], pa.int32()),
            **{
                column: pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values))
                for column, (ends, values) in columns.items()
            },
        }
    )


def _as_groups(table: pa.Table) -> pa.Table:
    """Give slices the columns of groups (``rows.fold``).

    Who subscribes to what is no question here: one list without topics is enough.
    """
    slices, count = table[_SLICE].unique(), len(table)
    of_members = pc.equal(table["kind"], MEMBER)
    rows = {
        "cluster_id": pa.nulls(count, pa.string()),
        "group_id": table[_SLICE],
        **{name: table[name] for name in ("kind", *_ROW)},
        "subscription": np.zeros(count, np.int64),
        "texts": pc.if_else(of_members, "[null,null,null]", pa.scalar(None, pa.string())),
    }
    lists = {
        name: np.zeros(len(slices), np.int64) if pa.types.is_int64(of) else [None] * len(slices)
        for name, of in zip(ROWS.names, ROWS.types, strict=True)
    } | {
        "group_id": slices,
        "kind": np.full(len(slices), SUBSCRIPTION, np.int8),
        "texts": ["[]"] * len(slices),
    }
    return pa.concat_tables([pa.table(rows, ROWS), pa.table(lists, ROWS)])


def _key_of(slice_name: str) -> tuple[str, str, int]:
    """cluster_id, group_id and first_partition, as ``_cut`` has put them into one text."""
    first_partition, length, ids = slice_name.split(":", 2)
    return ids[: int(length)], ids[int(length) + 1 :], int(first_partition)


def _limits(slices: pa.Table) -> pa.Table:
    """Step 2: how many of its own each member may keep in each slice of a group."""
    slices = slices.sort_by("first_partition")
    owned, visit = matrix_of(slices, "owned"), matrix_of(slices, "visit")[0]
    total = owned.sum(axis=0)
    partition_count = np.array([matrix_of(slices, "sizes").sum()])
    quota = quotas(np.zeros(len(total), np.int64), partition_count, total, visit)
    before = np.cumsum(owned, axis=0) - owned
    may_keep = np.clip(quota.quota - before, 0, owned)
    missing = quota.least - may_keep.sum(axis=0)
    return (
        slices.select(_SLICE_KEY)
        .append_column("may_keep", lists_of(may_keep))
        .append_column("missing", lists_of(np.broadcast_to(missing, owned.shape)))
        .append_column("extras", pa.array(np.repeat(quota.extras, len(slices))))
    )


def _kept(of_slice: pa.RecordBatch) -> pa.RecordBatch:
    """Step 3: members keep their first claims; the others' owner is -1."""
    sizes, claimant = numbers_in(of_slice, "sizes"), numbers_in(of_slice, "claimant")
    claimed, may_keep = numbers_in(of_slice, "claimed"), numbers_in(of_slice, "may_keep")
    keeps = place_in_run(claimant) < may_keep[claimant]
    owner = np.full(sizes.sum(), -1)
    owner[claimed[keeps]] = claimant[keeps]
    moving = np.zeros(len(owner), bool)
    moving[numbers_in(of_slice, "disputed")] = True
    moving[claimed[~keeps]] = True
    topic = np.repeat(np.arange(len(sizes)), sizes)
    return one_row(
        of_slice.select([*_SLICE_KEY, "topics", "sizes", "members", "missing", "extras"]),
        owner=owner,
        moving=moving,
        free=np.bincount(topic[owner < 0], minlength=len(sizes)),
    )


def _first_places(slices: pa.Table) -> pa.Table:
    """Step 4: number the free partitions of a group by topic, and then partition, from 0."""
    slices = slices.sort_by("first_partition")
    by_topic = matrix_of(slices, "free").T
    first = (np.cumsum(by_topic) - by_topic.ravel()).reshape(by_topic.shape).T
    return slices.select(_SLICE_KEY).append_column("first_places", lists_of(first))


def _assigned(of_slice: pa.RecordBatch) -> pa.RecordBatch:
    """Step 5: name the owners, and those who take what is free."""
    sizes, owner = numbers_in(of_slice, "sizes"), numbers_in(of_slice, "owner").copy()
    topic = np.repeat(np.arange(len(sizes)), sizes)
    free = np.flatnonzero(owner < 0)
    place = numbers_in(of_slice, "first_places")[topic[free]] + place_in_run(topic[free])
    owner[free] = takers(place, numbers_in(of_slice, "missing"), of_slice["extras"][0].as_py())
    first_partition = of_slice["first_partition"][0].as_py()
    partition = first_partition + place_in_run(topic)
    key = [of_slice[name].take(pa.array(np.zeros(len(owner), int))) for name in GROUP_KEY]
    return pa.RecordBatch.from_arrays(
        [
            *key,
            of_slice["members"].flatten().take(pa.array(owner)),
            of_slice["topics"].flatten().take(pa.array(topic)),
            pa.array(partition.astype(np.int32)),
            of_slice["moving"].flatten(),
        ],
        [*GROUP_KEY, "member_id", "topic", "partition", "is_moving"],
    )


def takers(place: Longs, missing: Longs, extras: int) -> Longs:
    """Who takes the free partitions at ``place`` in the order in which ``equal.takers`` hands out.

    Args:
        place: any places, from 0.
        missing: of each member, by id, how many it is below the least; negative: above it.
        extras: how many places come after all laps.
    """
    lacks = np.maximum(missing, 0)
    in_need = np.bincount(lacks)[::-1].cumsum()[::-1][1:]
    before_lap = np.concatenate(([0], np.cumsum(in_need)))
    lap = np.searchsorted(before_lap, place, side="right") - 1
    in_lap = place - before_lap[lap]
    at_least = np.flatnonzero(missing >= 0)
    more = at_least[np.argsort(missing[at_least], kind="stable")][:extras]
    taker = np.empty(len(place), np.int64)
    is_extra = lap == len(in_need)
    taker[is_extra] = more[in_lap[is_extra]]
    # Those in need are the same from one number that somebody lacks to the next one.
    levels = np.unique(lacks[lacks > 0])
    level = np.searchsorted(levels, lap, side="right")
    for number in np.unique(level[~is_extra]):
        at_level = ~is_extra & (level == number)
        taker[at_level] = np.flatnonzero(lacks >= levels[number])[in_lap[at_level]]
    return taker
