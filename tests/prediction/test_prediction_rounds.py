"""The predicted rounds of cooperative rebalances are those of the real assignor."""

from dataclasses import replace

from pyspark.sql import SparkSession

from kassign_spark.client.cooperative_rounds import follow_rounds
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group
from tests.prediction.prediction_states import to_state
from tests.random_states import random_states

SEED = 20261124
GROUPS = [
    failing_group("never-settles"),
    *random_states(800, seed=SEED, assignors=["cooperative-sticky"], hostile_share=0.2),
]


def test_rounds_are_the_clients(spark: SparkSession) -> None:
    """Round by round, the real assignor is given what its last answer left the members with."""
    expected: list[list[oracle.Assigned | str]] = [[] for _ in GROUPS]
    going = {index: _joining(group) for index, group in enumerate(GROUPS)}
    for number in range(1, 8):
        answers = oracle.assign(spark, going.values(), seconds=2)
        going_on = {}
        for (index, group), answer in zip(going.items(), answers, strict=True):
            expected[index].append(_without_twins(answer))
            if isinstance(answer, dict) and any(
                set(m.owned) - set(answer[m.member_id]) for m in group.members
            ):
                members = [
                    replace(m, owned=answer[m.member_id], generation=number) for m in group.members
                ]
                going_on[index] = _joining(Group(group.topics, members, group.assignor))
        going = going_on
    differing = []
    for index, (group, rounds) in enumerate(zip(GROUPS, expected, strict=True)):
        result = _rounds(group)
        both = min(len(result), len(rounds))
        # Ours ends where a state comes back; the real one was not followed for ever either.
        is_whole = index in going or len(result) == len(rounds)
        if result[:both] != rounds[:both] or not is_whole:
            differing.append((SEED, index, group, rounds, result))
    assert differing == []
    assert 0 in going
    lengths = [len(rounds) for rounds in expected]
    assert all(lengths.count(length) > 20 for length in (1, 2)), "both kinds are there"


def test_a_group_that_never_settles() -> None:
    rebalance = follow_rounds(to_state(GROUPS[0]))
    assert rebalance.verdict == "never_settles"
    assert "all own what they owned after round" in str(rebalance.detail)


def test_steps_add_up() -> None:
    """What a member owns after a round is what it retained or was assigned; nothing has two."""
    for group in GROUPS[:200]:
        rebalance = follow_rounds(to_state(group))
        owned = {i: set(m.owned) for i, m in enumerate(group.members)}
        for number in range(1, max((s.round for s in rebalance.steps), default=0) + 1):
            of = {(s.member, s.action): s.partitions for s in rebalance.steps if s.round == number}
            for member, before in owned.items():
                kept, gone = of.get((member, "retained"), set()), of.get((member, "revoked"), set())
                assert kept | gone == before
                assert not kept & gone
                owned[member] = kept | of.get((member, "assigned"), set())


def _joining(group: Group) -> Group:
    """What members send: they have given up the topics that they no longer subscribe to."""
    members = [
        replace(m, owned=sorted({tp for tp in m.owned if tp[0] in m.topics})) for m in group.members
    ]
    return Group(group.topics, members, group.assignor)


def _rounds(group: Group) -> list[oracle.Assigned | str]:
    """The assignments after each round; at the end, what the assignor throws."""
    rebalance = follow_rounds(to_state(group))
    count = max((step.round for step in rebalance.steps), default=0)
    result: list[oracle.Assigned | str] = []
    for number in range(1, count + 1):
        owned: oracle.Assigned = {m.member_id: [] for m in group.members}
        for step in rebalance.steps:
            if step.round == number and step.action in ("retained", "assigned"):
                owned[group.members[step.member].member_id] += step.partitions
        result.append(_without_twins(owned))
    if rebalance.verdict == "throws":
        result.append(str(rebalance.detail).split(": ")[1])
    elif not result:
        result.append({m.member_id: [] for m in group.members})
    return result


def _without_twins(answer: oracle.Assigned | str) -> oracle.Assigned | str:
    """Claims of partitions that do not exist can lead to one that a member is given twice."""
    if isinstance(answer, str):
        return answer
    return {member: sorted(set(tps)) for member, tps in answer.items()}
