"""Rules for the last target of groups of the new protocol, and for topic ids."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.problem_rows import broken_rows, given_differently, to_problems
from kassign_spark.inputs.regexes import REGEX_PROBLEM, with_regex_problems
from kassign_spark.inputs.rules import (
    CONSUMER,
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
from kassign_spark.spark_versions import union_by_name

_TOPIC_ID = r"\A[A-Za-z0-9_-]{22}\z"
_PARTITION_KEY = [*GROUP_KEY, "topic", "partition"]


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


def _target_problems(target: DataFrame, members: DataFrame) -> DataFrame:
    """Find what no single row of a target shows: the columns of a problem.

    Rows of groups that are not of group_type consumer, positions given twice, partitions given
    twice.
    """
    types = members.groupBy(*GROUP_KEY).agg(F.bool_or(is_consumer_group()).alias("is_consumer"))
    foreign = (
        target.groupBy(*GROUP_KEY)
        .agg(F.count("*").alias("rows"))
        .join(types, on=list(GROUP_KEY), how="inner")
        .where(~F.col("is_consumer"))
    )
    twice = target.groupBy(*GROUP_KEY, "member_id", "position").agg(F.count("*").alias("rows"))
    twice = twice.where((F.col("rows") > 1) & F.col("position").isNotNull())
    shared = target.groupBy(*_PARTITION_KEY).agg(F.count("*").alias("rows"))
    problems = [
        to_problems(
            foreign,
            "target_of_classic_group",
            sql_sentence(
                f"table target, column group_id: {{}} is not of group_type {CONSUMER} in members: "
                "only such groups have one",
                sql_quoted("group_id"),
            ),
        ),
        to_problems(
            twice,
            "position_twice",
            sql_sentence(
                "table target, column position: {} appears {} times for member {} of group {}: "
                "give each place in a member's list once",
                "position",
                "rows",
                sql_quoted("member_id"),
                sql_quoted("group_id"),
            ),
            (*GROUP_KEY, "member_id"),
        ),
        to_problems(
            shared.where("rows > 1"),
            "target_twice",
            sql_sentence(
                "table target, column partition: {}-{} appears {} times of group {}: "
                "the coordinator gives a partition to one member",
                "topic",
                "partition",
                "rows",
                sql_quoted("group_id"),
            ),
            _PARTITION_KEY,
        ),
    ]
    return union_by_name(problems)


def consumer_problems(inputs: Inputs, members: DataFrame) -> list[DataFrame]:
    """List what is wrong with regexes of members, topic ids and a target: columns of a problem."""
    problems = []
    if inputs.has_regexes:
        problems.append(broken_rows(MEMBERS, with_regex_problems(members), regex_rules()))
    if "topic_id" in inputs.topics.columns:
        details = [sql_quoted("least"), sql_quoted("most")]
        problems.append(broken_rows(TOPICS, inputs.topics, topic_id_rules()))
        problems.append(
            given_differently(inputs.topics, "topic_id", "differing_topic_ids", details)
        )
    if inputs.target is not None:
        problems.append(broken_rows(TARGET, inputs.target, target_rules()))
        problems.append(_target_problems(inputs.target, inputs.members))
    return problems
