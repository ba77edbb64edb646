"""``kassign-spark snapshot --from-log``: the groups' newest state, from what they recorded."""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.common import Facts, Outcome, first_rows
from kassign_spark.commands.documents import record, rows
from kassign_spark.commands.log import session_reading_log
from kassign_spark.display import counts, listed, not_shown, plural, written
from kassign_spark.errors import InputError
from kassign_spark.live.client_properties import read_properties
from kassign_spark.live.snapshot import check_address
from kassign_spark.live.topics import read_topics
from kassign_spark.log.kafka_source import kafka_options
from kassign_spark.log.newest import newest_state
from kassign_spark.log.read import read_group_log
from kassign_spark.schemas import TOPICS
from kassign_spark.tables.snapshots import new_folder, read_table, write_table

DOCUMENT = record(
    "bootstrap_server string?, from_log string, output string, tables array<string>, "
    "group_count int, member_count int, topic_count int, owned_count int, target_count int, "
    "omitted_count int",
    omitted=rows("kind string, name string, reason string"),
)
"""What ``--json`` prints of it."""


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    _refuse(args)
    properties = read_properties(args.command_config) if args.command_config else {}
    inputs = [path for path in (args.from_log, args.topics) if path]
    with session_reading_log(args, args.from_log, *inputs) as spark:
        source = args.from_log or kafka_options(args.bootstrap_server, properties)
        records = read_group_log(source, spark).records
        with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
            tables = _cluster_tables(args, properties, spark)
            state = newest_state(records, tables["topics"], consumer_groups=args.consumer_groups)
            tables = {**state.snapshot.tables(), **tables}
            for name, frame in tables.items():
                write_table(frame, folder, name, args.format)
            facts = _facts(state.omitted, tables, args)
    return Outcome(0, facts, lines(facts))


def _refuse(args: argparse.Namespace) -> None:
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
    """Tables that are not of groups: topics and, from a cluster, leaders."""
    if args.topics is not None:
        return {"topics": read_table(spark, args.topics, TOPICS)}
    cluster = read_topics(args.bootstrap_server, properties, spark, cluster_id=args.cluster_id)
    found = {"topics": cluster.topics, "leaders": cluster.leaders}
    return {name: frame for name, frame in found.items() if frame is not None}


def _facts(omitted: DataFrame, tables: dict[str, DataFrame], args: argparse.Namespace) -> Facts:
    members = tables["members"]
    shown = first_rows(omitted, ["group_id"], args.show)
    group_count, member_count = members.agg(
        F.count_distinct("group_id"), F.count(F.lit(1))
    ).collect()[0]
    return {
        "bootstrap_server": args.bootstrap_server,
        "from_log": args.from_log,
        "output": args.output,
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


def lines(facts: Facts) -> list[str]:
    """Say what was written, wherever it was read."""
    owned = plural(facts["owned_count"], "owned partition")
    said = [", ".join([*counts(facts, "group", "member", "topic"), owned])]
    said += listed(facts["omitted"], {"left out": "kind", "name": "name", "reason": "reason"})
    hidden = facts["omitted_count"] - len(facts["omitted"])
    said += not_shown(hidden, "name", " that were left out", of=facts["omitted_count"])
    return said + written(facts["output"], "the snapshot is in", ", ".join(facts["tables"]))
