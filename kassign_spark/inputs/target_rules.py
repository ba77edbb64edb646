"""Rules for topic ids, and for regexes and the last target of groups of the new protocol."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.problem_rows import Check, Problem, TableCheck
from kassign_spark.inputs.regexes import REGEX_PROBLEM, with_regex_problems
from kassign_spark.inputs.rules import (
    CONSUMER,
    IS_CONSUMER_GROUP,
    Rule,
    any_broken,
    is_consumer_group,
    owned_rules,
    sql_quoted,
    sql_sentence,
    sql_text,
)
from kassign_spark.limits import MEMBERS_OF_A_GROUP
from kassign_spark.schemas import GROUP_KEY, MEMBERS, TARGET, TOPICS

_TOPIC_ID = r"\A[A-Za-z0-9_-]{22}\z"


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


def target_suspects(members: DataFrame, target: DataFrame | None) -> DataFrame:
    """Count in each group what may be wrong; more than there is, never less; runs no job.

    Duplicate rows are found by their hashes, so two rows with equal hashes count too.

    Args:
        members: cluster_id string, group_id string, is_bad boolean, key struct<kind: string,
            hashed: bigint> (``suspect_key``; null: may be there twice), is_consumer boolean.
        target: ``schemas.TARGET``, conforming, or None.

    Returns:
        cluster_id string, group_id string, suspects bigint.
    """
    rows = members
    if target is not None:
        partition = suspect_key("partition", "xxhash64(topic, partition)")
        place = suspect_key("place", "xxhash64(member_id, position)")
        for is_bad, key in (
            (any_broken(target_rules()), partition),
            ("false", f"if(position is null, null, {place})"),
        ):
            more = f"{is_bad} as is_bad", f"{key} as key", "cast(null as boolean) as is_consumer"
            rows = rows.unionByName(target.selectExpr(*GROUP_KEY, *more))
    of_classic = "if(bool_and(not is_consumer), count_if(key.kind != 'member'), 0)"
    crowded = f"cast(count(is_consumer) > {MEMBERS_OF_A_GROUP} as int)"
    suspects = (
        f"count_if(is_bad) + count(key) - size(collect_set(key)) + {of_classic} + {crowded} "
        "as suspects"
    )
    return rows.groupBy(*GROUP_KEY).agg(F.expr(suspects))


def suspect_key(kind: str, hashed: str) -> str:
    """Return in SQL the key of a row among all kinds of rows of a group."""
    return f"named_struct('kind', '{kind}', 'hashed', {hashed})"


def consumer_checks(inputs: Inputs) -> list[Check | TableCheck]:
    """Return the checks of regexes of members, of topic ids and of the target."""
    members, topics, target = inputs.members, inputs.topics, inputs.target
    checks: list[Check | TableCheck] = []
    if inputs.has_regexes:
        checks.append(regex_check(members.where(IS_CONSUMER_GROUP)))
    if "topic_id" in topics.columns:
        checks.append(TableCheck(TOPICS, topics, topic_id_rules()))
        checks.append(differing_check(topics, "topic_id", "differing_topic_ids", sql_quoted))
    if target is not None:
        types = members.groupBy(*GROUP_KEY).agg(F.bool_or(is_consumer_group()).alias("is_consumer"))
        of_classic = target.join(types, on=list(GROUP_KEY)).where("not is_consumer")
        rows = {"rows": "count(*)"}
        checks += [
            TableCheck(TARGET, target, target_rules()),
            Check(of_classic, GROUP_KEY, [_TARGET_OF_CLASSIC_GROUP], rows),
            Check(target, [*GROUP_KEY, "member_id", "position"], [_POSITION_TWICE], rows),
            Check(target, [*GROUP_KEY, "topic", "partition"], [_TARGET_TWICE], rows),
        ]
    return checks


def regex_check(members: DataFrame) -> TableCheck:
    """Look for regexes that the broker refuses."""
    return TableCheck(MEMBERS, with_regex_problems(members), regex_rules())


def differing_check(
    topics: DataFrame, column: str, problem: str, show: Callable[[str], str] = str, unit: str = ""
) -> Check:
    """Look for topics that are given with two values of a column; ``show`` writes one in SQL."""
    detail = sql_sentence(
        f"table topics, column {column}: topic {{}} is given with {{}} and with {{}}{unit}: "
        "give each topic once",
        sql_quoted("topic"),
        show("least"),
        show("most"),
    )
    values = {"least": f"min({column})", "most": f"max({column})"}
    return Check(
        topics, ("cluster_id", "topic"), [Problem(problem, "least < most", detail)], values
    )


_TARGET_OF_CLASSIC_GROUP = Problem(
    "target_of_classic_group",
    "true",
    sql_sentence(
        f"table target, column group_id: {{}} is not of group_type {CONSUMER} in members: "
        "only such groups have one",
        sql_quoted("group_id"),
    ),
)
_POSITION_TWICE = Problem(
    "position_twice",
    "rows > 1 and position is not null",
    sql_sentence(
        "table target, column position: {} appears {} times for member {} of group {}: "
        "give each place in a member's list once",
        "position",
        "rows",
        sql_quoted("member_id"),
        sql_quoted("group_id"),
    ),
)
_TARGET_TWICE = Problem(
    "target_twice",
    "rows > 1",
    sql_sentence(
        "table target, column partition: {}-{} appears {} times of group {}: "
        "the coordinator gives a partition to one member",
        "topic",
        "partition",
        "rows",
        sql_quoted("group_id"),
    ),
)
