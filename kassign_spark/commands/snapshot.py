"""``kassign-spark snapshot``: write down what a live cluster says about its groups."""

import argparse
import sys

from kassign_spark.commands import snapshot_from_log
from kassign_spark.commands.common import Facts, Outcome, one_stream
from kassign_spark.commands.documents import either, record, rows
from kassign_spark.commands.log import add_reading
from kassign_spark.commands.options import ADDRESS, About, Parser
from kassign_spark.display import one_line
from kassign_spark.errors import InputError
from kassign_spark.live.client_properties import read_properties
from kassign_spark.live.snapshot import ClusterTables, read_cluster, to_snapshot
from kassign_spark.session import open_session
from kassign_spark.tables.snapshots import new_folder, write_table

DOCUMENT = either(
    record(
        "bootstrap_server string, output string, tables array<string>, group_count int, "
        "member_count int, topic_count int, owned_count int, target_count int, "
        "leader_count int, offset_count int?, omitted_count int",
        omitted=rows("kind string, name string, reason string"),
    ),
    snapshot_from_log.DOCUMENT,
)
ABOUT = About(
    summary="read a live cluster's groups, topics and owned partitions",
    description="Read every consumer group of a live cluster, and its topics, into a\n"
    "folder of tables that the other commands take. It only asks; it changes nothing.\n"
    "With --from-log the groups come from the records of __consumer_offsets, so that no\n"
    "group is asked, however many there are.",
    example="kassign-spark snapshot --bootstrap-server 127.0.0.1:9092 --output build/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("--bootstrap-server", **ADDRESS)
    parser.add_argument(
        "--from-log",
        metavar="LOG",
        nargs="?",
        const="",
        help="make the groups of the group log: a folder that kassign-spark log wrote or, without "
        "LOG, the cluster's topic itself",
    )
    parser.add_argument(
        "--topics",
        metavar="SNAPSHOT",
        help="with --from-log: a folder with the table topics, instead of the cluster's own",
    )
    add_reading(parser)
    parser.add_argument(
        "--cluster-id",
        metavar="NAME",
        type=_name,
        help="name for the column cluster_id, for those who have several clusters",
    )
    parser.add_argument(
        "--consumer-groups",
        action="store_true",
        help="read groups of the new protocol (KIP-848) too, with their target: for assign, "
        "predict and rebalance",
    )
    parser.add_argument(
        "--offsets",
        action="store_true",
        help="read begin, end and committed offsets too, with their time: plan and tradeoff make "
        "weights of them, lag from one snapshot and rates from two",
    )
    parser.add_output("the tables members, topics, owned and leaders", required=True)
    parser.add_show("print at most N groups and topics that were left out")


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if args.from_log is not None:
        return snapshot_from_log.run(args)
    if args.topics is not None:
        raise InputError("--topics goes with --from-log")
    if args.bootstrap_server is None:
        raise InputError("--bootstrap-server or --from-log is needed")
    properties = read_properties(args.command_config) if args.command_config else {}
    with (
        open_session(verbose=args.verbose) as spark,
        new_folder(spark, args.output, overwrite=args.overwrite) as folder,
    ):
        tables = read_cluster(
            args.bootstrap_server,
            properties,
            cluster_id=args.cluster_id,
            consumer_groups=args.consumer_groups,
            offsets=args.offsets,
            progress=_no_progress if args.json and one_stream() else _progress,
        )
        written = to_snapshot(tables, spark).tables()
        for name, frame in written.items():
            write_table(frame, folder, name, args.format)
    facts = _facts(tables, list(written), args)
    return Outcome(0, facts, snapshot_from_log.lines(facts))


def _progress(text: str) -> None:
    print(one_line(text), file=sys.stderr)


def _no_progress(_: str) -> None:
    """Leave the stream to the document."""


def _facts(tables: ClusterTables, written: list[str], args: argparse.Namespace) -> Facts:
    return {
        "bootstrap_server": args.bootstrap_server,
        "output": args.output,
        "tables": written,
        "group_count": len({(row[0], row[1]) for row in tables.members}),
        "member_count": len(tables.members),
        "topic_count": len(tables.topics),
        "owned_count": len(tables.owned),
        "target_count": len(tables.target),
        "leader_count": len(tables.leaders),
        "offset_count": None if tables.offsets is None else len(tables.offsets),
        "omitted_count": len(tables.omitted),
        "omitted": [omission._asdict() for omission in tables.omitted[: args.show]],
    }
