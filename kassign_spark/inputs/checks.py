"""What an assignment is refused for: every problem of its inputs, in one frame."""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.problem_rows import broken_rows, given_differently, to_problems
from kassign_spark.inputs.regexes import with_regex_topics
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    is_consumer_group,
    member_rules,
    owned_rules,
    rules_of_topics,
    sql_quoted,
    sql_sentence,
    sql_text,
)
from kassign_spark.inputs.target_rules import consumer_problems
from kassign_spark.limits import (
    MEMBERS_OF_A_GROUP,
    PARTITIONS_OF_A_GROUP,
    PARTITIONS_OF_A_TOPIC,
)
from kassign_spark.schemas import GROUP_KEY, MEMBERS, OWNED, TOPIC_PARTITIONS, TOPICS
from kassign_spark.spark_versions import union_by_name


def refusals(
    inputs: Inputs, assignors: Collection[str] | None, *, both_types: bool = False
) -> DataFrame:
    """List what an assignment is refused for.

    Args:
        inputs: conforming tables, patterns resolved.
        assignors: the known names, against which ``members.assignor`` is checked; None where the
            caller's own choice overrides that column.
        both_types: whether groups of group_type `consumer` are assigned by their coordinator: their
            members vote, may differ, have no vote or a regex, and the group may have a target.

    Returns:
        cluster_id string, group_id string, member_id string, topic string, partition bigint,
        problem string, detail string; empty where the inputs are fit for use.
    """
    classic, reading = inputs.members, inputs
    problems = [row_refusals(inputs), group_conflicts(inputs.members)]
    if both_types:
        classic = inputs.members.where(~is_consumer_group())
        consumer = inputs.members.where(is_consumer_group())
        if inputs.has_regexes:
            reading = inputs._replace(members=with_regex_topics(inputs.members, inputs.topics))
        problems += [
            _group_refusals(consumer, None),
            unknown_assignors(consumer, COORDINATOR_ASSIGNORS),
            *consumer_problems(inputs, consumer),
        ]
    problems += [_group_refusals(classic, assignors), _size_refusals(reading)]
    return union_by_name(problems)


def row_refusals(inputs: Inputs) -> DataFrame:
    """Return the part of ``refusals`` that concerns a single row or topic."""
    topics_form = TOPICS if "num_partitions" in inputs.topics.columns else TOPIC_PARTITIONS
    problems = [
        broken_rows(MEMBERS, inputs.members, member_rules()),
        broken_rows(topics_form, inputs.topics, rules_of_topics(inputs.topics)),
    ]
    if topics_form is TOPICS:
        counts = given_differently(
            inputs.topics, "num_partitions", "differing_counts", ["least", "most"], " partitions"
        )
        problems.append(counts)
    else:
        problems.append(_partition_gaps(inputs.topics))
    if inputs.owned is not None:
        rules = owned_rules(has_positions=inputs.has_positions)
        problems.append(broken_rows(OWNED, inputs.owned, rules))
    return union_by_name(problems)


def _group_refusals(members: DataFrame, assignors: Collection[str] | None) -> DataFrame:
    """Return the part of ``refusals`` that concerns a group."""
    duplicates = _duplicate_members(members)
    if assignors is None:
        return duplicates
    return duplicates.unionByName(_assignor_problems(members, assignors))


def group_conflicts(members: DataFrame) -> DataFrame:
    """List groups whose members cannot be of one group: the columns of a problem."""
    groups = members.where("group_id != ''").groupBy(*GROUP_KEY)
    of_groups = groups.agg(*(F.expr(rule).alias(name) for name, (rule, _) in CONFLICTS.items()))
    group_id = sql_quoted("group_id")
    cases = (
        f"if({name}, named_struct('problem', '{name}', 'detail', {sql_sentence(reason, group_id)})"
        ", null)"
        for name, (_, reason) in CONFLICTS.items()
    )
    conflicts = of_groups.selectExpr("*", f"inline(array_compact(array({', '.join(cases)})))")
    return to_problems(conflicts, "", "detail")


CONFLICTS = {
    "several_leaders": (
        "count_if(is_leader) > 1",
        "table members, column is_leader: group {} has more than one leader; name one or none",
    ),
    "group_type_mixed": (
        f"bool_or({IS_CONSUMER_GROUP}) and not bool_and({IS_CONSUMER_GROUP})",
        "table members, column group_type: group {} has members of both types; a group is classic "
        "or consumer",
    ),
}
"""By the problem: whether the members of a group have it, in SQL, and what is said of the group."""


