"""Claims told by hashes: the same answers as by names, or none."""

import json
import random
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pytest

from kassign_spark.assignors.one_task import assign_arrow
from kassign_spark.groups.hashed import read_hashed
from kassign_spark.groups.read import CLAIM, TOPIC, read_batch
from tests.kafka.oracle import Group, Member
from tests.kafka.recorded import FLEETS
from tests.kernels import group_of
from tests.oracles.mixed_groups import mixed_groups
from tests.task_rows import assigned_of, each_partition, table_of

SCHEMA = pa.schema(
    {
        "place": pa.int64(),
        "subscription": pa.int64(),
        "hash": pa.int64(),
        "text": pa.string(),
    }
)
"""What ``hashed.fold_hashed`` gives."""


def hash_of(*names: str) -> int:
    return int.from_bytes(blake2b("\0".join(names).encode(), digest_size=8).digest(), signed=True)


def hashed(table: pa.Table, changed: dict[str, int] | None = None) -> pa.Table:
    """What ``fold_hashed`` makes of rows of ``rows.fold``; some names have another hash."""

    def of(*names: str) -> int:
        return (changed or {}).get(names[-1], hash_of(*names))

    rows: list[dict[str, Any]] = []
    for row in table.to_pylist():
        kind, group = row["kind"], (row["cluster_id"], row["group_id"])
        told = {"place": of(*group)}
        if kind == CLAIM:
            hashes = {
                "hash": of(*group, row["member_id"]),
                "subscription": of(*group, row["topic"]),
            }
            rows.append(hashes | {"place": of(*group) >> 32 << 32 | row["number"]})
            continue
        name = row["member_id"] or row["topic"]
        told["subscription"] = row["subscription"]
        told["hash"] = 42 if name is None else of(*group, name)
        texts = row["texts"] or "null"
        said = (kind, row["number"], row["place"], texts, name or json.dumps(group))
        rows.append(told | {"text": "\n".join(map(str, said))})
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("name", ["equal", "differing", "states"])
def test_the_answers_are_those_by_names(name: str) -> None:
    groups = [g for g in FLEETS[name](2_000, 7) if not any(m.rack_id for m in g.members)]
    if name == "differing":
        groups += [group_of(shape, "cooperative-sticky") for shape in mixed_groups(600, 7)]
    table = table_of(groups)
    found = list(assign_arrow(hashed(table), read=read_hashed))
    assert found == list(assign_arrow(table))
    assert len(groups) > 500
    assert sum(row == CLAIM for row in table["kind"].to_pylist()) > 10_000


def test_the_order_of_rows_does_not_matter() -> None:
    groups = FLEETS["equal"](300, 7)
    table = hashed(table_of(groups))
    order = random.Random(5).sample(range(len(table)), len(table))
    shuffled = assign_arrow(table.take(pa.array(order)), read=read_hashed)
    assert assigned_of(shuffled, groups) == assigned_of(
        assign_arrow(table, read=read_hashed), groups
    )


def test_a_group_is_one_of_its_cluster() -> None:
    """Groups of one name in two clusters, of which one has no claims."""
    groups = FLEETS["equal"](300, 7)
    told = table_of(groups)
    rows = [row | {"cluster_id": "here"} for row in told.to_pylist()]
    rows += [row | {"cluster_id": "there"} for row in told.to_pylist() if row["kind"] != CLAIM]
    table = pa.Table.from_pylist(rows, told.schema)
    found, expected = (
        [*each_partition(assign_arrow(of, read=read))]
        for of, read in ((hashed(table), read_hashed), (table, read_batch))
    )
    assert found == expected
    of_cluster = {name: [r for r in found if r["cluster_id"] == name] for name in ("here", "there")}
    assert all(of_cluster.values())
    assert [row | {"cluster_id": "there"} for row in of_cluster["here"]] != of_cluster["there"]


def test_claims_of_what_is_not_there_are_left_out() -> None:
    """Of a topic nobody reads, of a partition too many, of somebody who has left, of no group."""
    member = Member("m", ["a", "missing"], [("a", 0), ("a", 9), ("missing", 0), ("other", 1)], 3)
    table = table_of([Group({"a": 2}, [member], "sticky")])
    claim = {"cluster_id": "", "kind": CLAIM, "topic": "a", "number": 1, "place": 0}
    gone = [
        claim | {"group_id": group, "member_id": owner, "subscription": 0}
        for group, owner in (("g000000", "left"), ("gone", "m"))
    ]
    table = pa.concat_tables([table, pa.Table.from_pylist(gone, table.schema)])
    batch, claims = read_hashed(hashed(table))
    assert batch.group_names.to_pylist() == ["g000000"]
    assert batch.generation.tolist() == [3]
    assert sorted(claims.partition.tolist()) == [0, 9]
    assert claims.member.tolist() == [0, 0]
    assert sorted(claims.slot.tolist()) == [-1, 0]


def test_a_task_may_have_nothing_but_claims_of_groups_that_are_gone() -> None:
    table = table_of([Group({"a": 2}, [Member("m", ["a"], [("a", 0)], 3)], "sticky")])
    claims = hashed(table.filter(pa.array([kind == CLAIM for kind in table["kind"].to_pylist()])))
    assert len(claims) == 1
    assert sum(len(piece) for piece in assign_arrow(claims, read=read_hashed)) == 0


@pytest.mark.parametrize(
    ("same", "told"),
    [("m1 m2", "two names"), ("a b", "two names"), ("g000000 g000001", "two groups")],
)
def test_two_names_of_one_hash_are_noticed(same: str, told: str) -> None:
    group = Group({"a": 2, "b": 2}, [Member(f"m{n}", ["a", "b"]) for n in (1, 2)], "sticky")
    table = table_of([group, group])
    read_hashed(hashed(table))
    with pytest.raises(AssertionError, match=f"{told} .*hash"):
        read_hashed(hashed(table, dict.fromkeys(same.split(), 7)))


def test_a_name_of_a_member_may_be_that_of_a_topic() -> None:
    members = [Member(name, ["a", "b"], [(name, 0)], 1) for name in ("a", "b")]
    groups = [Group({"a": 2, "b": 2}, members, "sticky")]
    found = assigned_of(assign_arrow(hashed(table_of(groups)), read=read_hashed), groups)
    assert found == assigned_of(assign_arrow(table_of(groups)), groups)
    assert all((name, 0) in found[0][name] for name in ("a", "b"))
    assert TOPIC in table_of(groups)["kind"].to_pylist()


def test_names_may_have_line_ends() -> None:
    members = [Member(name, ["a"], [("a", n)], 1) for n, name in enumerate(("m\n1", "m\n", "m"))]
    groups = [Group({"a": 4}, members, "sticky")]
    found = assigned_of(assign_arrow(hashed(table_of(groups)), read=read_hashed), groups)
    assert found == assigned_of(assign_arrow(table_of(groups)), groups)
    assert all(("a", n) in found[0][name] for n, name in enumerate(("m\n1", "m\n", "m")))


def test_a_claim_is_of_one_group() -> None:
    """Somebody who has left one group may have the hash of a member of another."""
    table = hashed(table_of([Group({"a": 2}, [Member("m", ["a"])], "sticky")] * 2))
    claim = {"group_hash": hash_of("", "g000000"), "place": 0}
    claim["subscription"] = hash_of("", "g000000", "a")
    for group, count in (("g000000", 1), ("g000001", 0)):
        told = [claim | {"hash": hash_of("", group, "m")}]
        _, claims = read_hashed(pa.concat_tables([table, pa.Table.from_pylist(told, SCHEMA)]))
        assert len(claims.slot) == count
