"""``kassign-spark snapshot``: write down what a live cluster says about its groups."""

import argparse
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, first_rows, one_stream
from kassign_spark.commands.documents import either, record, rows
from kassign_spark.commands.log_command import add_reading, session_reading_log
from kassign_spark.commands.parser import ADDRESS, About, Parser
from kassign_spark.commands.unread import DECLARED as UNREAD_DECLARED
from kassign_spark.commands.unread import ROWS as UNREAD_ROWS
from kassign_spark.commands.unread import unread_facts, unread_lines
from kassign_spark.display import counts, lay_out_rows, not_shown, one_line, plural, written
from kassign_spark.errors import InputError
from kassign_spark.launch.command_session import open_session
from kassign_spark.live.admin import check_address
from kassign_spark.live.client_properties import admin_settings, read_properties
from kassign_spark.live.from_describe import read_described
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, read_topics, to_snapshot
from kassign_spark.log.group_log import read_group_log
from kassign_spark.log.kafka_source import kafka_errors, kafka_options
from kassign_spark.log.newest import newest_state
from kassign_spark.schemas import TOPICS
from kassign_spark.tables.snapshots import new_folder, read_table, write_table

_WRITTEN = (
    "output string, tables array<string>, group_count int, member_count int, topic_count int, "
    "owned_count int, target_count int"
)
_OMITTED = rows("kind string, name string, reason string")
DOCUMENT = either(
    record(
        f"bootstrap_server string, {_WRITTEN}",
        "leader_count int, offset_count int?, omitted_count int",
        omitted=_OMITTED,
    ),
    record(
        f"bootstrap_server string?, from_log string, {_WRITTEN}",
        f"omitted_count int, {UNREAD_DECLARED}",
        omitted=_OMITTED,
        unread=UNREAD_ROWS,
    ),
    record(
        f"from_describe array<string>, {_WRITTEN}",
        "leader_count int, offset_count int?, omitted_count int, notes array<string>",
        omitted=_OMITTED,
    ),
)
ABOUT = About(
    description="Read every consumer group of a live cluster, and its topics, into a\n"
    "folder of tables that the other commands use. It only reads; it changes nothing. With\n"
    "--from-log the groups come from the records of __consumer_offsets, and no group is\n"
    "asked; with --from-describe they come from the output of Kafka's own tools.",
    finds="a group's newest record in the log cannot be read",
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
        "--from-describe",
        metavar="FILE",
        nargs="+",
        help="make the groups of texts of kafka-consumer-groups.sh --describe --all-groups: with "
        "--members --verbose, with --state, with neither; GROUP=FILE for one without the group",
    )
    parser.add_argument(
        "--topics",
        metavar="SNAPSHOT",
        help="with --from-log: a folder with the table topics, instead of the cluster's own; with "
        "--from-describe: a text of kafka-topics.sh --describe",
    )
    add_reading(parser)
    parser.add_argument(
        "--cluster-id",
        metavar="NAME",
        type=_name,
        help="value of the column cluster_id, if you have several clusters",
    )
    parser.add_argument(
        "--classic-only",
        action="store_true",
        help="leave out groups of the new protocol (KIP-848); else they and their target are there",
    )
    # Asked for them when they were left out by default; daily runs may still have it.
    parser.add_argument("--consumer-groups", action="store_true", help=argparse.SUPPRESS)
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
    if args.classic_only and args.consumer_groups:
        raise InputError("--classic-only leaves out what --consumer-groups asks for: give one")
    if args.from_describe is not None:
        facts = _from_texts(args)
    else:
        facts = _from_cluster(args) if args.from_log is None else _from_log(args)
    return Outcome(1 if facts.get("unread_count") else 0, facts, _lines(facts))


def _from_cluster(args: argparse.Namespace) -> Facts:
    if args.topics is not None:
        raise InputError("--topics goes with --from-log or --from-describe")
    if args.bootstrap_server is None:
        raise InputError("--bootstrap-server, --from-log or --from-describe is needed")
    check_address(args.bootstrap_server)
    properties = read_properties(args.command_config) if args.command_config else {}
    admin_settings(properties)  # what it refuses is said before Spark starts

    def progress(text: str) -> None:
        if not (args.json and one_stream()):  # the stream is the document's
            print(one_line(text), file=sys.stderr)

    with (
        open_session(verbose=args.verbose, remote=args.remote) as spark,
        new_folder(spark, args.output, overwrite=args.overwrite) as folder,
    ):
        tables = read_cluster(
            args.bootstrap_server,
            properties,
            cluster_id=args.cluster_id,
            consumer_groups=not args.classic_only,
            offsets=args.offsets,
            progress=progress,
        )
        frames = to_snapshot(tables, spark).tables()
        for name, frame in frames.items():
            write_table(frame, folder, name, args.format)
    return _written(
        tables, list(frames), named_arguments(args, "bootstrap_server", "output"), args.show
    )


