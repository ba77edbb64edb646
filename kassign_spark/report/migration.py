"""Which classic groups of a plan could go over to the new protocol, by what is known of them."""

from typing import Any

from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.display import group_name
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.report.plan import Plan
from kassign_spark.schemas import GROUP_KEY, MEMBERS
from kassign_spark.whatif.migrate import with_pattern_findings
from kassign_spark.whatif.migration_rules import (
    CONSUMER,
    VERDICTS,
    BrokerRules,
    Facts,
    judge,
)

MAX_GROUPS = 20_000
MAX_LISTED = 500


def migrations(plan: Plan) -> dict[str, Any]:
    """Judge the classic groups, as ``migrate`` does before it follows anybody; runs one query.

    Returns:
        ready, risky, blocked: how many groups; groups: dicts of name, verdict, way, detail of at
        most ``MAX_LISTED``, those first that are not ready; not_listed: how many others. Beyond
        ``MAX_GROUPS`` groups are not judged.
    """
    classic = conform(plan.snapshot.members, MEMBERS).where(~is_consumer_group())
    finding = F.struct("topics_pattern", "member_id", "finding")
    by_group = (
        with_pattern_findings(classic)
        .groupBy(*GROUP_KEY)
        .agg(
            F.count("*").alias("member_count"),
            F.collect_set("assignor").alias("assignors"),
            (F.count("assignor") < F.count("*")).alias("has_none"),
            (F.count("group_instance_id") > 0).alias("is_static"),
            F.min(F.when(F.col("finding").isNotNull(), finding)).alias("pattern"),
        )
    )
    rows = by_group.orderBy(*GROUP_KEY).limit(MAX_GROUPS).collect()
    judged = []
    for row in rows:
        pattern = row.pattern
        facts = Facts(
            CONSUMER,
            "uniform",
            [*sorted(row.assignors), *([None] if row.has_none else [])],
            row.member_count,
            patterns=[]
            if pattern is None
            else [(pattern.member_id, pattern.topics_pattern, pattern.finding)],
            is_single=row.member_count == 1 and not row.is_static,
        )
        found = judge(facts, BrokerRules())
        judged.append({"name": group_name(row.asDict()), **found._asdict()})
    counts = {name: sum(of["verdict"] == name for of in judged) for name in VERDICTS}
    worst = sorted(judged, key=lambda of: -VERDICTS.index(str(of["verdict"])))
    return {**counts, "groups": worst[:MAX_LISTED], "not_listed": max(0, len(judged) - MAX_LISTED)}
