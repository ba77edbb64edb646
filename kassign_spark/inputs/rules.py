"""What a row of each table must hold: one list of rules a table, used to count and to report.

A rule is broken by a single row. The counting runs over every row of every call, so a rule is one
native expression; only when a count is not zero are the rows looked for.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

INT_MAX = 2**31 - 1
CONSUMER = "consumer"
"""``members.group_type`` of groups of the new protocol (KIP-848)."""
STATIC_AWAY = -2
"""Epoch of a static member of such a group that has gone and may come back."""


class Rule(NamedTuple):
    """One rule about one column; the expressions are over the columns of its table."""

    problem: str
    column: str
    broken: Column
    value: Column
    advice: str | Column


def member_rules() -> list[Rule]:
    """Rules over ``schemas.MEMBERS``, patterns resolved: one that is left is unusable."""
    topics, pattern = F.col("topics"), F.col("topics_pattern")
    # array_contains answers null where it finds nothing but meets a null.
    unnamed_topic = topics.isNotNull() & F.coalesce(F.array_contains(topics, ""), F.lit(True))
    return [
        *(_named(column) for column in ("group_id", "member_id")),
        Rule(
            "topics_missing",
            "topics",
            topics.isNull() & pattern.isNull() & F.col("topics_regex").isNull(),
            F.lit("null"),
            "give an empty array for a member that subscribes to nothing",
        ),
        Rule(
            "topics_unnamed",
            "topics",
            unnamed_topic,
            F.to_json(topics),
            "null and empty names are no topics: leave them out",
        ),
        Rule(
            "topics_pattern_unusable",
            "topics_pattern",
            pattern.isNotNull() & topics.isNull(),
            quoted("topics_pattern"),
            "not a pattern of java.util.regex that a consumer takes",
        ),
        Rule(
            "topics_pattern_and_topics",
            "topics_pattern",
            pattern.isNotNull() & topics.isNotNull(),
            quoted("topics_pattern"),
            "the member lists topics as well: a consumer has a pattern or a list",
        ),
        *(
            rule._replace(broken=rule.broken & applies)
            for rule, applies in (
                (integer_rule("generation", least=-1), ~is_consumer_group()),
                (integer_rule("generation", least=STATIC_AWAY), is_consumer_group()),
            )
        ),
        Rule(
            "group_type_unknown",
            "group_type",
            ~F.col("group_type").isin("classic", CONSUMER),
            quoted("group_type"),
            "must be classic (null is the same) or consumer",
        ),
        integer_rule("member_seq", least=0),
    ]


def is_consumer_group() -> Column:
    """Whether a row of members is of a group of the new protocol: boolean, never null."""
    return F.coalesce(F.col("group_type") == CONSUMER, F.lit(False))


def rules_of_topics(topics: DataFrame) -> list[Rule]:
    """Rules over ``schemas.TOPICS`` or ``schemas.TOPIC_PARTITIONS``, whichever ``topics`` is."""
    count = "num_partitions" if "num_partitions" in topics.columns else "partition"
    return [_named("topic"), *_count_rules(count)]


def owned_rules() -> list[Rule]:
    """Rules over ``schemas.OWNED``."""
    return [
        *(_named(column) for column in ("group_id", "member_id", "topic")),
        *_count_rules("partition"),
    ]


def any_broken(rules: list[Rule]) -> Column:
    """Whether a row breaks a rule: boolean, never null."""
    broken = F.lit(False)
    for rule in rules:
        broken = broken | F.coalesce(rule.broken, F.lit(False))
    return broken


def _named(column: str) -> Rule:
    return Rule(
        f"{column}_missing",
        column,
        F.col(column).isNull() | (F.col(column) == ""),
        quoted(column),
        f"every row needs a {column}, not null or empty",
    )


def _count_rules(column: str) -> list[Rule]:
    missing = Rule(
        f"{column}_missing",
        column,
        F.col(column).isNull(),
        F.lit("null"),
        f"every row needs a {column}",
    )
    return [missing, integer_rule(column, least=0)]


def integer_rule(column: str, *, least: int) -> Rule:
    """Require a number from ``least`` to that of four bytes; null passes."""
    return Rule(
        f"{column}_out_of_range",
        column,
        ~F.col(column).between(least, INT_MAX),
        F.col(column).cast("string"),
        f"must be a whole number from {least} to {INT_MAX}",
    )


def quoted(column: str) -> Column:
    """Show a string as messages do: in quotes, or null."""
    return F.coalesce(F.concat(F.lit('"'), F.col(column), F.lit('"')), F.lit("null"))
