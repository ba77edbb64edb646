"""Each round of a rebalance is what the real assignor answers to the state before it."""

from collections import defaultdict
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import ASSIGNORS, Eligible, Settings, assign
from kassign_spark.errors import InputError
from kassign_spark.plans.rebalance import rebalance
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Assigned, Group, Member
from tests.random_claims import claiming_groups, differing_groups

ALIKE = [Group(g.topics, g.members, "cooperative-sticky") for g in claiming_groups(120, seed=11)]
DIFFERING = [
    Group(g.topics, g.members, "cooperative-sticky") for g in differing_groups(60, seed=12)
]
GROUPS = ALIKE + DIFFERING

Steps = dict[int, dict[int, dict[str, dict[str, set[tuple[str, int]]]]]]
"""By index of the group, round, action and member."""


def by_round(rows: list, count: int) -> Steps:  # type: ignore[type-arg]
    result: Steps = {index: defaultdict(lambda: defaultdict(dict)) for index in range(count)}
    for row in rows:
        members = result[int(row.group_id[1:])][row["round"]][row.action]
        assert (row.topic, row.partition) not in members.get(row.member_id, set())
        members.setdefault(row.member_id, set()).add((row.topic, row.partition))
    return result


@pytest.fixture(scope="module")
def steps(spark: SparkSession) -> Steps:
    return by_round(rebalance(*oracle.to_tables(spark, GROUPS)).collect(), len(GROUPS))


def after(rounds: dict, number: int, group: Group) -> Assigned:  # type: ignore[type-arg]
    actions = rounds[number]
    return {
        m.member_id: sorted(
            actions["retained"].get(m.member_id, set())
            | actions["assigned"].get(m.member_id, set())
        )
        for m in group.members
    }


def next_state(group: Group, answer: Assigned, generation: int) -> Group:
    members = [replace(m, owned=answer[m.member_id], generation=generation) for m in group.members]
    return Group(group.topics, members, group.assignor)


def test_rounds_equal_the_client_where_subscriptions_are_equal(
    spark: SparkSession, steps: Steps
) -> None:
    states = dict(enumerate(ALIKE))
    number = 0
    while states:
        number += 1
        answers = oracle.assign(spark, states.values())
        for (index, group), answer in zip(list(states.items()), answers, strict=True):
            assert isinstance(answer, dict)
            assert after(steps[index], number, group) == oracle.as_sets(answer), (index, number)
            states[index] = next_state(group, answer, number)
            # What a member has dropped, it gives up before it joins: no rebalance follows.
            owned = {
                m.member_id: {tp for tp in m.owned if tp[0] in m.topics} for m in group.members
            }
            if all(owned[member] <= set(tps) for member, tps in answer.items()):
                assert max(steps[index]) == number
                del states[index]
    assert number > 1


def test_every_round_adds_up(steps: Steps) -> None:
    for index, group in enumerate(GROUPS):
        holding = {m.member_id: set(m.owned) for m in group.members}
        rounds = steps[index]
        for number in sorted(rounds):
            actions = rounds[number]
            taken: set[tuple[str, int]] = set()
            for m in group.members:
                given_up = actions["revoked"].get(m.member_id, set())
                received = actions["assigned"].get(m.member_id, set())
                retained = actions["retained"].get(m.member_id, set())
                assert retained | given_up == holding[m.member_id]
                assert not taken & (retained | received), "on two members at once"
                taken |= retained | received
                holding[m.member_id] = retained | received
            others = {tp for owned in holding.values() for tp in owned}
            withheld = {tp for tps in actions["withheld"].values() for tp in tps}
            assert not withheld & others


def test_all_groups_settle_at_the_target(spark: SparkSession, steps: Steps) -> None:
    # A group that subscribes to nothing has no steps.
    ends = [max(steps[i], default=1) for i in range(len(GROUPS))]
    last = [after(steps[i], ends[i], group) for i, group in enumerate(GROUPS)]
    assert all(not steps[i][ends[i]]["withheld"] for i in range(len(GROUPS)))
    assert max(ends) == 2
    settled = [next_state(group, answer, 9) for group, answer in zip(GROUPS, last, strict=True)]
    again = oracle.from_table(assign(*oracle.to_tables(spark, settled)), settled)
    assert again == last


