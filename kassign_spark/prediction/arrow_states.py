"""Rows of groups to and from the model, batch by batch, through Arrow."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame

from kassign_spark.prediction.model import predict_group
from kassign_spark.prediction.state import NO_GENERATION, GroupState, Layout

if TYPE_CHECKING:
    import pyarrow as pa

_PREDICTED = (
    "cluster_id string, group_id string, verdict string, detail string, "
    "assigned array<struct<member_id: string, topic: string, partitions: array<int>>>"
)


def predict_states(states: DataFrame) -> DataFrame:
    """Predict each group.

    Args:
        states: as ``collect_states`` gives them.

    Returns:
        cluster_id string, group_id string, verdict string, detail string,
        assigned array<struct<member_id string, topic string, partitions array<int>>>: one element
        a member and topic, partitions ascending.
    """
    return states.mapInArrow(_predict_batches, _PREDICTED)


def _predict_batches(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    for batch in batches:
        runs = Runs.empty()
        outcomes = []
        for state in states_of(batch):
            outcome = predict_group(state)
            runs.append(state.member_ids, outcome.layout, outcome.assigned)
            outcomes.append(outcome)
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("cluster_id"),
                batch.column("group_id"),
                pa.array([outcome.verdict for outcome in outcomes], type=pa.string()),
                pa.array([outcome.detail for outcome in outcomes], type=pa.string()),
                runs.to_arrow(),
            ],
            names=["cluster_id", "group_id", "verdict", "detail", "assigned"],
        )


class Runs(NamedTuple):
    """Partitions of one member and topic after the other, in flat lists.

    Attributes:
        names: members' and topics' names of all groups so far.
        members: of each run, its place in ``names``.
        topics: of each run, likewise.
        partitions: numbers of all runs.
        run_ends: where in ``partitions`` each run ends, after a 0.
        group_ends: where in the runs each group ends, after a 0.
    """

    names: list[str]
    members: list[int]
    topics: list[int]
    partitions: list[int]
    run_ends: list[int]
    group_ends: list[int]

    @classmethod
    def empty(cls) -> "Runs":
        """Begin."""
        return cls([], [], [], [], [0], [0])

    def append(
        self, member_ids: Sequence[str], layout: Layout, by_member: Iterable[list[int]]
    ) -> None:
        """Add a group; sorts the ids of each member."""
        topic_of, number_of = layout.topic_of, layout.number_of
        first_member = len(self.names)
        self.names.extend(member_ids)
        first_topic = len(self.names)
        self.names.extend(layout.topics)
        for member, ids in enumerate(by_member):
            last = -1
            ids.sort()
            for partition in ids:
                topic = topic_of[partition]
                if topic != last:
                    last = topic
                    self.members.append(first_member + member)
                    self.topics.append(first_topic + topic)
                    self.run_ends.append(0)
                self.partitions.append(number_of[partition])
                self.run_ends[-1] = len(self.partitions)
        self.group_ends.append(len(self.members))

    def to_arrow(self) -> "pa.ListArray":
        """Give one element a group: array<struct<member_id, topic, partitions>>."""
        import pyarrow as pa

        names = pa.array(self.names, type=pa.string())
        partitions = pa.array(self.partitions, type=pa.int32())
        structs = pa.StructArray.from_arrays(
            [
                names.take(pa.array(self.members, type=pa.int64())),
                names.take(pa.array(self.topics, type=pa.int64())),
                pa.ListArray.from_arrays(pa.array(self.run_ends, type=pa.int32()), partitions),
            ],
            names=["member_id", "topic", "partitions"],
        )
        return pa.ListArray.from_arrays(pa.array(self.group_ends, type=pa.int32()), structs)


def states_of(batch: "pa.RecordBatch") -> Iterator[GroupState]:
    """Read rows that ``collect_states`` gave."""
    members, topics, claims = (_Column(batch, name) for name in ("members", "topics", "claims"))
    assignors = batch.column("assignor").to_pylist()
    for row, assignor in enumerate(assignors):
        seqs, ids, instances, racks, subscriptions, generations = members.of(row)
        names, counts, replica_racks = topics.of(row)
        numbers = [NO_GENERATION if g is None else g for g in generations]
        place = {member_id: i for i, member_id in enumerate(ids)}
        claimers, claimed_topics, claimed_partitions = claims.of(row)
        claim_members = [place.get(member_id, -1) for member_id in claimers]
        if -1 in claim_members:
            known = [i for i, member in enumerate(claim_members) if member >= 0]
            claim_members = [claim_members[i] for i in known]
            claimed_topics = [claimed_topics[i] for i in known]
            claimed_partitions = [claimed_partitions[i] for i in known]
        yield GroupState(
            assignor=assignor,
            member_ids=ids,
            subscriptions=subscriptions,
            topics=names,
            num_partitions=counts,
            member_racks=racks,
            member_instances=instances,
            generations=numbers,
            field_generations=numbers,
            claim_members=claim_members,
            claim_topics=claimed_topics,
            claim_partitions=claimed_partitions,
            replica_racks=replica_racks,
            is_order_known=None not in seqs and len(set(seqs)) == len(seqs),
        )


class _Column:
    """A column of arrays of structs: the fields as flat lists, to be cut row by row."""

    def __init__(self, batch: "pa.RecordBatch", name: str) -> None:
        column = batch.column(name)
        self.offsets: list[int] = column.offsets.to_numpy().tolist()
        self.fields: list[list[Any]] = [_to_list(field) for field in column.values.flatten()]

    def of(self, row: int) -> list[list[Any]]:
        """Give the fields of a row's structs; nothing where the array is null."""
        start, end = self.offsets[row], self.offsets[row + 1]
        return [field[start:end] for field in self.fields]


def _to_list(array: "pa.Array") -> list[Any]:
    """As ``to_pylist``, in a fraction of its time where strings repeat: equal ones are one object.

    So their hash codes, too, are computed once.
    """
    import pyarrow as pa

    if pa.types.is_list(array.type):
        values, ends = _to_list(array.values), array.offsets.to_numpy().tolist()
        lists: list[Any] = [values[start:end] for start, end in pairwise(ends)]
        return _with_nulls(lists, array) if array.null_count else lists
    if pa.types.is_string(array.type):
        encoded = array.dictionary_encode()
        names = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(names) - 1).to_numpy().tolist()
        return [names[code] for code in codes]
    if array.null_count:
        plain: list[Any] = array.to_pylist()
        return plain
    numbers: list[Any] = array.to_numpy().tolist()
    return numbers


def _with_nulls(values: list[Any], array: "pa.Array") -> list[Any]:
    valid = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [v if is_there else None for v, is_there in zip(values, valid, strict=True)]
