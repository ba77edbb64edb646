"""Groups of a task as the coordinator's assignors see them: names in the place of numbers."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.group_names import group_columns
from kassign_spark.groups.numbers import Longs
from kassign_spark.groups.read import REGEX, TOPIC


class GroupStates:
    """Gives groups of a batch as states; what all groups share is read once.

    Ids of topics, and the topics of regexes, are read from ``table``, the rows of ``rows.fold``
    that the batch was read from.
    """

    def __init__(self, table: pa.Table, batch: Batch) -> None:
        self._batch = batch
        self._topic_ids = _texts_of(table, TOPIC, ("cluster_id", "topic"), "member_id")
        self._regex_topics = _texts_of(table, REGEX, ("cluster_id", "group_id", "topic"), "texts")
        groups = group_columns(batch, np.arange(batch.group_count))
        self._clusters: list[str] = groups["cluster_id"].to_pylist()
        self._groups: list[str] = groups["group_id"].to_pylist()
        # Numbers of names count from 1.
        self._topics: list[str] = ["", *batch.topic_names.to_pylist()]
        self._members: list[str] = ["", *batch.member_names.to_pylist()]
        self._texts: list[str | None] = [None, *batch.texts.to_pylist()]
        names = [self._topics[name] for name in batch.list_topics.tolist()]
        self._lists = [
            tuple(names[first:end]) for first, end in pairwise(batch.list_start.tolist())
        ]

    def of(self, group: int, members: Longs) -> ConsumerGroupState:
        """Return a group without votes and last target.

        ``members`` are places in the batch, in the order that the state is to have.
        """
        batch, cluster = self._batch, self._clusters[group]
        topics = slice(*batch.first_topic[group : group + 2])
        names = [self._topics[name] for name in batch.topic_name[topics].tolist()]
        regexes = [self._texts[code] for code in batch.regex[members].tolist()]
        return ConsumerGroupState(
            member_ids=[self._members[name] for name in batch.member_name[members].tolist()],
            subscriptions=[self._lists[code] for code in batch.subscription[members].tolist()],
            topics=names,
            num_partitions=batch.size[topics].tolist(),
            topic_ids=[self._topic_ids.get((cluster, name)) for name in names],
            instance_ids=[self._texts[code] for code in batch.instance[members].tolist()],
            regexes=regexes,
            resolved=self._resolved(group, regexes),
        )

    def votes(self, members: Longs) -> list[str | None]:
        """Return the assignors that the members name."""
        return [self._texts[code] for code in self._batch.assignor[members].tolist()]

    def topic_names(self, names: Longs) -> list[str]:
        """Return topics by their names' codes."""
        return [self._topics[name] for name in names.tolist()]

    def _resolved(self, group: int, regexes: Sequence[str | None]) -> Mapping[str, Sequence[str]]:
        key = self._clusters[group], self._groups[group]
        texts = {regex: self._regex_topics.get((*key, regex)) for regex in {*regexes} if regex}
        return {regex: json.loads(text) for regex, text in texts.items() if text}


def coordinator_order(batch: Batch, group: int) -> tuple[Longs, bool]:
    """Return a group's members as the coordinator lists them, and whether that order is known.

    Where it is not, members whose place is not known come first, by their ids.
    """
    members = np.arange(*batch.first_member[group : group + 2])
    seqs = batch.member_seq[members]
    is_known = bool((seqs >= 0).all()) and len(np.unique(seqs)) == len(seqs)
    return members[np.argsort(seqs, kind="stable")], is_known


def _texts_of(
    table: pa.Table, kind: int, keys: tuple[str, ...], column: str
) -> dict[tuple[str, ...], str]:
    """Return the texts in a column of the rows of a kind, by their keys, where they are known."""
    rows = table.filter(pa.array(table["kind"].to_numpy() == kind))
    columns = (rows[name].to_pylist() for name in (*keys, column))
    return {tuple(key): text for *key, text in zip(*columns, strict=True) if text is not None}
