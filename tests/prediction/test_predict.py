"""``predict`` gives a fleet the real client's answers, and says where there is none."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import InputError
from kassign_spark.plans.predict import PREDICTED, Prediction, predict
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group, Member
from tests.random_states import random_states

SEED = 20261123
RECORDED = [failing_group(case) for case in ("never-ends", "null-pointer", "never-settles")]
GROUPS = [*RECORDED, *random_states(2400, seed=SEED, assignors=PREDICTED)]

Tables = oracle.Tables


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    return oracle.to_tables(spark, GROUPS)


@pytest.fixture(scope="module")
def predicted(tables: Tables) -> Prediction:
    return predict(*tables)


def verdicts_of(prediction: Prediction) -> dict[str, tuple[str, str | None]]:
    rows = prediction.verdicts.collect()
    result = {row.group_id: (row.verdict, row.detail) for row in rows}
    assert len(result) == len(rows), "one row a group"
    return result


def has_something_amiss(group: Group) -> bool:
    """Whether members ask for a topic that does not exist, or nobody for one that is."""
    asked = {topic for member in group.members for topic in member.topics}
    return not asked or not asked <= set(group.topics)


def test_random_groups_get_the_clients_answer(spark: SparkSession, predicted: Prediction) -> None:
    """The whole fleet in one call, each group by the assignor that it names."""
    answers = oracle.assign(spark, GROUPS, seconds=2)
    verdicts = verdicts_of(predicted)
    assigned = oracle.from_table(predicted.assignment, GROUPS)
    differing = []
    for index, (group, answer, result) in enumerate(zip(GROUPS, answers, assigned, strict=True)):
        verdict, detail = verdicts[oracle.group_id(index)]
        if isinstance(answer, str):
            is_same = not any(result.values()) and (
                verdict == "never_ends"
                if answer == "TimeLimit"
                else verdict == "throws" and str(detail).startswith(answer + ":")
            )
        else:
            # ``client.missing`` has its own tests.
            is_noted = "left out" in str(detail) or "gets nothing" in str(detail)
            is_same = (verdict, is_noted) == ("ok", has_something_amiss(group))
            is_same &= oracle.as_sets(answer) == result
        if not is_same:
            differing.append((SEED, index, group, answer, verdict, detail))
    assert differing == []


def test_recorded_failures_have_their_verdicts(predicted: Prediction) -> None:
    verdicts = verdicts_of(predicted)
    assert [verdicts[oracle.group_id(i)][0] for i in range(3)] == ["never_ends", "throws", "ok"]


def test_columns(tables: Tables, predicted: Prediction) -> None:
    assert predicted.assignment.schema.simpleString() == (
        "struct<cluster_id:string,group_id:string,member_id:string,topic:string,partition:int>"
    )
    assert predicted.verdicts.columns == ["cluster_id", "group_id", "verdict", "detail"]
    no_cluster = [frame.where("cluster_id = 'c5'").drop("cluster_id") for frame in tables]
    assignment, verdicts = predict(*no_cluster)
    assert assignment.columns == ["group_id", "member_id", "topic", "partition"]
    assert verdicts.columns == ["group_id", "verdict", "detail"]
    assert verdicts.count() == 1


def test_the_result_does_not_depend_on_how_the_input_lies(
    tables: Tables, predicted: Prediction
) -> None:
    some = F.length("cluster_id") < 4
    shuffled = predict(
        tables.members.where(some).repartition(7).orderBy(F.reverse("member_id")),
        tables.topics.where(some).repartition(3, "num_partitions"),
        tables.owned.where(some).repartition(5).orderBy(F.col("partition").desc()),
    )
    for again, expected in zip(shuffled, predicted, strict=True):
        assert_df_equality(again, expected.where(some), ignore_row_order=True)


@pytest.mark.parametrize("assignor", PREDICTED)
def test_one_assignor_for_all_overrides_each_groups_own(spark: SparkSession, assignor: str) -> None:
    """Without claims: `sticky` and `cooperative-sticky` would be told them in different ways."""
    some = [
        Group(g.topics, [Member(m.member_id, m.topics, rack_id=m.rack_id) for m in g.members])
        for g in GROUPS[3:63]
    ]
    tables = oracle.to_tables(spark, some)
    result = predict(*without_assignor(tables), assignor=assignor)
    answers = oracle.assign(spark, some, assignor=assignor)
    verdicts = verdicts_of(result)
    assert {verdict for verdict, _ in verdicts.values()} == {"ok"}
    noted = [verdicts[oracle.group_id(index)][1] is not None for index in range(len(some))]
    assert noted == list(map(has_something_amiss, some))
    assert oracle.from_table(result.assignment, some) == list(map(oracle.as_sets, answers))


def test_without_the_order_of_members_an_answer_that_needs_it_is_inexact(
    spark: SparkSession,
) -> None:
    """Both of the ids are in the same bucket; only where both claim does their order matter."""
    same_bucket = ["AaAa", "BBBB"]
    topics = {"t": 3}
    claims = [("t", 0), ("t", 1)], [("t", 2)]
    competing = [("t", 0), ("t", 1)], [("t", 1), ("t", 2)]
    groups = [
        Group(
            topics, [Member(m, ["t"], c, 1) for m, c in zip(same_bucket, of, strict=True)], "sticky"
        )
        for of in (claims, competing)
    ]
    members, topics_, owned = oracle.to_tables(spark, groups)
    known = verdicts_of(predict(members, topics_, owned))
    unknown = verdicts_of(predict(members.drop("member_seq"), topics_, owned))
    assert known == {"g0": ("ok", None), "g1": ("ok", None)}
    assert unknown["g0"] == ("ok", None)
    assert unknown["g1"][0] == "inexact"
    assert "AaAa and BBBB claim t-1" in str(unknown["g1"][1])


def test_owned_may_be_left_out_and_name_members_that_are_gone(spark: SparkSession) -> None:
    group = Group({"t": 4}, [Member("a", ["t"]), Member("b", ["t"])], "sticky")
    members, topics, _ = oracle.to_tables(spark, [group])
    gone = spark.createDataFrame(
        [("c0", "g0", "c", "t", 0), ("c0", "g0", "a", "t", 1), ("c9", "g9", "a", "t", 1)],
        "cluster_id string, group_id string, member_id string, topic string, partition int",
    )
    nothing, left = predict(members, topics), predict(members, topics, gone)
    claimed = Group({"t": 4}, [Member("a", ["t"], [("t", 1)]), group.members[1]], "sticky")
    answers = oracle.assign(spark, [group, claimed])
    assert oracle.from_table(nothing.assignment, [group]) == [oracle.as_sets(answers[0])]
    assert oracle.from_table(left.assignment, [group]) == [oracle.as_sets(answers[1])]


def test_unknown_assignors_are_refused(tables: Tables) -> None:
    with pytest.raises(InputError, match="unknown assignor 'best'; known are cooperative-sticky"):
        predict(*tables, assignor="best")
    with pytest.raises(InputError, match='column assignor: "best" of group'):
        predict(tables.members.withColumn("assignor", F.lit("best")), tables.topics)


def test_no_members_no_rows(tables: Tables) -> None:
    assignment, verdicts = predict(tables.members.limit(0), tables.topics)
    assert assignment.count() == verdicts.count() == 0


def without_assignor(tables: Tables) -> tuple[DataFrame, DataFrame, DataFrame]:
    return tables.members.drop("assignor"), tables.topics, tables.owned
