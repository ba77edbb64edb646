"""The model's targets are those of the broker's own coordinator, over long lives of groups."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from kassign_spark.coordinator.next_target import doubt_joiners, next_target
from kassign_spark.coordinator.target_state import ConsumerGroupState, reorder_members
from tests.coordinator.chains import EVENTS, Computation, kinds
from tests.coordinator.described_states import named, target_of, to_state

ASSIGNORS = ("uniform", "range")


def state_of(computation: Computation, **changed: object) -> ConsumerGroupState:
    """As described before; who joins in the very heartbeat that computes comes last."""
    described = computation.script.answers[computation.before]
    members = list(described["members"])
    if computation.joined:
        member, instance, topics = computation.joined
        new = {"member_id": member, "instance": instance, "topics": topics, "target": []}
        members.append(new)
    return to_state({"members": members}, computation.topics, **changed)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_targets_are_the_coordinators(
    computed: dict[str, list[Computation]], assignor: str
) -> None:
    differing = []
    for number, computation in enumerate(computed[assignor]):
        state = state_of(computation)
        outcome = next_target(state, assignor)
        answer = target_of(computation.script.answers[computation.after], computation.topics)
        if outcome.verdict != "ok" or named(state, outcome) != answer:
            differing.append((number, computation.event, outcome.verdict, outcome.detail))
    assert differing == []
    assert len(computed[assignor]) >= 1000


def test_chains_hold_every_kind_of_event(computed: dict[str, list[Computation]]) -> None:
    for assignor in ASSIGNORS:
        seen = kinds(computed[assignor])
        lacking = {event: seen[event] for event in EVENTS if seen[event] < 30}
        assert lacking == {}
        assert seen["join in a joiner's heartbeat"] >= 30
    assert _changed_something(computed["uniform"]) > 500


def test_a_newcomer_that_computes_itself_is_doubted(
    computed: dict[str, list[Computation]],
) -> None:
    """Wherever a joiner is put: what is called ok is what came of its own heartbeat."""
    seen = Counter[tuple[str, bool]]()
    for computation in computed["uniform"]:
        if computation.joined:
            last = state_of(computation)
            count = len(last.member_ids)
            first = reorder_members(last, [count - 1, *range(count - 1)])
            is_new = [place == 0 for place in range(count)]
            outcome = doubt_joiners(first, next_target(first, "uniform"), is_new)
            answer = target_of(computation.script.answers[computation.after], computation.topics)
            seen[outcome.verdict, named(first, outcome) == answer] += 1
    assert set(seen) <= {("ok", True), ("inexact", False)}
    assert seen["ok", True] > 20


def _changed_something(computed: Sequence[Computation]) -> int:
    """In how many the target is another than before."""
    return sum(
        target_of(c.script.answers[c.before], c.topics)
        != target_of(c.script.answers[c.after], c.topics)
        for c in computed
    )


@pytest.mark.slow
def test_ok_holds_without_what_it_does_not_need(computed: dict[str, list[Computation]]) -> None:
    """With some input missing, whatever is still called ok is the answer with all of it."""
    none = np.zeros(0, dtype=np.int64)
    missing: dict[str, dict[str, object]] = {
        "topic ids": {"topic_ids": []},
        "the members' order": {"is_order_known": False},
        "positions": {"target_positions": none},
    }
    for assignor in ASSIGNORS:
        seen = Counter[tuple[str, str, bool]]()
        for computation in computed[assignor]:
            state = state_of(computation)
            whole = named(state, next_target(state, assignor))
            for name, changed in missing.items():
                lacking = state_of(computation, **changed)
                outcome = next_target(lacking, assignor)
                seen[name, outcome.verdict, named(lacking, outcome) == whole] += 1
        assert [of for of in seen if of[1:] == ("ok", False)] == []
        if assignor == "range":
            assert {verdict for _, verdict, _ in seen} == {"ok"}
        else:
            assert min(seen[name, "inexact", False] for name in missing) > 10
            assert seen["the members' order", "inexact", False] < 0.04 * len(computed[assignor])
