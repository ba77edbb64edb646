"""Worked examples, whose answers the jar of Kafka 4.4.0 gave, and the orders behind them."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from kassign_spark.client.hash_order import java_hash, member_order
from kassign_spark.coordinator.member_table import MemberTable
from kassign_spark.coordinator.next_target import next_target
from kassign_spark.coordinator.orders import topic_id_hash
from kassign_spark.coordinator.target_state import ConsumerGroupState
from tests.coordinator.described_states import Target, named, to_state

IDS = {
    "t": "J6V0K9wQRmmjVk2nq0Y1zA",
    "u": "b1Xw2dQeT0u3s5gqk7Yp8g",
    "v": "0aQm5c7-TlSPXrjvH1dBKw",
}


class _Joined(NamedTuple):
    member_id: str
    number: int = 0


def coordinator_order(member_ids: Sequence[str]) -> list[int]:
    """Positions of members that joined in this order, as the coordinator lists them."""
    table = MemberTable[_Joined]()
    for number, member_id in enumerate(member_ids):
        table.insert(_Joined(member_id, number))
    return [member.number for member in table.members]


def group(
    subscriptions: Sequence[str], counts: dict[str, int], targets: dict[int, str] | None = None
) -> ConsumerGroupState:
    """Members billing-1, billing-2, .. that joined in that order."""
    joined = [f"billing-{i + 1}" for i in range(len(subscriptions))]
    members = [
        {
            "member_id": joined[i],
            "instance": None,
            "topics": subscriptions[i].split(),
            "target": [
                (IDS[part[0]], part[0], numbers(part[1:]))
                for part in (targets or {}).get(i + 1, "").split(";")
                if part
            ],
        }
        for i in coordinator_order(joined)
    ]
    topics = {name: (IDS[name], count) for name, count in counts.items()}
    return to_state({"members": members}, topics)


def numbers(text: str) -> list[int]:
    result = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        result += range(int(first), int(last or first) + 1)
    return result


def expected(text: str, count: int) -> Target:
    """From "1 t4-6 u1, 2 t0": member, then partitions."""
    answer: Target = {f"billing-{i + 1}": [] for i in range(count)}
    for part in text.split(", "):
        member, *runs = part.split()
        for run in runs:
            answer[f"billing-{member}"] += [(run[0], p) for p in numbers(run[1:])]
    return {member: sorted(tps) for member, tps in answer.items()}


def test_hashes() -> None:
    signed = {name: topic_id_hash(topic_id) for name, topic_id in IDS.items()}
    assert signed == {"t": -207271383 % 2**32, "u": -1622274486 % 2**32, "v": -1890348683 % 2**32}
    assert java_hash("billing-1") == 1828025695


def test_orders() -> None:
    assert coordinator_order(["M0", "M1", "M2", "M3"]) == [2, 1, 3, 0]
    five = [f"billing-{i}" for i in range(1, 6)]
    listed = [five[i] for i in coordinator_order(five)]
    assert listed == [f"billing-{i}" for i in (3, 5, 2, 4, 1)]
    assert [listed[i] for i in member_order(listed).order] == [
        f"billing-{i}" for i in (3, 2, 5, 4, 1)
    ]


_LISTED = "0,16,32,1,17,33,2,18,34,3,19,35,4,20,36", "5,21,37,6,22,38,7,23,39,8,24"


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (group(["t u"] * 5, {"t": 7, "u": 5}), "1 t4-6, 2 u2-3, 3 u0-1, 4 t1-3, 5 t0 u4"),
        (
            group(["t"] * 3, {"t": 40}, {1: "t" + _LISTED[0], 2: "t" + _LISTED[1]}),
            "1 t0-4 t16-19 t32-36, 2 t5-8 t20-24 t31 t37-39, 3 t9-15 t25-30",
        ),
        (
            group(
                ["t u", "t v", "u v", "v"],
                {"t": 4, "u": 3, "v": 6},
                {1: "t0-3;u0-2", 2: "v0-5"},
            ),
            "1 t0-2 u0, 2 t3 v0-1, 3 u1-2 v3, 4 v2 v4-5",
        ),
    ],
    ids=["fresh", "joined", "differing"],
)
def test_worked_examples(state: ConsumerGroupState, answer: str) -> None:
    outcome = next_target(state)
    assert (outcome.assignor, outcome.verdict) == ("uniform", "ok")
    assert named(state, outcome) == expected(answer, len(state.member_ids))


def test_range_deals_blocks_by_instance_then_member() -> None:
    state = group(["t u", "t u", "t"], {"t": 7, "u": 3})
    by_id = named(state, next_target(state, "range"))
    assert by_id == expected("1 t0-2 u0-1, 2 t3-4 u2, 3 t5-6", 3)
