"""Refuse what has no meaning: one pass over the inputs, and one error that lists every problem."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, topics_table
from kassign_spark.errors import InputError
from kassign_spark.inputs.client_families import SIGNS, with_clients
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.regexes import with_regex_topics
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    Rule,
    member_rules,
    owned_rules,
    rules_of_topics,
    sql_quoted,
    sql_sentence,
    sql_text,
)
from kassign_spark.limits import (
    MEMBERS_OF_A_GROUP,
    PARTITIONS_OF_A_GROUP,
    PARTITIONS_OF_A_TOPIC,
)
from kassign_spark.schemas import GROUP_KEY, MEMBERS, OWNED, OWNED_IN_ORDER, TOPICS, Table
from kassign_spark.spark_versions import union_by_name
from kassign_spark.workers import check_workers

MAX_LISTED = 20
"""Problems that an error spells out; it counts the others."""

PROBLEM = ["cluster_id", "group_id", "member_id", "topic", "partition", "problem", "detail"]


class Inputs(NamedTuple):
    """The input tables, conforming to their schemas."""

    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None
    has_patterns: bool
    """Whether members may subscribe by a pattern that the client resolves."""
    has_regexes: bool
    """Whether members may subscribe by a regex that the broker resolves."""
    has_types: bool
    """Whether there may be groups whose coordinator assigns (KIP-848)."""
    has_positions: bool = False
    """Whether what is owned may be in the order of the members' lists."""

    def in_one_partition(self) -> "Inputs":
        """Each table in one partition: shuffled neither to be joined nor to be counted."""
        members, topics = self.members.coalesce(1), self.topics.coalesce(1)
        owned = None if self.owned is None else self.owned.coalesce(1)
        return self._replace(members=members, topics=topics, owned=owned)


def conform_inputs(members: DataFrame, topics: DataFrame, owned: DataFrame | None = None) -> Inputs:
    """Make the callers' tables conform to their schemas; runs no job.

    Raises:
        SchemaError: columns are missing or of the wrong type; lists every one of a table.
        SessionError: the server of Spark Connect does not answer.
        WorkerError: the session's Python workers run an interpreter without our packages.
    """
    check_workers(members.sparkSession)  # before a server is asked for any columns
    topics_form = topics_table(topics)
    check_same_clusters([(MEMBERS, members), (topics_form, topics), (OWNED, owned)])
    has_positions = owned is not None and "position" in owned.columns
    has_signs = not {*SIGNS}.isdisjoint(members.columns)
    members_in_order = conform(members, MEMBERS)
    return Inputs(
        with_clients(members_in_order) if has_signs else members_in_order,
        conform(topics, topics_form),
        None if owned is None else conform(owned, OWNED_IN_ORDER if has_positions else OWNED),
        has_patterns="topics_pattern" in members.columns,
        has_regexes="topics_regex" in members.columns,
        has_types="group_type" in members.columns,
        has_positions=has_positions,
    )


def resolve_topics(inputs: Inputs) -> Inputs:
    """Return members with the topics of their pattern or regex; runs no job."""
    members = inputs.members
    if inputs.has_patterns:
        members = with_topics(members, inputs.topics)
    if inputs.has_regexes:
        members = with_regex_topics(members, inputs.topics)
    return inputs._replace(members=members)


def refuse_problems(problems: DataFrame, order: Sequence[str] = ("problem", *PROBLEM[:5])) -> None:
    """Raise the error that lists problems, if there are any; runs a job.

    ``problems`` has detail string, a line each, and the columns of ``order``.

    Raises:
        InputError: every problem with its table, column and value, the first ``MAX_LISTED`` spelled
            out.
    """
    listed = problems.orderBy(*order).limit(MAX_LISTED + 1).collect()
    if listed:
        sentences = [row.detail for row in listed[:MAX_LISTED]]
        if len(listed) > MAX_LISTED:
            sentences.append(f"and {problems.count() - MAX_LISTED} more problems")
        raise InputError("; ".join(sentences))


