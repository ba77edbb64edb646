"""The listener's calls, by the table of the classic protocol; and a rebalance summed up."""

import pytest
from pyspark.sql import SparkSession

from kassign_spark.plans.listener import listener_calls
from kassign_spark.plans.rebalance import rebalance
from kassign_spark.plans.summary import summarize
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member, Tables, to_tables

Call = tuple[int, str, str, str]

_GROUPS = {
    "a third joins, cooperative": Group(
        {"t": 3},
        [
            Member("c1", ["t"], [("t", 0), ("t", 1)], 4),
            Member("c2", ["t"], [("t", 2)], 4),
            Member("c3", ["t"]),
        ],
        "cooperative-sticky",
    ),
    "a third joins, eager": Group(
        {"t": 3},
        [
            Member("c1", ["t"], [("t", 0), ("t", 1)], 4),
            Member("c2", ["t"], [], 4),
            Member("c3", ["t"]),
        ],
        "range",
    ),
    "a topic is dropped": Group(
        {"t": 1, "u": 1},
        [Member("c1", ["t"], [("t", 0), ("u", 0)], 4), Member("c2", ["t"], [], 4)],
        "cooperative-sticky",
    ),
    "a generation is lost": Group(
        {"t": 2},
        [Member("c1", ["t"], [("t", 0)], 3), Member("c2", ["t"], [("t", 1)], 4)],
        "sticky",
    ),
    **{
        f"a client names no generation, {assignor}": Group(
            {"t": 3},
            [
                Member("c1", ["t"], [("t", 0)], None),
                Member("c2", ["t"], [("t", 1)], 4),
                Member("c3", ["t"], [], None),
            ],
            assignor,
        )
        for assignor in ("sticky", "cooperative-sticky")
    },
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    return to_tables(spark, list(_GROUPS.values()))


def _of(rows: list, case: str, member: str) -> list[Call]:  # type: ignore[type-arg]
    group = f"g{list(_GROUPS).index(case)}"
    mine = [r for r in rows if (r.group_id, r.member_id) == (group, member)]
    return [
        (
            r["round"],
            r.moment,
            r.callback.removeprefix("onPartitions"),
            " ".join(f"{p.topic}{p.partition}" for p in r.partitions),
        )
        for r in sorted(mine, key=lambda r: (r["round"], r.call))
    ]


def test_calls(tables: Tables) -> None:
    rows = listener_calls(rebalance(*tables), tables.members).collect()
    joins = "a third joins, cooperative"
    assert _of(rows, joins, "c1") == [
        (1, "after_sync", "Revoked", "t1"),
        (1, "after_sync", "Assigned", ""),
        (2, "after_sync", "Assigned", ""),
    ]
    assert _of(rows, joins, "c2") == [
        (1, "after_sync", "Assigned", ""),
        (2, "after_sync", "Assigned", ""),
    ]
    assert _of(rows, joins, "c3") == [
        (1, "after_sync", "Assigned", ""),
        (2, "after_sync", "Assigned", "t1"),
    ]
    joins = "a third joins, eager"
    assert _of(rows, joins, "c1") == [
        (1, "before_join", "Revoked", "t0 t1"),
        (1, "after_sync", "Assigned", "t0"),
    ]
    assert _of(rows, joins, "c2") == [
        (1, "before_join", "Revoked", ""),
        (1, "after_sync", "Assigned", "t1"),
    ]
    assert _of(rows, joins, "c3") == [(1, "after_sync", "Assigned", "t2")]
    dropped = "a topic is dropped"
    assert _of(rows, dropped, "c1")[:2] == [
        (1, "before_join", "Revoked", "u0"),
        (1, "after_sync", "Assigned", ""),
    ]
    lost = "a generation is lost"
    assert _of(rows, lost, "c1") == [
        (1, "before_join", "Lost", "t0"),
        (1, "after_sync", "Assigned", "t0"),
    ]
    # The claims of a client that sends no generation count, so it has what it claims.
    unnamed = "a client names no generation, sticky"
    assert _of(rows, unnamed, "c1") == [
        (1, "before_join", "Revoked", "t0"),
        (1, "after_sync", "Assigned", "t0"),
    ]
    assert _of(rows, unnamed, "c3") == [(1, "after_sync", "Assigned", "t2")]
    unnamed = "a client names no generation, cooperative-sticky"
    assert _of(rows, unnamed, "c1") == [(1, "after_sync", "Assigned", "")]
    assert _of(rows, unnamed, "c3") == [(1, "after_sync", "Assigned", "t2")]


def test_kafka_leaves_a_client_that_names_no_generation_what_it_claims(spark: SparkSession) -> None:
    unnamed = [group for case, group in _GROUPS.items() if case.startswith("a client names")]
    for assigned in oracle.assign(spark, unnamed):
        assert isinstance(assigned, dict)
        assert assigned["c1"] == [("t", 0)]


def test_nobody_is_called_to_lose_what_the_leader_leaves_it(tables: Tables) -> None:
    steps = rebalance(*tables)
    kept = {
        (r.group_id, r.member_id, r.topic, r.partition)
        for r in steps.where("action = 'retained'").collect()
    }
    assert kept
    calls = listener_calls(steps, tables.members).collect()
    gone = {
        (r.group_id, r.member_id, p.topic, p.partition)
        for r in calls
        if r.callback != "onPartitionsAssigned"
        for p in r.partitions
    }
    assert gone
    assert not kept & gone


def test_summary(tables: Tables) -> None:
    rows = summarize(rebalance(*tables), tables.owned).orderBy("group_id").collect()
    result = [(r.rounds, r.partition_count, r.moved_count, r.paused_count, r.settles) for r in rows]
    assert result == [
        (2, 3, 1, 1, True),
        (1, 3, 1, 2, True),
        (1, 1, 0, 1, True),
        (1, 2, 0, 2, True),
        (1, 3, 0, 2, True),
        (1, 3, 0, 0, True),
    ]


def test_cluster_id_stays_absent(tables: Tables) -> None:
    members, topics, owned = (
        frame.where("cluster_id = 'c0'").drop("cluster_id") for frame in tables
    )
    steps = rebalance(members, topics, owned)
    assert "cluster_id" not in steps.columns
    assert "cluster_id" not in listener_calls(steps, members).columns
    (row,) = summarize(steps, owned).collect()
    assert (row.group_id, row.rounds, row.moved_count) == ("g0", 2, 1)
