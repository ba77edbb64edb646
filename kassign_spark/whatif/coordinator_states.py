"""Groups of a task as the coordinator's assignors see them: names in the place of numbers."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.group_names import group_columns
from kassign_spark.groups.numbers import Longs
from kassign_spark.groups.read import TOPIC


class GroupStates:
    """Gives groups of a batch as states; what all groups share is read once.

    The topics' ids are read from ``table``, the rows of ``rows.fold`` that the batch was read from.
    """

    def __init__(self, table: pa.Table, batch: Batch) -> None:
        self._batch = batch
        self._topic_ids = _topic_ids(table)
        groups = group_columns(batch, np.arange(batch.group_count))
        self._clusters: list[str] = groups["cluster_id"].to_pylist()
        # Numbers of names count from 1.
        self._topics: list[str] = ["", *batch.topic_names.to_pylist()]
        self._members: list[str] = ["", *batch.member_names.to_pylist()]
        self._texts: list[str | None] = [None, *batch.texts.to_pylist()]
        listed = [self._topics[name] for name in batch.list_topics.tolist()]
        self._lists = [tuple(listed[of:to]) for of, to in pairwise(batch.list_start.tolist())]

    def of(self, group: int, members: Longs) -> ConsumerGroupState:
        """Return a group without votes and last target; patterns and regexes count as names.

        ``members`` are places in the batch, in the order that the state is to have.
        """
        batch, cluster = self._batch, self._clusters[group]
        topics = slice(*batch.first_topic[group : group + 2])
        names = [self._topics[name] for name in batch.topic_name[topics].tolist()]
        return ConsumerGroupState(
            member_ids=[self._members[name] for name in batch.member_name[members].tolist()],
            subscriptions=[self._lists[code] for code in batch.subscription[members].tolist()],
            topics=names,
            num_partitions=batch.size[topics].tolist(),
            topic_ids=[self._topic_ids.get((cluster, name)) for name in names],
            instance_ids=[self._texts[code] for code in batch.instance[members].tolist()],
        )

    def votes(self, members: Longs) -> list[str | None]:
        """Return the assignors that the members name."""
        return [self._texts[code] for code in self._batch.assignor[members].tolist()]


def _topic_ids(table: pa.Table) -> dict[tuple[str, str], str]:
    """The ids of topics by cluster and name, where they are known."""
    some = table.filter(pa.array(table["kind"].to_numpy() == TOPIC))
    columns = (some[name].to_pylist() for name in ("cluster_id", "topic", "member_id"))
    return {
        (cluster, topic): topic_id
        for cluster, topic, topic_id in zip(*columns, strict=True)
        if topic_id is not None
    }
