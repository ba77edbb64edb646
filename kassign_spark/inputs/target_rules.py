"""What the last target of groups of the new protocol must hold, and the topic ids beside it."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.checks import (
    Inputs,
    as_problems,
    broken_rows,
    refuse_problems,
)
from kassign_spark.inputs.rules import (
    CONSUMER,
    Rule,
    integer_rule,
    is_consumer_group,
    owned_rules,
    quoted,
)
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_TOPIC_ID = r"\A[A-Za-z0-9_-]{22}\z"
_PARTITION_KEY = [*GROUP_KEY, "topic", "partition"]


def target_rules() -> list[Rule]:
    """Rules over ``schemas.TARGET``."""
    return [*owned_rules(), integer_rule("position", least=0)]


def topic_id_rules() -> list[Rule]:
    """Rules over ``topics.topic_id``."""
    return [
        Rule(
            "topic_id_unknown",
            "topic_id",
            ~F.rlike("topic_id", F.lit(_TOPIC_ID)),
            quoted("topic_id"),
            "is no topic id of Kafka: 22 characters of URL-safe base64",
        )
    ]


def regex_rules() -> list[Rule]:
    """Rules over ``members.topics_regex``, a pattern that the broker resolves with RE2/J.

    Here ``java.util.regex`` resolves it, which reads all that RE2/J reads, but for a few things:
    what it would read in another way is refused here, as is what RE2/J itself refuses.
    """
    regex = F.col("topics_regex")
    is_java = F.try_reflect(F.lit("java.util.regex.Pattern"), F.lit("compile"), regex).isNotNull()
    bare = F.regexp_replace(regex, r"\\[^0-9kQE]", "")  # without harmless escapes
    outside = F.regexp_replace(bare, r"\[\^?\]?[^\]]*\]", "C")  # and without classes
    return [
        Rule(
            "topics_regex_refused",
            "topics_regex",
            F.rlike(outside, F.lit(r"\(\?(=|!|<=|<!|>)|[*+?}]\+|\\[1-9k]")),
            quoted("topics_regex"),
            "the broker refuses it (INVALID_REGULAR_EXPRESSION): RE2/J has no look-around, back "
            "references, atomic groups or possessive quantifiers",
        ),
        Rule(
            "topics_regex_unusable",
            "topics_regex",
            regex.isNotNull()
            & ((regex == "") | ~is_java | F.rlike(bare, F.lit(r"\\[QE0]|\[[^\]]*(\[|&&)"))),
            quoted("topics_regex"),
            "is not resolved here: not a pattern, or one with \\Q, \\0, a class in a class or &&, "
            "which java.util.regex reads in another way than the broker's RE2/J",
        ),
    ]


def refuse_target(target: DataFrame, inputs: Inputs) -> None:
    """Refuse a target that has no meaning; runs a query.

    Raises:
        InputError: lists every problem.
    """
    of_rows = broken_rows("target", target, target_rules())
    found = of_rows.unionByName(target_problems(target, inputs.members))
    if "topic_id" in inputs.topics.columns:
        found = found.unionByName(differing_topic_ids(inputs.topics))
    refuse_problems(found)


def target_problems(target: DataFrame, members: DataFrame) -> DataFrame:
    """Find what no single row of a target shows.

    Args:
        target: ``schemas.TARGET``, conforming.
        members: ``schemas.MEMBERS``, conforming.

    Returns:
        The columns of a problem: rows of groups that are not of group_type consumer, positions
        given twice, partitions given twice.
    """
    group = F.concat(F.lit(" of group "), quoted("group_id"))
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
    found = [
        as_problems(
            foreign,
            "target_of_classic_group",
            F.concat(
                F.lit("table target, column group_id: "),
                quoted("group_id"),
                F.lit(f" is not of group_type {CONSUMER} in members: only such groups have one"),
            ),
        ),
        as_problems(
            twice,
            "position_twice",
            F.concat(
                F.lit("table target, column position: "),
                F.col("position").cast("string"),
                F.lit(" is there "),
                F.col("rows").cast("string"),
                F.lit(" times for member "),
                quoted("member_id"),
                group,
                F.lit(": give each place in a member's list once"),
            ),
        ),
        as_problems(
            shared.where("rows > 1"),
            "target_twice",
            F.concat(
                F.lit("table target, column partition: "),
                _partition(),
                F.lit(" is there "),
                F.col("rows").cast("string"),
                F.lit(" times"),
                group,
                F.lit(": the coordinator gives a partition to one member"),
            ),
        ),
    ]
    return reduce(DataFrame.unionByName, found)


def differing_topic_ids(topics: DataFrame) -> DataFrame:
    """Find topics that are given with two ids.

    Args:
        topics: ``schemas.TOPICS``, conforming, with topic_id.

    Returns:
        The columns of a problem.
    """
    ids = topics.groupBy(CLUSTER_ID, "topic").agg(
        F.min("topic_id").alias("least"), F.max("topic_id").alias("most")
    )
    says = F.concat(
        F.lit("table topics, column topic_id: topic "),
        quoted("topic"),
        F.lit(" is given with "),
        quoted("least"),
        F.lit(" and with "),
        quoted("most"),
        F.lit(": give each topic once"),
    )
    return as_problems(ids.where("least < most"), "differing_topic_ids", says)


def _partition() -> Column:
    return F.concat(F.col("topic"), F.lit("-"), F.col("partition").cast("string"))