def _size_refusals(inputs: Inputs) -> DataFrame:
    """Return the part of ``refusals`` for groups beyond ``limits``."""
    counted = inputs.members.groupBy(*GROUP_KEY).agg(F.count("*").alias("number"))
    most = f"number > {MEMBERS_OF_A_GROUP}"
    crowded = to_problems(counted.where(most), *too_large("group_has_too_many_members", "number"))
    size = (
        "num_partitions" if "num_partitions" in inputs.topics.columns else "try_add(partition, 1)"
    )
    sizes = inputs.topics.groupBy("cluster_id", "topic").agg(F.expr(f"max({size}) as size"))
    reading = inputs.members.selectExpr(*GROUP_KEY, "explode(topics) as topic").distinct()
    read = reading.join(sizes, ["cluster_id", "topic"]).groupBy(*GROUP_KEY)
    # Of a topic beyond its own limit more need not be known: their sum must fit its type.
    summed = read.agg(F.expr(f"sum(least(size, {PARTITIONS_OF_A_TOPIC})) as number"))
    wide = summed.where(f"number > {PARTITIONS_OF_A_GROUP}")
    return crowded.unionByName(to_problems(wide, *too_large("group_reads_too_much", "number")))


def too_large(problem: str, number: str) -> tuple[str, str]:
    """Return the problem and the detail, in SQL, of a group beyond a limit."""
    column, reason = TOO_LARGE[problem]
    about = f"table members, column {column}: group {{}} {reason}; leave it out"
    return problem, sql_sentence(about, sql_quoted("group_id"), f"format_number({number}, 0)")


TOO_LARGE = {
    "group_has_too_many_members": (
        "member_id",
        f"has {{}} members; at most {MEMBERS_OF_A_GROUP:,} are taken",
    ),
    "group_reads_too_much": (
        "topics",
        f"reads {{}} partitions; at most {PARTITIONS_OF_A_GROUP:,} are taken",
    ),
}


def _duplicate_members(members: DataFrame) -> DataFrame:
    duplicates = members.groupBy(*GROUP_KEY, "member_id").agg(F.count("*").alias("rows"))
    named = duplicates.where("rows > 1 and member_id != '' and group_id != ''")
    about = (*GROUP_KEY, "member_id")
    return to_problems(named, "duplicate_member", describe_duplicate("rows"), about)


def describe_duplicate(rows: str, table: str = "members") -> str:
    """Return the detail for a member that appears more than once."""
    return sql_sentence(
        f"table {table}, column member_id: {{}} appears {{}} times in group {{}}: "
        "give each member once",
        sql_quoted("member_id"),
        rows,
        sql_quoted("group_id"),
    )


def _assignor_problems(members: DataFrame, known: Collection[str]) -> DataFrame:
    groups = members.groupBy(*GROUP_KEY).agg(
        F.expr("array_sort(collect_set(coalesce(assignor, ''))) as named")
    )
    detail = assignor_problem("named", known)
    return to_problems(groups.where(f"{detail} is not null"), "assignor_unusable", detail)


def assignor_problem(named: str, known: Collection[str]) -> str:
    """Return the problem with a group's assignors: sorted distinct names, null as empty.

    Null where nothing is.
    """
    usable = ", ".join(map(sql_text, ["", *sorted(known)]))
    unknown = sql_text(f"unknown assignor; known are {', '.join(sorted(known))}")
    several = sql_text("the members of a group use one assignor; name one for all of them")
    unnamed = sql_text("no assignor is named; fill in the column or choose one for all groups")
    advice = (
        f"case when size(array_except({named}, array({usable}))) > 0 then {unknown} "
        f"when size({named}) > 1 then {several} when get({named}, 0) = '' then {unnamed} end"
    )
    names = f"""array_join(transform({named}, n -> if(n = '', 'null', n)), '", "')"""
    return sql_sentence(
        'table members, column assignor: "{}" of group {}: {}',
        names,
        sql_quoted("group_id"),
        advice,
    )


def unknown_assignors(members: DataFrame, known: Collection[str]) -> DataFrame:
    """List members of groups of the new protocol that vote for an assignor which is not known.

    Returns:
        The columns of a problem; a broker refuses such a member (UNSUPPORTED_ASSIGNOR).
    """
    detail = sql_sentence(
        "table members, column assignor: {} of member {} of group {}: the coordinator has no such "
        f"assignor; known are {', '.join(sorted(known))}",
        *map(sql_quoted, ("assignor", "member_id", "group_id")),
    )
    unknown = members.where(~F.col("assignor").isin(*known))
    return to_problems(unknown, "assignor_unusable", detail, (*GROUP_KEY, "member_id"))


def _partition_gaps(topics: DataFrame) -> DataFrame:
    counts = topics.groupBy("cluster_id", "topic").agg(
        F.count_distinct("partition").alias("given"), F.max("partition").alias("last")
    )
    detail = sql_sentence(
        "table topics, column partition: topic {} has {} of the partitions 0..{}: "
        "give all of them, or their count as num_partitions",
        sql_quoted("topic"),
        "given",
        "last",
    )
    gaps = counts.where("given <= last")
    return to_problems(gaps, "partition_gap", detail, ("cluster_id", "topic"))
