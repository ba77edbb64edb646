"""Report the records of the group log that could not be read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.common import Facts, first_rows
from kassign_spark.commands.documents import rows
from kassign_spark.display import Columns, lay_out_rows, not_shown, plural
from kassign_spark.spark.iteration import materialize

DECLARED = "unread_count int, unread_not_shown int"
ROWS = rows("group_id string?, kind string, reason string, count int")
"""With ``DECLARED`` what ``--json`` prints of it, as ``unread``."""
IS_UNREAD = "unread_count IS NOT NULL"
"""Which rows of ``rebalances_and_unread`` are of records that cannot be read."""
UNREAD_COLUMNS = (
    "nullif(group_id, '') AS group_id",
    "unread_kind AS kind",
    "unread_reason AS reason",
    "unread_count AS count",
)
"""What these rows say: group_id string?, kind string, reason string, count bigint."""
_COLUMNS: Columns = {
    "cannot be read": "kind",
    "of group": lambda row: row["group_id"] or "(its key cannot be read)",
    "records": "count",
    "why": "reason",
}


def unread_facts(unread: DataFrame | None, show: int) -> Facts:
    """Count records by group, kind and reason; the most first.

    Args:
        unread: group_id string?, kind string, reason string, count bigint; None: nothing is.
        show: how many rows.
    """
    if unread is None:
        return {"unread_count": 0, "unread_not_shown": 0, "unread": []}
    sums = unread.groupBy("group_id", "kind", "reason").agg(F.sum("count").alias("count"))
    unread_rows, totals = materialize(sums, {"rows": F.count(F.lit(1)), "records": F.sum("count")})
    most = first_rows(unread_rows, [F.desc("count"), "group_id", "kind", "reason"], show)
    return {
        "unread_count": totals["records"] or 0,
        "unread_not_shown": totals["rows"] - len(most),
        "unread": most,
    }


def select_unread(rows: DataFrame) -> DataFrame:
    """Return what is unread, of ``rebalances_and_unread``, as ``unread_facts`` takes it."""
    return rows.where(IS_UNREAD).selectExpr(*UNREAD_COLUMNS)


def unread_lines(facts: Facts) -> list[str]:
    """Return the lines to print, if there are any."""
    if not facts["unread_count"]:
        return []
    records = plural(facts["unread_count"], "record")
    lines = ["", f"{records} of the log cannot be read: their groups are reported in part only"]
    lines += lay_out_rows(facts["unread"], _COLUMNS)
    hidden = facts["unread_not_shown"]
    return lines + not_shown(hidden, "kind", " of them", shown=hidden + len(facts["unread"]))
