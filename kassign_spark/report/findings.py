"""Findings that a person should look at, in sentences, the gravest first."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kassign_spark.display import plural, printable
from kassign_spark.report.collect import PageContents, display_name

ERROR, WARNING, NOTE, GOOD = "error", "warning", "note", "good"


class Finding(NamedTuple):
    """One thing to know.

    Attributes:
        severity: error, warning, note or good.
        title: the fact in a line.
        text: what it means, or what to do.
        only: which groups it is about: the name of a filter of the page, or empty.
        link: the part of the page that says more, or empty.
    """

    severity: str
    title: str
    text: str
    only: str = ""
    link: str = ""


def findings(contents: PageContents) -> list[Finding]:
    """Return what stands out, errors first."""
    order = (ERROR, WARNING, NOTE, GOOD)
    report_findings = [
        *_broken(contents.totals),
        *_find_misled(contents),
        *_uneven(contents),
        *_other_libraries(contents),
        *_brokers(contents),
        *_problems(contents),
        *_moves(contents.totals),
    ]
    return sorted(report_findings, key=lambda finding: order.index(finding.severity))


def _broken(totals: dict[str, Any]) -> Iterator[Finding]:
    if count := totals["violation_count"]:
        yield Finding(
            ERROR,
            f"The plan breaks rules: {plural(count, 'violation')}",
            "Partitions with two owners or none, or given to a member that may not have them.",
            "violations",
            "problems",
        )
    else:
        yield Finding(
            GOOD,
            "The plan breaks no rule",
            "Every partition has one owner that subscribes to its topic.",
        )
    if count := totals["unsettled_count"]:
        yield Finding(
            ERROR,
            f"{plural(count, 'group')} would never settle",
            "The rounds of the cooperative rebalance come back to an earlier state, for ever.",
            "unsettled",
        )


def _find_misled(contents: PageContents) -> Iterator[Finding]:
    counts = {row["kind"]: row["count"] for row in contents.problem_counts}
    if count := counts.get("claims_mislead_client"):
        yield Finding(
            ERROR,
            f"Kafka's own client makes something else of {plural(count, 'group')}",
            "Members claim partitions that do not exist: the client throws, or gives away what "
            "does not exist.",
            "problems",
            "problems",
        )


def _uneven(contents: PageContents) -> Iterator[Finding]:
    totals = contents.totals
    if count := totals["uneven_count"]:
        worst = next((g for g in contents.groups if g["is_balance_optimal"] is False), None)
        example = ""
        if worst is not None:
            example = (
                f"{display_name(worst)}: one member has {worst['max_assigned']:,} of "
                f"{worst['partition_count']:,} partitions, the mean is "
                f"{worst['mean_assigned']:,.1f}. "
            )
        yield Finding(
            WARNING,
            f"{plural(count, 'group')} could be more even",
            f"{example}Another assignor would spread the same partitions better: open a "
            "group for why, and what would help.",
            "uneven",
        )
    elif totals["group_count"]:
        yield Finding(
            GOOD, "Every group is as even as it can be", "Proven for the subscriptions they have."
        )
    if count := totals["idle_after"]:
        groups = plural(totals["idle_group_count"], "group")
        yield Finding(
            WARNING,
            f"{plural(count, 'member')} of {groups} {'is' if count == 1 else 'are'} idle",
            "They are assigned nothing: fewer members would do, or more partitions.",
            "idle",
        )
    if count := totals["cross_rack_count"] or 0:
        yield Finding(
            NOTE,
            f"{plural(count, 'partition')} of "
            f"{plural(totals['cross_rack_group_count'], 'group')} read across racks",
            "No replica is in the rack of the member that reads it.",
            "cross",
        )


def _other_libraries(contents: PageContents) -> Iterator[Finding]:
    if count := contents.other_library_count:
        examples = "; ".join(
            f"{printable(row['group_id'])}: {row['max_before']:,} partitions at most now, "
            f"{row['max_after']:,} then ({row['detail']})"
            for row in contents.other_libraries
        )
        yield Finding(
            NOTE,
            f"{plural(count, 'group')} would be more even with another client library",
            f"{examples}.",
        )


def _brokers(contents: PageContents) -> Iterator[Finding]:
    if not contents.hot_count:
        return
    hottest = next(row for row in contents.brokers if row["is_hot"])
    yield Finding(
        WARNING,
        f"{plural(contents.hot_count, 'coordinator')} "
        f"{'is' if contents.hot_count == 1 else 'are'} a hot spot",
        f"Broker {hottest['coordinator']} coordinates {plural(hottest['group_count'], 'group')}, "
        f"{hottest['load_ratio']:.1f} times the mean load.",
        link="coordinators",
    )


def _problems(contents: PageContents) -> Iterator[Finding]:
    odd = [row for row in contents.problem_counts if row["source"] == "snapshot"]
    if not odd:
        yield Finding(GOOD, "Nothing is odd in the snapshot", "Its tables pass every check.")
        return
    kinds = ", ".join(f"{printable(row['kind'])} ({row['count']:,})" for row in odd)
    yield Finding(
        WARNING,
        f"{plural(sum(row['count'] for row in odd), 'problem')} found in the snapshot",
        f"{kinds}.",
        "problems",
        "problems",
    )


def _moves(totals: dict[str, Any]) -> Iterator[Finding]:
    if not totals["knows_owned"]:
        yield Finding(
            NOTE,
            "What moves is not known",
            "The snapshot has no table owned, so the owners before the plan are unknown.",
        )
        return
    paused, less = totals["planned_paused"], totals["cooperative_paused"]
    title = (
        f"{plural(totals['moved'] or 0, 'partition')} change owner in "
        f"{plural(totals['moving_group_count'], 'group')}, "
        f"{plural(paused, 'partition')} pause"
    )
    text = f"{totals['eager_group_count']:,} of {plural(totals['group_count'], 'group')} "
    text += "stop all their members for it (eager protocol)."
    if less < paused:
        text += f" With cooperative-sticky for all groups, {less:,} would pause."
    yield Finding(NOTE, title, text, "moving", "moves")
