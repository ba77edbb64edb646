"""The page itself: one HTML document with its style, its script, its plots and its data inside."""

import json
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from kassign_spark import __version__
from kassign_spark.display import plural, printable
from kassign_spark.report.charts import charts, missing_extra
from kassign_spark.report.collect import MAX_GROUPS, MAX_PROBLEMS, PageContents, display_name
from kassign_spark.report.findings import Finding
from kassign_spark.report.measures import GROUP_COLUMNS
from kassign_spark.report.past import MAX_DAYS, Past, charts_of_past
from kassign_spark.report.plan import OF_PLAN
from kassign_spark.report.weight_section import WeightSection, charts_by_weight
from kassign_spark.schemas import GROUP_KEY

MARK = '<meta name="generator" content="kassign-spark">'
"""Near the beginning of every page: by it a file is known to be ours."""

_NO_NUMBERS = {*GROUP_KEY, *OF_PLAN, "protocol", "idle_before", "stddev_assigned"}
_NUMBERS = [name for name in GROUP_COLUMNS if name not in _NO_NUMBERS]
"""Columns of a group that the page's script knows by these names."""


def render(
    contents: PageContents,
    listed: Sequence[Finding],
    *,
    plan: str,
    snapshot: str,
    details: int,
    by_weight: WeightSection | None = None,
    past: tuple[str, Past] | None = None,
) -> str:
    """Make the page.

    Args:
        contents: the collected facts.
        listed: what to look at first.
        plan: the plan's folder, as it was named.
        snapshot: its snapshot's.
        details: how many groups were to get details.
        by_weight: loads by weight; None: not asked for.
        past: the folder of a history, as it was named, and its content; None: not asked for.

    Raises:
        KassignError: the extra `report` is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise missing_extra() from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["number"] = _number
    environment.filters["printable"] = printable

    def filled(template: str, drawn: dict[str, str], **values: Any) -> str:
        plots = {name: Markup(svg) for name, svg in drawn.items()}
        return environment.from_string(_read_packaged(template)).render(charts=plots, **values)

    weights = was = None
    if by_weight is not None:
        plots = charts_by_weight(by_weight)
        weights = Markup(filled("by_weight.html.j2", plots, section=by_weight))
    if past is not None:
        folder, facts = printable(past[0]), past[1]
        plots = charts_of_past(facts)
        was = Markup(filled("past.html.j2", plots, past=facts, folder=folder, max_days=MAX_DAYS))
    return filled(
        "page.html.j2",
        charts(contents),
        mark=Markup(MARK),
        style=Markup(_read_packaged("page.css")),
        script=Markup(_read_packaged("page.js")),
        data=Markup(_embed_json(_data(contents))),
        weights=weights,
        past=was,
        findings=listed,
        computed=_describe_engines(contents),
        totals=contents.totals,
        brokers=contents.brokers,
        several_clusters=len({row["cluster_id"] for row in contents.brokers}) > 1,
        problem_counts=contents.problem_counts,
        problems_not_listed=sum(row["count"] for row in contents.problem_counts)
        - len(contents.problems),
        groups_not_listed=contents.totals["group_count"] - len(contents.groups),
        detail_count=len(contents.details),
        details_asked=details,
        migrations=contents.migrations,
        max_groups=MAX_GROUPS,
        max_problems=MAX_PROBLEMS,
        plan=printable(plan),
        snapshot=printable(snapshot),
        version=__version__,
    )


def _describe_engines(contents: PageContents) -> str:
    """Return which engine computed the listed groups (``groups.paths``), if the plan notes it."""
    paths = Counter(group["path"] for group in contents.groups if group.get("path"))
    return "; ".join(f"{plural(count, 'group')} by {path}" for path, count in sorted(paths.items()))


def _read_packaged(name: str) -> str:
    return files("kassign_spark.report").joinpath(name).read_text(encoding="utf-8")


def _embed_json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in: names of groups are free text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(contents: PageContents) -> dict[str, Any]:
    words = sorted({group["assignor"] or "" for group in contents.groups})
    return {
        "columns": ["name", "assignor", "protocol", *_NUMBERS],
        "assignors": [printable(word) for word in words],
        "groups": [
            [
                display_name(group),
                words.index(group["assignor"] or ""),
                group["protocol"] and int(group["protocol"] == "cooperative"),
                *(_short(group[name]) for name in _NUMBERS),
            ]
            for group in contents.groups
        ],
        "details": contents.details,
        "problems": [
            [
                row["source"],
                printable(row["kind"]),
                display_name(row),
                *(printable(row[name] or "") for name in ("member_id", "topic")),
                row["partition"],
                printable(row["detail"] or ""),
            ]
            for row in contents.problems
        ],
    }


def _short(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return round(value, 2) if isinstance(value, float) else value


def _number(value: Any) -> str:
    if value is None:
        return "\N{EN DASH}"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
