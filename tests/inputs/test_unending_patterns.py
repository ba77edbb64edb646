"""Patterns that keep a backtracking matcher busy for years: answered in linear time, or refused."""

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kassign_spark import balance, resolve_patterns, validate
from kassign_spark.errors import InputError
from kassign_spark.inputs import linear, re2j
from kassign_spark.inputs.linear import UNENDING, may_not_end, may_not_end_in_sql
from kassign_spark.limits import PATTERN_CHARACTERS
from kassign_spark.simulation.simulate import simulate
from tests import builders
from tests.simulation.test_simulate import e, events_frame

_EVIL = "a" * 40 + "-"
_NAMES = [
    *("a", "aa", "ab", "aab", "aaab", "x", "b", "", "a-b", "a.b.c", "orders", "orders-eu-1"),
    *("orders-dlq", "team-a.events", "team-b.x.events", "__schemas", "a1b2", "ax" * 9, "a" * 18),
    *("orders-internal", "payments-eu", "retry-orders", "Orders", "a" * 15 + "x", "caa"),
]
_ANSWERED = [
    *("(.*a){20}x", "(a+)+b", "(a|aa)+$", "(a|a)*b", "(.*)*x", "([a-z]+)*x", "(a*)*", "((a+)+)+"),
    *("(a|a)(a|a)(a|a)(a|a)(a|a)x", "a?a?a?a?a?aaaaa", ".*a.*a.*a.*x", "(x+x+)+y", "(?:a|ab)+b?"),
    *(r"([a-z]+\.)*events", "(team-[a-z]+[.])+([a-z]+[.])*events", "(?i)(o|r)+ders(-[a-z]+)*"),
    *("(?!__)(?!.*-internal$)(orders|payments)(-.*)?", "^(?!.*(dlq|retry))(orders|pay|x)+.*$"),
    *("(?=.*a)(?!.*b)([a-z.]+-?)+", "^(?i)(?!.*DLQ)(o|r)+.*$", "(?!a)(?:.*)+", "([a-c]|\\Q(\\E)+"),
    *("(?<all>a+)+", r"(\Qa.b\E|c|[.])+", "orders-.*|payments-.*|retry-.*|team-.*", "()*"),
    *("(?![)|(]+)([a-z])+", r"(\w+-)+\w+", "(?!x(y(z|w)))(a|b)+"),
]
_REFUSED = [
    *("(a+)+(?!b)", r"(a+)+\1", "(a|b)*+x*", "(?<=a)(a+)+", "(?>a+)+(a+)+", "([a-z&&[^b]]+)+"),
    *("(?!b)(a+)+|b", "(.*a){2000}x", r"(?x)(a+)+ # x", "(a+)+" + "a" * PATTERN_CHARACTERS),
    "(?=(?=a)a)(a+)+",
]
_ORDINARY = [
    *(".*", "orders", "orders.*", "orders-.*-eu", "(orders|payments)-.*", "^(?!__).*", "a|b|c"),
    *("(?!.*(dlq|retry)).*(?<!-tmp)", r"(a)(b)?\1*", "(?<n>a)\\k<n>?", "[a-z]+-[0-9]{1,3}"),
]


def test_what_may_not_end_is_told_from_its_form(spark: SparkSession) -> None:
    assert not any(map(may_not_end, _ORDINARY))
    assert all(map(may_not_end, [*_ANSWERED, *_REFUSED]))
    patterns = [*_ORDINARY, *_ANSWERED, *_REFUSED]
    frame = spark.createDataFrame([(p,) for p in patterns], "p string")
    answers = frame.selectExpr("p", f"{may_not_end_in_sql('p')} as tells").collect()
    assert {row.p: row.tells for row in answers} == {p: may_not_end(p) for p in patterns}


def test_answers_are_those_of_java(spark: SparkSession) -> None:
    """Java ends with these names: its steps double with each letter, and none has many."""
    jvm: Any = spark._jvm
    for pattern in _ANSWERED:
        result = linear.matching(pattern, pa.array(_NAMES))
        assert result is not None, pattern
        compiled = jvm.java.util.regex.Pattern.compile(pattern)
        expected = [name for name in _NAMES if compiled.matcher(name).matches()]
        assert result.to_pylist() == expected, pattern
    for pattern in _REFUSED:
        assert linear.matching(pattern, pa.array(_NAMES)) is None, pattern


def test_functions_answer_them_or_name_member_and_pattern(spark: SparkSession) -> None:
    topics = builders.topics(spark, {_EVIL: 1, "a" * 249: 1, "aab": 2})
    rows = [
        {"group_id": "g", "member_id": f"C{i}", "topics_pattern": pattern}
        for i, pattern in enumerate(_ANSWERED)
    ]
    result = {
        r.member_id: r.topics
        for r in resolve_patterns(builders.members(spark, rows), topics).collect()
    }
    assert result["C0"] == []
    assert result["C1"] == ["aab"]
    assert result["C2"] == ["a" * 249]
    bad = [
        {"group_id": "g", "member_id": f"C{i}", "topics_pattern": pattern, "assignor": "range"}
        for i, pattern in enumerate(_REFUSED[:5])
    ]
    members = builders.members(
        spark, [*bad, {**bad[0], "member_id": "C9", "topics_pattern": "(a)*("}]
    )
    problems = validate(members, topics).where("problem = 'topics_pattern_unusable'").collect()
    assert {row.member_id: row.detail for row in problems} == {
        **{
            row["member_id"]: f'table members, column topics_pattern: "{row["topics_pattern"]}" '
            f'(at group_id="g" member_id="{row["member_id"]}"): {UNENDING}'
            for row in bad
        },
        "C9": 'table members, column topics_pattern: "(a)*(" (at group_id="g" member_id="C9"): '
        "not a pattern of java.util.regex that a consumer takes",
    }
    assert balance(builders.owned(spark, []), members.where("false"), None, topics).collect() == []


@pytest.mark.slow
def test_events_are_held_to_the_same(spark: SparkSession) -> None:
    at = {"group_id": "g", "member_id": "C0"}
    members = builders.members(spark, [{**at, "topics": ["aab"], "assignor": "range"}])
    topics = builders.topics(spark, {_EVIL: 1, "aab": 2})
    pattern = "(a+)+(?!b)"
    rows = [
        {"event": 1, **e("subscription_changes", **at, topics_pattern="(.*a){20}x")},
        {"event": 2, **e("subscription_changes", **at, topics_pattern=pattern)},
    ]
    simulate(members, topics, None, events_frame(spark, rows[:1])).collect()
    with pytest.raises(InputError, match=re.escape(f'topics_pattern "{pattern}": {UNENDING}')):
        simulate(members, topics, None, events_frame(spark, rows))


def test_a_regex_of_the_broker_has_a_length_too() -> None:
    regex = "a" * (PATTERN_CHARACTERS + 1)
    assert re2j.problem(regex) == "is not resolved here: it has more than 32,767 characters"
    assert len(re2j.matching(regex, pa.array([regex]))) == 0
    for hostile in ("[[:" * 10_000, "(?P<" * 8_000, r"\p{" * 10_000, "(" * 32_767):
        assert re2j.problem(hostile) is not None
    assert re2j.matching("(.*a){20}x", pa.array([_EVIL] * 1_000)).to_pylist() == []
