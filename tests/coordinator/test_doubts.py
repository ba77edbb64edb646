"""Every reason for which an answer is `inexact`, each in the smallest group that has it."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from kassign_spark.coordinator.next_target import doubt_joiners, next_target
from kassign_spark.coordinator.target_state import ConsumerGroupState

_T, _U = "J6V0K9wQRmmjVk2nq0Y1zA", "b1Xw2dQeT0u3s5gqk7Yp8g"
_ALIKE = ["".join(part) for part in product(("Aa", "BB"), repeat=4)]
"""Sixteen ids with one hash code."""
_FOUR = ["m1", "m2", "m3", "m4"]
_TIED = range(0, 40, 2)
"""In a Java set of 20 numbers, 0 and 32 share a bucket, and so on; a member may keep 11."""


def group(ids: list[str], **columns: Any) -> ConsumerGroupState:
    values = {
        "member_ids": ids,
        "subscriptions": [["t", "u"]] * len(ids),
        "topics": ["t", "u"],
        "num_partitions": [40, 3],
        "topic_ids": [_T, _U],
    }
    return ConsumerGroupState(**values | columns)  # type: ignore[arg-type]


def target_of_first(*numbers: int) -> dict[str, Any]:
    """Partitions of t that are the first member's; the order of its list is not known."""
    zeros = np.zeros(len(numbers), np.int64)
    return {"target_members": zeros, "target_topics": zeros, "target_partitions": np.array(numbers)}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (group(["m1", "m2"], topic_ids=[_T, None]), "the id of topic u is not known"),
        (
            group(_ALIKE[:2], is_order_known=False),
            "the coordinator's order of members is not known",
        ),
        (group(_ALIKE[:9]), "nine or more member ids fall together"),
        (
            group(_FOUR, **target_of_first(*_TIED)),
            "depends on the order of its list (target.position)",
        ),
        (group(_FOUR, **target_of_first(40)), "the last target has t-40, which does not exist"),
    ],
)
def test_reasons(state: ConsumerGroupState, says: str) -> None:
    outcome = next_target(state, "uniform")
    assert outcome.verdict == "inexact"
    assert says in (outcome.detail or "")
    if "does not exist" not in says:
        assert next_target(state, "range").verdict == "ok", "range needs none of it"


@pytest.mark.parametrize(
    "state",
    [
        group(["m1", "m2"], subscriptions=[["u"]] * 2, topic_ids=[_T, None]),  # one topic
        group(["m1", "m2"], is_order_known=False),  # no two ids share a bucket
        group(_ALIKE[:8]),
        group(_FOUR, **target_of_first(*_TIED), target_positions=np.arange(20)),
    ],
)
def test_what_does_not_decide_is_not_doubted(state: ConsumerGroupState) -> None:
    assert next_target(state, "uniform").verdict == "ok"


def test_a_newcomer_that_may_compute_itself() -> None:
    # Of two in one bucket the extra partition goes to the one that comes later.
    state = group(_ALIKE[:2], num_partitions=[41, 0])
    outcome = next_target(state, "uniform")
    assert outcome.verdict == "ok"
    doubted = doubt_joiners(state, outcome, [True, False])
    assert doubted.verdict == "inexact"
    assert "has yet to join: if its own heartbeat computes" in (doubted.detail or "")
    assert doubt_joiners(state, outcome, [False, True]).verdict == "ok", "it is the last anyway"
    assert doubt_joiners(state, outcome, [False, False]).verdict == "ok"
    ranged = next_target(state, "range")
    assert doubt_joiners(state, ranged, [True, False]).verdict == "ok"
