"""The eligibility graph of a fleet as vertices and edges: who can take what."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.graph.class_batch import class_graph, subscribed_of
from kassign_spark.graph.components import number_rows
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.group_names import group_columns, member_ids, with_nulls
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.numbers import Longs, dense, names, place_in_run
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, rows, run_in_tasks
from kassign_spark.groups.task_rows import lists_of
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.results import to_result
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize

MEMBER, CLASS = "member", "class"
_ROW = (
    "cluster_id string, group_id string, id bigint, kind string, name string, "
    "topics array<string>, weight bigint, part int, dst bigint"
)
"""A vertex, or, where dst is there, the edge from id with its weight."""
_NUMBER = 100
"""A kind of row beside those of ``groups.read``: the number of the group."""


class Eligibility(NamedTuple):
    """The graph of all groups; ``GraphFrame(*eligibility)`` takes it as it is.

    Groups share no vertex. A class is the topics of one group that have the same subscribers: who
    can take a partition of one can take any of all of them. Topics without subscribers or without
    partitions are no part of it.

    Attributes:
        vertices: id bigint, cluster_id string (where the inputs have it), group_id string,
            kind string: `member` or `class`, name string: the member_id, or the class's first topic
            by name, topics `array<string>`: of a class, by name; null for a member, weight bigint:
            partitions of a class; null for a member, part int: the connected component, from 0
            within the group; null for a member that can take nothing. Members of one part can only
            take what members of the same part can.
        edges: src bigint: a member, dst bigint: a class that it subscribes to, weight bigint: the
            class's partitions.
    """

    vertices: DataFrame
    edges: DataFrame


def eligibility(
    members: DataFrame, topics: DataFrame, *, settings: Settings = Settings()
) -> Eligibility:
    """Return the eligibility graph of every group; computed once, and held.

    Ids are the same for the same input, whatever its row order and partitioning: they follow from
    the groups' names, and within a group ascend with the names.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition.
        settings: ``batches``.

    Returns:
        Vertices and edges.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    eligible = inspect_inputs(conform_inputs(members, topics), None).eligible
    numbers = rows(number_rows(eligible.members, GROUP_KEY, "number"), _NUMBER)
    table = fold(eligible._replace(has_racks=False)).unionByName(numbers)
    answered = run_in_tasks(table, graph_arrow, _ROW, settings.batches or eligible.batches)
    rows_of_both = materialize(answered).frame
    vertices = rows_of_both.where("dst IS NULL").select(
        "id", "cluster_id", "group_id", "kind", "name", "topics", "weight", "part"
    )
    edges = rows_of_both.where("dst IS NOT NULL").select(F.col("id").alias("src"), "dst", "weight")
    has_clusters = has_cluster_id(members)
    return Eligibility(
        to_result(vertices, "eligibility.vertices", has_cluster_id=has_clusters),
        to_result(edges, "eligibility.edges", has_cluster_id=False),
    )


def graph_arrow(table: pa.Table) -> list[pa.Table]:
    """Make vertices and edges of the groups whose rows are in the table: the columns of _ROW."""
    is_number = pc.equal(table["kind"], _NUMBER)
    batch, _ = read_batch(table.filter(pc.invert(is_number)))
    numbers = table.filter(is_number)
    first, _ = dense(names(numbers["cluster_id"]).code, names(numbers["group_id"]).code)
    group_number = numbers["number"].to_numpy()[first]
    graph = class_graph(subscribed_of(batch))
    topic_order = np.argsort(graph.class_of_topic, kind="stable")
    topic_count = np.bincount(graph.class_of_topic, minlength=len(graph.supply))
    first_topic = topic_order[np.cumsum(topic_count) - topic_count]
    topic = batch.topic_names.take(pa.array(batch.topic_name - 1))
    member_id = _vertex_ids(group_number, graph.group_of_member, 0)
    class_id = _vertex_ids(group_number, graph.group_of_class, 1)
    members = _table(
        batch,
        graph.group_of_member,
        id=pa.array(member_id),
        kind=pa.repeat(MEMBER, len(member_id)),
        name=member_ids(batch, np.arange(len(member_id))),
        part=pa.array(graph.part_of_member, mask=graph.part_of_member < 0),
    )
    classes = _table(
        batch,
        graph.group_of_class,
        id=pa.array(class_id),
        kind=pa.repeat(CLASS, len(class_id)),
        name=topic.take(pa.array(first_topic)),
        topics=lists_of(topic.take(pa.array(topic_order)), topic_count),
        weight=pa.array(graph.supply),
        part=pa.array(graph.part_of_class),
    )
    edges = _table(
        batch,
        graph.group_of_class[graph.class_of],
        id=pa.array(member_id[graph.member_of]),
        weight=pa.array(graph.supply[graph.class_of]),
        dst=pa.array(class_id[graph.class_of]),
    )
    return [members, classes, edges]


def _vertex_ids(group_number: Longs, group: Longs, kind: int) -> Longs:
    """Number the vertices of each group: members are even, classes odd (``number_rows``)."""
    return group_number[group] << 32 | place_in_run(group) << 1 | kind


def _table(batch: Batch, group: Longs, **columns: pa.Array) -> pa.Table:
    return with_nulls(_ROW, group_columns(batch, group) | columns)
