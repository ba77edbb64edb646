"""``kassign-spark deliver``: each member's own part of a plan, as JSON that consumers take."""

import argparse
import json

from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    read_assigned,
    session_reading,
    write_tables,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.display import group_name, not_shown, plural, printable, written
from kassign_spark.plans.delivery import deliver
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize

_TEXTS = ("topic_partitions", "spark_assign")
DOCUMENT = record(
    "plan string, output string?, member_count int, members_not_shown int",
    members=rows(
        f"{GROUP}, member_id string, partition_count int",
        topic_partitions=rows("topic string, partition int"),
        spark_assign={
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "integer"}},
        },
    ),
)
ABOUT = About(
    description="Give each member its part of a plan (its table assignment) or of a\n"
    "snapshot (its table owned): as topic-partitions for a consumer's assign(), and as the\n"
    "option assign of Spark's Kafka source.",
    example="kassign-spark deliver build/plan --group payments-refunds",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("plan", metavar="PLAN", help="folder of a plan or a snapshot")
    parser.add_argument("--group", metavar="ID", help="only this group")
    parser.add_argument("--member", metavar="ID", help="only this member")
    parser.add_output("the table delivery")
    parser.add_show("print at most N members")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"delivering {args.plan}", args.plan) as spark:
        [assigned] = read_assigned(spark, args.plan)
        for column, name in (("group_id", args.group), ("member_id", args.member)):
            if name is not None:
                assigned = assigned.where(F.col(column) == name)
        delivery, totals = materialize(deliver(assigned), {"members": F.count(F.lit(1))})
        # In CSV the same partitions are there as JSON.
        rows_to_write = delivery.drop("partitions") if args.format == "csv" else delivery
        write_tables(spark, args, delivery=rows_to_write)
        rows = first_rows(delivery.drop("partitions"), [*GROUP_KEY, "member_id"], args.show)
    facts = {
        **named_arguments(args, "plan", "output"),
        "member_count": totals["members"],
        "members_not_shown": totals["members"] - len(rows),
        "members": [row | {name: json.loads(row[name]) for name in _TEXTS} for row in rows],
    }
    return Outcome(0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    lines = [plural(facts["member_count"], "member")]
    for row in facts["members"]:
        heading = f"{group_name(row)} {printable(row['member_id'])}"
        lines += ["", f"{heading}: {plural(row['partition_count'], 'partition')}"]
        for name in _TEXTS:
            text = json.dumps(row[name], ensure_ascii=False, separators=(",", ":"))
            lines.append(f"  {printable(text)}")
    lines += not_shown(facts["members_not_shown"], "member", shown=facts["member_count"])
    return lines + written(facts["output"], "in", "delivery")
