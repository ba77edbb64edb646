"""Claims of partitions that do not exist: where they mislead the real client, and where not."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import (
    assign,
    cli,
    compare,
    predict,
    simulate,
    summarize_events,
    validate,
    write_snapshot,
)
from kassign_spark.assignors import ASSIGNORS
from kassign_spark.client.model import predict_group
from kassign_spark.report.findings import findings
from kassign_spark.tables.snapshots import Snapshot
from tests.kafka import oracle
from tests.kafka.oracle import Assigned, Group, Member, group_id, to_tables
from tests.kernels import assigned
from tests.made_reports import made_contents
from tests.prediction.prediction_states import to_state
from tests.random_states import random_states

STICKY = ("sticky", "cooperative-sticky")


def _owns(*numbers: int) -> list[tuple[str, int]]:
    return [("orders", number) for number in numbers]


def _group(assignor: str, topics: dict[str, int], second: tuple[str, ...] = ("orders",)) -> Group:
    """Orders had six partitions, three with each member, and was made again."""
    members = [
        Member("c1", ["orders"], _owns(0, 1, 2), 5),
        Member("c2", second, _owns(3, 4, 5), 5),
    ]
    return Group(topics, members, assignor)


THROWING = [_group(name, {"orders": 3}) for name in STICKY]
WRONG = [_group(name, {"orders": 3, "x": 1}, ("orders", "x")) for name in STICKY]
"""With different subscriptions the client does not throw: it gives what does not exist."""
HARMLESS = [
    *[_group(name, {"orders": 5}) for name in STICKY],
    *[_group(name, {"other": 3}) for name in STICKY],
    *[_group(name, {"orders": 3}) for name in ("range", "roundrobin")],
]
GROUPS = [*THROWING, *WRONG, *HARMLESS]
MISLED = [group_id(number) for number in range(4)]


def _is_misled(group: Group, answer: Assigned | str) -> bool:
    if isinstance(answer, str):
        return True
    sizes = {t: n if isinstance(n, int) else len(n) for t, n in group.topics.items()}
    times = Counter(partition for of_member in answer.values() for partition in of_member)
    return any(n > 1 or partition >= sizes[topic] for (topic, partition), n in times.items())


def test_what_the_real_client_does(spark: SparkSession) -> None:
    answers = oracle.assign(spark, GROUPS)
    assert answers[:2] == ["IllegalStateException"] * 2
    assert [_is_misled(*of) for of in zip(GROUPS, answers, strict=True)] == [True] * 4 + [False] * 6


def test_the_rule_holds_for_random_states(spark: SparkSession) -> None:
    """With equal subscriptions a plan is the client's own answer, but where the rule says so."""
    tried = random_states(3000, seed=20261126, assignors=STICKY, hostile_share=1.0)
    groups = [
        group
        for group in tried
        if len({frozenset(m.topics) for m in group.members}) == 1
        and all(len(set(m.topics)) == len(m.topics) for m in group.members)
        and all(t in group.topics for m in group.members for t in m.topics)
    ]
    outcomes = [predict_group(to_state(group)) for group in groups]
    some = [of for of in zip(groups, outcomes, strict=True) if of[1].layout.missing]
    assert len(some) > 60
    answers = oracle.assign(spark, [group for group, _ in some])
    plans = assigned([group for group, _ in some])
    seen = Counter[tuple[bool, bool]]()
    for (group, outcome), answer, plan in zip(some, answers, plans, strict=True):
        same = not isinstance(answer, str) and oracle.as_sets(answer) == plan
        assert outcome.is_misled == _is_misled(group, answer), group
        assert outcome.is_misled or same, group
        seen[outcome.is_misled, isinstance(answer, str)] += 1
    assert min(seen[True, True], seen[True, False], seen[False, False]) >= 5, seen


@pytest.fixture(scope="module")
def snapshot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("missing") / "snapshot")
    write_snapshot(Snapshot(*to_tables(spark, GROUPS)), path)
    return path


