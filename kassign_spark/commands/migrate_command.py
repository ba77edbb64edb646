"""``kassign-spark migrate``: which groups can go over to the new protocol, and what it will do."""

import argparse

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.check_settings_command import (
    CLIENT_COLUMNS,
    ClientRow,
    no_settings,
    read_clients,
)
from kassign_spark.commands.choosing import named_arguments, only_group
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    place_in,
    session_reading,
    write_tables,
)
from kassign_spark.commands.documents import GROUP, maybe, one_of, record, rows
from kassign_spark.commands.parser import About, Parser, whole_number
from kassign_spark.conforming import fill_cluster_id, short_assignor
from kassign_spark.display import (
    Columns,
    first_names,
    group_name,
    lay_out_first_rows,
    lay_out_rows,
    plural,
    written,
)
from kassign_spark.errors import InputError
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.tables.snapshots import read_snapshot
from kassign_spark.whatif.migrate import TO, migrate
from kassign_spark.whatif.migration_rules import CONSUMER, NO_LIMIT, POLICIES, VERDICTS

_SUMS = ("moved", "paused", "cross_rack_before", "cross_rack_after", "next_moved")
_MEMBERS_SHOWN = 1
_GROUPS: Columns = {
    "group": group_name,
    "verdict": "verdict",
    "way": "way",
    "members": "member_count",
    "static": "static_count",
    "moved": "moved",
    "paused": "paused",
    "detail": "detail",
}
_STEPS: Columns = {
    "step": "step",
    "member": "member_id",
    "event": "event",
    "group is": "group_type",
    "moved": "moved",
    "paused": "paused",
    "unread": "unread",
    "who pauses": lambda row: first_names(row["pausing_members"], _MEMBERS_SHOWN),
}

DOCUMENT = record(
    "snapshot string, output string?, group_count int, there_count int, ready_count int, "
    "risky_count int, blocked_count int, moved int?, paused int?, cross_rack_before int?, "
    "cross_rack_after int?, next_moved int?, groups_not_shown int",
    to=one_of(sorted(TO)),
    groups=rows(
        f"{GROUP}, way string?, detail string?, member_count int, static_count int, "
        "step_count int, moved int?, paused int?, end_moved int?, next_moved int?, "
        "cross_rack_before int?, cross_rack_after int?",
        verdict=one_of(VERDICTS),
    ),
    steps=rows(
        f"{GROUP}, step int, member_id string, event string, group_type string, "
        "is_rebalance boolean, moved int?, paused int?, unread int?, "
        "pausing_members array<string>?, may_lose_members array<string>?",
        moves=maybe(
            rows("topic string, partition int, from_member_id string?, to_member_id string?")
        ),
    ),
)
ABOUT = About(
    description="Judge for every classic group whether it can move to the protocol of\n"
    "KIP-848 (or back, with --to classic), and follow its members' restarts one by one: who\n"
    "pauses, what moves, how much locality is lost; with --group, every step.",
    finds="a group is blocked",
    example="kassign-spark migrate examples/both-protocols --group billing-invoices",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_group()
    parser.add_argument(
        "--to", choices=sorted(TO), default=CONSUMER, help="the protocol (default: consumer)"
    )
    parser.add_argument(
        "--assignor",
        type=short_assignor,
        choices=sorted({name for names in TO.values() for name in names}),
        help="assignor of the groups afterwards (default: uniform; range with --to classic)",
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default=POLICIES[0],
        help="group.consumer.migration.policy of the broker (default: bidirectional)",
    )
    parser.add_argument(
        "--max-size",
        metavar="N",
        type=whole_number(least=1),
        default=NO_LIMIT,
        help="group.consumer.max.size of the broker; group.max.size with --to classic",
    )
    parser.add_argument(
        "--client-config",
        metavar="FILE",
        action="append",
        default=[],
        help="also check this properties file of a client, with its group.id; repeatable",
    )
    parser.add_argument(
        "--client-version", metavar="X.Y.Z", help="version of kafka-clients of these clients"
    )
    parser.add_output("the tables steps and verdicts")
    parser.add_show("print at most N groups, blocked and risky ones first")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if bool(args.client_config) != (args.client_version is not None):
        raise InputError("--client-config and --client-version go together: give both or neither")
    clients: list[ClientRow] = []
    if args.client_config:
        files = read_clients(args.client_config, args.client_version)
        if files.without_settings:
            raise InputError(no_settings(files.without_settings[0]))
        clients = files.rows
    with session_reading(args, f"migrating {args.snapshot}", args.snapshot) as spark:
        snapshot = only_group(read_snapshot(args.snapshot, spark), args.group)
        steps, verdicts = migrate(
            *snapshot,
            to=args.to,
            assignor=args.assignor,
            policy=args.policy,
            max_size=args.max_size,
            clients=spark.createDataFrame(clients, CLIENT_COLUMNS) if clients else None,
        )
        write_tables(spark, args, steps=steps, verdicts=verdicts)
        totals = verdicts.agg(
            *(F.count_if(F.col("verdict") == name).alias(name) for name in VERDICTS),
            *(F.sum(name).alias(name) for name in _SUMS),
        )
        (row,) = totals.collect()
        worst = place_in(reversed(VERDICTS), "verdict")
        shown = first_rows(verdicts, [worst, F.desc("moved"), *GROUP_KEY], args.show)
        target_count = _count_of_protocol(snapshot.members, args.to)
        of_group = first_rows(steps, [*GROUP_KEY, "step"], 2**31 - 1) if args.group else []
    counts = {name: row[name] for name in VERDICTS}
    facts: Facts = {
        **named_arguments(args, "snapshot", "output", "to"),
        "group_count": sum(counts.values()),
        "there_count": target_count,
        **{f"{name}_count": count for name, count in counts.items()},
        **{name: row[name] for name in _SUMS},
        "groups_not_shown": sum(counts.values()) - len(shown),
        "groups": shown,
        "steps": of_group,
    }
    return Outcome(1 if facts["blocked_count"] else 0, facts, _lines(facts))


def _count_of_protocol(members: DataFrame, protocol: str) -> int:
    """Return the number of groups that already use the target protocol."""
    if "group_type" not in members.columns:
        return 0
    is_there = is_consumer_group() if protocol == CONSUMER else ~is_consumer_group()
    return fill_cluster_id(members).where(is_there).select(*GROUP_KEY).distinct().count()


def _lines(facts: Facts) -> list[str]:
    counts = ", ".join(f"{facts[f'{name}_count']:,} {name}" for name in VERDICTS)
    lines = [f"{plural(facts['group_count'], 'group')} to {facts['to']}: {counts}"]
    if facts["there_count"]:
        lines.append(f"{plural(facts['there_count'], 'group')} of that protocol already")
    if facts["moved"] is not None:
        lines.append(
            f"{plural(facts['moved'], 'move')} and {plural(facts['paused'], 'pause')} in all "
            "restarts, one member after the other"
        )
    if facts["next_moved"]:
        lines.append(f"{plural(facts['next_moved'], 'move')} more at the first change afterwards")
    if facts["cross_rack_after"] is not None:
        lines.append(
            f"{facts['cross_rack_before']:,} partitions read across racks before, "
            f"{facts['cross_rack_after']:,} afterwards"
        )
    lines += lay_out_first_rows(facts, "group", _GROUPS)
    lines += lay_out_rows(facts["steps"], _STEPS)
    return lines + written(facts["output"], "in", "steps, verdicts")
