"""What a report says of a plan's rebalances."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli, rebalance, summarize
from kassign_spark.groups.read import OBSERVED
from kassign_spark.report import followed
from kassign_spark.report.followed_kernel import follow_both_arrow
from kassign_spark.report.plan import read_plan
from kassign_spark.settings import Settings
from kassign_spark.whatif.compare_kernel import compare_arrow
from tests.builders import final_assignment
from tests.kafka.oracle import Group, Member
from tests.random_states import random_states
from tests.small_fleet import MEMBERS, write_small_fleet
from tests.task_rows import SCHEMA, name_of, table_of

_COOPERATIVE = "cooperative-sticky"
_SUMMED = ("rounds", "moved", "paused", "settles")
_ASSIGNORS = ("range", "roundrobin", "sticky", _COOPERATIVE)


def _groups() -> list[Group]:
    return random_states(300, seed=13, assignors=_ASSIGNORS)


def _by_group(pieces: list[pa.Table]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The rows of groups by name, and what members of some have in the end."""
    groups, ends = {}, defaultdict(list)
    for row in (row for piece in pieces for row in piece.to_pylist()):
        if row["member_id"] is None:
            groups[row["group_id"]] = row
        else:
            ends[row["group_id"]].append((row["member_id"], row["topic"], row["partition"]))
    return groups, ends


def test_rounds_are_those_of_compare() -> None:
    groups = _groups()
    table = table_of(groups)
    tables, _ = _by_group(list(follow_both_arrow(table)))
    compared = {
        (row["group_id"], row["assignor"], row["protocol"]): row
        for piece in compare_arrow(table)
        for row in piece.to_pylist()
    }
    assert len(tables) == len(groups)
    moves = 0
    for number, group in enumerate(groups):
        name = name_of(number)
        row = tables[name]
        for protocol, assignor in (("eager", group.assignor), ("cooperative", _COOPERATIVE)):
            expected = compared[name, assignor, protocol]
            if row[f"{protocol}_rounds"] is None:  # nothing happens
                assert (expected["partition_count"], expected["paused"]) == (0, 0)
                continue
            if expected["rounds"] is None:  # the client throws, which the report does not say yet
                assert expected["verdict"] != "ok"
                continue
            for measure in ("rounds", "moved", "paused"):
                assert row[f"{protocol}_{measure}"] == expected[measure], (name, measure)
            assert row[f"{protocol}_settles"] == (expected["verdict"] == "ok")
            moves += expected["moved"]
        assert row["protocol"] == ("cooperative" if group.assignor == _COOPERATIVE else "eager")
        for measure in ("rounds", "moved", "paused", "settles"):
            assert row[f"planned_{measure}"] == row[f"{row['protocol']}_{measure}"]
    assert moves > 1000


def test_loads_and_what_is_had_in_the_end() -> None:
    """The plan is what members claim: who owns something has it after, but where rounds follow."""
    groups = _groups()
    group_table = table_of(groups)
    claims = group_table.filter(pc.equal(group_table["kind"], 3))
    kind = pa.array([OBSERVED] * len(claims), pa.int8())
    planned = claims.set_column(claims.schema.get_field_index("kind"), "kind", kind)
    tables, ends = _by_group(list(follow_both_arrow(pa.concat_tables([group_table, planned]))))
    withholding = 0
    for number, group in enumerate(groups):
        row = tables[name_of(number)]
        had = [len(set(member.owned)) for member in group.members]
        assert [row["min_before"], row["max_before"]] == [min(had), max(had)]
        assert row["idle_before"] == had.count(0)
        end = ends.get(name_of(number))
        assert (end is not None) == (row["withheld_count"] > 0)
        if end is None:
            assert row["idle_after"] == had.count(0)
            continue
        withholding += 1
        assert group.assignor == _COOPERATIVE
        assert row["idle_after"] == len(group.members) - len(
            Counter(member for member, _, _ in end)
        )
        assert max(Counter((topic, partition) for _, topic, partition in end).values()) == 1
    assert withholding > 10


