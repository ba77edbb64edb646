"""Advice by its kernel: each row is made again by hand, answered and counted."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kassign_spark.assignors.in_tasks import KAFKAS, assign_batch
from kassign_spark.groups.read import read_batch
from kassign_spark.whatif import advice
from kassign_spark.whatif.advice import advise_arrow
from kassign_spark.whatif.candidates import KINDS, numbers_to_try
from kassign_spark.whatif.compare_kernel import compare_arrow
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.whatif.batch_tables import table_of

SEED = 1515


def _alike(number: int, group: MixedGroup) -> MixedGroup:
    """Every third group's members subscribe to the same."""
    if number % 3:
        return group
    topics = tuple(sorted(group.partitions))
    return replace(group, subscriptions=dict.fromkeys(group.subscriptions, topics))


GROUPS = {
    group.name: group
    for group in (_alike(n, g) for n, g in enumerate(mixed_groups(245, SEED)))
    if group.subscriptions
}
OWN = {name: KAFKAS[number % 4] for number, name in enumerate(GROUPS)}


def _advice(groups: dict[str, MixedGroup]) -> list[dict[str, Any]]:
    rows = []
    for table in advise_arrow(table_of(list(groups.values()), OWN)):
        rows += table.to_pylist()
    return sorted(rows, key=lambda row: (row["group_id"], row["rank"]))


ROWS = _advice(GROUPS)
BY_GROUP: dict[str, list[dict[str, Any]]] = {}
"""Of the groups with advice."""
for _row in ROWS:
    BY_GROUP.setdefault(_row["group_id"], []).append(_row)


def _counted(groups: list[MixedGroup], assignors: list[str]) -> list[dict[str, int]]:
    """Loads by the assignors' kernels, and the rest by the rebalance followed step by step."""
    named = [replace(group, name=f"{place:06d}") for place, group in enumerate(groups)]
    by_name = dict(zip((group.name for group in named), assignors, strict=True))
    table = table_of(named, by_name)
    batch, claims = read_batch(table)
    real_claims = claims.where(batch.subscribes(claims.member, claims.topic) & (claims.member >= 0))
    numbers = np.array([KAFKAS.index(assignor) for assignor in assignors])
    owner = assign_batch(batch, real_claims, batch.generation, numbers).owner
    loads = np.bincount(owner, minlength=len(batch.member_group))
    result = {}
    for piece in compare_arrow(table):
        for row in piece.to_pylist():
            is_own = (row["protocol"] == "cooperative") == ("cooperative" in row["assignor"])
            if (
                is_own
                and row["protocol"] != "consumer"
                and row["assignor"] == by_name[row["group_id"]]
            ):
                of_group = loads[batch.member_group == int(row["group_id"])]
                result[row["group_id"]] = {
                    "max": int(of_group.max()),
                    "idle": int((of_group == 0).sum()),
                    **{name: row[name] for name in ("spread", "moved", "paused", "rounds")},
                }
    return [result[group.name] for group in named]


def _changed(group: MixedGroup, row: dict[str, Any]) -> MixedGroup:
    """Make the change that a row names, by hand."""
    subscriptions = dict(group.subscriptions)
    if row["change"] == "subscription":
        for member in row["member_ids"]:
            subscriptions[member] = (*subscriptions[member], *row["topics"])
    elif row["change"] == "members" and row["member_count"] > len(subscriptions):
        (like,) = row["member_ids"]
        for nth in range(1, row["member_count"] - len(subscriptions) + 1):
            subscriptions[f"{like}+{nth}"] = subscriptions[like]
    elif row["change"] == "members":
        for member in row["member_ids"]:
            del subscriptions[member]
        assert len(subscriptions) == row["member_count"]
    elif row["change"] == "partitions":
        (topic,) = row["topics"]
        assert row["num_partitions"] > group.partitions[topic]
        return replace(group, partitions={**group.partitions, topic: row["num_partitions"]})
    return replace(group, subscriptions=subscriptions)


BEFORE = dict(zip(GROUPS, _counted(list(GROUPS.values()), list(OWN.values())), strict=True))


# These groups are all of Java's client.
@pytest.mark.parametrize("kind", [kind for kind in KINDS[:-1] if kind != "client"])
def test_every_row_is_what_its_change_gives(kind: str) -> None:
    rows = [row for row in ROWS if row["change"] == kind]
    assert len(rows) > 30
    after = _counted(
        [_changed(GROUPS[row["group_id"]], row) for row in rows], [row["assignor"] for row in rows]
    )
    for row, counted in zip(rows, after, strict=True):
        before = BEFORE[row["group_id"]]
        for name in ("max", "spread", "idle"):
            assert (row[f"{name}_before"], row[f"{name}_after"]) == (before[name], counted[name])
        for name in ("moved", "paused", "rounds"):
            assert row[name] == counted[name], (name, row, counted)
        assert (row["assignor"] == OWN[row["group_id"]]) == (kind != "assignor")


def test_rows_gain_something_and_are_ranked_by_what_it_costs() -> None:
    for rows in BY_GROUP.values():
        assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
        for row in rows:
            names = ("spread", "idle") if row["change"] == "members" else ("max", "spread", "idle")
            fallen = sum(row[f"{name}_before"] - row[f"{name}_after"] for name in names)
            assert row["gain"] == fallen >= (row["change"] != "group.instance.id")
        worth = [row["gain"] / (1 + row["moved"] + row["paused"]) for row in rows]
        assert worth == sorted(worth, reverse=True)
        assert max(Counter(row["change"] for row in rows).values()) <= 3


