"""The page's plots: static SVG, which prints well, needs no script and can be read aloud."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kassign_spark.errors import KassignError
from kassign_spark.report.collect import PageContents, display_name

WIDTH = 360
WORST = 15
_ROW = 22
_BROKERS = 40
_LONGEST_NAME = 30

BEFORE, AFTER, MOVED, HOT = "#8a97a6", "#2f6fde", "#1f9d76", "#d64545"

Part = TypeVar("Part")
"""The input of a part of the page."""


def charts(contents: PageContents) -> dict[str, str]:
    """Draw the plots: SVG by name; one of which nothing is known is left out."""
    return draw_svg(
        contents, worst=_worst, spreads=_spreads, protocols=_protocols, coordinators=_coordinators
    )


def draw_svg(part: Part, **draw: Callable[[Any, Part], Any]) -> dict[str, str]:
    """Return what is drawn of a part of the page, with altair, as SVG by name; None is left out.

    Raises:
        KassignError: the extra `report` is not installed.
    """
    try:
        import altair
        import vl_convert
    except ImportError:
        raise missing_extra() from None
    drawn = {name: plot(altair, part) for name, plot in draw.items()}
    return {
        name: vl_convert.vegalite_to_svg(_style_chart(chart))
        for name, chart in drawn.items()
        if chart is not None
    }


def missing_extra() -> KassignError:
    """Return the error that says how to get what the page needs."""
    return KassignError(
        "a report needs Jinja2, altair and vl-convert-python: pip install 'kassign-spark[report]'"
    )


def _style_chart(chart: Any) -> dict[str, Any]:
    """Return the plot in the page's colours, so that its text follows the dark theme."""
    text = {"labelColor": "currentColor", "titleColor": "currentColor"}
    styled = chart.configure(
        background="transparent",
        font="Liberation Sans, Arial, Helvetica, sans-serif",
        axis={
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "gridColor": "#8a97a640",
            "domainColor": "#8a97a680",
            "tickColor": "#8a97a680",
            "labelLimit": 260,
            "titlePadding": 8,
        },
        legend={**text, "orient": "top", "title": None, "labelFontSize": 11},
        view={"stroke": None},
    )
    specification: dict[str, Any] = styled.to_dict()
    return specification


def _worst(altair: Any, contents: PageContents) -> Any:
    """Draw least and most loaded member of the worst groups, before and after."""
    rows = []
    for place, group in enumerate(contents.groups[:WORST]):
        name = f"{place + 1}. {short_name(display_name(group))}"
        for moment, suffix in (("before", "before"), ("after", "assigned")):
            least, most = group[f"min_{suffix}"], group[f"max_{suffix}"]
            if least is not None:
                label = f"{name}, {moment}: {least:,} to {most:,} partitions a member"
                rows.append(
                    {"group": name, "when": moment, "least": least, "most": most, "d": label}
                )
    if not rows:
        return None
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y("group:N", sort=None, title=None),
        yOffset=altair.YOffset("when:N", sort=["before", "after"]),
        color=when_colours(altair),
        description="d:N",
    )
    span = base.mark_bar(height=3, opacity=0.6).encode(
        x=altair.X("least:Q", title="partitions a member, least to most", axis=counts(altair)),
        x2="most:Q",
    )
    ends = [
        base.mark_circle(size=42, opacity=1).encode(x=altair.X(f"{end}:Q"))
        for end in ("least", "most")
    ]
    return altair.layer(span, *ends).properties(**row_size({row["group"] for row in rows}))


def _spreads(altair: Any, contents: PageContents) -> Any:
    """Draw the number of groups by the spread of their members."""
    whens = ["before", "after"] if contents.totals["knows_owned"] else ["after"]
    rows = [
        {
            "spread": row["label"],
            "when": moment,
            "groups": row[moment],
            "d": f"{row[moment]:,} groups {moment} with a spread of {row['label']}",
        }
        for row in contents.spreads
        for moment in whens
    ]
    if not contents.groups:
        return None
    plot = altair.Chart(altair.Data(values=rows)).mark_bar()
    return plot.encode(
        x=altair.X(
            "spread:N",
            sort=None,
            title="partitions between the least and the most loaded member",
            axis=altair.Axis(labelAngle=0),
        ),
        xOffset=altair.XOffset("when:N", sort=["before", "after"]),
        y=altair.Y("groups:Q", title="groups", axis=counts(altair)),
        color=when_colours(altair),
        description="d:N",
    ).properties(width=WIDTH + 80, height=200)


def _protocols(altair: Any, contents: PageContents) -> Any:
    if not contents.totals["knows_owned"]:
        return None
    names = {"planned": "as planned", "eager": "all eager", "cooperative": "all cooperative-sticky"}
    rows = []
    for key, protocol in names.items():
        for change in ("moved", "paused"):
            count = contents.totals[f"{key}_{change}"] or 0
            label = f"{protocol}: {count:,} partitions {change}"
            rows.append({"how": protocol, "what": change, "partitions": count, "d": label})
    plot = altair.Chart(altair.Data(values=rows)).mark_bar()
    return plot.encode(
        y=altair.Y("how:N", sort=None, title=None),
        yOffset=altair.YOffset("what:N", sort=["moved", "paused"]),
        x=altair.X("partitions:Q", title="partitions", axis=counts(altair)),
        color=colours(altair, "what:N", {"moved": MOVED, "paused": "#d9822b"}),
        description="d:N",
    ).properties(width=WIDTH, height=130)


def _coordinators(altair: Any, contents: PageContents) -> Any:
    rows = []
    several = len({row["cluster_id"] for row in contents.brokers}) > 1
    for row in contents.brokers[:_BROKERS]:
        if row["coordinator"] is not None:
            broker = f"{row['cluster_id']}/" if several else ""
            label = f"broker {broker}{row['coordinator']}"
            rows.append(
                {
                    "broker": label,
                    "load": round(row["load_ratio"] or 0, 2),
                    "hot": "hot" if row["is_hot"] else "not hot",
                    "d": f"{label}: {row['load_ratio'] or 0:.2f} times the mean load",
                }
            )
    if not rows:
        return None
    plot = altair.Chart(altair.Data(values=rows)).mark_bar()
    return plot.encode(
        y=altair.Y("broker:N", sort=None, title=None),
        x=altair.X("load:Q", title="load, as a multiple of the mean"),
        color=colours(altair, "hot:N", {"hot": HOT, "not hot": AFTER}),
        description="d:N",
    ).properties(**row_size(rows))


def when_colours(altair: Any) -> Any:
    """Return the colours of before and after."""
    return colours(altair, "when:N", {"before": BEFORE, "after": AFTER})


def colours(altair: Any, field: str, by_value: Mapping[str, str], **options: Any) -> Any:
    """Return the colours of a field's values, in this order."""
    scale = altair.Scale(domain=list(by_value), range=list(by_value.values()))
    return altair.Color(field, scale=scale, **options)


def counts(altair: Any) -> Any:
    """Return an axis of whole numbers."""
    return altair.Axis(tickMinStep=1, format=",d")


def row_size(rows: Collection[Any]) -> dict[str, int]:
    """Return the size of a plot with a row for each of these."""
    return {"width": WIDTH, "height": _ROW * len(rows) + 4}


def short_name(name: str) -> str:
    """Cut the middle out of a long name: groups differ at both ends."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
