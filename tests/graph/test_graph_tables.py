"""Vertices, edges and bottlenecks as DataFrames, over many groups at once."""

from collections import defaultdict
from typing import Any

import pytest
from chispa import assert_df_equality
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import bottlenecks, eligibility, read_snapshot
from kassign_spark.errors import InputError, SchemaError
from kassign_spark.graph.eligibility import Eligibility
from tests.graph.test_proofs import GROUPS, ROWS
from tests.oracles.mixed_groups import MixedGroup, to_tables

_FEW = GROUPS[:210]
_GROUP = MixedGroup(
    "g",
    {"audit": 2, "logs": 1, "orders": 4, "payments": 3, "unread": 5, "empty": 0},
    {
        "a": ("orders", "payments"),
        "b": ("payments", "orders", "payments"),
        "c": ("payments",),
        "d": ("logs", "audit", "missing"),
        "e": (),
        "f": ("empty",),
    },
)


@pytest.fixture(scope="module")
def graph(spark: SparkSession) -> Eligibility:
    members, topics, _ = to_tables(spark, _FEW)
    return eligibility(members, topics)


def _without_clusters(spark: SparkSession, groups: list[MixedGroup]) -> tuple[DataFrame, DataFrame]:
    members, topics, _ = to_tables(spark, groups)
    return members.drop("cluster_id"), topics.drop("cluster_id")


def test_the_graph_of_a_group(spark: SparkSession) -> None:
    result = eligibility(*_without_clusters(spark, [_GROUP]))
    (number,) = {row.id >> 32 for row in result.vertices.collect()}

    def vertex(place: int) -> int:
        return (number << 32) + place

    vertices = [
        (vertex(0), "g", "member", "a", None, None, 0),
        (vertex(1), "g", "class", "audit", ["audit", "logs"], 3, 1),
        (vertex(2), "g", "member", "b", None, None, 0),
        (vertex(3), "g", "class", "orders", ["orders"], 4, 0),
        (vertex(4), "g", "member", "c", None, None, 0),
        (vertex(5), "g", "class", "payments", ["payments"], 3, 0),
        (vertex(6), "g", "member", "d", None, None, 1),
        (vertex(8), "g", "member", "e", None, None, None),
        (vertex(10), "g", "member", "f", None, None, None),
    ]
    expected = spark.createDataFrame(
        vertices,
        "id bigint, group_id string, kind string, name string, topics array<string>, "
        "weight bigint, part int",
    )
    assert_df_equality(result.vertices.orderBy("id"), expected, ignore_nullable=True)
    edges = [(0, 3, 4), (0, 5, 3), (2, 3, 4), (2, 5, 3), (4, 5, 3), (6, 1, 3)]
    expected = spark.createDataFrame(
        [(vertex(src), vertex(dst), weight) for src, dst, weight in edges],
        "src bigint, dst bigint, weight bigint",
    )
    assert_df_equality(result.edges.orderBy("src", "dst"), expected, ignore_nullable=True)


def test_the_same_ids_whatever_the_partitioning(spark: SparkSession, graph: Eligibility) -> None:
    members, topics, _ = to_tables(spark, _FEW)
    again = eligibility(members.repartition(7).orderBy(F.rand(3)), topics.repartition(3))
    for frame, other in zip(graph, again, strict=True):
        keys = ["id"] if "id" in frame.columns else ["src", "dst"]
        assert_df_equality(frame.orderBy(*keys), other.orderBy(*keys))
    ids = [row.id for row in graph.vertices.collect()]
    assert len(ids) == len(set(ids))


def test_the_graph_says_who_can_take_what(graph: Eligibility) -> None:
    """Of random groups, vertex by vertex and edge by edge; parts are those of the proofs."""
    vertices = {row.id: row for row in graph.vertices.collect()}
    may: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for edge in graph.edges.collect():
        src, dst = vertices[edge.src], vertices[edge.dst]
        assert (src.kind, dst.kind, src.group_id, src.part) == (
            "member", "class", dst.group_id, dst.part,
        )  # fmt: skip
        assert edge.weight == dst.weight
        may[src.group_id] |= {(src.name, topic) for topic in dst.topics}
    names, parts = defaultdict(list), defaultdict(dict)
    for row in vertices.values():
        assert row.cluster_id == row.group_id
        names[row.group_id].append((row.kind, row.name))
        if row.kind == "member":
            parts[row.group_id][row.name] = row.part
    for number, group in enumerate(_FEW):
        if not group.subscriptions:
            continue
        readable = {t: n for t, n in group.partitions.items() if n and group.subscribers(t)}
        assert may[group.name] == {(m, t) for t in readable for m in group.subscribers(t)}
        classes: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for topic in sorted(readable):
            classes[tuple(group.subscribers(topic))].append(topic)
        assert sorted(names[group.name]) == sorted(
            [("member", member) for member in group.subscriptions]
            + [("class", topics[0]) for topics in classes.values()]
        )
        expected = {m: row.part for row in ROWS[number] if row.kind == "part" for m in row.members}
        assert parts[group.name] == {m: expected.get(m) for m in group.subscriptions}


