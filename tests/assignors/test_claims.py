"""Claims in the rows of a task: of members and topics that are there, by their names alone."""

import pyarrow as pa

from kassign_spark.assignors.task_groups import assign_arrow
from kassign_spark.groups.read import CLAIM, read_batch
from tests.kafka.oracle import Group, Member
from tests.kafka.recorded import FLEETS
from tests.task_rows import assigned_of, each_partition, table_of


def test_a_group_is_one_of_its_cluster() -> None:
    """Groups of one name in two clusters, of which one has no claims."""
    groups = FLEETS["equal"](300, 7)
    alone = table_of(groups)
    rows = [row | {"cluster_id": "here"} for row in alone.to_pylist()]
    rows += [row | {"cluster_id": "there"} for row in alone.to_pylist() if row["kind"] != CLAIM]
    assigned = [*each_partition(assign_arrow(pa.Table.from_pylist(rows, alone.schema)))]
    here, there = (
        [row for row in assigned if row["cluster_id"] == name] for name in ("here", "there")
    )
    expected = [*each_partition(assign_arrow(alone))]
    assert here == [row | {"cluster_id": "here"} for row in expected]
    assert [row | {"cluster_id": "here"} for row in there] != here


def test_claims_of_what_is_not_there_are_left_out() -> None:
    """Of a topic nobody reads, of a partition too many, of somebody who has left, of no group."""
    member = Member("m", ["a", "missing"], [("a", 0), ("a", 9), ("missing", 0), ("other", 1)], 3)
    table = table_of([Group({"a": 2}, [member], "sticky")])
    claim = {"cluster_id": "", "kind": CLAIM, "topic": "a", "number": 1, "place": 0}
    gone = [
        claim | {"group_id": group, "member_id": owner, "list_number": 0}
        for group, owner in (("g000000", "left"), ("gone", "m"))
    ]
    table = pa.concat_tables([table, pa.Table.from_pylist(gone, table.schema)])
    batch, claims = read_batch(table)
    assert batch.group_names.to_pylist() == ["g000000"]
    assert batch.generation.tolist() == [3]
    assert claims.where((claims.slot >= 0) & (claims.member >= 0)).partition.tolist() == [0]


def test_a_task_may_have_nothing_but_claims_of_groups_that_are_gone() -> None:
    table = table_of([Group({"a": 2}, [Member("m", ["a"], [("a", 0)], 3)], "sticky")])
    claims = table.filter(pa.array([kind == CLAIM for kind in table["kind"].to_pylist()]))
    assert len(claims) == 1
    assert sum(len(piece) for piece in assign_arrow(claims)) == 0


def test_a_name_of_a_member_may_be_that_of_a_topic() -> None:
    members = [Member(name, ["a", "b"], [(name, 0)], 1) for name in ("a", "b")]
    groups = [Group({"a": 2, "b": 2}, members, "sticky")]
    (assigned,) = assigned_of(assign_arrow(table_of(groups)), groups)
    assert all((name, 0) in assigned[name] for name in ("a", "b"))


def test_names_may_have_line_ends() -> None:
    members = [Member(name, ["a"], [("a", n)], 1) for n, name in enumerate(("m\n1", "m\n", "m"))]
    groups = [Group({"a": 4}, members, "sticky")]
    (assigned,) = assigned_of(assign_arrow(table_of(groups)), groups)
    assert all(("a", n) in assigned[name] for n, name in enumerate(("m\n1", "m\n", "m")))
