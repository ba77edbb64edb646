"""Weights from offsets: lag, rate, and both in one unit."""

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.weighted.options import check_choice
from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.errors import SettingsError
from kassign_spark.inputs.problem_rows import TableCheck, refuse_problems
from kassign_spark.inputs.rules import Rule, partition_rules, sql_text
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, OFFSETS, table_of

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_RESETS = ("latest", "earliest", "none")
_KEY = (CLUSTER_ID, "topic", "partition")
_END_OFFSETS = ("begin_offset", "end_offset")

PARTITION_WEIGHTS = table_of(
    "weights",
    "cluster_id string?, group_id string?, topic string, partition int, weight double, "
    "lag bigint?, rate double?, note string?",
)


def partition_weights(
    offsets: DataFrame,
    offsets_before: DataFrame | None = None,
    *,
    horizon: str = "1h",
    auto_offset_reset: str = "latest",
) -> DataFrame:
    """Turn offsets of one moment, or of two, into weights for ``plan_by_weight``.

    weight = rate + lag / horizon: the records a second that a member must read to keep up, and to
    be done with the lag in the horizon. Offsets count transaction markers and what compaction has
    removed, so lag is an upper bound on records. One query checks the offsets; the rest is lazy.

    Args:
        offsets: ``schemas.OFFSETS``; a row with group_id gives weights of that group, one without
            serves all groups, by rate alone.
        offsets_before: ``schemas.OFFSETS`` of an earlier moment, at least 5 minutes before to be
            of use. The rate is the difference of end offsets by the seconds between. Without it,
            weights are lag / horizon.
        horizon: in which time the lag should be read: a number and `s`, `min`, `h` or `d`.
        auto_offset_reset: where a group without a commit begins (``auto.offset.reset``):
            `latest`: no lag; `earliest`: all that is there; `none`: an error.

    Returns:
        cluster_id string (where the input has it), group_id string (null: for all), topic string,
        partition int, weight double, lag bigint (null without group_id), rate double (records/s;
        null where there is no earlier row), note string (null, or lag_negative: the commit is
        beyond the end, lag 0; recreated: the end was further before, the rate is that since then;
        no_earlier_offsets).

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: offsets that are null or negative, a moment that is not later than the one
            before, a group without a commit where that is an error; lists every one.
        SettingsError: the horizon is not a length of time.
    """
    check_choice("auto_offset_reset", auto_offset_reset, _RESETS)
    seconds = seconds_of("horizon", horizon)
    check_same_clusters([(OFFSETS, offsets), (OFFSETS, offsets_before)])
    current = conform(offsets, OFFSETS)
    before = None if offsets_before is None else conform(offsets_before, OFFSETS)
    joined = _join_earlier(current, before)
    _refuse(joined, auto_offset_reset)
    lag = _lag(auto_offset_reset)
    rate, was_recreated = _rate()
    backlog = F.coalesce(F.greatest(lag, F.lit(0)), F.lit(0))
    per_second = F.coalesce(rate, F.lit(0.0)) + backlog / F.lit(seconds)
    note = F.when(lag < 0, "lag_negative")
    if before is not None:
        note = note.when(F.col("end_before").isNull(), "no_earlier_offsets")
        note = note.when(was_recreated, "recreated")
    not_negative = F.when(lag < 0, F.lit(0)).otherwise(lag)
    weights = joined.withColumns(
        {"weight": per_second, "lag": not_negative, "rate": rate, "note": note}
    )
    return to_result(weights, PARTITION_WEIGHTS, has_cluster_id=has_cluster_id(offsets))


def seconds_of(name: str, length: str) -> float:
    """Read a length of time, such as 10m.

    Raises:
        SettingsError: it is none; it names the setting.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", length)
    if not match or match[2] not in _UNITS or float(match[1]) <= 0:
        raise SettingsError(
            f"{name} {length!r} is not a length of time; give a number and one of s, min, h, d"
        )
    return float(match[1]) * _UNITS[match[2]]


def _join_earlier(current: DataFrame, before: DataFrame | None) -> DataFrame:
    """Join the earlier end offset to each row: it belongs to the partition, not the group."""
    if before is None:
        nothing = {"end_before": "bigint", "as_of_before": "timestamp"}
        return current.withColumns({n: F.lit(None).cast(kind) for n, kind in nothing.items()})
    ends = before.groupBy(*_KEY).agg(
        F.max("end_offset").alias("end_before"), F.max("as_of").alias("as_of_before")
    )
    return current.join(ends, on=list(_KEY), how="left")


def _lag(reset: str) -> Column:
    uncommitted = F.lit(0) if reset != "earliest" else F.col("end_offset") - F.col("begin_offset")
    # What retention has deleted nobody reads any more.
    begin = F.greatest("committed_offset", "begin_offset")
    committed = F.when(F.col("committed_offset").isNotNull(), F.col("end_offset") - begin)
    lag = F.coalesce(committed, uncommitted.cast("bigint"))
    return F.when(F.col("group_id").isNotNull(), lag)


def _rate() -> tuple[Column, Column]:
    seconds = F.col("as_of").cast("double") - F.col("as_of_before").cast("double")
    grown = F.col("end_offset") - F.col("end_before")
    since = F.col("end_offset") - F.col("begin_offset")
    return F.when(grown < 0, since).otherwise(grown) / seconds, grown < 0


def _refuse(joined: DataFrame, reset: str) -> None:
    count = "must be a whole number >= 0"
    later = "must be later than that of the offsets before"
    rules = [
        *partition_rules(),
        *(_rule(column, f"coalesce({column} < 0, true)", count) for column in _END_OFFSETS),
        _rule("committed_offset", "coalesce(committed_offset < 0, false)", f"{count}, or null"),
        _rule("as_of", "as_of is null", "every row needs its time"),
        _rule("as_of", "coalesce(as_of <= as_of_before, false)", later),
    ]
    if reset == "none":
        uncommitted = "group_id is not null and committed_offset is null"
        rules.append(_rule("committed_offset", uncommitted, "auto_offset_reset is none"))
    refuse_problems([TableCheck(OFFSETS, joined, rules)])


def _rule(column: str, is_broken: str, advice: str) -> Rule:
    value = f"coalesce(cast({column} as string), 'null')"
    return Rule(f"{column}_unusable", column, is_broken, value, sql_text(advice))
