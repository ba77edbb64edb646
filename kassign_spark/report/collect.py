"""Everything that the page says, collected: bounded in number, whatever the size of the fleet."""

import json
from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.brokers.coordinator import coordinator_load
from kassign_spark.client_libraries import JAVA
from kassign_spark.conforming import conform, fill_cluster_id, topics_table
from kassign_spark.display import group_name, printable
from kassign_spark.inputs.client_families import SIGNS, with_clients
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.measures.violations_tasks import HIDDEN_TOPIC, UNKNOWN_TOPIC
from kassign_spark.report.details import Rows, collect_details, rows_of, to_page_json
from kassign_spark.report.followed import follow, member_loads
from kassign_spark.report.measures import (
    measure_groups,
    spread_counts,
    spreads,
    totals,
    worst_first,
)
from kassign_spark.report.plan import Plan
from kassign_spark.report.why import choose_explained, collect_why
from kassign_spark.schemas import GROUP_KEY, MEMBERS, OWNED
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize
from kassign_spark.validation.validate import validate
from kassign_spark.whatif.advise import advise
from kassign_spark.whatif.migrate import with_pattern_findings
from kassign_spark.whatif.migration_rules import CONSUMER, VERDICTS, BrokerRules, Facts, judge

MAX_GROUPS = 20_000
MAX_PROBLEMS = 2_000
MAX_BROKERS = 500
MAX_MIGRATIONS = 500
MAX_OTHER_LIBRARIES = 3
"""Groups that the finding about them names."""
MAX_DETAIL_CHARACTERS = 4_000_000
"""Details of the worst groups are kept until they are so long, which bounds the page."""

_PROBLEM = ("source", "kind", *GROUP_KEY, "member_id", "topic", "partition", "detail")

_SHARED_INSTANCES = "array_distinct(filter(instances, (name, i) -> name = get(instances, i + 1)))"
"""Each group.instance.id that several members have: in order it stands beside itself."""


class PageContents(NamedTuple):
    """The content of the page.

    Attributes:
        totals: the fleet's numbers, as ``measures.totals`` names them, and knows_owned,
            knows_leaders boolean.
        groups: dicts of ``GROUP_COLUMNS``, worst first, at most ``MAX_GROUPS``.
        details: of the first groups, in that order, the result of ``details.to_page_json``, and
            why: that of ``why.collect_why``, or None for a group that is even, or too large.
        spreads: dicts of label, before, after: groups by the spread of their loads.
        brokers: rows of ``coordinator_load``, the most loaded first; empty without leaders.
        hot_count: brokers that are hot, also those beyond the rows.
        problem_counts: dicts of source, kind, count.
        problems: dicts of ``_PROBLEM``, at most ``MAX_PROBLEMS``.
        migrations: ready, risky, blocked: how many classic groups could go over to the new
            protocol, of at most ``MAX_GROUPS``; groups: dicts of name, verdict, way, detail of at
            most ``MAX_MIGRATIONS``, those first that are not ready; not_listed: how many others.
            None: not judged.
        other_library_count: groups that another client library would make more even;
            other_libraries: some of them, as ``other_libraries`` gives them.
    """

    totals: dict[str, Any]
    groups: Rows
    details: list[dict[str, Any]]
    spreads: Rows
    brokers: Rows
    hot_count: int
    problem_counts: Rows
    problems: Rows
    migrations: dict[str, Any] | None = None
    other_library_count: int = 0
    other_libraries: Sequence[dict[str, Any]] = ()


def collect(plan: Plan, settings: Settings, *, details: int) -> PageContents:
    """Measure a plan; runs jobs. At most ``details`` groups, the worst, get details."""
    members, topics, owned = plan.snapshot
    odd = materialize(validate(members, topics, owned)).frame
    followed = follow(plan, settings)
    groups, summed = materialize(
        measure_groups(plan, followed, odd), {**totals(), **spread_counts()}
    )
    rows = rows_of(groups.orderBy(*worst_first()).limit(MAX_GROUPS))
    problems = _problems(plan, odd)
    names = [(row["cluster_id"], row["group_id"]) for row in rows[:details]]
    loads = member_loads(followed.final, members, owned)
    details_of = collect_details(names, loads, followed.final, owned, problems)
    reasons = collect_why(followed.eligible, choose_explained(rows[:details]))
    texts = [
        {**to_page_json(name, details_of, row["member_count"]), "why": reasons.get(name)}
        for name, row in zip(names, rows, strict=False)
    ]
    by_kind = rows_of(problems.groupBy("source", "kind").count())
    problems_in_order = problems.orderBy(F.col("source").desc(), *_PROBLEM[1:])
    brokers, hot_count = _brokers(plan)
    other_library_count, libraries = other_libraries(plan)
    return PageContents(
        totals={
            **{name: summed[name] for name in totals()},
            "knows_owned": owned is not None,
            "knows_leaders": bool(brokers),
        },
        groups=rows,
        details=texts[: fitting(texts)],
        spreads=spreads(summed),
        brokers=brokers,
        hot_count=hot_count,
        problem_counts=sorted(by_kind, key=lambda row: (row["source"] == "plan", row["kind"])),
        problems=rows_of(problems_in_order.limit(MAX_PROBLEMS)) if by_kind else [],
        migrations=_migrations(plan),
        other_library_count=other_library_count,
        other_libraries=libraries,
    )


