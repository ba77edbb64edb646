"""From the classic protocol to the new one (KIP-848), and back: every group, member by member."""

from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.conforming import (
    check_same_clusters,
    conform,
    has_cluster_id,
    short_assignor,
)
from kassign_spark.errors import InputError
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, rows, run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.patterns import INTERNAL_TOPICS
from kassign_spark.inputs.re2j import READ_OTHERWISE
from kassign_spark.inputs.regexes import regex_problem, with_regex_topics
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.results import to_result
from kassign_spark.schemas import GROUP_KEY, MEMBERS, table_of
from kassign_spark.settings.client_settings import refused_as_consumer
from kassign_spark.spark.iteration import materialize
from kassign_spark.whatif.migrate_kernel import CLIENT, DECLARED, MIGRATED, ORDER, migrate_arrow
from kassign_spark.whatif.migration_rules import (
    CLASSIC,
    CONSUMER,
    NO_LIMIT,
    PATTERN_FINDINGS,
    POLICIES,
    BrokerRules,
)

RESTARTS = table_of("order", "cluster_id string?, group_id string, member_id string, position int")
"""In which order members restart; those that are not in it come last."""
TO = {CONSUMER: COORDINATOR_ASSIGNORS, CLASSIC: KAFKAS}
"""The protocols, and the assignors that a group can have in each, the default one first."""


class Migration(NamedTuple):
    """The steps of a migration and its verdicts; columns as described in ``migrate``.

    Attributes:
        steps: what each restart does: who pauses, and what moves.
        verdicts: one row per group, whether it can go over, and why not.
    """

    steps: DataFrame
    verdicts: DataFrame