def _run(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, object], str]:
    code = cli.main([*options, "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert cli.main([*options, *(["--overwrite"] if "--output" in options else [])]) == code
    return code, facts, capsys.readouterr().out


@pytest.mark.parametrize("command", ["assign", pytest.param("rebalance", marks=pytest.mark.slow)])
def test_plans_say_it(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, facts, text = _run(capsys, command, snapshot, "--output", str(tmp_path / "plan"))
    misled = facts["misled"]
    assert isinstance(misled, list)
    assert (code, facts["misled_count"]) == (1, 4)
    assert [row["group_id"] for row in misled] == MISLED
    assert [row["verdict"] for row in misled] == ["throws"] * 2 + ["ok"] * 2
    assert "of 4 groups Kafka's own client makes something else" in text
    assert "IllegalStateException" in text
    assert "c2 claims orders-3, though topic orders has only 3 partitions" in text
    if command == "rebalance":
        # Under the eager protocol the cooperative assignor knows of no claims.
        output = ["--output", str(tmp_path / "eager"), "--protocol", "eager"]
        assert _run(capsys, command, snapshot, *output)[1]["misled_count"] == 2


@pytest.mark.slow
def test_one_assignor_for_all(
    spark: SparkSession, snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "plan")]
    facts = _run(capsys, "assign", snapshot, *output, "--assignor", "range")[1]
    assert facts["misled_count"] == 0
    assert cli.main(["assign", snapshot, *output, "--assignor", "sticky", "--overwrite"]) == 1
    assert "of 6 groups" in capsys.readouterr().out


def test_predict_names_the_cause(spark: SparkSession) -> None:
    verdicts = {row.group_id: row for row in predict(*to_tables(spark, GROUPS)).verdicts.collect()}
    for name in MISLED:
        assert "c2 claims orders-3, though topic orders" in verdicts[name].detail
        assert "stop all members that claim" in verdicts[name].detail
    assert [verdicts[name].verdict for name in MISLED] == ["throws"] * 2 + ["ok"] * 2


def test_validate_says_it_and_what_helps(spark: SparkSession) -> None:
    problems = validate(*to_tables(spark, GROUPS), assignors=ASSIGNORS).collect()
    misled = [row for row in problems if row.problem == "claims_mislead_client"]
    assert sorted(row.group_id for row in misled) == MISLED
    assert sum("IllegalStateException" in row.detail for row in misled) == 2
    assert all("stop all members that claim" in row.detail for row in misled)
    dropped = {row.group_id for row in problems if "the claim is dropped" in row.detail}
    assert dropped.isdisjoint(MISLED)
    assert dropped == {group_id(number) for number in range(6, 10)}
    counted = {row.group_id for row in problems if "sticky assignors count it" in row.detail}
    assert counted == {group_id(number) for number in range(6)}


@pytest.mark.slow
def test_validate_asks_the_library_that_leads(spark: SparkSession) -> None:
    """librdkafka gives partitions of lost topics back, and no others; franz-go looks at none."""
    members, topics, owned = to_tables(spark, GROUPS)
    is_cooperative = "assignor = 'cooperative-sticky'"
    for client, misled in (("librdkafka", [0, 2]), ("franz-go", [0, 2]), ("java", [0, 1, 2, 3])):
        named = members.withColumn("client", F.expr(f"if({is_cooperative}, '{client}', null)"))
        problems = validate(named, topics, owned).where("problem = 'claims_mislead_client'")
        assert sorted(row.group_id for row in problems.collect()) == [
            group_id(number) for number in misled
        ]
    leads = members.selectExpr(
        "*", "'franz-go' as client", "if(member_id = 'c1', true, null) as is_leader"
    )
    assert validate(leads, topics, owned).where("problem = 'claims_mislead_client'").isEmpty()


def test_compare_says_it(spark: SparkSession) -> None:
    rows = compare(*to_tables(spark, THROWING[:1])).collect()
    verdicts = {(row.assignor, row.protocol): row.verdict for row in rows}
    failing = {of for of, verdict in verdicts.items() if verdict == "throws"}
    assert failing == {("sticky", "eager"), ("cooperative-sticky", "cooperative")}


def test_simulate_says_it(spark: SparkSession) -> None:
    """And the next event meets a group in which nothing has moved."""
    members, topics, owned = to_tables(
        spark, [Group({"orders": 6, **g.topics}, g.members, g.assignor) for g in THROWING]
    )
    topics = topics.selectExpr("cluster_id", "topic", "6 as num_partitions")
    events = spark.createDataFrame(
        [
            (f"c{cluster}", event, kind, "orders", count)
            for cluster in range(2)
            for event, kind, count in (
                (1, "topic_is_recreated", 3),
                (2, "topic_grows", 4),
                (3, "topic_grows", 6),
            )
        ],
        "cluster_id string, event int, kind string, topic string, num_partitions int",
    )
    steps = simulate(members, topics, owned, events)
    rows = {(row.group_id, row.event): row for row in summarize_events(steps).collect()}
    for group in ("g0", "g1"):
        first, _, last = (rows[group, event] for event in (1, 2, 3))
        assert (first.verdict, first.partition_count, first.settles) == ("throws", 0, False)
        assert "c2 claims orders-3" in first.detail
        assert (last.verdict, last.partition_count, last.moved_count) == (None, 6, 0)
    assert assign(members, topics, owned).count() == 12


def test_the_report_finds_an_error_in_it() -> None:
    result = made_contents(3, details=1)
    row = {"source": "snapshot", "kind": "claims_mislead_client", "count": 2}
    (first, *_) = findings(result._replace(problem_counts=[*result.problem_counts, row]))
    assert first.severity == "error"
    assert first.title == "Kafka's own client makes something else of 2 groups"
    assert not any("client" in finding.title for finding in findings(result))
