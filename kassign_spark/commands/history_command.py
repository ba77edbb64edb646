"""``kassign-spark history``: every rebalance that happened, why, and who rebalances too often."""

import argparse
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands import history_explain, history_follow
from kassign_spark.commands.common import Facts, Outcome, first_rows, write_tables
from kassign_spark.commands.documents import either, one_of, optional, record, rows
from kassign_spark.commands.log_command import add_reading, session_reading_log
from kassign_spark.commands.parser import ADDRESS, About, Parser, whole_number
from kassign_spark.commands.unread import DECLARED as UNREAD_DECLARED
from kassign_spark.commands.unread import ROWS as UNREAD_ROWS
from kassign_spark.commands.unread import select_unread, unread_facts, unread_lines
from kassign_spark.display import Columns, counts, lay_out_first_rows, plural, written
from kassign_spark.errors import InputError
from kassign_spark.history.explained_generations import explain_history
from kassign_spark.history.rebalance_columns import FIRST, REASONS, REBALANCES, STORMS
from kassign_spark.history.rebalances import rebalances_and_unread
from kassign_spark.history.storms import storms
from kassign_spark.inputs.nearest import refuse_unknown
from kassign_spark.live.admin import check_address
from kassign_spark.live.client_properties import read_properties
from kassign_spark.log.group_log import read_group_log
from kassign_spark.log.kafka_source import kafka_errors, kafka_options
from kassign_spark.spark.iteration import materialize

_HOUR = 3600
_HOURS: Columns = {
    "group": "group_id",
    "hour (UTC)": lambda row: row["hour"][:13].replace("T", " ") + "h",
    "rebalances": "rebalances",
    "moved": "moved",
    "longest pause s": "longest_pause",
    "mostly": lambda row: f"{REASONS[row['reason']]} ({row['reason_count']})",
}
_STORMS: Columns = {
    "storm of": "group_id",
    "from (UTC)": lambda row: row["begins"].replace("T", " ")[:16],
    "to": lambda row: row["ends"].replace("T", " ")[:16],
    "rebalances": "rebalances",
    "why": "detail",
}

DOCUMENT = either(
    optional(
        record(
            "source string, output string?, group_count int, rebalance_count int, "
            "moved_count int, hour_count int, hours_not_shown int, storm_count int, "
            f"storms_not_shown int, {UNREAD_DECLARED}",
            unread=UNREAD_ROWS,
            hours=rows(
                "group_id string, hour timestamp, rebalances int, moved int, "
                "longest_pause double?, reason_count int",
                reason=one_of(list(REASONS)),
            ),
            storms=rows(STORMS),
        ),
        explained=history_explain.DOCUMENT,
    ),
    history_follow.DOCUMENT,
)
ABOUT = About(
    description="Read the group log, __consumer_offsets of a live cluster or files of it.\n"
    "Show why each rebalance happened, what moved and how long partitions were not read: one\n"
    "row for each group and hour, those with the most rebalances first, and the storms, in\n"
    "which a group rebalanced too often: who caused them, and what other settings of its\n"
    "members would have saved. Times are UTC.\n"
    "With --follow it keeps reading until it is interrupted, and writes each rebalance once:\n"
    "a new run with the same DIR continues where the last one stopped.",
    finds="there are storms, or part of the log cannot be read",
    example="kassign-spark history --log examples/group-log",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bootstrap-server", **ADDRESS)
    source.add_argument("--log", metavar="DIR", help="folder that kassign-spark log wrote")
    add_reading(parser)
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=_time,
        help="ignore everything before, such as 2026-11-22 or 2026-11-22T03:00 (UTC)",
    )
    parser.add_argument("--group", metavar="GROUP", help="only this group")
    parser.add_argument(
        "--within", metavar="TIME", default="10m", help="span of a storm (default: 10m)"
    )
    parser.add_argument(
        "--at-least",
        metavar="N",
        type=whole_number(least=2),
        default=5,
        help="rebalances in that span that make a storm (default: 5)",
    )
    parser.add_argument("--follow", action="store_true", help="keep reading the log")
    parser.add_argument(
        "--available-now",
        action="store_true",
        help="with --follow: stop at the current end of the log; the next run continues",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also show which generations are not what their assignor gives",
    )
    parser.add_argument(
        "--topics",
        metavar="SNAPSHOT",
        help="with --explain: a folder with the table topics, for how many partitions there are "
        "and on which racks (default: the cluster's own with --bootstrap-server, else what each "
        "generation shows)",
    )
    parser.add_output("the tables rebalances, storms and, with --explain, explained")
    parser.add_show("print at most N hours, N storms and N groups")


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-11-22T03:00"
        ) from None
    return time.replace(tzinfo=time.tzinfo or UTC)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if args.available_now and not args.follow:
        raise InputError("--available-now goes with --follow")
    if args.follow and args.output is None:
        raise InputError("--follow needs --output, where it also keeps how far it has come")
    if args.follow and args.explain:
        raise InputError("--explain is of the log as it is: it does not go with --follow")
    if args.topics is not None and not args.explain:
        raise InputError("--topics goes with --explain")
    if args.bootstrap_server is not None:
        check_address(args.bootstrap_server)
    properties = read_properties(args.command_config) if args.command_config else {}
    source = args.log or kafka_options(args.bootstrap_server, properties)
    with kafka_errors(source), session_reading_log(args, args.log) as spark:
        log = read_group_log(source, spark, stream=args.follow)
        is_unread = F.col("unread_count").isNotNull()
        since = _since(rebalances_and_unread(log), args.since, is_unread)
        is_of_group = F.lit(True) if args.group is None else F.col("group_id") == args.group
        is_nobodys = is_unread & (F.col("group_id") == "")
        if args.follow:
            return history_follow.run(since.where(is_of_group | is_nobodys), args)
        both, row_counts = materialize(
            since, {"rows": F.count_if(is_of_group & ~is_unread), "unread": F.count_if(is_unread)}
        )
        unread = (
            select_unread(both.where(is_of_group | is_nobodys)) if row_counts["unread"] else None
        )
        history = both.where(~is_unread).select(*REBALANCES.columns.names)
        if args.group is not None and not row_counts["rows"]:
            names = history.select(F.col("group_id").alias("name"))
            refuse_unknown(names, [args.group], noun="group")
        history = history.where(is_of_group)
        storm_rows, storm_count = materialize(
            storms(history, within=args.within, at_least=args.at_least),
            {"storms": F.count(F.lit(1))},
        )
        tables = {"rebalances": history, "storms": storm_rows}
        explained: Facts | None = None
        if args.explain:
            topics = history_explain.topics_of(args, properties, spark)
            of_generations = _since(explain_history(log, topics), args.since).where(is_of_group)
            tables["explained"], explained = history_explain.ask(of_generations, args.show)
        write_tables(spark, args, **tables)
        sums = {"rebalance_count": F.sum("rebalances"), "moved_count": F.sum("moved")}
        hours, totals = materialize(
            count_by_hour(history), {**sums, "hour_count": F.count(F.lit(1))}
        )
        group_count = hours.select("group_id").distinct().count()
        damage = unread_facts(unread, args.show)
        worst = first_rows(hours, [F.col("rebalances").desc(), "hour", "group_id"], args.show)
        stormy = first_rows(storm_rows, [F.desc("rebalances"), "begins", "group_id"], args.show)
    facts: Facts = {
        "source": args.log or args.bootstrap_server,
        "output": args.output,
        "group_count": group_count,
        **{name: total or 0 for name, total in totals.items()},
        "hours_not_shown": totals["hour_count"] - len(worst),
        "hours": [_plain(row) for row in worst],
        "storm_count": storm_count["storms"],
        "storms_not_shown": storm_count["storms"] - len(stormy),
        "storms": [_plain(row) for row in stormy],
        **damage,
    }
    if explained is not None:
        facts["explained"] = explained
    is_fine = not facts["storm_count"] and not facts["unread_count"]
    return Outcome(0 if is_fine else 1, facts, _lines(facts))


