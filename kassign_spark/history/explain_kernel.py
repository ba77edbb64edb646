"""Of the generations of a task whether they are what their assignor gives."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.read import TOPIC
from kassign_spark.history.columns import EXPLAINED
from kassign_spark.history.explain_read import SIZES, Seen, read_generations, rows_of
from kassign_spark.log.decode import Decoded
from kassign_spark.schemas import arrow_schema
from kassign_spark.whatif.explain_kernel import explain_told_arrow

AS_ASSIGNED = "as if topics had no more partitions than are assigned or claimed"
OTHERS = "the assignor is none of Kafka's"
UNREADABLE = "the bytes of a member cannot be read"
TOO_MANY = "a partition has a number that cannot be"
_WORK = 500_000
"""Partitions and members that the assignors are asked for at once."""

_ROWS = arrow_schema(EXPLAINED.columns)


def explain_generations(decoded: Decoded, sizes: pa.Table | None) -> pa.Table:
    """Explain the classic generations of a log.

    Args:
        decoded: of whole groups, with what members claim.
        sizes: ``SIZES``; None: topics are as large as each generation shows.

    Returns:
        The columns of ``columns.EXPLAINED``, by group and then as the log has them.
    """
    seen = read_generations(decoded, SIZES.empty_table() if sizes is None else sizes)
    count = len(seen.head)
    explained_by: list[str | None] = [None] * count
    detail: list[str | None] = [None] * count
    is_other = np.ones(count, bool)
    asked = ~seen.is_unreadable & ~seen.is_too_large
    by_given = asked & seen.is_sized
    for where, size, said in ((by_given, seen.size, None), (asked, seen.own, AS_ASSIGNED)):
        for group, assignor, differs in _ask(seen, where & is_other, size):
            explained_by[group] = assignor
            is_other[group] = assignor != seen.assignors[group]
            # What the second asking says counts only where it explains more.
            if not (said and by_given[group] and is_other[group]):
                detail[group] = "; ".join(filter(None, (differs, said))) or None
    unknown = np.array([name not in KAFKAS for name in seen.assignors], bool)
    for groups, says in (
        (unknown & asked, OTHERS),
        (seen.is_unreadable, UNREADABLE),
        (seen.is_too_large, TOO_MANY),
    ):
        for group in np.flatnonzero(groups).tolist():
            detail[group] = says
    generations = decoded.generations.take(pa.array(seen.head))
    return pa.table(
        {
            **{name: generations[name] for name in ("group_id", "generation", "at", "assignor")},
            "explained_by": pa.array(explained_by, pa.string()),
            "is_explained": pa.array(~is_other, mask=unknown | ~asked),
            "leader_client": seen.leader_client,
            "detail": pa.array(detail, pa.string()),
        }
    ).cast(_ROWS)


def _ask(seen: Seen, groups: Flags, size: Longs) -> Iterator[tuple[int, str | None, str | None]]:
    """Ask the assignors for some generations, so many at once as ``_WORK`` allows."""
    count = len(seen.head)
    work = np.bincount(seen.of_topic, size, count) + np.bincount(seen.of_member, minlength=count)
    piece = (np.cumsum(np.where(groups, work, 0)) // _WORK).astype(np.int64)
    exists = size > 0
    for number in np.unique(piece[groups]).tolist():
        some = groups & (piece == number)
        topics = np.flatnonzero(exists & some[seen.of_topic])
        racks = pc.if_else(pa.array(size == seen.size), seen.racks, pa.scalar(None, pa.string()))
        table = pa.concat_tables(
            [
                seen.members.filter(pa.array(some[seen.of_member])),
                seen.others.filter(pa.array(some[seen.of_other])),
                rows_of(
                    seen.of_topic[topics],
                    TOPIC,
                    topic=seen.topics.take(pa.array(topics)),
                    number=size[topics],
                    texts=racks.take(pa.array(topics)),
                ),
            ]
        )
        told = explain_told_arrow(table)
        columns = (told[name].to_pylist() for name in ("group_id", "assignor", "detail"))
        for group, assignor, detail in zip(*columns, strict=True):
            yield int(group), assignor, detail
