"""The columns of every result as `docs/columns.md` has them, made of what the package declares.

    python -m tests.docs.results

writes them there.
"""

from collections.abc import Mapping
from pathlib import Path

from kassign_spark.history.rebalance_columns import EXPLAINED, REBALANCES, STORMS
from kassign_spark.log.log_schemas import (
    COMMITS,
    GENERATIONS,
    LOG_ASSIGNMENT,
    LOG_MEMBERS,
    LOG_REGEXES,
    LOG_TARGETS,
    LOG_TOPICS,
    RECORDS,
    UNREAD,
)
from kassign_spark.plans.by_weight import TRADEOFF, WEIGHT_VERDICTS
from kassign_spark.plans.offset_weights import PARTITION_WEIGHTS
from kassign_spark.results import AS_IN_THE_INPUT, RESULTS
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, MEMBERS, VERDICTS, Table

PAGE = Path(__file__).parents[2] / "docs" / "columns.md"
_HEAD = "| result | columns |\n"
_WITHOUT_CLUSTER = {"check_settings", "eligibility.edges", "fleet_graph.edges"}

TABLES: Mapping[str, Table] = {
    "assign": ASSIGNMENT,
    "explain_history": EXPLAINED,
    "partition_weights": PARTITION_WEIGHTS,
    "plan_by_weight": ASSIGNMENT,
    "plan_by_weight.verdicts": WEIGHT_VERDICTS,
    "predict": ASSIGNMENT,
    "predict.verdicts": VERDICTS,
    "rebalances": REBALANCES,
    "resolve_patterns": MEMBERS,
    "storms": STORMS,
    "tradeoff": TRADEOFF,
    "read_group_log.generations": GENERATIONS,
    "read_group_log.log_members": LOG_MEMBERS,
    "read_group_log.log_assignment": LOG_ASSIGNMENT,
    "read_group_log.commits": COMMITS,
    "read_group_log.log_targets": LOG_TARGETS,
    "read_group_log.log_regexes": LOG_REGEXES,
    "read_group_log.log_topics": LOG_TOPICS,
    "read_group_log.unread": UNREAD,
    "read_group_log.records": RECORDS,
}
"""Results that have a table of their own where they are made."""


def columns() -> dict[str, dict[str, str]]:
    """Name and type of each result's columns, ``cluster_id`` where there may be one."""
    result = {name: _with_cluster(name, dict(of)) for name, of in RESULTS.items()}
    for name, table in TABLES.items():
        result[name] = {f.name: f.dataType.simpleString() for f in table.columns}
    return dict(sorted(result.items()))


def _with_cluster(name: str, of: dict[str, str]) -> dict[str, str]:
    if name in _WITHOUT_CLUSTER or CLUSTER_ID in of:
        return of
    return {CLUSTER_ID: "string"} | of


def section() -> str:
    """The table of all results."""
    lines = [_HEAD, "|---|---|\n"]
    for name, of in columns().items():
        listed = ", ".join(
            f"{column} {'as given' if kind == AS_IN_THE_INPUT else kind}"
            for column, kind in of.items()
        )
        safe = listed.replace("<", "&lt;").replace(">", "&gt;")
        lines.append(f"| `{name}` | {safe} |\n")
    return "".join(lines)


def with_section(page: str) -> str:
    """The page with the section as it is to be: it is the last one."""
    return page.partition(_HEAD)[0] + section()


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text()))