def migrate(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    to: str = CONSUMER,
    order: DataFrame | None = None,
    assignor: str | None = None,
    policy: str = POLICIES[0],
    max_size: int = NO_LIMIT,
    clients: DataFrame | None = None,
) -> Migration:
    """Check whether every group can change its protocol, and what each restart does.

    Members are restarted one after the other, each with the other protocol, and each change
    settles before the next one (kip-848.md, 8). A static member takes its own place, for free; a
    dynamic one leaves and joins, which are two changes unless it is back within a second. New
    members have ids that nobody knows yet: they are drawn, always the same for the same names.
    Counts hardly depend on them; which partitions move does. A group is answered inside a task.

    Args:
        members: ``schemas.MEMBERS``; groups that have the protocol ``to`` already are left out.
        topics: ``schemas.TOPICS``; topic_id decides between topics.
        owned: ``schemas.OWNED``: what members own when all have settled; of consumer groups, that
            is their target.
        to: `consumer` or `classic`.
        order: group_id, member_id, position int (cluster_id as the others): which member restarts
            when; None, and for members that are not in it: static ones first, then by id.
        assignor: that the group has in the end, `uniform` (or `range`) or one of Kafka's client;
            None: `uniform`, or the client's default, `range`. A classic group starts from the
            one that its members name, `range` where that is none of Kafka's.
        policy: ``group.consumer.migration.policy`` of the broker.
        max_size: ``group.consumer.max.size``, or ``group.max.size`` on the way back.
        clients: as in ``check_settings``; clients belong to the group of their `group.id`.

    Returns:
        steps: cluster_id string (where the inputs have it), group_id string, step int (from 1),
            member_id string: which restarts, by its id before, event string: `leave`, `join`, or
            `replace` (static), group_type string: of the group after it, is_rebalance boolean:
            whether anything is assigned anew, moved bigint: partitions that go from one member to
            another, paused bigint: partitions that a member which stays stops reading for a
            while, unread bigint: partitions of the member that goes, which nobody reads until the
            step is over, pausing_members `array<string>`, may_lose_members `array<string>`:
            classic ones whose listeners get `onPartitionsLost` if this step comes before the
            one before has settled, moves `array<struct<topic string, partition int,
            from_member_id string, to_member_id string>>`.
        verdicts: cluster_id string (where the inputs have it), group_id string, verdict string
            (`ready` | `risky` | `blocked`), way string: `online`, `offline` (stop all members
            first; where there is one, its restart does that) or null (neither before what blocks
            is mended), detail string (why; null where
            ready), member_count int, static_count int, step_count int, moved bigint and
            paused bigint: sums of the steps, end_moved bigint: partitions whose member is another
            one in the end, next_moved bigint: what the first change after the last step moves
            besides, cross_rack_before bigint, cross_rack_after bigint: as cross_rack_count of
            ``balance``; null where racks are not known. Without ``owned``, all about partitions
            is null. Steps of blocked groups are what would happen if nothing blocked.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    target_assignor = _choose_assignor(to, assignor, policy, max_size)
    check_same_clusters([(MEMBERS, members), (RESTARTS, order)])
    inputs = conform_inputs(members, topics, owned)
    is_of_old_type = is_consumer_group() if to == CLASSIC else ~is_consumer_group()
    candidates = inputs._replace(members=inputs.members.where(is_of_old_type))
    candidate_members = candidates.members
    if to == CLASSIC and candidates.has_regexes:
        candidates = candidates._replace(
            members=with_regex_topics(candidates.members, candidates.topics)
        )
    eligible = inspect_inputs(candidates, None, topic_ids=True).eligible
    table = fold(eligible).unionByName(_stated_patterns(candidate_members))
    if order is not None:
        table = table.unionByName(_restarts(order, candidate_members))
    if clients is not None and to == CONSUMER:
        table = table.unionByName(_clients(candidate_members, clients))
    kernel = partial(
        migrate_arrow,
        to=to,
        assignor=target_assignor,
        rules=BrokerRules(policy, max_size),
        is_owned=owned is not None,
    )
    migrated = run_in_tasks(table, kernel, MIGRATED, eligible.batches)
    rows = materialize(migrated).frame
    has_clusters = has_cluster_id(members)
    return Migration(
        to_result(
            rows.select(*GROUP_KEY, F.inline("steps")), "migrate.steps", has_cluster_id=has_clusters
        ),
        to_result(rows, "migrate.verdicts", has_cluster_id=has_clusters),
    )


def _choose_assignor(to: str, assignor: str | None, policy: str, max_size: int) -> str:
    """Return the assignor that the groups are to have, when all options have a meaning."""
    for name, value, known in (("to", to, list(TO)), ("policy", policy, list(POLICIES))):
        if value not in known:
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    if not 1 <= max_size <= NO_LIMIT:
        raise InputError(f"max_size is {max_size}; it must be a whole number from 1 to {NO_LIMIT}")
    if assignor is None:
        return TO[to][0]
    assignor = short_assignor(assignor)
    if assignor not in TO[to]:
        names = ", ".join(sorted(TO[to]))
        raise InputError(f"unknown assignor {assignor!r} of {to} groups; known are {names}")
    return assignor


def _stated_patterns(members: DataFrame) -> DataFrame:
    """Return rows of kind DECLARED, of members with a pattern or a regex."""
    stated = members.where("topics_pattern IS NOT NULL OR topics_regex IS NOT NULL")
    texts = "to_json(array(topics_pattern, finding, topics_regex))"
    return rows(with_pattern_findings(stated), DECLARED, texts=texts)


def with_pattern_findings(members: DataFrame) -> DataFrame:
    """Return what RE2/J would make of members' patterns, which can be used; runs no job.

    Returns:
        The columns of ``members``, and finding string: what ``regex_problem`` says, or one of
        ``PATTERN_FINDINGS``; null where the pattern means the same or there is none.
    """
    pattern = F.col("topics_pattern")
    whole = F.concat(F.lit(r"\A(?:"), pattern, F.lit(r")\z"))
    finds_internal = reduce(or_, (F.rlike(F.lit(topic), whole) for topic in INTERNAL_TOPICS))
    otherwise, internal = (F.lit(name) for name in PATTERN_FINDINGS)
    may_differ = F.rlike(pattern, F.lit(READ_OTHERWISE))
    other = F.when(may_differ, otherwise).when(finds_internal, internal)
    finding = F.coalesce(regex_problem(pattern), other)
    return members.withColumn("finding", F.when(pattern.isNotNull(), finding))


def _restarts(order: DataFrame, members: DataFrame) -> DataFrame:
    """Return rows of kind ORDER; runs a query that looks for members which are not there.

    Raises:
        InputError: the order names an unknown member, a member twice, or no position.
    """
    restarts = conform(order, RESTARTS)
    key = [*GROUP_KEY, "member_id"]
    groups = members.select(*key).distinct().withColumn("is_here", F.lit(True))
    bad = (
        restarts.groupBy(*key)
        .agg(F.count("*").alias("rows"), F.count("position").alias("positions"))
        .join(groups, on=key, how="left")
        .where("rows > 1 OR positions < rows OR is_here IS NULL")
        .orderBy(*key)
        .limit(1)
        .collect()
    )
    for row in bad:
        is_known = "give each member one position" if row.is_here else "there is no such member"
        raise InputError(
            f'table order, column member_id: "{row.member_id}" of group "{row.group_id}": '
            f"{is_known}"
        )
    return rows(restarts, ORDER, number="position")


def _clients(members: DataFrame, clients: DataFrame) -> DataFrame:
    """Return rows of kind CLIENT: settings of a group's clients that the new client refuses."""
    groups = members.select(*GROUP_KEY).distinct()
    return rows(
        groups.join(refused_as_consumer(clients), on="group_id", how="inner"),
        CLIENT,
        texts="detail",
    )
