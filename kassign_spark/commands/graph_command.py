"""``kassign-spark graph``: who can take what, as tables or a drawing, and what that rules out."""

import argparse

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments, only_group
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    open_output,
    session_reading,
    write_to,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import FORMATS, About, Parser
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import (
    counts,
    group_name,
    lay_out_rows,
    not_shown,
    plural,
    printable,
    written,
)
from kassign_spark.errors import InputError
from kassign_spark.graph.bottlenecks import bottlenecks
from kassign_spark.graph.drawing import to_dot, to_graphml
from kassign_spark.graph.eligibility import CLASS, MEMBER, Eligibility, eligibility
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_snapshot, write_text

_DRAWINGS = {"graphml": to_graphml, "dot": to_dot}
_MOST_DRAWN = 20_000
"""Vertices and edges of a drawing: more is no picture, and would be collected to one machine."""
_COUNTS = {
    "members": "member_count",
    "classes": "class_count",
    "parts": "part_count",
    "partitions": "partition_count",
    "even max": "even_max",
    "least max": "least_max",
}

DOCUMENT = record(
    "snapshot string, output string?, group string?, group_count int, uneven_count int, "
    "member_count int, class_count int, part_count int, partition_count int, edge_count int, "
    "groups_not_shown int",
    groups=rows(
        f"{GROUP}, member_count int, class_count int, part_count int, partition_count int, "
        "even_max int, least_max int, detail string"
    ),
)
ABOUT = About(
    description="Write the eligibility graph: a vertex for each member and for each class of\n"
    "topics with the same subscribers, an edge for each subscription. Print the groups whose\n"
    "subscriptions keep them from being even, the worst first, with the reason.",
    example="kassign-spark graph examples/fleet --output build/graph",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="new folder to write, with the tables vertices, edges and bottlenecks, or a drawing",
    )
    parser.add_group()
    parser.add_argument(
        "--format",
        choices=[*FORMATS, *_DRAWINGS],
        default="parquet",
        help="of the tables; graphml and dot draw one group, named by --group (default: parquet)",
    )
    parser.add_overwrite()
    parser.add_show("print at most N groups, the worst first")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if args.format in _DRAWINGS and args.group is None:
        raise InputError(f"--format {args.format} draws one group: name it with --group")
    if args.format in _DRAWINGS and args.output is None:
        raise InputError(f"--format {args.format} writes a drawing: name a folder with --output")
    with session_reading(args, f"reading {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        snapshot = only_group(snapshot, args.group, one=args.format in _DRAWINGS)
        graph = eligibility(snapshot.members, snapshot.topics)
        rows = bottlenecks(snapshot.members, snapshot.topics)
        dense_parts = materialize(rows).frame
        with open_output(spark, args) as folder:
            if folder is not None and args.format in _DRAWINGS:
                text = _drawing(graph, dense_parts, args)
                write_text(spark, text, folder, f"graph.{args.format}")
            else:
                write_to(folder, args, **graph._asdict(), bottlenecks=dense_parts)
        worst = F.col("least_max") - F.col("even_max")
        sums = ("member_count", "class_count", "part_count", "partition_count")
        measures = {"group_count": F.count(F.lit(1)), "uneven_count": F.count_if(worst > 0)}
        measures |= {name: F.sum(name) for name in sums}
        groups, totals = materialize(_groups(graph.vertices, dense_parts), measures)
        edge_count = graph.edges.count()
        shown = first_rows(groups.where(worst > 0), [worst.desc(), *GROUP_KEY], args.show)
    facts: Facts = {
        **named_arguments(args, "snapshot", "output", "group"),
        **{name: count or 0 for name, count in totals.items()},
        "edge_count": edge_count,
        "groups_not_shown": totals["uneven_count"] - len(shown),
        "groups": [{key: value for key, value in row.items() if value != ""} for row in shown],
    }
    return Outcome(0, facts, _lines(facts, args.format))


def _groups(vertices: DataFrame, dense_parts: DataFrame) -> DataFrame:
    """Return one row per group: what it is made of, and its strictest bottleneck."""
    keys = list(GROUP_KEY)
    made_of = (
        fill_cluster_id(vertices)
        .groupBy(*keys)
        .agg(
            F.count_if(F.col("kind") == MEMBER).alias("member_count"),
            F.count_if(F.col("kind") == CLASS).alias("class_count"),
            F.coalesce(F.max("part") + 1, F.lit(0)).alias("part_count"),
            F.coalesce(F.sum("weight"), F.lit(0)).alias("partition_count"),
        )
    )
    # Of equal bounds the one of the fewest members says most.
    strictest = F.struct("least_max", -F.col("member_count"), F.col("kind") == "dense")
    reasons = (
        fill_cluster_id(dense_parts)
        .groupBy(*keys)
        .agg(
            F.max("even_max").alias("even_max"),
            F.coalesce(F.max("least_max"), F.lit(0)).alias("least_max"),
            F.max_by("detail", F.when(F.col("least_max").isNotNull(), strictest)).alias("detail"),
        )
    )
    return made_of.join(reasons, on=keys, how="inner")


def _drawing(graph: Eligibility, dense_parts: DataFrame, args: argparse.Namespace) -> str:
    """Draw the only group.

    Raises:
        InputError: it is too large for a drawing.
    """
    vertices = first_rows(graph.vertices, ["id"], _MOST_DRAWN + 1)
    edges = first_rows(graph.edges, ["src", "dst"], _MOST_DRAWN + 1)
    if len(vertices) > _MOST_DRAWN or len(edges) > _MOST_DRAWN:
        raise InputError(
            f"group {args.group!r} has more than {_MOST_DRAWN:,} vertices or edges, which is no "
            "drawing: take the tables (--format parquet)"
        )
    return _DRAWINGS[args.format](args.group, vertices, edges, _dense(dense_parts))


def _dense(dense_parts: DataFrame) -> set[tuple[str, str]]:
    """Return kind and name of the vertices that are in a dense part."""
    rows = dense_parts.where("kind = 'dense'").select("member_ids", "topics").collect()
    return {(MEMBER, name) for row in rows for name in row.member_ids} | {
        (CLASS, name) for row in rows for name in row.topics
    }


def _lines(facts: Facts, table_format: str) -> list[str]:
    classes = facts["class_count"]
    totals = [
        *counts(facts, "group", "member"),
        "1 topic class" if classes == 1 else f"{classes:,} topic classes",
        plural(facts["edge_count"], "edge"),
    ]
    uneven = facts["uneven_count"]
    kept = "1 is kept" if uneven == 1 else f"{uneven:,} are kept"
    lines = [", ".join(totals), f"{kept} from being even by subscriptions"]
    if facts["groups"]:
        lines += [*lay_out_rows(facts["groups"], {"group": group_name, **_COUNTS}), ""]
        lines += [
            f"{group_name(row)}: {printable(row['detail'])}; {row['even_max']:,} would be even"
            for row in facts["groups"]
        ]
        lines += not_shown(facts["groups_not_shown"], "group", shown=uneven)
    holds = "the tables vertices, edges and bottlenecks are in"
    if table_format in _DRAWINGS:
        holds = f"the drawing graph.{table_format} is in"
    return lines + written(facts["output"], holds)
