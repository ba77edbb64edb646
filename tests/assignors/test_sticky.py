"""Sticky and cooperative-sticky, over equal and differing subscriptions in one call."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from kassign_spark import Settings, assign
from kassign_spark.measures.violations import violations
from tests.kafka import oracle
from tests.kafka.worked_examples import EXAMPLES
from tests.random_claims import claiming_groups, differing_groups

NAMES = ("sticky", "cooperative-sticky")
GROUPS = differing_groups(150, seed=7) + claiming_groups(50, seed=8)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, GROUPS)


def test_worked_examples(spark: SparkSession) -> None:
    """Of differing subscriptions too: there the client happens to find the optimum's counts."""
    examples = [example for example in EXAMPLES if example.group.assignor in NAMES]
    groups = [example.group for example in examples]
    assigned = oracle.from_table(assign(*oracle.to_tables(spark, groups)), groups)
    for example, answer in zip(examples, assigned, strict=True):
        counts = {member: len(tps) for member, tps in answer.items()}
        assert sorted(counts.values()) == sorted(map(len, example.expected.values())), example.name


def test_results_are_valid(tables: oracle.Tables) -> None:
    assignment = assign(*tables)
    wrong = violations(assignment, *tables)
    assert wrong.collect() == []


@pytest.mark.slow
@pytest.mark.parametrize("assignor", NAMES)
def test_rounds_give_what_tasks_give(tables: oracle.Tables, assignor: str) -> None:
    in_tasks, in_rounds = (
        assign(*tables, assignor=assignor, settings=Settings(engine=engine))
        for engine in ("task", "rounds")
    )
    assert_df_equality(in_tasks, in_rounds, ignore_row_order=True)


def test_cooperative_withholds_just_what_others_own(
    spark: SparkSession, tables: oracle.Tables
) -> None:
    target = oracle.from_table(assign(*tables, assignor="sticky"), GROUPS)
    first = oracle.from_table(assign(*tables, assignor="cooperative-sticky"), GROUPS)
    for group, all_of_it, now in zip(GROUPS, target, first, strict=True):
        owners: dict[tuple[str, int], set[str]] = {}
        for m in group.members:
            for tp in m.owned:
                owners.setdefault(tp, set()).add(m.member_id)
        differing = {tuple(m.topics) for m in group.members}
        for member, tps in all_of_it.items():
            withheld = set(tps) - set(now[member])
            assert set(now[member]) <= set(tps)
            assert all(tp in owners for tp in withheld)
            if len(differing) > 1:
                changing = {tp for tp in tps if tp in owners and member not in owners[tp]}
                assert withheld == changing