def _from_texts(args: argparse.Namespace) -> Facts:
    """Write the groups that Kafka's own tools have printed."""
    for option in ("bootstrap_server", "from_log", "command_config"):
        if getattr(args, option) is not None:
            name = option.replace("_", "-")
            raise InputError(f"--{name}: --from-describe reads texts only, and asks no cluster")
    described = read_described(args.from_describe, args.topics, cluster_id=args.cluster_id)
    with (
        open_session(verbose=args.verbose, remote=args.remote) as spark,
        new_folder(spark, args.output, overwrite=args.overwrite) as folder,
    ):
        frames = to_snapshot(described.tables, spark).tables()
        frames.pop("group_settings", None)  # no text has them
        for name, frame in frames.items():
            write_table(frame, folder, name, args.format)
    facts = named_arguments(args, "from_describe", "output")
    return _written(described.tables, list(frames), facts, args.show) | {"notes": described.notes}


def _written(tables: ClusterTables, names: list[str], facts: Facts, show: int) -> Facts:
    """Count what was written."""
    return {
        **facts,
        "tables": names,
        "group_count": len({(row[0], row[1]) for row in tables.members}),
        "member_count": len(tables.members),
        "topic_count": len(tables.topics),
        "owned_count": len(tables.owned),
        "target_count": len(tables.target),
        "leader_count": len(tables.leaders),
        "offset_count": None if tables.offsets is None else len(tables.offsets),
        "omitted_count": len(tables.omitted),
        "omitted": [omission._asdict() for omission in tables.omitted[:show]],
    }


def _from_log(args: argparse.Namespace) -> Facts:
    """Write the groups' newest state, from what they recorded."""
    _refuse_with_log(args)
    properties = read_properties(args.command_config) if args.command_config else {}
    source = args.from_log or kafka_options(args.bootstrap_server, properties)
    with kafka_errors(source), session_reading_log(args, args.from_log) as spark:
        records = read_group_log(source, spark).records
        with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
            tables = _cluster_tables(args, properties, spark)
            state = newest_state(records, tables["topics"], consumer_groups=not args.classic_only)
            tables = {**state.snapshot.tables(), **tables}
            for name, frame in tables.items():
                write_table(frame, folder, name, args.format)
            return _gather_facts(state.omitted, tables, args) | unread_facts(
                state.unread, args.show
            )


def _refuse_with_log(args: argparse.Namespace) -> None:
    if args.offsets:
        raise InputError(
            "--offsets: the log has no begin and end offsets; ask the cluster, without --from-log"
        )
    if args.bootstrap_server is None and not args.from_log:
        raise InputError("--from-log without a folder needs --bootstrap-server")
    if args.bootstrap_server is None and args.topics is None:
        raise InputError(
            "--from-log needs --bootstrap-server or --topics: the log has no partition counts"
        )
    if args.topics is not None and args.cluster_id is not None:
        raise InputError("--cluster-id: with --topics it is the one that the table topics has")
    if args.bootstrap_server is not None:
        check_address(args.bootstrap_server)


def _cluster_tables(
    args: argparse.Namespace, properties: dict[str, str], spark: SparkSession
) -> dict[str, DataFrame]:
    """Return tables that are not of groups: topics and, from a cluster, leaders."""
    if args.topics is not None:
        return {"topics": read_table(spark, args.topics, TOPICS)}
    cluster = read_topics(args.bootstrap_server, properties, spark, cluster_id=args.cluster_id)
    tables = {"topics": cluster.topics, "leaders": cluster.leaders}
    return {name: frame for name, frame in tables.items() if frame is not None}


def _gather_facts(
    omitted: DataFrame, tables: dict[str, DataFrame], args: argparse.Namespace
) -> Facts:
    members = tables["members"]
    shown = first_rows(omitted, ["group_id"], args.show)
    group_count, member_count = members.agg(
        F.count_distinct("group_id"), F.count(F.lit(1))
    ).collect()[0]
    return {
        **named_arguments(args, "bootstrap_server", "from_log", "output"),
        "tables": list(tables),
        "group_count": group_count,
        "member_count": member_count,
        "topic_count": tables["topics"].count(),
        "owned_count": tables["owned"].count(),
        "target_count": tables["target"].count() if "target" in tables else 0,
        "omitted_count": omitted.count(),
        "omitted": [
            {"kind": "group", "name": row["group_id"], "reason": row["reason"]} for row in shown
        ],
    }


def _lines(facts: Facts) -> list[str]:
    owned = plural(facts["owned_count"], "owned partition")
    text = [", ".join([*counts(facts, "group", "member", "topic"), owned])]
    if facts.get("notes"):
        text += ["", *(f"note: {note}" for note in facts["notes"])]
    text += lay_out_rows(facts["omitted"], {"left out": "kind", "name": "name", "reason": "reason"})
    hidden = facts["omitted_count"] - len(facts["omitted"])
    text += not_shown(hidden, "name", " that were left out", shown=facts["omitted_count"])
    text += unread_lines(facts) if "unread_count" in facts else []
    return text + written(facts["output"], "the snapshot is in", ", ".join(facts["tables"]))
