"""``kassign-spark check-settings``: what is wrong in the properties files of consumers."""

import argparse
import re
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    announced,
    first_rows,
    place_in,
    write_tables,
)
from kassign_spark.commands.documents import one_of, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.display import lay_out_rows, plural, written
from kassign_spark.launch.command_session import open_session
from kassign_spark.live.client_properties import Key, parse_properties, properties_text
from kassign_spark.results import RESULTS
from kassign_spark.settings.client_settings import CLIENTS, SETTINGS, check_settings
from kassign_spark.settings.client_versions import version_of
from kassign_spark.settings.prefixes import ClientFile, Misspelled, read_through
from kassign_spark.settings.setting_rules import ADVICE, REFUSED, UNKNOWN
from kassign_spark.spark.iteration import materialize

ClientRow = tuple[str, str, str | None, str | None]
CLIENT_COLUMNS = ", ".join(f"{name} string" for name in CLIENTS.columns.names)
FINDING_COLUMNS = ", ".join(" ".join(column) for column in RESULTS["check_settings"].items())
SEVERITIES = (REFUSED, UNKNOWN, ADVICE)
_SETTING = re.compile(r"[a-z][a-z0-9_-]{0,30}(?:\.[a-z0-9_-]{1,30})+")
"""Settings that can be named without showing part of a secret that is on lines of its own."""

DOCUMENT = record(
    "client_version string, output string?, client_count int, refused_count int, "
    "advice_count int, unknown_count int, misspelled_count int, findings_not_shown int",
    findings=rows(
        "client string, setting string, value string?, detail string",
        severity=one_of(SEVERITIES),
    ),
    files_without_settings={"type": "array", "items": {"type": "string"}},
)
ABOUT = About(
    description="Check the settings of consumers, one properties file each, by the rules of\n"
    "their Java client and its broker: what they refuse, and what is a bad choice. Names that\n"
    "no client knows are listed with the nearest known name. Prefixes of Spring, Kafka\n"
    "Connect, Kafka Streams, Quarkus, Flink, MirrorMaker and others are understood. No secret\n"
    "is shown.",
    finds="a setting is refused or misspelled, or a file has no settings",
    example="kassign-spark check-settings consumer.properties --client-version 4.1.0",
)


class ClientFiles(NamedTuple):
    """The content of the files of consumers."""

    rows: list[ClientRow]
    """Rows of ``CLIENTS``: only settings that have a rule."""
    unknown: list[tuple[str, str, None, str, str]]
    """Keys that no client knows, as findings."""
    misspelled_count: int
    """Those of them that are near a known one."""
    without_settings: list[str]
    """Files that have not one setting of a consumer."""


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
    files = read_clients(args.files, args.client_version)
    with (
        open_session(*args.files, verbose=args.verbose, remote=args.remote) as spark,
        announced("checking settings"),
    ):
        checked = check_settings(spark.createDataFrame(files.rows, CLIENT_COLUMNS))
        unknown = spark.createDataFrame(files.unknown, FINDING_COLUMNS)
        counts = {severity: F.count_if(F.col("severity") == severity) for severity in SEVERITIES}
        findings, totals = materialize(checked.unionByName(unknown), counts)
        write_tables(spark, args, findings=findings)
        worst = place_in(SEVERITIES, "severity")
        shown = first_rows(findings, [worst, "client", "setting", "detail"], args.show)
    facts = {
        **named_arguments(args, "client_version", "output"),
        "client_count": len({row[0] for row in files.rows}),
        **{f"{severity}_count": totals[severity] for severity in SEVERITIES},
        "misspelled_count": files.misspelled_count,
        "findings_not_shown": sum(totals.values()) - len(shown),
        "findings": shown,
        "files_without_settings": files.without_settings,
    }
    is_wrong = facts["refused_count"] or files.misspelled_count or files.without_settings
    return Outcome(1 if is_wrong else 0, facts, _lines(facts))


def read_clients(files: Sequence[str], version: str) -> ClientFiles:
    """Read properties files, whatever prefixes a framework puts before Kafka's names.

    Raises:
        InputError: the version is none.
        SettingsError: a file cannot be read.
    """
    version_of(version)
    clients = ClientFiles([], [], 0, [])
    for path in dict.fromkeys(files):
        file = _read_file(path)
        unknown = file.unknown
        if not file.clients:
            clients.without_settings.append(path)
            unknown = [key for key in unknown if key.nearest is not None]
        for role, settings in file.clients.items():
            client = f"{path} ({role})" if role else path
            clients.rows.append((client, version, None, None))
            clients.rows.extend(
                (client, version, name, str(settings[name]))
                for name in SETTINGS
                if name in settings
            )
        clients.unknown.extend(
            (path, str(setting), None, UNKNOWN, detail) for setting, detail in _unknown(unknown)
        )
        near = sum(key.nearest is not None for key in unknown)
        clients = clients._replace(misspelled_count=clients.misspelled_count + near)
    return clients


def no_settings(path: str) -> str:
    """Explain that a file is not a consumer's."""
    return f"{path}: has no setting of a Kafka consumer; give its properties file"


def _read_file(path: str) -> ClientFile:
    text = properties_text(path)
    if "\0" in text:  # a picture, say, which may have what looks like a broken escape
        return ClientFile({}, [])
    return read_through(parse_properties(text, path))


def _unknown(keys: Sequence[Misspelled]) -> list[tuple[str, str]]:
    """Return unknown keys, each with its finding; keys that may be secret by their lines."""
    findings = []
    lines = []
    for key, nearest in keys:
        if nearest is not None:
            findings.append((key, f"no client knows it, and ignores it; the nearest is {nearest}"))
        elif getattr(key, "is_assigned", True) and _SETTING.fullmatch(key):
            findings.append((key, "no client knows it, and ignores it; none is near"))
        elif isinstance(key, Key):
            lines.append(key.line)
    if lines:
        more = f", nor {plural(len(lines) - 1, 'line')} more" if len(lines) > 1 else ""
        findings.append((f"line {lines[0]}", f"is not a setting of a Kafka client{more}"))
    return findings


def _lines(facts: Facts) -> list[str]:
    totals = ", ".join(
        f"{facts[f'{severity}_count']:,} {word}"
        for severity, word in ((REFUSED, REFUSED), (ADVICE, "advised against"), (UNKNOWN, UNKNOWN))
    )
    clients = plural(facts["client_count"], "client")
    lines = [f"{clients} of version {facts['client_version']}: {totals}"]
    lines += map(no_settings, facts["files_without_settings"])
    columns = ("severity", "client", "setting", "value", "detail")
    lines += lay_out_rows(facts["findings"], {name: name for name in columns})
    if hidden := facts["findings_not_shown"]:
        lines.append(f"{hidden:,} more not shown")
    return lines + written(facts["output"], "in", "findings")
