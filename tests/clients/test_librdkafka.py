"""librdkafka's `range` and `roundrobin`, beside real consumers on its own mock cluster."""

import random

import pytest

from kassign_spark.client_libraries import LIBRDKAFKA
from tests.clients.mock_cluster import mock_cluster, settle
from tests.clients.test_eager import predicted
from tests.kafka.oracle import Group, Member

_TOPICS = {"a": 1, "t": 3, "u": 5, "v": 12}
_GROUPS = 24


@pytest.mark.usefixtures("own_processes")
def test_answers_are_those_of_real_consumers() -> None:
    """Member ids are the cluster's, so static members are in another order by them."""
    rng = random.Random(5)
    groups, assignors = [], [rng.choice(("range", "roundrobin")) for _ in range(_GROUPS)]
    for assignor in assignors:
        count, static_share = rng.randint(1, 4), rng.choice((0, 0.5, 1))
        shared = rng.sample([*_TOPICS], rng.randint(1, 3))
        is_alike = rng.random() < 0.5
        group = []
        for n in range(count):
            settings = {"partition.assignment.strategy": assignor}
            if rng.random() < static_share:
                settings["group.instance.id"] = f"i{rng.randint(0, 9)}{n}"
            topics = shared if is_alike else rng.sample([*_TOPICS], rng.randint(1, 3))
            group.append((settings, topics))
        groups.append(group)
    with mock_cluster(_TOPICS) as address:
        settled = settle(address, _TOPICS, groups)
    states = [
        Group(
            _TOPICS,
            [
                Member(member_id, topics, group_instance_id=settings.get("group.instance.id"))
                for member_id, (settings, topics) in zip(ids, group, strict=True)
            ],
            assignor,
        )
        for group, (ids, _), assignor in zip(groups, settled, assignors, strict=True)
    ]
    equal = 0
    for state, (ids, partitions), (verdict, given) in zip(
        states, settled, predicted(LIBRDKAFKA, states), strict=True
    ):
        if verdict != "undefined":
            assert (verdict, given) == ("ok", dict(zip(ids, partitions, strict=True))), state
            equal += 1
    assert equal >= 0.9 * _GROUPS
