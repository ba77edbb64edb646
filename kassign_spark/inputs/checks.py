"""What an assignment is refused for: the checks of its inputs."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.problem_rows import Check, Problem, TableCheck
from kassign_spark.inputs.regexes import with_regex_problems, with_regex_topics
from kassign_spark.inputs.rules import (
    CONSUMER,
    IS_CONSUMER_GROUP,
    is_consumer_group,
    is_one_of,
    member_rules,
    owned_rules,
    regex_rules,
    rules_of_topics,
    sql_quoted,
    sql_sentence,
    sql_text,
    target_rules,
    topic_id_rules,
)
from kassign_spark.limits import (
    MEMBERS_OF_A_GROUP,
    PARTITIONS_OF_A_GROUP,
    PARTITIONS_OF_A_TOPIC,
)
from kassign_spark.schemas import GROUP_KEY, MEMBERS, OWNED, TARGET, TOPICS, Table

CONFLICTS = {
    "several_leaders": "count_if(is_leader) > 1",
    "group_type_mixed": f"bool_or({IS_CONSUMER_GROUP}) and not bool_and({IS_CONSUMER_GROUP})",
}
"""By the problem: whether the members of a group have it, in SQL."""
_CONFLICT_DETAILS = {
    "several_leaders": "table members, column is_leader: group {} has more than one leader; name "
    "one or none",
    "group_type_mixed": "table members, column group_type: group {} has members of both types; a "
    "group is classic or consumer",
}
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


class SizeLimit(NamedTuple):
    """The most that a group may have of something, ``most``; ``excess`` says how many it has."""

    column: str
    excess: str
    most: int


TOO_LARGE = {
    "group_has_too_many_members": SizeLimit("member_id", "has {} members", MEMBERS_OF_A_GROUP),
    "group_reads_too_much": SizeLimit("topics", "reads {} partitions", PARTITIONS_OF_A_GROUP),
}
"""By the problem of groups beyond it."""


def input_checks(
    inputs: Inputs, assignors: Collection[str] | None, *, both_types: bool = False
) -> list[Check | TableCheck]:
    """Return the checks of an assignment's inputs; any problem that they find refuses it.

    Args:
        inputs: conforming tables, patterns resolved.
        assignors: the known names, against which ``members.assignor`` is checked; None where the
            caller's own choice overrides that column.
        both_types: whether groups of group_type `consumer` are assigned by their coordinator: their
            members vote, may differ, have no vote or a regex, and the group may have a target.
    """
    members, topics = inputs.members, inputs.topics
    checks = [*row_checks(inputs), conflict_check(members), _duplicate_check(members)]
    if both_types:
        checks += [vote_check(members), *_topic_id_checks(topics)]
        if inputs.target is not None:
            checks += _target_checks(members, inputs.target)
    if assignors is not None:
        is_classic = f"not {IS_CONSUMER_GROUP}" if both_types else "true"
        checks.append(_assignor_check(members.where(is_classic), assignors))
    if both_types and inputs.has_regexes:
        checks.append(regex_check(members.where(IS_CONSUMER_GROUP)))
        members = with_regex_topics(members, topics)
    return [*checks, *_size_checks(members, topics)]


def row_checks(inputs: Inputs) -> list[Check | TableCheck]:
    """Return the part of ``input_checks`` that concerns a single row or topic."""
    form = inputs.topics_form
    checks: list[Check | TableCheck] = [
        TableCheck(MEMBERS, inputs.members, member_rules()),
        TableCheck(form, inputs.topics, rules_of_topics(form)),
        _topic_check(inputs.topics, form),
    ]
    if inputs.owned is not None:
        rules = owned_rules(has_positions=inputs.has_positions)
        checks.append(TableCheck(OWNED, inputs.owned, rules))
    return checks


def conflict_check(members: DataFrame) -> Check:
    """Look for groups whose members cannot be of one group."""
    problems = [
        Problem(name, name, sql_sentence(detail, sql_quoted("group_id")))
        for name, detail in _CONFLICT_DETAILS.items()
    ]
    return Check(members.where("group_id != ''"), GROUP_KEY, problems, CONFLICTS)


def vote_check(members: DataFrame) -> Check:
    """Look for members of groups of the new protocol whose assignor the coordinator lacks.

    A broker refuses such a member (UNSUPPORTED_ASSIGNOR).
    """
    detail = sql_sentence(
        "table members, column assignor: {} of member {} of group {}: the coordinator has no such "
        f"assignor; known are {', '.join(sorted(COORDINATOR_ASSIGNORS))}",
        *map(sql_quoted, ("assignor", "member_id", "group_id")),
    )
    is_unknown = f"not {is_one_of('assignor', COORDINATOR_ASSIGNORS)}"
    problem = Problem("assignor_unusable", is_unknown, detail)
    return Check(members.where(IS_CONSUMER_GROUP), (*GROUP_KEY, "member_id"), [problem])


def _target_checks(members: DataFrame, target: DataFrame) -> list[Check | TableCheck]:
    """Return the checks of a target beside the members of its groups, both conforming."""
    types = members.groupBy(*GROUP_KEY).agg(F.bool_or(is_consumer_group()).alias("is_consumer"))
    of_classic = target.join(types, on=list(GROUP_KEY)).where("not is_consumer")
    rows = {"rows": "count(*)"}
    return [
        TableCheck(TARGET, target, target_rules()),
        Check(of_classic, GROUP_KEY, [_TARGET_OF_CLASSIC_GROUP], rows),
        Check(target, [*GROUP_KEY, "member_id", "position"], [_POSITION_TWICE], rows),
        Check(target, [*GROUP_KEY, "topic", "partition"], [_TARGET_TWICE], rows),
    ]


def _duplicate_check(members: DataFrame) -> Check:
    problem = Problem("duplicate_member", "rows > 1", describe_duplicate("rows"))
    identified = members.where("member_id != '' and group_id != ''")
    return Check(identified, (*GROUP_KEY, "member_id"), [problem], {"rows": "count(*)"})


def describe_duplicate(rows: str, table: str = "members") -> str:
    """Return the detail for a member that appears more than once."""
    return sql_sentence(
        f"table {table}, column member_id: {{}} appears {{}} times in group {{}}: "
        "give each member once",
        sql_quoted("member_id"),
        rows,
        sql_quoted("group_id"),
    )


def _assignor_check(members: DataFrame, names: Collection[str]) -> Check:
    problem = Problem("assignor_unusable", "true", assignor_problem("named", names))
    named = "array_sort(collect_set(coalesce(assignor, '')))"
    return Check(members, GROUP_KEY, [problem], {"named": named})


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


def _size_checks(members: DataFrame, topics: DataFrame) -> list[Check]:
    """Look for groups beyond ``limits``; the topics that a regex finds are among the members'."""
    size = "num_partitions" if "num_partitions" in topics.columns else "try_add(partition, 1)"
    # Of a topic beyond its own limit more need not be known: their sum must fit its type.
    size = f"least(max({size}), {PARTITIONS_OF_A_TOPIC}) as size"
    sizes = topics.groupBy("cluster_id", "topic").agg(F.expr(size))
    topics_read = members.selectExpr(*GROUP_KEY, "explode(topics) as topic").distinct()
    counts = {
        "group_has_too_many_members": (members, "count(*)"),
        "group_reads_too_much": (topics_read.join(sizes, ["cluster_id", "topic"]), "sum(size)"),
    }
    checks = []
    for name, (rows, count) in counts.items():
        is_too_large = f"number > {TOO_LARGE[name].most}"
        problem = Problem(name, is_too_large, describe_too_large(name, "number"))
        checks.append(Check(rows, GROUP_KEY, [problem], {"number": count}))
    return checks


