"""The rules for rows of each table: one list per table, used to count and to report.

A rule is broken by a single row. The counting runs over every row of every call, so a rule is one
native expression; only when a count is not zero are the rows looked for. Expressions are written in
SQL: a tree of Columns is put together in some hundred calls to Java, which take longer than to
count with it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.client_libraries import ASSIGNORS, ASSIGNORS_OF_CLIENT, CLIENTS
from kassign_spark.inputs.client_families import IS_UNREADABLE
from kassign_spark.inputs.linear import UNENDING, is_compiled, may_not_end_in_sql
from kassign_spark.inputs.regexes import REGEX_PROBLEM
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.schemas import TOPICS, Table

NO_PATTERN = "not a pattern of java.util.regex that a consumer takes"
INT_MAX = 2**31 - 1
CONSUMER = "consumer"
"""``members.group_type`` of groups of the new protocol (KIP-848)."""
STATIC_AWAY = -2
"""Epoch of a static member of such a group that has gone and may come back."""


IS_CONSUMER_GROUP = f"coalesce(group_type = '{CONSUMER}', false)"
"""Whether a row of members belongs to a group of the new protocol: boolean, never null."""


_NAME = r"(?!\.{1,2}(?![A-Za-z0-9._-]))[A-Za-z0-9._-]{1,249}"
_WHOLE_NAME = rf"\A{_NAME}\z"
_NAMES = rf'\A\[(?:"{_NAME}",?)*+\]\z'
"""A list of them as JSON."""
_TOPIC_ID = r"\A[A-Za-z0-9_-]{22}\z"
NAME_ADVICE = (
    "Kafka allows no such topic name (letters, digits, ., _ and -, at most 249 of them, neither . "
    "nor ..): a list of topics is written a;b, and a pattern belongs into topics_pattern"
)


class Rule(NamedTuple):
    """One rule about one column; all but the names are SQL over the columns of its table."""

    problem: str
    column: str
    broken: str
    value: str
    advice: str


def sql_text(value: str) -> str:
    """Write a text in SQL; one with a quote (') has no backslash."""
    return f"r'{value}'" if "'" not in value else "'" + value.replace("'", "\\'") + "'"


def sql_sentence(template: str, *values: str) -> str:
    """Write a sentence in SQL, with values, in SQL too, in the places of its {}; null if one is."""
    first, *others = template.split("{}")
    parts = [sql_text(first)]
    for value, after in zip(values, others, strict=True):
        parts += [f"cast({value} as string)", sql_text(after)]
    return f"concat({', '.join(part for part in parts if part != sql_text(''))})"


def member_rules() -> list[Rule]:
    """Return rules over ``schemas.MEMBERS``, patterns resolved: one that is left is unusable."""
    return [
        *(name_rule(column) for column in ("group_id", "member_id")),
        Rule(
            "topics_missing",
            "topics",
            "topics is null and topics_pattern is null and topics_regex is null",
            sql_text("null"),
            sql_text("give an empty array for a member that subscribes to nothing"),
        ),
        Rule(
            "topics_unnamed",
            "topics",
            # array_contains answers null where it finds nothing but meets a null.
            "topics is not null and coalesce(array_contains(topics, ''), true)",
            "to_json(topics)",
            sql_text("null and empty names are no topics: leave them out"),
        ),
        Rule(
            "topics_not_allowed",
            "topics",
            # One look at a member's list: a look at each of its names takes three times as long.
            f"not array_contains(topics, '') and not rlike(to_json(topics), {sql_text(_NAMES)})",
            f"""concat('"', get(filter(topics, name -> {is_refused_name("name")}), 0), '"')""",
            sql_text(NAME_ADVICE),
        ),
        Rule(
            "topics_pattern_unusable",
            "topics_pattern",
            "topics_pattern is not null and topics is null",
            sql_quoted("topics_pattern"),
            f"if({is_compiled('topics_pattern')} and {may_not_end_in_sql('topics_pattern')}, "
            f"{sql_text(UNENDING)}, {sql_text(NO_PATTERN)})",
        ),
        Rule(
            "topics_pattern_and_topics",
            "topics_pattern",
            "topics_pattern is not null and topics is not null",
            sql_quoted("topics_pattern"),
            sql_text("the member lists topics as well: a consumer has a pattern or a list"),
        ),
        integer_rule("generation", least=-1, where=f"not {IS_CONSUMER_GROUP}"),
        integer_rule("generation", least=STATIC_AWAY, where=IS_CONSUMER_GROUP),
        Rule(
            "group_type_unknown",
            "group_type",
            f"group_type not in ('classic', '{CONSUMER}')",
            sql_quoted("group_type"),
            sql_text("must be classic (null is the same) or consumer"),
        ),
        integer_rule("member_seq", least=0),
        Rule(
            "client_unknown",
            "client",
            f"not {is_one_of('client', CLIENTS)}",
            sql_quoted("client"),
            sql_text(f"must be one of {', '.join(CLIENTS)}; null is java"),
        ),
        Rule(
            "subscription_unreadable",
            "subscription",
            IS_UNREADABLE,
            "hex(subscription)",
            sql_text("these bytes are no subscription to the topics of the member"),
        ),
        Rule(
            "assignor_of_another_client",
            "assignor",
            " or ".join(
                f"client = '{client}' and assignor in ({', '.join(map(sql_text, lacking))})"
                for client, names in ASSIGNORS_OF_CLIENT.items()
                if (lacking := [name for name in ASSIGNORS if name not in names])
            ),
            sql_quoted("assignor"),
            sql_text("the member's client has no assignor of that name"),
        ),
    ]


def is_consumer_group() -> Column:
    """Return ``IS_CONSUMER_GROUP`` as a column."""
    return F.expr(IS_CONSUMER_GROUP)


def rules_of_topics(form: Table) -> list[Rule]:
    """Return the rules over ``schemas.TOPICS`` or ``schemas.TOPIC_PARTITIONS``."""
    names = [name_rule("topic"), _topic_name_rule()]
    if form is TOPICS:
        return [*names, *_count_rules("num_partitions", PARTITIONS_OF_A_TOPIC)]
    return [*names, *_count_rules("partition", PARTITIONS_OF_A_TOPIC - 1)]


def owned_rules(*, has_positions: bool = False) -> list[Rule]:
    """Return the rules over ``schemas.OWNED``, or ``OWNED_IN_ORDER`` if it has positions."""
    return [
        *(name_rule(column) for column in ("group_id", "member_id")),
        *partition_rules(),
        *([integer_rule("position", least=0)] if has_positions else []),
    ]


def partition_rules() -> list[Rule]:
    """Return the rules over topic and partition."""
    return [name_rule("topic"), _topic_name_rule(), *_count_rules("partition")]


def target_rules() -> list[Rule]:
    """Return rules over ``schemas.TARGET``."""
    return owned_rules(has_positions=True)


def topic_id_rules() -> list[Rule]:
    """Return rules over ``topics.topic_id``."""
    return [
        Rule(
            "topic_id_unknown",
            "topic_id",
            f"not rlike(topic_id, {sql_text(_TOPIC_ID)})",
            sql_quoted("topic_id"),
            sql_text("is not a topic id of Kafka: 22 characters of URL-safe base64"),
        )
    ]


def regex_rules() -> list[Rule]:
    """Return rules over ``members.topics_regex``, which has its problem beside it."""
    return [
        Rule(
            "topics_regex_refused",
            "topics_regex",
            f"{REGEX_PROBLEM} is not null",
            sql_quoted("topics_regex"),
            REGEX_PROBLEM,
        )
    ]


def is_refused_name(name: str) -> str:
    """Return in SQL whether Kafka refuses a non-empty name for a topic; null stays null."""
    return f"not rlike({name}, {sql_text(_WHOLE_NAME)})"


def any_broken(rules: list[Rule]) -> str:
    """Return in SQL whether a row breaks a rule: boolean, never null."""
    return "(" + " or ".join(f"coalesce({rule.broken}, false)" for rule in rules) + ")"


def name_rule(column: str) -> Rule:
    """Require a name in each row."""
    return Rule(
        f"{column}_missing",
        column,
        f"{column} is null or {column} = ''",
        sql_quoted(column),
        sql_text(f"every row needs a {column}, not null or empty"),
    )


def _topic_name_rule() -> Rule:
    broken = f"topic != '' and {is_refused_name('topic')}"
    return Rule("topic_not_allowed", "topic", broken, sql_quoted("topic"), sql_text(NAME_ADVICE))


def _count_rules(column: str, most: int = INT_MAX) -> list[Rule]:
    missing = Rule(
        f"{column}_missing",
        column,
        f"{column} is null",
        sql_text("null"),
        sql_text(f"every row needs a {column}"),
    )
    return [missing, integer_rule(column, least=0, most=most)]


def number_rule(column: str, least: float, most: float, advice: str, null_is: str) -> Rule:
    """Require a number from ``least`` to ``most``; ``null_is``, SQL, says whether null passes."""
    return Rule(
        f"{column}_out_of_range",
        column,
        # Spark takes NaN for more than any number.
        f"not coalesce({column} between {least!r} and {most!r}, {null_is})",
        f"coalesce(cast({column} as string), 'null')",
        sql_text(advice),
    )


def integer_rule(column: str, *, least: int, most: int = INT_MAX, where: str = "true") -> Rule:
    """Require a number from ``least`` to ``most``, of some rows; null passes."""
    return Rule(
        f"{column}_out_of_range",
        column,
        f"({column} not between {least} and {most}) and {where}",
        f"cast({column} as string)",
        sql_text(f"must be a whole number from {least} to {most}"),
    )


def is_one_of(column: str, names: Iterable[str]) -> str:
    """Return in SQL whether a string is one of these: null where it is null and there are some."""
    texts = ", ".join(map(sql_text, names))
    return f"{column} in ({texts})" if texts else "false"


def sql_quoted(column: str) -> str:
    """Show a string as messages do, in SQL: in quotes, or null."""
    return f"coalesce(concat('\"', {column}, '\"'), 'null')"