def refuse_broken_rows(frame: DataFrame, table: Table) -> None:
    """Refuse an assignment, or what is owned, for rows that have no meaning; runs a job.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: rows break rules; the first ones are spelled out.
    """
    refuse_problems(broken_rows(table, conform(frame, table), owned_rules()))


def refusals(inputs: Inputs, assignors: Collection[str] | None) -> DataFrame:
    """List what an assignment is refused for.

    Args:
        inputs: conforming tables, patterns resolved.
        assignors: the known names, against which ``members.assignor`` is checked; None where the
            caller's own choice overrides that column.

    Returns:
        cluster_id string, group_id string, member_id string, topic string, partition bigint,
        problem string, detail string; empty where the inputs are fit for use.
    """
    problems = [
        row_refusals(inputs),
        group_conflicts(inputs.members),
        group_refusals(inputs.members, assignors),
        size_refusals(inputs),
    ]
    return union_by_name(problems)


def row_refusals(inputs: Inputs) -> DataFrame:
    """Return the part of ``refusals`` that concerns a single row or topic."""
    topics_form = topics_table(inputs.topics)
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


def group_refusals(members: DataFrame, assignors: Collection[str] | None) -> DataFrame:
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


def size_refusals(inputs: Inputs) -> DataFrame:
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
    """A group with more than a limit allows: the problem, and its detail, in SQL."""
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


def to_problems(
    frame: DataFrame, problem: str, detail: str, about: Sequence[str] = GROUP_KEY
) -> DataFrame:
    """Return ``frame`` with the columns of a problem.

    Args:
        frame: a row for each problem.
        problem: its name; empty where a column has it.
        detail: SQL.
        about: the columns of a problem that the frame has; to ask it for them would take a server
            of Spark Connect as long as a small query.
    """
    types = {"partition": "bigint"}
    columns = (
        f"cast({name if name in about else 'null'} as {types.get(name, 'string')}) as {name}"
        for name in PROBLEM[:5]
    )
    named = f"'{problem}' as problem" if problem else "problem"
    return frame.selectExpr(*columns, named, f"{detail} as detail")


def broken_rows(table: Table, frame: DataFrame, rules: list[Rule]) -> DataFrame:
    """List the rows of a conforming table that break rules: the columns of a problem."""
    names = table.columns.names
    keys = [column for column in ("group_id", "member_id", "topic") if column in names]
    named = ", ".join(
        f"if({column} is null, '', concat(' {column}=', {sql_quoted(column)}))" for column in keys
    )
    place = f"if(concat({named}) = '', '', concat(' (at', {named}, ')'))"
    cases = []
    for rule in rules:
        about = f"table {table.name}, column {rule.column}: {{}}{{}}: {{}}"
        detail = sql_sentence(about, rule.value, place, rule.advice)
        problem = f"named_struct('problem', '{rule.problem}', 'detail', {detail})"
        cases.append(f"if({rule.broken}, {problem}, null)")
    found_in_row = f"inline(array_compact(array({', '.join(cases)})))"
    return to_problems(frame.selectExpr("*", found_in_row), "", "detail", names)


def _duplicate_members(members: DataFrame) -> DataFrame:
    duplicates = members.groupBy(*GROUP_KEY, "member_id").agg(F.count("*").alias("rows"))
    named = duplicates.where("rows > 1 and member_id != '' and group_id != ''")
    about = (*GROUP_KEY, "member_id")
    return to_problems(named, "duplicate_member", duplicate_says("rows"), about)


def duplicate_says(rows: str, table: str = "members") -> str:
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


def given_differently(
    topics: DataFrame, column: str, problem: str, values: Sequence[str], unit: str = ""
) -> DataFrame:
    """List topics that are given with two values of a column: the columns of a problem.

    ``values`` is SQL over the ``least`` and the ``most``.
    """
    ranges = topics.groupBy("cluster_id", "topic").agg(
        F.min(column).alias("least"), F.max(column).alias("most")
    )
    detail = sql_sentence(
        f"table topics, column {column}: topic {{}} is given with {{}} and with {{}}{unit}: "
        "give each topic once",
        sql_quoted("topic"),
        *values,
    )
    return to_problems(ranges.where("least < most"), problem, detail, ("cluster_id", "topic"))


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
