"""The sticky assignors of franz-go and sarama, beside the libraries, which draw lots."""

import random
import re
from collections.abc import Sequence

import pytest

from tests.clients.libraries import Answer, answers
from tests.clients.test_eager import predicted
from tests.clients.test_older_sticky import fresh, later
from tests.kafka.oracle import Group

_COUNT = 150
_RUNS = 12
_STICKY = ("sticky", "cooperative-sticky")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("client", "assignor", "least_certain"),
    [
        *(("franz-go", assignor, 1.9) for assignor in _STICKY),
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
