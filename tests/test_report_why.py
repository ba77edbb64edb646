"""What the page says of uneven groups, by its kernel: beside subscriptions, proofs and advice."""

import json
from typing import Any

import pyarrow.compute as pc

from kassign_spark.graph.bottlenecks import bottlenecks_arrow
from kassign_spark.report.why import (
    MAX_CLASSES,
    MAX_NAMES,
    MAX_PARTITIONS,
    MAX_ROWS,
    choose_explained,
    why_arrow,
)
from kassign_spark.whatif.advice import advise_arrow
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.whatif.batch_tables import table_of

GROUPS = {group.name: group for group in mixed_groups(147, 31) if group.subscriptions}


def _reasons(groups: dict[str, MixedGroup]) -> dict[str, dict[str, Any]]:
    table = table_of(list(groups.values()), dict.fromkeys(groups, "range"))
    rows = [row for piece in why_arrow(table) for row in piece.to_pylist()]
    return {row["group_id"]: json.loads(row["reasons"]) for row in rows}


def test_the_drawing_is_who_can_take_what() -> None:
    result = _reasons(GROUPS)
    assert set(result) == set(GROUPS)
    for name, group in GROUPS.items():
        drawn = result[name]
        read = {t for t, count in group.partitions.items() if count and group.subscribers(t)}
        assert sum(kind[1] for kind in drawn["rows"]) == len(group.subscriptions)
        assert sum(each[1] for each in drawn["classes"]) == len(read)
        assert sum(each[2] for each in drawn["classes"]) == sum(group.partitions[t] for t in read)
        assert len({kind[3] for kind in drawn["rows"]}) == len(drawn["rows"])
        for members, _, _, digits in drawn["rows"]:
            for topics, digit in zip((each[0] for each in drawn["classes"]), digits, strict=True):
                for member in members:
                    reads = set(topics) & set(group.subscriptions[member])
                    assert reads == (set(topics) if digit == "1" else set())


def test_the_dense_part_is_that_of_the_proofs() -> None:
    """By hand as well: nobody who is not dense can take what is."""
    result = _reasons(GROUPS)
    table = table_of(list(GROUPS.values()), dict.fromkeys(GROUPS, "range"))
    (proofs,) = bottlenecks_arrow(table)
    dense: dict[str, set[str]] = {name: set() for name in GROUPS}
    for row in proofs.filter(pc.equal(proofs["kind"], "dense")).to_pylist():
        dense[row["group_id"]] |= set(row["member_ids"])
    for name, drawn in result.items():
        of_drawing = {m for kind in drawn["rows"] if kind[2] for m in kind[0]}
        assert of_drawing <= dense[name]
        assert sum(kind[1] for kind in drawn["rows"] if kind[2]) == len(dense[name])
        for _, _, is_dense, digits in drawn["rows"]:
            taken = [each[3] for each, d in zip(drawn["classes"], digits, strict=True) if d == "1"]
            assert is_dense or not any(taken)
    assert sum(bool(of_group) for of_group in dense.values()) > 30


def test_reason_and_advice_are_those_of_advise() -> None:
    result = _reasons(GROUPS)
    table = table_of(list(GROUPS.values()), dict.fromkeys(GROUPS, "range"))
    rows = [row for piece in advise_arrow(table) for row in piece.to_pylist() if row["gain"]]
    assert len(rows) > 100
    by_group: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["rank"]):
        by_group.setdefault(row["group_id"], []).append(row)
    columns = ("detail", "max_after", "spread_after", "moved", "paused", "rounds")
    for name, drawn in result.items():
        advised = by_group.get(name, [])
        assert drawn["advice"] == [[row[column] for column in columns] for row in advised]
        if advised:
            assert drawn["reason"] == advised[0]["reason"]
            assert drawn["before"] == [advised[0]["max_before"], advised[0]["spread_before"]]


def test_a_large_group_is_drawn_in_part() -> None:
    """What is dense comes first; the rest is counted."""
    members = {f"m{i:03}": tuple(f"t{k:03}" for k in range(i % 130 + 1)) for i in range(300)}
    group = MixedGroup("large", {f"t{k:03}": 2 for k in range(130)}, members, {})
    (drawn,) = _reasons({"large": group}).values()
    assert (len(drawn["rows"]), drawn["more_rows"]) == (MAX_ROWS, 130 - MAX_ROWS)
    assert (len(drawn["classes"]), drawn["more_classes"]) == (MAX_CLASSES, 130 - MAX_CLASSES)
    assert {len(kind[3]) for kind in drawn["rows"]} == {MAX_CLASSES}
    assert max(len(kind[0]) for kind in drawn["rows"]) <= MAX_NAMES
    assert len(json.dumps(drawn)) < 20_000


def test_which_groups_are_explained() -> None:
    """Uneven ones, the worst first, as long as there is room for all their partitions."""
    group = {"cluster_id": "c", "max_assigned": 5, "min_assigned": 3, "partition_count": 20}
    groups = [
        {**group, "group_id": "uneven"},
        {**group, "group_id": "even", "min_assigned": 4},
        {**group, "group_id": "giant", "partition_count": MAX_PARTITIONS - 19},
        {**group, "group_id": "large", "partition_count": MAX_PARTITIONS - 20},
        {**group, "group_id": "late", "partition_count": 1},
    ]
    assert choose_explained(groups) == [("c", "uneven"), ("c", "large")]