def test_eager_revokes_and_assigns_all(spark: SparkSession) -> None:
    groups = [
        Group({"t": 4}, [Member("a", ["t"], [("t", 0), ("t", 1)], 1), Member("b", ["t"])], name)
        for name in ("range", "roundrobin", "sticky")
    ]
    result = by_round(rebalance(*oracle.to_tables(spark, groups)).collect(), len(groups))
    for rounds, answer in zip(result.values(), oracle.assign(spark, groups), strict=True):
        assert list(rounds) == [1]
        assert rounds[1]["revoked"] == {"a": {("t", 0), ("t", 1)}}
        assert isinstance(answer, dict)
        assert rounds[1]["assigned"] == {member: set(tps) for member, tps in answer.items()}
        assert set(rounds[1]) == {"revoked", "assigned"}


def test_cooperative_sticky_under_eager_knows_nothing(spark: SparkSession) -> None:
    group = Group(
        {"t": 4},
        [Member("a", ["t"], [("t", 1), ("t", 3)], 1), Member("b", ["t"], [("t", 0)], 1)],
        "cooperative-sticky",
    )
    rows = rebalance(*oracle.to_tables(spark, [group]), protocol="eager").collect()
    fresh = Group(group.topics, [Member(m.member_id, m.topics) for m in group.members], "sticky")
    (answer,) = oracle.assign(spark, [fresh])
    assert isinstance(answer, dict)
    assigned = by_round(rows, 1)[0][1]["assigned"]
    assert assigned == {member: set(tps) for member, tps in answer.items()}


def test_an_eager_assignor_is_not_forced_to_cooperate(spark: SparkSession) -> None:
    group = Group({"t": 1}, [Member("a", ["t"])], "range")
    with pytest.raises(InputError, match="'range' does not know the cooperative protocol"):
        rebalance(*oracle.to_tables(spark, [group]), protocol="cooperative")
    with pytest.raises(InputError, match="unknown protocol 'lazy'; known are eager, cooperative"):
        rebalance(*oracle.to_tables(spark, [group]), protocol="lazy")


def test_exact_rounds_come_with_verdicts(spark: SparkSession) -> None:
    """The recorded group alternates between two assignments, as the real client does."""
    throwing = replace(failing_group("null-pointer"), assignor="sticky")
    groups = [failing_group("never-settles"), throwing, ALIKE[0]]
    tables = oracle.to_tables(spark, groups)
    steps, verdicts = rebalance(*tables, exact=True)
    result = {row.group_id: (row.verdict, row.detail) for row in verdicts.collect()}
    assert result["g0"] == ("never_settles", "after round 3 all own what they owned after round 1")
    assert result["g1"][0] == "throws"
    assert result["g2"] == ("ok", None)
    rounds = by_round(steps.collect(), len(groups))
    state = groups[0]
    for number in (1, 2, 3):
        (answer,) = oracle.assign(spark, [state])
        assert isinstance(answer, dict)
        assert after(rounds[0], number, state) == oracle.as_sets(answer)
        state = next_state(state, answer, number + 1)
    assert sorted(rounds[0]) == [1, 2, 3]
    assert after(rounds[0], 1, state) == after(rounds[0], 3, state)


def test_exact_rounds_are_of_kafkas_own_assignors(spark: SparkSession) -> None:
    tables = oracle.to_tables(spark, [Group({"t": 1}, [Member("a", ["t"])], "range")])
    with pytest.raises(InputError, match="exact=True follows Kafka's own assignors only: name one"):
        rebalance(*tables, assignor=lambda eligible, settings: eligible.members, exact=True)
    with pytest.raises(InputError, match="unknown assignor 'best'"):
        rebalance(*tables, assignor="best", exact=True)


def test_an_assignor_of_the_callers_own_is_followed_as_an_eager_one(spark: SparkSession) -> None:
    """All is given up and received in one round, as a task follows the same assignor by name."""
    groups = [Group(g.topics, g.members, "range") for g in claiming_groups(40, seed=13)]
    tables = oracle.to_tables(spark, groups)

    def own(eligible: Eligible, settings: Settings) -> DataFrame:
        return ASSIGNORS["range"](eligible, settings)

    result = by_round(rebalance(*tables, assignor=own).collect(), len(groups))
    assert result == by_round(rebalance(*tables, assignor="range").collect(), len(groups))
    assert any(result[index][1]["revoked"] for index in result)
