"""``kassign-spark log``: keep the records of ``__consumer_offsets`` in files."""

import argparse
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, announced, session_reading
from kassign_spark.commands.documents import record
from kassign_spark.commands.parser import ADDRESS, About, Parser, coordinates
from kassign_spark.display import counts, written
from kassign_spark.launch.command_session import open_session
from kassign_spark.live.admin import check_address
from kassign_spark.live.client_properties import read_properties
from kassign_spark.log.group_log import read_group_log
from kassign_spark.log.kafka_source import (
    SEES_INTERNAL_TOPICS,
    kafka_errors,
    kafka_options,
)
from kassign_spark.log.log_schemas import RECORDS
from kassign_spark.spark.spark_versions import KAFKA_PACKAGE
from kassign_spark.tables.snapshots import new_folder, read_table, write_table

_TIME = "yyyy-MM-dd'T'HH:mm:ssXXX"
DOCUMENT = record(
    "bootstrap_server string, save string, record_count int, partition_count int, "
    "first timestamp?, last timestamp?"
)
ABOUT = About(
    description="Read the topic __consumer_offsets of a live cluster to its current end, and\n"
    "write its raw records to Parquet files, for read_group_log and snapshot --from-log.\n"
    "Spark reads as a group kassign-spark-log-*, which remains without members until the\n"
    "brokers remove it; records of such groups are left out.",
    example="kassign-spark log --bootstrap-server 127.0.0.1:9092 --save build/log",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("--bootstrap-server", required=True, **ADDRESS)
    add_reading(parser)
    parser.add_argument(
        "--save", metavar="DIR", required=True, help="new folder to write, with the table records"
    )
    parser.add_overwrite()


def add_reading(parser: Parser) -> None:
    """Add the options by which Spark reads a cluster's log."""
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="client properties, as of Kafka's own tools: TLS and SASL belong there",
    )
    parser.add_argument(
        "--package",
        metavar="COORDINATE",
        type=coordinates,
        default=KAFKA_PACKAGE,
        help=f"Spark package that reads the log from Kafka (default: {KAFKA_PACKAGE}); not under "
        "spark-submit, which has --packages, nor with --remote: name it to serve",
    )


def session_reading_log(
    args: argparse.Namespace, log: str | None
) -> AbstractContextManager[SparkSession]:
    """Open the session of a command that reads files of the log or, without ``log``, a cluster's.

    What ``args.topics`` names is read as well.

    Raises:
        KassignError: as ``session_reading``.
    """
    return session_reading(
        args,
        "reading the group log",
        *filter(None, (log, args.topics)),
        package="" if log else args.package,
        settings=SEES_INTERNAL_TOPICS,
    )


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    check_address(args.bootstrap_server)
    properties = read_properties(args.command_config) if args.command_config else {}
    options = kafka_options(args.bootstrap_server, properties)
    with (
        kafka_errors(options),
        open_session(
            verbose=args.verbose,
            package=args.package,
            settings=SEES_INTERNAL_TOPICS,
            remote=args.remote,
        ) as spark,
        announced(f"reading the group log of {args.bootstrap_server}"),
        new_folder(spark, args.save, overwrite=args.overwrite) as folder,
    ):
        write_table(read_group_log(options, spark).records, folder, RECORDS.name)
        records = read_table(spark, folder, RECORDS)
        totals = records.agg(
            F.count(F.lit(1)),
            F.count_distinct("partition"),
            F.date_format(F.min("timestamp"), _TIME),
            F.date_format(F.max("timestamp"), _TIME),
        ).collect()[0]
    facts: Facts = {
        **named_arguments(args, "bootstrap_server", "save"),
        **dict(zip(("record_count", "partition_count", "first", "last"), totals, strict=True)),
    }
    amounts = " of ".join(counts(facts, "record", "partition"))
    line = f"{amounts}, {facts['first']} to {facts['last']}"
    return Outcome(0, facts, [line, *written(args.save, "the log is in", "records")])
