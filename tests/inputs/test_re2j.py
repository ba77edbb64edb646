"""Regexes of the broker's, judged by RE2/J itself in the tests' JVM; and by the engine alone."""

import json
import random
import re

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.inputs import re2j
from kassign_spark.inputs.regexes import match_regexes, regex_problem
from tests.kafka.oracle import new_java_object

_PARTS = (
    *("a", "b", "A", "9", "-", "_", ".", "é", "(a|b)", "(?:a)", "(?i:a)", "(?P<n>a)", "(?<n>a)"),
    *("[ab]", "[^a]", "[a-c]", "[]a]", "[\\d_]", "[[:alpha:]]", "[[:^alpha:]]", "[a-z&&[^b]]"),
    *("\\d", "\\D", "\\w", "\\W", "\\s", "\\.", "\\-", "\\_", "\\é", "\\x41", "\\x{41}", "\\101"),
    *("\\0", "\\07", "\\8", "\\1", "\\k<n>", "\\Qa.b\\E", "\\Q", "\\E", "\\pL", "\\PL", "\\p{Lu}"),
    *("\\p{^Lu}", "\\p{Foo}", "\\p{", "\\p", "\\p{Latin}", "\\p{Any}", "[\\PN]", "^", "$", "\\A"),
    *(
        "\\z",
        "\\Z",
        "\\b",
        "\\B",
        "\\G",
        "\\R",
        "\\h",
        "\\C",
        "\\cA",
        "\\e",
        "\\x",
        "\\x{",
        "\\xg1",
    ),
    *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#a)", "(?x)", "(?s)", "(?U)", "(?d)"),
    *("(?u)", "(?-i)", "(?i)", "(?m)", "(?im-s)", "(?i-)", "(?)", "(?P=n)", "(?P<1>a)", "(?P<ñ>a)"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        "\\",
        "(?",
        "(?P<",
        "[[:foo:]]",
        "[:]",
        "[a-\\d]",
        "[b-a]",
    ),
    *("[\\", "[^", "[a-", "&&", "[-a]", "[a-]", "[--a]", "[a-c-e]", "[\\Q]\\E]", "()", "(|a)"),
)
_REPEATS = (
    *("", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "{0}", "*?", "+?", "??", "{2}?"),
    *("{,2}", "{2,1}", "{1001}", "{1,1001}", "{00002}", "{99999999999}", "{a}", "{1", "{1,"),
    *("**", "++", "?+", "{2}{3}", "*{2}"),
)
_LETTERS = "()[]{}|*+?\\^$.-,:<>P=!0127aAbdpQExzLinU&é_ "
_NAMES = [
    *("a", "b", "A", "ab", "aa", "aab", "9", "a9", "-", "_", ".", "a.b", "a-b", "R", "n", "x", "K"),
    *(
        "k",
        "s",
        "S",
        "cA",
        "Q",
        "__consumer_offsets",
        "orders.created",
        "aaa",
        "ba",
        "1",
        "8",
        "zz",
    ),
]
"""Kafka allows these letters in a topic's name, and no others."""


def _regexes() -> list[str]:
    """Of parts that mean something, and of letters that mostly do not."""
    rng = random.Random(848)
    of_parts = {
        "".join(rng.choice(_PARTS) + rng.choice(_REPEATS) for _ in range(rng.randint(1, 3)))
        for _ in range(12_000)
    }
    of_letters = {"".join(rng.choices(_LETTERS, k=rng.randint(1, 9))) for _ in range(8_000)}
    return sorted({*of_parts, *of_letters, *_PARTS})


def test_regexes_are_refused_and_found_as_the_broker_does(spark: SparkSession) -> None:
    regexes, names = _regexes(), pa.array(_NAMES)
    java = new_java_object(spark, "Regexes")
    judged = json.loads(java.broker(json.dumps(regexes), json.dumps(_NAMES)))
    differing, refused, fit, beyond = {}, set(), 0, 0
    for regex, answer in zip(regexes, judged, strict=True):
        problem = re2j.problem(regex)
        if isinstance(answer, str):
            refused.add(answer)
            expected: object = f"the broker refuses it (INVALID_REGULAR_EXPRESSION): {answer}"
            result: object = problem
        elif problem is not None and problem.startswith("is not resolved here: RE2 takes less"):
            beyond += 1
            continue
        else:
            fit += 1
            expected, result = answer, problem or re2j.matching(regex, names).to_pylist()
        if result != expected:
            differing[regex] = result, expected
    assert differing == {}
    assert fit > 4000
    assert len(refused) == 12, "RE2/J has so many words for a refusal"
    assert beyond < 0.001 * fit


def test_a_client_reads_as_the_broker_does_but_for_what_is_named(spark: SparkSession) -> None:
    regexes, names = _regexes(), json.dumps(_NAMES)
    java = new_java_object(spark, "Regexes")
    of_broker, of_client = (
        json.loads(read(json.dumps(regexes), names)) for read in (java.broker, java.client)
    )
    both = [
        (regex, broker_names, client_names)
        for regex, broker_names, client_names in zip(regexes, of_broker, of_client, strict=True)
        if not isinstance(broker_names, str) and client_names is not None
    ]
    named = {regex for regex, _, _ in both if re.search(re2j.READ_OTHERWISE, regex)}
    other = {regex for regex, broker_names, client_names in both if broker_names != client_names}
    assert other <= named
    assert len(other) > 20
    assert len(named) < 0.3 * len(both)


@pytest.mark.parametrize(
    ("regex", "says"),
    [
        ("", "leave it null"),
        (r"(?:\pL{1000}){1000}", "is not resolved here: RE2 takes less than the broker's RE2/J"),
    ],
)
def test_what_the_broker_would_take_may_not_be_resolved_here(regex: str, says: str) -> None:
    assert says in str(re2j.problem(regex))
    assert re2j.matching(regex, pa.array(["a"])).to_pylist() == []


def test_no_regex_takes_for_ever() -> None:
    # java.util.regex tries all ways to part these letters, each of which fails.
    assert re2j.matching("(a+)+b", pa.array(["a" * 249])).to_pylist() == []


def test_regexes_of_groups_find_topics_of_their_cluster(spark: SparkSession) -> None:
    members = spark.createDataFrame(
        [
            ("c", "g", "t|u.*"),
            ("c", "h", ".*"),
            ("d", "g", "t|u.*"),
            ("e", "g", ".*"),
            ("c", "g", "("),
        ],
        "cluster_id string, group_id string, topics_regex string",
    )
    topics = spark.createDataFrame(
        [("c", "u2"), ("c", "t"), ("c", "t"), ("c", "__consumer_offsets"), ("d", "u")],
        "cluster_id string, topic string",
    )
    rows = match_regexes(members.unionByName(members), topics).collect()
    assert sorted((r.cluster_id, r.group_id, r.topics_regex, r.names) for r in rows) == [
        ("c", "g", "(", []),
        ("c", "g", "t|u.*", ["t", "u2"]),
        ("c", "h", ".*", ["__consumer_offsets", "t", "u2"]),
        ("d", "g", "t|u.*", ["u"]),
    ]
    judged = members.select(regex_problem(F.col("topics_regex")).alias("problem")).collect()
    assert [row.problem is None for row in judged] == [True, True, True, True, False]