def describe_too_large(problem: str, number: str) -> str:
    """Return the detail, in SQL, for a group beyond a limit."""
    column, excess, most = TOO_LARGE[problem]
    about = (
        f"table members, column {column}: group {{}} {excess}; at most {most:,} are taken; "
        "leave it out"
    )
    return sql_sentence(about, sql_quoted("group_id"), f"format_number({number}, 0)")


def regex_check(members: DataFrame) -> TableCheck:
    """Look for regexes that the broker refuses."""
    return TableCheck(MEMBERS, with_regex_problems(members), regex_rules())


def _topic_id_checks(topics: DataFrame) -> list[Check | TableCheck]:
    if "topic_id" not in topics.columns:
        return []
    return [
        TableCheck(TOPICS, topics, topic_id_rules()),
        _differing_check(topics, "topic_id", "differing_topic_ids", sql_quoted),
    ]


def _topic_check(topics: DataFrame, form: Table) -> Check:
    """Look for topics with two counts, or with partitions missing between."""
    if form is TOPICS:
        return _differing_check(topics, "num_partitions", "differing_counts", unit=" partitions")
    detail = sql_sentence(
        "table topics, column partition: topic {} has {} of the partitions 0..{}: "
        "give all of them, or their count as num_partitions",
        sql_quoted("topic"),
        "number",
        "last",
    )
    values = {"number": "count(distinct partition)", "last": "max(partition)"}
    gap = Problem("partition_gap", "number <= last", detail)
    return Check(topics, ("cluster_id", "topic"), [gap], values)


def _differing_check(
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
