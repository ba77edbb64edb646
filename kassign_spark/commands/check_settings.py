"""``kassign-spark check-settings``: what is wrong in the properties files of consumers."""

import argparse
from collections.abc import Sequence

from pyspark.sql import functions as F

from kassign_spark.commands.common import Facts, Outcome, announced, first_rows, write_tables
from kassign_spark.commands.documents import chosen, record, rows
from kassign_spark.commands.options import About, Parser, given
from kassign_spark.display import listed, plural, written
from kassign_spark.live.client_properties import read_properties
from kassign_spark.rounds import hold
from kassign_spark.session import open_session
from kassign_spark.settings.client_settings import CLIENTS, SETTINGS, check_settings
from kassign_spark.settings.rules import ADVICE, REFUSED
from kassign_spark.settings.versions import version_of

ClientRow = tuple[str, str, str | None, str | None]
CLIENT_COLUMNS = ", ".join(f"{name} string" for name in CLIENTS.columns.names)

DOCUMENT = record(
    "client_version string, output string?, client_count int, refused_count int, "
    "advice_count int, findings_not_shown int",
    findings=rows(
        "client string, setting string, value string?, detail string",
        severity=chosen([REFUSED, ADVICE]),
    ),
)
ABOUT = About(
    summary="check the properties files of consumers",
    description="Check the settings of consumers, a properties file each, by the rules of\n"
    "their Java client and its broker: what they refuse, and what is advised.\n"
    "Only settings with a rule are looked at: no secret is read or shown.",
    finds="a setting is refused",
    example="kassign-spark check-settings consumer.properties --client-version 4.1.0",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="properties, as Kafka reads them")
    parser.add_argument(
        "--client-version", metavar="X.Y.Z", required=True, help="version of kafka-clients"
    )
    parser.add_output("the table findings")
    parser.add_show("print at most N findings")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    rows = client_rows(args.files, args.client_version)
    with open_session(*args.files, verbose=args.verbose) as spark, announced("checking settings"):
        clients = spark.createDataFrame(rows, CLIENT_COLUMNS)
        counts = {"rows": F.count(F.lit(1)), "refused": F.count_if(F.col("severity") == "refused")}
        findings, counted = hold(check_settings(clients), counts)
        write_tables(spark, args, findings=findings)
        by = ("client", "setting", "detail")
        shown = first_rows(findings, [F.desc("severity"), *by], args.show)
    facts = {
        **given(args, "client_version", "output"),
        "client_count": len(dict.fromkeys(args.files)),
        "refused_count": counted["refused"],
        "advice_count": counted["rows"] - counted["refused"],
        "findings_not_shown": counted["rows"] - len(shown),
        "findings": shown,
    }
    return Outcome(1 if facts["refused_count"] else 0, facts, _lines(facts))


def client_rows(files: Sequence[str], version: str) -> list[ClientRow]:
    """Read properties files as rows of ``CLIENTS``: those settings only that have a rule.

    Raises:
        InputError: the version is none.
        SettingsError: a file cannot be read.
    """
    version_of(version)
    rows: list[ClientRow] = []
    for path in dict.fromkeys(files):
        found = read_properties(path)
        known = [name for name in SETTINGS if name in found]
        rows.append((path, version, None, None))
        rows += [(path, version, name, str(found[name])) for name in known]
    return rows


def _lines(facts: Facts) -> list[str]:
    lines = [
        f"{plural(facts['client_count'], 'client')} of version {facts['client_version']}: "
        f"{facts['refused_count']} refused, {facts['advice_count']} advised against"
    ]
    columns = ("severity", "client", "setting", "value", "detail")
    lines += listed(facts["findings"], {name: name for name in columns})
    if hidden := facts["findings_not_shown"]:
        lines.append(f"{hidden:,} more not shown")
    return lines + written(facts["output"], "in", "findings")