def test_without_what_was_owned() -> None:
    tables, ends = _by_group(list(follow_both_arrow(table_of(_groups()[:20]), is_owned=False)))
    assert not ends or all(tables[name]["withheld_count"] for name in ends)
    for row in tables.values():
        unknown = ("eager_moved", "cooperative_moved", "planned_moved", "min_before", "max_before")
        assert [row[name] for name in (*unknown, "idle_before")] == [None] * 6


@pytest.mark.slow
def test_a_report_says_what_rebalance_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = MEMBERS + "idle,i,lost,range,1,\n"
    fleet = write_small_fleet(tmp_path / "fleet", members=members)
    # The lost topic is gone.
    assert cli.main(["assign", str(fleet), "--output", str(tmp_path / "plan")]) == 1
    capsys.readouterr()
    plan = read_plan(spark, str(tmp_path / "plan"), str(fleet))
    result = followed.follow(plan, Settings())
    assert result.withholding is not None
    assert [row.group_id for row in result.withholding.collect()] == ["mail"]
    members, topics, owned = plan.snapshot
    steps = {
        "eager": rebalance(members, topics, owned, protocol="eager"),
        "cooperative": rebalance(members, topics, owned, assignor=_COOPERATIVE),
    }
    of_groups = {row.group_id: row for row in result.groups.collect()}
    for protocol, of_protocol in steps.items():
        for row in summarize(of_protocol, owned).collect():
            group = of_groups[row.group_id]
            summed = [group[f"{protocol}_{name}"] for name in _SUMMED]
            assert summed == [row.rounds, row.moved_count, row.paused_count, row.settles]
            if group.protocol == protocol:
                assert [group[f"planned_{name}"] for name in _SUMMED] == summed
    key = ["group_id", "member_id", "topic", "partition"]
    last = final_assignment(steps["cooperative"]).where("group_id = 'mail'").select(*key)
    rest = plan.assignment.where("group_id != 'mail'").select(*key)
    expected = rest.unionByName(last).collect()
    assert sorted(result.final.select(*key).collect()) == sorted(expected)


def test_a_plan_by_weight_is_reached_at_once() -> None:
    """What moves from who is still there pauses; nothing is withheld, whatever the assignor."""
    members = [
        Member("a", ["t"], [("t", 0), ("t", 1)], 1),
        Member("b", ["t"], [("t", 2)], 1),
    ]
    group = Group({"t": 4}, members, _COOPERATIVE)
    key = {"cluster_id": "", "group_id": name_of(0), "place": 0, "list_number": 0}
    planned = [
        {**key, "kind": OBSERVED, "member_id": member, "topic": "t", "number": partition}
        for member, partition in (("b", 0), ("a", 1), ("b", 2), ("a", 3))
    ]
    table = pa.concat_tables([table_of([group]), pa.Table.from_pylist(planned, SCHEMA)])
    (row,) = pa.concat_tables(follow_both_arrow(table, at_once=True)).to_pylist()
    names = ("planned_rounds", "planned_moved", "planned_paused", "planned_settles")
    assert [row[name] for name in names] == [1, 1, 1, True]
    assert (row["withheld_count"], row["idle_after"], row["max_before"]) == (0, 0, 2)
    assert (row["protocol"], row["eager_rounds"]) == ("cooperative", 1)
    unknown = Group({"t": 4}, members, "com.example.Own")
    without = pa.concat_tables([table_of([unknown]), pa.Table.from_pylist(planned, SCHEMA)])
    (of_none,) = pa.concat_tables(follow_both_arrow(without, at_once=True)).to_pylist()
    assert [of_none[name] for name in names] == [1, 1, 1, True]
    assert of_none["protocol"] is None
    assert of_none["eager_rounds"] is None
