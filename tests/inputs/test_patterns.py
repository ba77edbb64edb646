"""Patterns against ``java.util.regex`` and the real client, and through every function."""

from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from kassign_spark import (
    assign,
    balance,
    listener_calls,
    predict,
    rebalance,
    resolve_patterns,
    touched_groups,
    validate,
    violations,
)
from kassign_spark.errors import InputError
from kassign_spark.inputs.patterns import INTERNAL_TOPICS, match_topics
from tests import builders

_NAMES = [
    *("a", "ab", "b", "abc", "A", "AB", "a.b", "axb", "orders", "orders-eu", "my-orders"),
    *("orders.created", "payments", "x", "a b", "1", "a1", "a_1", "\n", "a\n", "ü", "組", "Q", "E"),
    *("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"),
    *("_schemas", "__mine", "(", ")", "a)", "z", "a.b#c", "ab\nc", "$", "a$", "^a"),
]
_PATTERNS = [
    *("a", "a|ab", "ab|a", "^a$", "a.*", ".*", "(?i)AB?", "(?s).*", "(?m)^a$", "a$", "^a|b$"),
    *(r"\Qa.b\E", r"\Qa.b", r"\Qa", r"a\Q.\Eb", r"\Q)", r"a\Q)", r"a|\Q)\E|b", r"\\Q", r"\Q\\E"),
    *("(?x) a b # c", "(?x) a # b)", "(?x)a b\n|c # ", r"(?x)a # \Qfoo", "(?x: a ) b", "(?x)a#)"),
    *("(?-i)a", "(?d).*", "(?u)Ü", "(?iu)Ü", "a)|(b", "(", ")", "[", "[a", "a{2", "*", "x\\"),
    *(r"\p{L}+", r"\p{Nope}", r"(?<n>a)\k<n>?", r"(a)(b)?\1*", "(?=a).*", "(?<=a)b", "(?>a|ab)c"),
    *("a++b", "a*+a", "orders[.-].*", "(?!__).*", r"\S+", r"\w+", r"a\n", r"\Aa\z", r"a\Z", r"\Ga"),
    *(
        "",
        " ",
        "(?x)",
        "#",
        "(?x)#",
        "(?i)",
        r"\Q",
        r"\Q\E",
        r"\E",
        "a\\E",
        "__.*",
        "組|ü",
        "a(?#b)",
    ),
    *("(?:a", "a(?", "(?<", "[a-", "[a&&[b", r"\x4", r"\c", r"\N{", "a{1,", "(?i", "[^a]+", "[)]"),
]


def test_patterns_match_as_java_matches_whole_names(spark: SparkSession) -> None:
    patterns = spark.createDataFrame(
        [("c", p) for p in _PATTERNS], "cluster_id string, topics_pattern string"
    )
    topics = spark.createDataFrame([("c", n) for n in _NAMES], "cluster_id string, topic string")
    result = {r.topics_pattern: r.matching for r in match_topics(patterns, topics).collect()}
    jvm: Any = spark._jvm
    internal = jvm.org.apache.kafka.common.internals.Topic
    visible = sorted(n for n in _NAMES if not internal.isInternal(n))
    assert sorted(set(_NAMES) - set(visible)) == sorted(INTERNAL_TOPICS)
    internals = jvm.org.apache.kafka.clients.consumer.internals
    never = internals.AutoOffsetResetStrategy.NONE
    expected: dict[str, list[str] | None] = {}
    for pattern in _PATTERNS:
        try:
            compiled = jvm.java.util.regex.Pattern.compile(pattern)
        except IllegalArgumentException:
            expected[pattern] = None
            continue
        matching = [n for n in visible if compiled.matcher(n).matches()]
        expected[pattern] = matching if pattern else None
        consumer = internals.SubscriptionState(
            jvm.org.apache.kafka.common.utils.internals.LogContext(), never
        )
        consumer.subscribe(compiled, jvm.java.util.Optional.empty())
        assert matching == [n for n in visible if consumer.matchesSubscribedPattern(n)], pattern
    assert result == expected
    assert sum(m is None for m in expected.values()) > 15
    assert sum(bool(m) for m in expected.values()) > 40


_TOPICS = {"orders": 4, "orders-eu": 3, "payments": 2, "empty": 0, "__consumer_offsets": 50}
_BY_PATTERN = [
    {"group_id": "alike", "member_id": "C0", "topics_pattern": "orders.*"},
    {"group_id": "alike", "member_id": "C1", "topics_pattern": "orders.*", "topics": []},
    {"group_id": "mixed", "member_id": "C0", "topics_pattern": "orders|payments"},
    {"group_id": "mixed", "member_id": "C1", "topics": ["orders", "__consumer_offsets"]},
    {"group_id": "none", "member_id": "C0", "topics_pattern": "order"},
    {"group_id": "all", "member_id": "C0", "topics_pattern": ".*"},
    {"group_id": "all", "member_id": "C1", "topics_pattern": "(orders|payments).*"},
]
_RESOLVED = {
    ("alike", "C0"): ["orders", "orders-eu"],
    ("alike", "C1"): ["orders", "orders-eu"],
    ("mixed", "C0"): ["orders", "payments"],
    ("mixed", "C1"): ["orders", "__consumer_offsets"],
    ("none", "C0"): [],
    ("all", "C0"): ["orders", "orders-eu", "payments"],
    ("all", "C1"): ["orders", "orders-eu", "payments"],
}


