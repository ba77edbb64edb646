"""Groups with eager and cooperative members: each round is what the real assignor answers."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY
from kassign_spark.groups.read import read_batch
from kassign_spark.plans.rebalance_rounds import ACTIONS
from kassign_spark.simulation.kernel import follow_mixed
from tests.kafka import oracle
from tests.kafka.oracle import Assigned, Group, Member
from tests.random_claims import claiming_groups
from tests.task_rows import table_of


def _once(member: Member) -> Member:
    """A member that owns a partition once: what is revoked and then told keeps no repeats."""
    return replace(member, owned=list(dict.fromkeys(member.owned)))


GROUPS = [
    Group(g.topics, list(map(_once, g.members)), "cooperative-sticky")
    for g in claiming_groups(60, seed=23)
    if len(g.members) > 1
]
Holdings = dict[str, set[tuple[str, int]]]
Steps = dict[int, dict[int, dict[str, Holdings]]]


def is_eager(member_id: str) -> bool:
    return sum(map(ord, member_id)) % 2 == 0


@pytest.fixture(scope="module")
def steps() -> Steps:
    batch, claims = read_batch(table_of(GROUPS))
    ids = batch.member_names.take(batch.member_name - 1).to_pylist()
    topics = batch.topic_names.to_pylist()
    names = batch.group_names.take(batch.group[batch.member_group] - 1).to_pylist()
    followed = follow_mixed(
        batch,
        claims,
        np.full(batch.group_count, COOPERATIVE_STICKY),
        np.array([is_eager(member_id) for member_id in ids]),
    ).steps
    columns = (followed.round, followed.member, followed.topic, followed.partition, followed.action)
    result: Steps = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(set))))
    for number, member, topic, partition, action in np.transpose(columns).tolist():
        of = result[int(names[member][1:])][number][ACTIONS[action]]
        of[ids[member]].add((topics[topic - 1], partition))
    return result


def test_each_round_is_the_assignors_answer_to_what_cooperative_members_own(
    spark: SparkSession, steps: Steps
) -> None:
    assert {is_eager(m.member_id) for g in GROUPS for m in g.members} == {True, False}
    states: dict[int, dict[str, Any]] = {
        i: {m.member_id: (set(m.owned), m.generation) for m in g.members}
        for i, g in enumerate(GROUPS)
    }
    number = 0
    while states:
        number += 1
        asked = [_seen_by_leader(GROUPS[i], state) for i, state in states.items()]
        for (i, state), answer in zip(
            list(states.items()), oracle.assign(spark, asked), strict=True
        ):
            assert isinstance(answer, dict)
            actions = steps[i][number]
            _check(GROUPS[i], state, answer, actions)
            again = any(
                tp[0] in m.topics
                for m in GROUPS[i].members
                if not is_eager(m.member_id)
                for tp in actions["revoked"][m.member_id]
            )
            assert (number + 1 in steps[i]) == again
            del states[i]
            if again:
                states[i] = {m: (set(tps), number) for m, tps in answer.items()}
    assert number == 2


def _seen_by_leader(group: Group, state: dict[str, Any]) -> Group:
    """The group as its leader sees it: nothing of eager members, nothing of dropped topics."""
    members = []
    for m in group.members:
        owned, generation = state[m.member_id]
        kept = [] if is_eager(m.member_id) else sorted(tp for tp in owned if tp[0] in m.topics)
        members.append(Member(m.member_id, m.topics, kept, generation))
    return Group(group.topics, members, group.assignor)


def _check(
    group: Group, state: dict[str, Any], answer: Assigned, actions: dict[str, Holdings]
) -> None:
    for m in group.members:
        name, owned = m.member_id, state[m.member_id][0]
        gets = actions["retained"][name] | actions["assigned"][name]
        assert gets == set(answer[name])
        assert actions["retained"][name] | actions["revoked"][name] == owned
        if is_eager(name):
            assert actions["retained"][name] == set()
        else:
            assert not actions["revoked"][name] & gets
