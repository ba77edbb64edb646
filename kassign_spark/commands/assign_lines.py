"""The output of ``kassign-spark assign``: the plan's balance, its assignments, its violations."""

from kassign_spark.commands.common import Facts, misled_lines
from kassign_spark.display import (
    Columns,
    cell,
    counts,
    group_name,
    lay_out_rows,
    not_shown,
    plural,
    printable,
    table,
    topic_ranges,
    written,
)
from kassign_spark.groups.paths import ROUNDS, TASK, WINDOWS

_COLUMNS = {
    "assignor": "assignor",
    "members": "member_count",
    "partitions": "partition_count",
    "min": "min_assigned",
    "max": "max_assigned",
    "mean": "mean_assigned",
    "stddev": "stddev_assigned",
    "kept": "kept_count",
    "moved": "moved_count",
}
_RACKS = {"cross-rack": "cross_rack_count"}


def lines(facts: Facts) -> list[str]:
    """Return the lines for ``assign.DOCUMENT``."""
    count, idle = facts["violation_count"], facts["idle_group_count"]
    totals = (
        *counts(facts, "group", "member", "partition"),
        plural(count, "violation") if count else "no violations",
        *([f"{plural(idle, 'group')} without anything"] if idle else []),
        *([plural(facts["round_count"], "round")] if facts["round_count"] else []),
    )
    text = [", ".join(totals), *_path_lines(facts["paths"], facts["rounds"])]
    has_racks = any(row["cross_rack_count"] is not None for row in facts["balance"])
    columns: Columns = {"group": group_name, **_COLUMNS, **(_RACKS if has_racks else {})}
    text += lay_out_rows(facts["balance"], columns) or [""]
    text += not_shown(
        facts["groups_not_shown"], "group", ", better balanced,", shown=facts["group_count"]
    )
    for group in facts["assignments"]:
        text += ["", f"{group_name(group)} ({cell(group['assignor'])})", *_member_lines(group)]
    text += misled_lines(facts)
    if count:
        text += ["", *_violation_lines(facts)]
    tables = "assignment, balance" + (", violations" if count else "")
    return text + written(facts["output"], "the plan is in", tables)


def _path_lines(paths: dict[str, int], rounds: dict[str, int]) -> list[str]:
    """Return which groups were not computed in a task or by windows, and in how many rounds."""
    kinds = ", ".join(f"{count} for {kind}" for kind, count in rounds.items())
    ways = [
        f"{plural(count, 'group')} by {path}" + (f": {kinds}" if path.startswith(ROUNDS) else "")
        for path, count in paths.items()
        if path not in (TASK, WINDOWS)
    ]
    return [f"not in one task: {'; '.join(ways)}"] if ways else []


def _member_lines(group: Facts) -> list[str]:
    rows = []
    for member in group["members"]:
        ranges = "  ".join(topic_ranges(topic) for topic in member["topics"])
        if member["topics_not_shown"]:
            ranges += f"  ... {plural(member['topics_not_shown'], 'more topic')}"
        rows.append([f"  {printable(member['member_id'])}", member["partition_count"], ranges])
    lines = table(["", "", ""], rows)[1:]
    if group["members_not_shown"]:
        lines.append(f"  ... {plural(group['members_not_shown'], 'more member')}")
    return lines


def _violation_lines(facts: Facts) -> list[str]:
    columns = ["rule", "member_id", "topic", "partition", "detail"]
    rows = ([group_name(row), *(row[c] for c in columns)] for row in facts["violations"])
    lines = table(["violations in group", *columns], rows)
    hidden = facts["violation_count"] - len(facts["violations"])
    return [*lines, f"... {hidden} more violations"] if hidden else lines
