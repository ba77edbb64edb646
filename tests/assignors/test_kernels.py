"""The kernels of the assignors as functions, on thousands of groups, without Spark.

Kafka's answers are recorded (``tests/kafka/recorded.py``); the optimum is computed.
"""

import random

import pyarrow as pa
import pytest

from kassign_spark.assignors.task_groups import assign_arrow
from tests.kafka.oracle import Assigned, Group
from tests.kafka.recorded import NOT_VALID, answers, digest, fleet, measured
from tests.kernels import answer_of, assigned, group_of
from tests.oracles.mixed_groups import mixed_groups
from tests.oracles.optimal import Optimum, least_cost
from tests.task_rows import assigned_of, each_partition, table_of


@pytest.mark.parametrize("name", ["equal", "blocks", "racks", "states"])
def test_kafkas_answers(name: str) -> None:
    groups = fleet(name)
    result = [digest(answer) for answer in answer_of(name, groups)]
    differing = [
        (index, group)
        for index, (group, mine, kafkas) in enumerate(
            zip(groups, result, answers(name), strict=True)
        )
        if mine != kafkas
    ]
    assert differing == []
    assert len(groups) >= 3000


@pytest.fixture(scope="module")
def differing() -> list[Assigned]:
    return assigned(fleet("differing"))


def _numbers(text: str) -> tuple[int, int]:
    squares, moves = text.split("/")
    return int(squares), int(moves)


def test_differing_subscriptions_get_the_optimum(differing: list[Assigned]) -> None:
    groups = fleet("differing")
    off = [
        (index, group, optimum, best)
        for index, (group, answer) in enumerate(zip(groups, differing, strict=True))
        if (optimum := Optimum(*_numbers(measured(group, answer)))) != (best := _optimum(group))
    ]
    assert off == []
    assert len(groups) >= 3000


def test_every_shape_of_subscriptions_gets_the_optimum() -> None:
    """Chains, stars, parts that share nothing, members and topics alone; after every change."""
    shapes = mixed_groups(2_940, 20_261)
    groups = [group_of(shape, "sticky") for shape in shapes]
    off, moving = [], 0
    for shape, group, answer in zip(shapes, groups, assigned(groups), strict=True):
        owned = shape.valid_owned()
        moves = sum(owned.get(tp) != m for m, tps in answer.items() for tp in tps)
        result = Optimum(sum(len(tps) ** 2 for tps in answer.values()), moves)
        best = least_cost(*shape.counts())
        moving += best.moves > 0
        if result != best or not _is_valid(group, answer):
            off.append((shape.name, result, best))
    assert off == []
    assert moving > 1500


def test_never_worse_balanced_than_kafkas_nor_more_moved(differing: list[Assigned]) -> None:
    """At a better balance than Kafka's more may have to move."""
    better_balanced = fewer_moved = compared = 0
    for group, answer, recorded in zip(
        fleet("differing"), differing, answers("differing"), strict=True
    ):
        if recorded == NOT_VALID:
            continue
        compared += 1
        (squares, moves), (kafkas_squares, kafkas_moves) = map(
            _numbers, (measured(group, answer), recorded)
        )
        assert squares <= kafkas_squares, group
        if squares == kafkas_squares:
            assert moves <= kafkas_moves, group
        better_balanced += squares < kafkas_squares
        fewer_moved += squares == kafkas_squares and moves < kafkas_moves
    assert compared > 2900
    assert better_balanced > 5
    assert fewer_moved > 50


def test_answers_are_valid(differing: list[Assigned]) -> None:
    for group, answer in zip(fleet("differing"), differing, strict=True):
        assert _is_valid(group, answer), group


def _is_valid(group: Group, answer: Assigned) -> bool:
    """Everything that is subscribed to is given once, and to a subscriber."""
    sizes = {t: n for t, n in group.topics.items() if isinstance(n, int)}
    subscribed = {t for m in group.members for t in m.topics if t in sizes}
    topics = {m.member_id: m.topics for m in group.members}
    partitions = sorted(tp for tps in answer.values() for tp in tps)
    return partitions == sorted((t, p) for t in subscribed for p in range(sizes[t])) and all(
        t in topics[member] for member, tps in answer.items() for t, _ in tps
    )


@pytest.mark.parametrize("name", ["equal", "differing", "blocks"])
def test_neither_the_order_of_rows_nor_the_company_matters(name: str) -> None:
    """A group's answer is the same in any task, whatever other groups are in it."""
    groups = fleet(name)[:500]
    table = table_of(groups)
    order = random.Random(3).sample(range(len(table)), len(table))
    shuffled = assign_arrow(table.take(pa.array(order)))
    assert assigned_of(shuffled, groups) == assigned_of(assign_arrow(table), groups)
    assert [assigned([group])[0] for group in groups[::50]] == assigned(groups)[::50]


def _optimum(group: Group) -> Optimum:
    owner = {tp: m.member_id for m in group.members for tp in m.owned}
    supply: dict[str, int] = {}
    owned: dict[tuple[str, str], int] = {}
    for topic, size in group.topics.items():
        assert isinstance(size, int)
        subscribers = [m.member_id for m in group.members if topic in m.topics]
        if subscribers:
            supply[topic] = size
            for member in subscribers:
                own = sum(owner.get((topic, p)) == member for p in range(size))
                owned[topic, member] = own
    return least_cost(supply, owned)


def test_lists_are_cut_at_any_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(fleet("equal")[:200])
    whole = list(each_partition(assign_arrow(table)))
    monkeypatch.setattr("kassign_spark.groups.group_names.PIECE", 7)
    pieces = list(assign_arrow(table))
    assert list(each_partition(pieces)) == whole
    assert {sum(map(len, piece["member_ids"].to_pylist())) for piece in pieces[:-1]} == {7}