def test_bottlenecks_are_those_of_the_kernel(spark: SparkSession) -> None:
    members, topics, _ = to_tables(spark, _FEW)
    result = defaultdict(list)
    for row in bottlenecks(members, topics).collect():
        result[row.group_id].append(row)
    for number, group in enumerate(_FEW):
        rows = result[group.name]
        assert [
            (row.kind, row.part, row.level, row.member_ids, row.topics, *row[9:12]) for row in rows
        ] == [
            (
                row.kind,
                row.part if row.part >= 0 else None,
                row.level if row.level >= 0 else None,
                *row[3:],
            )
            for row in ROWS[number]
        ]  # fmt: skip
        count = sum(n for topic, n in group.partitions.items() if group.subscribers(topic))
        for row in rows:
            assert row.even_max == -(-count // len(group.subscriptions))
            assert (row.member_count, row.topic_count) == (len(row.member_ids), len(row.topics))


def test_the_sentences(spark: SparkSession) -> None:
    rows = bottlenecks(*_without_clusters(spark, [_GROUP])).collect()
    assert [(row.kind, row.detail) for row in rows] == [
        ("part", "only members a, b, c can read orders, payments (7 partitions), and nothing else: "
                 "one has at least 3, one at most 2"),
        ("part", "only member d can read audit, logs (3 partitions), and nothing else: it has 3"),
        ("single_reader", "only member d can read audit, logs (3 partitions): "
                          "nobody can take over"),
        ("idle", "members e, f can read nothing: no topic of theirs has partitions"),
    ]  # fmt: skip


def test_the_example_fleet(spark: SparkSession) -> None:
    """Of its worst group one member has 38 of 42 partitions: 36 of them only it can read."""
    fleet = read_snapshot("examples/fleet", spark)
    rows: list[Any] = (
        bottlenecks(fleet.members, fleet.topics)
        .where("group_id = 'orders-notifications'")
        .collect()
    )
    result = [(row.kind, row.topics, row.member_count, row.least_max, row.most_min) for row in rows]
    assert result == [
        ("dense", ["orders.created", "orders.shipped"], 1, 36, None),
        ("part", ["orders.cancelled", "orders.created", "orders.shipped"], 4, 11, 10),
        ("sparse", ["orders.cancelled"], 3, None, 2),
        ("single_reader", ["orders.created", "orders.shipped"], 1, 36, None),
    ]  # fmt: skip
    assert rows[0].even_max == 11
    assert rows[0].detail.endswith(
        "can read orders.created, orders.shipped (36 partitions): it has at least 36"
    )


def test_graphframes_takes_it_as_it_is(spark: SparkSession, graph: Eligibility) -> None:
    graphframes = pytest.importorskip("graphframes", reason="graphframes-py is not installed")
    try:
        framed = graphframes.GraphFrame(*graph)
    except Py4JError as error:  # its classes are not on the session's class path
        pytest.skip(f"io.graphframes:graphframes-spark4_2.13 is not on the class path: {error}")
    result = framed.connectedComponents(algorithm="graphx")
    least = result.groupBy("component").agg(F.min("id").alias("least"))
    rows = result.where("part IS NOT NULL").join(least, on="component").collect()
    by_component = {(row.group_id, row.part): row.least for row in rows}
    assert len(rows) > 500
    assert all(by_component[row.group_id, row.part] == row.least for row in rows)
    assert len(set(by_component.values())) == len(by_component)
    result.unpersist()


def test_bad_input_is_refused_in_one_line(spark: SparkSession) -> None:
    members, topics = _without_clusters(spark, [_GROUP])
    for function in (eligibility, bottlenecks):
        with pytest.raises(SchemaError, match=r"^table members: column member_id .* is missing"):
            function(members.drop("member_id"), topics)
        with pytest.raises(InputError, match=r'^table members, column member_id: "a" appears 2'):
            function(members.union(members.where("member_id = 'a'")), topics)


def test_no_member_at_all(spark: SparkSession) -> None:
    members, topics = _without_clusters(spark, [_GROUP])
    empty = eligibility(members.limit(0), topics)
    assert [frame.count() for frame in empty] == [0, 0]
    assert bottlenecks(members.limit(0), topics).collect() == []
