"""The oracle against trying everything: an oracle that is wrong proves nothing."""

from math import comb, prod

from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.oracles.optimal import enumerated, least_cost


def _ways(group: MixedGroup) -> int:
    supply, owned = group.counts()
    subscribers = {topic: sum(1 for t, _ in owned if t == topic) for topic in supply}
    return prod(comb(n + subscribers[t] - 1, subscribers[t] - 1) for t, n in supply.items())


def test_min_cost_flow_finds_what_enumeration_finds() -> None:
    tiny = [g for g in mixed_groups(3_000, seed=5, largest=4) if g.counts()[0] and _ways(g) < 2_000]
    assert len(tiny) > 2_000
    assert sum(g.owned != {} for g in tiny) > 1_000
    for group in tiny:
        assert least_cost(*group.counts()) == enumerated(*group.counts()), group
