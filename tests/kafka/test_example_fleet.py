"""The shipped example is what real consumers held: Kafka's own assignors give the same."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kafka.make_example_fleet import GROUPS, GROWN
from tests.kafka.oracle import Group, Member, as_sets, assign

_FOLDER = Path(__file__).parents[2] / "examples" / "fleet"


def _rows(table: str) -> list[dict[str, Any]]:
    (file,) = (_FOLDER / table).iterdir()
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    sizes = {row["topic"]: row["num_partitions"] for row in _rows("topics")}
    owned: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in _rows("owned"):
        owned[row["member_id"]].append((row["topic"], row["partition"]))
    members: dict[str, list[Member]] = defaultdict(list)
    assignors = {}
    for row in sorted(_rows("members"), key=lambda r: (r["group_id"], r["member_seq"])):
        assignors[row["group_id"]] = row["assignor"]
        member = row["member_id"]
        claim = (owned[member], row["generation"], row.get("group_instance_id"))
        members[row["group_id"]].append(Member(member, row["topics"], *claim, row.get("rack_id")))
    return {name: Group(sizes, members[name], assignors[name]) for name in members}


def test_it_is_the_fleet_that_was_started(groups: dict[str, Group]) -> None:
    result = {name: (group.assignor, len(group.members)) for name, group in groups.items()}
    assert result == {g.group_id: (g.assignor, sum(m.count for m in g.members)) for g in GROUPS}
    assert len(result) >= 20
    assert sum(len(group.members) for group in groups.values()) > 100
    kinds = Counter(group.assignor for group in groups.values())
    assert kinds["range"] + kinds["roundrobin"] >= 2 / 3 * len(groups)


def test_every_group_owns_what_its_assignor_gives(
    spark: SparkSession, groups: dict[str, Group]
) -> None:
    """But for the groups that have not noticed yet that a topic of theirs has grown."""
    answers = dict(zip(groups, assign(spark, groups.values()), strict=True))
    differing = {
        name
        for name, group in groups.items()
        if as_sets(answers[name]) != {m.member_id: sorted(m.owned) for m in group.members}
    }
    affected = {
        name
        for name, group in groups.items()
        if any(topic in GROWN for member in group.members for topic in member.topics)
    }
    assert differing == affected
    assert affected == {"payments-refunds", "data-lake-payments"}
