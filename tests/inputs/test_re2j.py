"""What is taken for a regex of the broker's means there what it means here: asked of RE2/J."""

import json
import random

from pyspark.sql import SparkSession

from kassign_spark.inputs.regexes import match_regexes
from kassign_spark.inputs.rules import any_broken
from kassign_spark.inputs.target_rules import regex_rules
from tests.kafka.oracle import new_java_object

_PARTS = (
    *("a", "b", "A", "9", "-", "_", ".", "é", "(a|b)", "(?:a)", "(?i:a)", "(?P<n>a)", "[ab]"),
    *("[^a]", "[a-c]", "[]a]", "[\\d_]", "[[:alpha:]]", "[a-z&&[^b]]", "\\d", "\\D", "\\w", "\\W"),
    *("\\s", "\\.", "\\-", "\\_", "\\x41", "\\x{41}", "\\101", "\\0", "\\Qa.b\\E", "\\pL", "\\PL"),
    *("\\p{Lu}", "\\p{Foo}", "^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "\\G", "\\R", "\\h"),
    *("\\1", "\\k<n>", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#a)", "(?x)", "(?s)"),
    *("(?U)", "(?d)", "(?u)", "(?-i)", "(", ")", "[", "]", "{", "}", "|", "\\", "\\cA", "\\e"),
)
_REPEATS = ("", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,1}", "{1001}", "**", "a++", "*?")
_NAMES = ["a", "b", "A", "ab", "aa", "9", "a9", "-", "_", ".", "a.b", "a-b", "é", "R", "n", "x"]


def _regexes() -> list[str]:
    rng = random.Random(848)
    drawn = {
        "".join(rng.choice(_PARTS) + rng.choice(_REPEATS) for _ in range(rng.randint(1, 3)))
        for _ in range(1500)
    }
    return sorted({*drawn, *_PARTS})


def test_regexes_mean_what_the_broker_takes_them_for(spark: SparkSession) -> None:
    regexes = _regexes()
    answers = json.loads(new_java_object(spark, "Regexes").run(json.dumps([regexes, _NAMES])))
    members = spark.createDataFrame(
        [("", "g", regex) for regex in regexes],
        "cluster_id string, group_id string, topics_regex string",
    )
    judged = members.withColumn("refused", any_broken(regex_rules()))
    fit = judged.where("NOT refused")
    topics = spark.createDataFrame(
        [("", name) for name in _NAMES], "cluster_id string, topic string"
    )
    found = {row.topics_regex: row.names for row in match_regexes(fit, topics).collect()}
    refused = [regex for regex, answer in zip(regexes, answers, strict=True) if answer is None]
    taken = [regex for regex in refused if regex in found]
    assert taken == [], "RE2/J refuses them"
    other = {
        regex: (found[regex], answer)
        for regex, answer in zip(regexes, answers, strict=True)
        if regex in found and answer is not None and sorted(answer) != found[regex]
    }
    assert other == {}
    assert len(found) > 500
    assert len(refused) > 300