@pytest.mark.slow
def test_every_function_sees_the_topics_of_a_pattern(spark: SparkSession) -> None:
    """In one call each: a cluster with the patterns, and one with the topics that they match."""
    clusters = ("given", "listed")
    sizes = [
        {"cluster_id": c, "topic": topic, "num_partitions": size}
        for c in clusters
        for topic, size in _TOPICS.items()
    ]
    topics = builders.topics(spark, sizes)
    holding = "C0: ordersp0 paymentsp1 gonep0"
    owned_rows = [
        row for c in clusters for row in builders.owner_rows(holding, "mixed", cluster_id=c)
    ]
    owned = builders.owned(spark, owned_rows)
    options = {"assignor": "cooperative-sticky", "generation": 1}
    by_pattern = [{**row, **options, "cluster_id": "given"} for row in _BY_PATTERN]
    subscribers = builders.members(spark, by_pattern)
    listed = resolve_patterns(subscribers, topics).collect()
    assert {(r.group_id, r.member_id): r.topics for r in listed} == _RESOLVED
    assert all(r.topics_pattern is None for r in listed)
    by_list = [{**row.asDict(), "cluster_id": "listed"} for row in listed]
    members = builders.members(spark, by_pattern + by_list)

    assignment = builders.local_copy(assign(members, topics, owned, assignor="range"))
    steps = builders.local_copy(rebalance(members, topics, owned))
    wrong = violations(assignment, members, topics)
    for frame, least in (
        (assignment, 40),
        (predict(members, topics, owned, assignor="range").assignment, 40),
        (balance(assignment, members), 6),
        (steps, 40),
        (listener_calls(steps, members), 10),
    ):
        of_cluster: dict[str, list[Any]] = {c: [] for c in clusters}
        rows = frame.collect()
        for row in rows:
            values = row.asDict()
            of_cluster[values.pop("cluster_id")].append(sorted(values.items(), key=repr))
        assert sorted(of_cluster["given"], key=repr) == sorted(of_cluster["listed"], key=repr)
        assert len(rows) >= least
    assert wrong.collect() == []
    problems = {(r.group_id, r.problem): r.detail for r in validate(subscribers, topics).collect()}
    assert problems["none", "pattern_without_match"] == 'no topic matches "order" as a whole'
    assert ("mixed", "pattern_without_match") not in problems
    assert not any(problem.startswith("topics_") for _, problem in problems)


def test_members_of_other_clusters_see_other_topics(spark: SparkSession) -> None:
    members = builders.members(
        spark,
        [
            {"cluster_id": c, "group_id": "g", "member_id": "C0", "topics_pattern": "t."}
            for c in ("a", "b", "c", None)
        ],
    )
    topics = builders.topics(
        spark,
        [
            {"cluster_id": c, "topic": t, "partition": 0}
            for c, t in [("a", "t1"), ("b", "t2"), ("b", "t3"), (None, "t4"), ("a", "x")]
        ],
    )
    result = {r.cluster_id: r.topics for r in resolve_patterns(members, topics).collect()}
    assert result == {"a": ["t1"], "b": ["t2", "t3"], "c": [], None: ["t4"]}


_UNUSABLE: list[tuple[dict[str, Any], str]] = [
    (
        {"topics_pattern": "a)|(b"},
        'column topics_pattern: "a)|(b" (at group_id="g0" member_id="C0"): not a pattern of '
        "java.util.regex that a consumer takes",
    ),
    ({"topics_pattern": "", "topics": []}, 'column topics_pattern: "" (at group_id="g1"'),
    (
        {"topics_pattern": "a", "topics": ["t"]},
        'column topics_pattern: "a" (at group_id="g2" member_id="C0"): the member lists topics '
        "as well: a consumer has a pattern or a list",
    ),
]


def test_unusable_patterns_are_refused_in_one_line(spark: SparkSession) -> None:
    """Each by itself by ``assign``; ``validate`` lists those of all groups."""
    rows: list[dict[str, Any]] = []
    for n, (row, _) in enumerate(_UNUSABLE):
        rows.append({"group_id": f"g{n}", "member_id": "C0", **row})
        rows.append({"group_id": f"g{n}", "member_id": "C1", "topics_pattern": "a"})
    members, topics = builders.members(spark, rows), builders.topics(spark, {"a": 1, "t": 1})
    details = [r.detail for r in validate(members, topics).collect()]
    resolved = {(r.group_id, r.member_id): r for r in resolve_patterns(members, topics).collect()}
    for n, (row, says) in enumerate(_UNUSABLE):
        with pytest.raises(InputError) as error:
            assign(members.where(f"group_id = 'g{n}'"), topics, assignor="range")
        assert str(error.value).startswith(f"table members, {says}")
        assert "\n" not in str(error.value)
        assert "; " not in str(error.value)
        assert [d for d in details if says in d]
        assert resolved[f"g{n}", "C0"].topics_pattern == row["topics_pattern"]
        assert resolved[f"g{n}", "C1"].topics == ["a"]


def test_groups_that_a_new_topic_touches(spark: SparkSession) -> None:
    rows = [
        *_BY_PATTERN,
        {"group_id": "waiting", "member_id": "C0", "topics": ["orders-us", "other"]},
        {"group_id": "waiting", "member_id": "C1", "topics": ["orders-us", "orders-us"]},
        {"group_id": "broken", "member_id": "C0", "topics_pattern": "("},
    ]
    topics = builders.topics(spark, {"orders-us": 3, "__share_group_state": 50, "order": 1})
    result = touched_groups(builders.members(spark, rows), topics.unionAll(topics))
    assert sorted(map(tuple, result.collect())) == [
        ("alike", "orders-us", 2, 2),
        ("all", "order", 1, 1),
        ("all", "orders-us", 2, 2),
        ("none", "order", 1, 1),
        ("waiting", "orders-us", 2, 0),
    ]
    assert [f.simpleString() for f in result.schema] == [
        "group_id:string",
        "topic:string",
        "member_count:bigint",
        "pattern_count:bigint",
    ]
