"""The fleet's graph: what a change of a topic touches, and clusters of groups."""

import random
from collections import defaultdict

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import fleet_graph, group_clusters, touched_by
from kassign_spark.errors import InputError, SettingsError
from kassign_spark.graph.fleet import spread_labels
from kassign_spark.settings import Settings
from kassign_spark.spark.iteration import Budget

_TOPICS = {"orders": 6, "payments": 3, "audit": 1, "alone": 2, "empty": 0, "unread": 9}
_GROUPS = {
    "billing": ("range", {"b0": ["orders", "payments"], "b1": ["payments", "missing"]}),
    "fraud": ("cooperative-sticky", {"f0": ["payments"], "f1": ["payments", "orders"]}),
    "search": ("sticky", {"s0": ["alone"], "s1": ["alone"], "s2": []}),
    "archive": ("range", {"a0": ["audit"]}),
    "nothing": ("range", {"n0": ["empty"]}),
}
IN_ROUNDS = Settings(use_graphframes=False)


def _tables(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    members = [
        (group, member, topics, assignor)
        for group, (assignor, subscriptions) in _GROUPS.items()
        for member, topics in subscriptions.items()
    ]
    return (
        spark.createDataFrame(
            members, "group_id string, member_id string, topics array<string>, assignor string"
        ),
        spark.createDataFrame(list(_TOPICS.items()), "topic string, num_partitions int"),
    )


def test_what_a_change_of_a_topic_touches(spark: SparkSession) -> None:
    result = touched_by(*_tables(spark), ["payments", "audit", "unread"])
    expected = spark.createDataFrame(
        [
            ("audit", "archive", 1, 1, 1, 1, []),
            ("payments", "billing", 2, 2, 3, 9, ["orders"]),
            ("payments", "fraud", 2, 2, 3, 3, ["orders"]),
        ],
        "topic string, group_id string, member_count bigint, group_member_count bigint, "
        "partition_count bigint, reassigned_count bigint, other_topics array<string>",
    )
    assert_df_equality(result.orderBy("topic", "group_id"), expected, ignore_nullable=True)


def test_an_unknown_topic_is_refused_with_the_nearest(spark: SparkSession) -> None:
    with pytest.raises(InputError, match=r"^unknown topic 'payment'; the nearest are payments, "):
        touched_by(*_tables(spark), ["orders", "payment"])


def test_clusters_by_components(spark: SparkSession) -> None:
    result = group_clusters(*_tables(spark), settings=IN_ROUNDS)
    rows = result.collect()
    by_cluster = defaultdict(set)
    for row in rows:
        by_cluster[row.cluster].add((row.kind, row.name))
        assert row.group_count + row.topic_count > 0
    assert sorted(map(sorted, by_cluster.values())) == [
        [("group", "archive"), ("topic", "audit")],
        [("group", "billing"), ("group", "fraud"), ("topic", "orders"), ("topic", "payments")],
        [("group", "nothing")],
        [("group", "search"), ("topic", "alone")],
    ]
    members, topics = _tables(spark)
    other = group_clusters(members.repartition(5), topics, settings=IN_ROUNDS)
    order = ["kind", "name"]
    assert_df_equality(result.orderBy(*order), other.orderBy(*order), ignore_nullable=True)
    by_default = group_clusters(members, topics)  # by GraphFrames, where it is there
    assert_df_equality(result.orderBy(*order), by_default.orderBy(*order), ignore_nullable=True)


def test_the_graph_of_the_fleet(spark: SparkSession) -> None:
    graph = fleet_graph(*_tables(spark))
    names = {row.id: (row.kind, row.name) for row in graph.vertices.collect()}
    assert len(names) == graph.vertices.count()
    edges = {(names[e.src][1], names[e.dst][1], e.member_count) for e in graph.edges.collect()}
    assert edges == {
        ("billing", "orders", 1), ("billing", "payments", 2), ("fraud", "payments", 2),
        ("fraud", "orders", 1), ("search", "alone", 2), ("archive", "audit", 1),
    }  # fmt: skip


def _two_rings(spark: SparkSession) -> tuple[DataFrame, DataFrame, dict[int, int]]:
    """Two dense clusters of vertices joined by one edge, as numbers far apart."""
    rng = random.Random(3)
    names = rng.sample(range(1, 1 << 40), 24)
    cluster = {name: place // 12 for place, name in enumerate(names)}
    edges = [
        (left, right)
        for ring in (names[:12], names[12:])
        for left in ring[:6]
        for right in ring[6:]
        if rng.random() < 0.9
    ]
    edges.append((names[0], names[23]))
    vertices = spark.createDataFrame([(name,) for name in names], "id bigint")
    return vertices, spark.createDataFrame(edges, "src bigint, dst bigint"), cluster


@pytest.mark.slow
def test_labels_tell_clusters_apart_that_one_edge_joins(spark: SparkSession) -> None:
    vertices, edges, cluster = _two_rings(spark)
    budget = Budget(20)
    result = spread_labels(vertices, edges, IN_ROUNDS, budget)
    labels = {row.id: row.label for row in result.collect()}
    least = {place: min(n for n, c in cluster.items() if c == place) for place in (0, 1)}
    assert labels == {name: least[place] for name, place in cluster.items()}
    assert budget.used <= 5
    again = spread_labels(vertices.repartition(3), edges.orderBy(F.rand(1)), IN_ROUNDS, Budget(20))
    assert {row.id: row.label for row in again.collect()} == labels


def test_labels_by_graphframes_where_asked_for(spark: SparkSession) -> None:
    vertices, edges, cluster = _two_rings(spark)
    try:
        result = spread_labels(vertices, edges, Settings(use_graphframes=True), Budget(20))
    except SettingsError:
        pytest.skip("io.graphframes:graphframes-spark4_2.13 is not in the local Maven repository")
    labels = {row.id: row.label for row in result.collect()}
    assert set(labels) == set(cluster)
    assert all(cluster[label] == cluster[name] for name, label in labels.items())


@pytest.mark.slow
def test_clusters_by_labels_lie_inside_components(spark: SparkSession) -> None:
    whole, parts = (
        {
            (row.kind, row.name): row.cluster
            for row in group_clusters(*_tables(spark), method=m, settings=IN_ROUNDS).collect()
        }
        for m in ("components", "labels")
    )
    assert set(whole) == set(parts)
    assert len({(whole[name], parts[name]) for name in whole}) == len(set(parts.values()))
    with pytest.raises(InputError, match="unknown method 'label'"):
        group_clusters(*_tables(spark), method="label")