def _since(frame: DataFrame, time: datetime | None, always: Column | None = None) -> DataFrame:
    """Return rows from a time on, and those that are needed whatever their time."""
    if time is None:
        return frame
    is_later = F.unix_micros("at") >= F.lit(round(time.timestamp() * 1e6))
    return frame.where(is_later if always is None else always | is_later)


def count_by_hour(history: DataFrame) -> DataFrame:
    """Count the rebalances of each group and hour, and say what they mostly were.

    Returns:
        group_id string, hour timestamp: when it begins, rebalances bigint, moved bigint,
        longest_pause double, reason string: the most frequent, reason_count bigint: how often.
    """
    hour = F.timestamp_seconds(F.floor(F.unix_seconds("at") / _HOUR) * _HOUR)
    by_reason = (
        history.where(F.col("reason") != FIRST)
        .groupBy("group_id", hour.alias("hour"), "reason")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.sum("moved").alias("moved"),
            F.max("longest_pause").alias("longest_pause"),
        )
    )
    ranked = F.array_min(F.collect_list(F.struct((-F.col("count")).alias("fewest"), "reason")))
    return (
        by_reason.groupBy("group_id", "hour")
        .agg(
            F.sum("count").alias("rebalances"),
            F.sum("moved").alias("moved"),
            F.max("longest_pause").alias("longest_pause"),
            ranked.alias("most"),
        )
        .select("*", "most.reason", (-F.col("most.fewest")).alias("reason_count"))
        .drop("most")
    )


def _plain(row: Facts) -> Facts:
    """Return a row for JSON, with times in UTC; Spark collects them in this machine's zone."""
    times = {name: value for name, value in row.items() if isinstance(value, datetime)}
    return row | {n: at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for n, at in times.items()}


def _lines(facts: Facts) -> list[str]:
    moved = f"{plural(facts['moved_count'], 'partition')} moved"
    groups, rebalanced, stormy = counts(facts, "group", "rebalance", "storm")
    lines = [f"{groups}, {rebalanced}, {moved}, {stormy}"]
    lines += lay_out_first_rows(facts, "hour", _HOURS)
    lines += lay_out_first_rows(facts, "storm", _STORMS)
    tables = "rebalances, storms"
    if "explained" in facts:
        lines += history_explain.lines(facts["explained"])
        tables += ", explained"
    lines += unread_lines(facts)
    return lines + written(facts["output"], "the history is in", tables)