def _problems(plan: Plan, odd: DataFrame) -> DataFrame:
    """Combine the plan's violations and the snapshot's problems in one table."""
    about = _PROBLEM[2:]
    both = fill_cluster_id(odd).selectExpr("'snapshot' as source", "problem as kind", *about)
    if plan.violations is not None:
        # Problems of the snapshot are not repeated for the plan.
        broken = plan.violations.where(~F.col("rule").isin(HIDDEN_TOPIC, UNKNOWN_TOPIC))
        broken = broken.selectExpr("'plan' as source", "rule as kind", *about)
        both = broken.unionByName(both)
    return both.withColumn("partition", F.col("partition").cast("int"))


def _brokers(plan: Plan) -> tuple[Rows, int]:
    if plan.leaders is None:
        return [], 0
    members, _, owned = plan.snapshot
    measured = fill_cluster_id(coordinator_load(members, plan.leaders, owned))
    loads, counts = materialize(measured, {"hot": F.count_if("is_hot")})
    busiest = F.col("load_ratio").desc_nulls_first()
    in_order = loads.orderBy(busiest, "cluster_id", "coordinator")
    return rows_of(in_order.limit(MAX_BROKERS)), counts["hot"]


def fitting(details: list[dict[str, Any]]) -> int:
    """Return how many of the first details are kept."""
    lengths = accumulate(len(json.dumps(each)) for each in details)
    return len(list(takewhile(lambda length: length <= MAX_DETAIL_CHARACTERS, lengths)))


def display_name(row: dict[str, Any]) -> str:
    """Return a group's name for people; problems of the cluster have none."""
    if row["group_id"] is None:
        return printable(row["cluster_id"] or "")
    return group_name(row)


def _migrations(plan: Plan) -> dict[str, Any]:
    """Judge the classic groups, as ``migrate`` does before it follows anybody; runs one query."""
    classic = conform(plan.snapshot.members, MEMBERS).where(~is_consumer_group())
    finding = F.struct("topics_pattern", "member_id", "finding")
    by_group = (
        with_pattern_findings(classic)
        .groupBy(*GROUP_KEY)
        .agg(
            F.count("*").alias("member_count"),
            F.collect_set("assignor").alias("assignors"),
            (F.count("assignor") < F.count("*")).alias("has_none"),
            F.array_sort(F.collect_list("group_instance_id")).alias("instances"),
            F.min(F.when(F.col("finding").isNotNull(), finding)).alias("pattern"),
        )
        .withColumn("shared_instances", F.expr(_SHARED_INSTANCES))
    )
    judged = []
    for row in by_group.orderBy(*GROUP_KEY).limit(MAX_GROUPS).collect():
        facts = Facts(
            CONSUMER,
            "uniform",
            [*sorted(row.assignors), *([None] if row.has_none else [])],
            row.member_count,
            patterns=[(p.member_id, p.topics_pattern, p.finding) for p in [row.pattern] if p],
            shared_instances=row.shared_instances,
            is_single=row.member_count == 1 and not row.instances,
        )
        migration = judge(facts, BrokerRules())
        judged.append({"name": group_name(row.asDict()), **migration._asdict()})
    counts = {name: sum(migrated["verdict"] == name for migrated in judged) for name in VERDICTS}
    worst = sorted(judged, key=lambda migrated: -VERDICTS.index(str(migrated["verdict"])))
    hidden = max(0, len(judged) - MAX_MIGRATIONS)
    return {**counts, "groups": worst[:MAX_MIGRATIONS], "not_listed": hidden}


def other_libraries(plan: Plan) -> tuple[int, Rows]:
    """Count the groups that Java's client would make more even than the library that leads them.

    Returns:
        how many there are; of the worst, ``MAX_OTHER_LIBRARIES``, group_id, detail, max_before,
        max_after.
    """
    members, topics, owned = plan.snapshot
    if {"client", *SIGNS}.isdisjoint(members.columns):
        return 0, []
    conformed = with_clients(conform(members, MEMBERS))
    is_other = f"client != '{JAVA}'"
    groups = conformed.where(is_other).select(*GROUP_KEY).distinct()
    if groups.isEmpty():
        return 0, []
    advice = advise(
        conformed.join(groups, on=list(GROUP_KEY), how="left_semi"),
        conform(topics, topics_table(topics)),
        None if owned is None else conform(owned, OWNED),
    ).where("change = 'client'")
    better = materialize(advice.select("group_id", "detail", "max_before", "max_after")).frame
    worst = better.orderBy(F.expr("max_after - max_before"), "group_id").limit(MAX_OTHER_LIBRARIES)
    return better.count(), rows_of(worst)
