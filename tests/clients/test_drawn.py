"""The sticky assignors of franz-go and sarama, beside the libraries, which draw lots."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from kassign_spark.groups.read import OBSERVED
from kassign_spark.whatif.explain_kernel import explain_arrow
from tests.clients.libraries import Answer, answers
from tests.clients.test_eager import predicted
from tests.clients.test_older_sticky import fresh, later
from tests.kafka.oracle import Group, Member
from tests.task_rows import SCHEMA, name_of, rows_of

_COUNT = 150
_RUNS = 12
_STICKY = ("sticky", "cooperative-sticky")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("client", "assignor", "least_certain"),
    [
        *(("franz-go", assignor, 2.2) for assignor in _STICKY),
        *(("sarama", assignor, 1.3) for assignor in _STICKY),
    ],
)
def test_answers_are_certain_or_drawn(client: str, assignor: str, least_certain: float) -> None:
    rng = random.Random(13)
    groups = [fresh(rng, assignor) for _ in range(_COUNT)]
    certain = drawn = 0
    for generation in range(1, 4):
        runs = [answers(client, groups) for _ in range(_RUNS)]
        for place, (verdict, own) in enumerate(predicted(client, groups)):
            seen = [run[place] for run in runs]
            group = groups[place]
            if verdict == "throws":  # the library's consumer does, before it asks its assignor
                assert client == "sarama"
                assert any({*member.topics} - {*group.topics} for member in group.members)
                continue
            if verdict == "drawn":
                drawn += 1
                _check_certain(group, str(own), seen)
                continue
            assert verdict == "ok"
            assert seen == [own] * _RUNS, group
            certain += 1
        groups = [later(rng, *pair, generation) for pair in zip(groups, runs[0], strict=True)]
    assert certain > least_certain * _COUNT, drawn


def test_what_stays_is_not_certain_where_claims_are_disputed() -> None:
    """franz-go keeps 11 or 12 partitions here: t0-6 and t0-8 have two claimants."""
    own = [("t0", 5), ("t0", 6), ("t0", 8), ("t0", 9), ("t1", 3), ("t1", 4), ("t1", 8), ("t3", 1)]
    others = [*(("t0", n) for n in (0, 1, 2, 3, 4, 6, 7, 8)), ("t2", 1)]
    fewer = ["t3", "t2", "t4", "t0"]
    members = [
        Member("b-40-0", ["t1", "t0", "t2", "t4", "t3"], own, 1),
        Member("r-713-3", fewer),
        Member("c-81-2", fewer, others, 3),
    ]
    group = Group({"t0": 10, "t1": 13, "t2": 4, "t3": 2, "t4": 2}, members, "sticky")
    ((verdict, detail),) = predicted("franz-go", [group])
    assert verdict == "drawn"
    assert "stay" not in detail
    assert "certain" not in detail


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("client", ["franz-go", "sarama"])
@pytest.mark.parametrize("assignor", _STICKY)
def test_explain_takes_what_can_be_drawn(client: str, assignor: str) -> None:
    """Each answer of the library, but none in which a member has all."""
    rng = random.Random(7)
    groups = [_alike(fresh(rng, assignor)) for _ in range(_COUNT)]
    for generation in range(1, 3):
        seen = answers(client, groups)
        explanations = explained(client, groups, seen)
        assert {assignor} == {name for name, _ in explanations}
        drawn = [n for n, (_, detail) in enumerate(explanations) if detail and "by lot" in detail]
        assert len(drawn) > 5
        few = [groups[n] for n in drawn]
        moved = explained(client, few, [_of_one(seen[n]) for n in drawn])
        taken = [name for name, _ in moved].count(assignor)
        # Of a cooperative answer less is certain: how much it withholds is drawn as well.
        assert taken <= (len(drawn) / 10 if assignor == "cooperative-sticky" else 0)
        groups = [later(rng, *pair, generation) for pair in zip(groups, seen, strict=True)]
        groups = [_alike(group) for group in groups]


def _alike(group: Group) -> Group:
    """All members subscribe to the first one's topics that exist."""
    topics = [topic for topic in group.members[0].topics if topic in group.topics]
    members = [replace(member, topics=topics or [*group.topics]) for member in group.members]
    return replace(group, members=members)


def _of_one(answer: Answer) -> Answer:
    assert isinstance(answer, dict)
    first = min(answer)
    everything = set[tuple[str, int]]().union(*answer.values())
    return {member: everything if member == first else set() for member in answer}


def explained(
    client: str, groups: Sequence[Group], seen: Sequence[Answer]
) -> list[tuple[str | None, str | None]]:
    """Return the assignor that explains what was seen of each group, and the detail."""
    rows = []
    for n, (group, plan) in enumerate(zip(groups, seen, strict=True)):
        assert isinstance(plan, dict)
        rows += rows_of(group, name_of(n), client)
        for member_id, partitions in plan.items():
            of_member = {"group_id": name_of(n), "kind": OBSERVED, "member_id": member_id}
            key = of_member | {"cluster_id": "", "place": 0, "list_number": 0}
            rows += [key | {"topic": topic, "number": number} for topic, number in partitions]
    (table,) = explain_arrow(pa.Table.from_pylist(rows, SCHEMA))
    by_name = {row["group_id"]: row for row in table.to_pylist()}
    in_order = [by_name[name_of(n)] for n in range(len(groups))]
    return [(row["assignor"], row["detail"]) for row in in_order]


def _check_certain(group: Group, detail: str, seen: Sequence[Answer]) -> None:
    """What `drawn` calls certain is so in each answer; a cooperative one is cut."""
    if group.assignor == "cooperative-sticky":
        return
    plans = [each for each in seen if isinstance(each, dict)]
    assert len(plans) == len(seen)
    sizes = [[len(plan[member.member_id]) for member in group.members] for plan in plans]
    if "each member gets" in detail:
        assert sizes == sizes[:1] * len(sizes), group
    limits = re.search(r"members get (\d+) to (\d+) ", detail)
    if limits:
        assert {(str(min(each)), str(max(each))) for each in sizes} == {limits.groups()}, group
    kept = re.search(r"(\d+) owned partitions? stays? ", detail)
    if kept:
        for plan in plans:
            both = [{*member.owned} & plan[member.member_id] for member in group.members]
            assert sum(map(len, both)) == int(kept[1]), group