def _owners(groups: list[MixedGroup], assignors: list[str]) -> list[dict[tuple[str, int], str]]:
    """Who is to have each partition."""
    named = [replace(group, name=f"{place:06d}") for place, group in enumerate(groups)]
    by_name = dict(zip((group.name for group in named), assignors, strict=True))
    batch, claims = read_batch(table_of(named, by_name))
    real_claims = claims.where(batch.subscribes(claims.member, claims.topic) & (claims.member >= 0))
    numbers = np.array([KAFKAS.index(assignor) for assignor in assignors])
    owner = assign_batch(batch, real_claims, batch.generation, numbers).owner
    members, topics = batch.member_names.to_pylist(), batch.topic_names.to_pylist()
    result: list[dict[tuple[str, int], str]] = [{} for _ in named]
    for slot, member in enumerate(owner.tolist()):
        topic = topics[batch.topic_name[batch.slot_topic[slot]] - 1]
        name = members[batch.member_name[member] - 1]
        result[batch.slot_group[slot]][topic, int(batch.slot_partition[slot])] = name
    return result


def test_a_restart_moves_what_it_is_said_to_move() -> None:
    rows = [row for row in ROWS if row["change"] == "group.instance.id"]
    assert len(rows) > 100
    groups, own = [GROUPS[r["group_id"]] for r in rows], [r["assignor"] for r in rows]
    restarted = [row["member_ids"][0] for row in rows]
    settled = _owners(groups, own)
    left, back = [], []
    for group, member, owned in zip(groups, restarted, settled, strict=True):
        loads = Counter(owned.values())
        assert loads[member] == max(loads.values())
        others = {m: topics for m, topics in group.subscriptions.items() if m != member}
        left.append(replace(group, subscriptions=others, owned=owned))
        again = {**others, f"{member}+1": group.subscriptions[member]}
        back.append(replace(group, subscriptions=again))
    meanwhile = _owners(left, own)
    back = [replace(group, owned=owned) for group, owned in zip(back, meanwhile, strict=True)]
    for row, *states in zip(rows, settled, meanwhile, _owners(back, own), strict=True):
        moved = [sum(a[slot] != b[slot] for slot in a) for a, b in pairwise(states)]
        assert row["restart_moved"] == sum(moved) > 0


def test_an_even_group_is_left_alone() -> None:
    group = MixedGroup("even", {"t": 8}, {f"m{n}": ("t",) for n in range(4)})
    OWN["even"] = "range"
    assert [row["change"] for row in _advice({"even": group})] == ["group.instance.id"]


def test_a_group_without_partitions_has_no_advice() -> None:
    OWN["nothing"] = "sticky"
    assert _advice({"nothing": MixedGroup("nothing", {"t": 0}, {"m": ("t",), "n": ()})}) == []


def test_what_the_client_makes_of_missing_partitions_is_said() -> None:
    """orders had 6 partitions and has 3."""
    owned = {("orders", partition): f"m{partition // 3}" for partition in range(6)}
    group = MixedGroup("again", {"orders": 3}, {f"m{n}": ("orders",) for n in (0, 1)}, owned)
    OWN["again"] = "sticky"
    reasons = {row["reason"] for row in _advice({"again": group})}
    assert len(reasons) == 1
    detail = "Kafka's own client does something else: IllegalStateException: no member has room"
    assert detail in reasons.pop()
    OWN["again"] = "range"
    assert not any("client" in row["reason"] for row in _advice({"again": group}))


def test_no_advice_is_missed_that_another_assignor_would_be() -> None:
    readable = [
        name
        for name, group in GROUPS.items()
        if any(count and group.subscribers(topic) for topic, count in group.partitions.items())
    ]
    assert [name for name in GROUPS if name not in readable and name in BY_GROUP] == []
    for other in KAFKAS:
        names = [name for name in readable if OWN[name] != other]
        after = _counted([GROUPS[name] for name in names], [other] * len(names))
        for name, counted in zip(names, after, strict=True):
            gains = sum(BEFORE[name][n] - counted[n] for n in ("max", "spread", "idle")) > 0
            is_advised = any(
                r["change"] == "assignor" and r["assignor"] == other for r in BY_GROUP.get(name, [])
            )
            assert gains == is_advised, (name, other)


def test_a_dense_part_is_advised_to_be_read_by_others() -> None:
    """Where the assignor finds the best balance, others reading these topics always helps."""
    uneven = 0
    for name, rows in BY_GROUP.items():
        if rows and "is the least maximum" in rows[0]["reason"] and "sticky" in OWN[name]:
            uneven += 1
            assert any(row["change"] == "subscription" for row in rows), rows[0]
    assert uneven > 20


def test_pieces_of_a_task_are_advised_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: GROUPS[name] for name in list(GROUPS)[:80]}
    expected = [row for row in ROWS if row["group_id"] in few]
    monkeypatch.setattr(advice, "_SLOTS_AT_ONCE", 50)
    monkeypatch.setattr(advice, "_COPIED_AT_ONCE", 40)
    assert _advice(few) == expected


def test_numbers_of_members() -> None:
    assert numbers_to_try(4, 100) == [2, 3, 5, 6, 7, 8]
    assert numbers_to_try(4, 5) == [2, 3, 5]
    assert numbers_to_try(1, 1) == []
    for members, partitions in ((30, 100), (100, 1000), (12, 13), (50, 50), (7, 3)):
        tried = numbers_to_try(members, partitions)
        assert all(-(-members // 2) <= n <= min(2 * members, partitions) for n in tried)
        assert members not in tried
        for number in range(members + 1, min(2 * members, partitions) + 1):
            if partitions % number == 0:  # the next even number is tried
                assert number in tried
                break
