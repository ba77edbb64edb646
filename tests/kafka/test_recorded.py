"""The recorded answers are the jar's; and the kernels give the jar's for groups never seen, too."""

import random

import pytest
from pyspark.sql import SparkSession

from tests.kafka.recorded import FLEETS, answers, ask, digest, fleet
from tests.kernels import answer_of

_FRESH = 300


@pytest.mark.slow
@pytest.mark.parametrize("name", FLEETS)
def test_the_jar_gives_the_recorded_answers(spark: SparkSession, name: str) -> None:
    result = ask(spark, name, fleet(name))
    differing = [
        (index, group, now, recorded)
        for index, (group, now, recorded) in enumerate(
            zip(fleet(name), result, answers(name), strict=True)
        )
        if now != recorded
    ]
    assert differing == [], "python -m tests.kafka.recorded writes them anew"


@pytest.mark.parametrize("name", ["equal", "blocks", "racks", "states"])
def test_kernels_give_the_jars_answers_to_other_groups_each_run(
    spark: SparkSession, name: str
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    groups = FLEETS[name](_FRESH, seed)
    result = [digest(answer) for answer in answer_of(name, groups)]
    differing = [
        (index, group)
        for index, (group, mine, jars) in enumerate(
            zip(groups, result, ask(spark, name, groups), strict=True)
        )
        if mine != jars
    ]
    assert differing == [], f"FLEETS[{name!r}]({_FRESH}, {seed})"
