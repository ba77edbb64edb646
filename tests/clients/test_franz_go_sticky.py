"""franz-go's sticky assignors, beside the library, which is asked often: it draws lots."""

import random

import pytest

from tests.clients.libraries import answers
from tests.clients.test_eager import predicted
from tests.clients.test_older_sticky import fresh, later

_COUNT = 150
_RUNS = 12


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_answers_are_certain_or_drawn(assignor: str) -> None:
    rng = random.Random(13)
    groups = [fresh(rng, assignor) for _ in range(_COUNT)]
    certain = drawn = 0
    for generation in range(1, 4):
        runs = [answers("franz-go", groups) for _ in range(_RUNS)]
        for place, (verdict, own) in enumerate(predicted("franz-go", groups)):
            seen = [run[place] for run in runs]
            if verdict == "drawn":
                drawn += 1
                continue
            assert verdict == "ok"
            assert seen == [own] * _RUNS, groups[place]
            certain += 1
        groups = [later(rng, *pair, generation) for pair in zip(groups, runs[0], strict=True)]
    assert certain > 1.9 * _COUNT, drawn
