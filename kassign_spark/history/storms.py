"""Groups that rebalance too often: who causes it, and what other settings would have saved."""

from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.groups.numbers import names
from kassign_spark.groups.rows import run_in_tasks
from kassign_spark.history import rebalance_columns as c
from kassign_spark.history.log_arrays import repeats, times
from kassign_spark.plans.offset_weights import seconds_of
from kassign_spark.simulation.decisions import decide
from kassign_spark.simulation.events import EVENTS
from kassign_spark.simulation.members import Member, change_members
from kassign_spark.simulation.timeouts import Timeouts
from kassign_spark.spark.sessions import cores
from kassign_spark.spark.spark_versions import arrow_schema

_ROWS = arrow_schema(c.STORMS.columns)
_OVER_AND_OVER = 2
_MEMBERSHIP = (c.MEMBER_JOINED, c.MEMBER_LEFT, c.MEMBER_RESTARTED, c.MEMBERS_CHANGED,
               c.MEMBER_CRASHED, c.MEMBER_TOO_SLOW)  # fmt: skip

Row = dict[str, Any]
Client = tuple[str | None, str | None]


class Absence(NamedTuple):
    """A client that left and came back in a storm: at which rebalances, and for how long."""

    left_at: int
    joined_at: int
    kind: str
    milliseconds: int
    session_ms: int


def storms(rebalances: DataFrame, *, within: str = "10m", at_least: int = 5) -> DataFrame:
    """Find times in which groups rebalance too often, and say who or what causes it.

    A rebalance is of a storm when it is one of ``at_least`` in a span of ``within``; those whose
    spans meet are one storm. What settings would have saved is found by replaying each client that
    left and came back by the rules of ``simulate``: a static member that is back within its session
    timeout starts no rebalance, neither by going nor by coming.

    Args:
        rebalances: what ``rebalances`` gives, of a batch.
        within: a length of time: a number and one of s, m, h, d.
        at_least: how many are too many.

    Returns:
        One row a storm: group_id string, begins, ends timestamp, rebalances int, most_within int:
        the most in one span, cause string (``rebalance_columns.CAUSES``), client_id, client_host
        string: who
        joins and leaves the most (null: nobody does), joins, leaves int: its own, moved int: of all
        its rebalances, longest_pause double: seconds, saved_by_static int: rebalances that would
        not have been, had every client that came back had a ``group.instance.id``, with the session
        timeout that it had, saved_by_session int: with a session timeout of session_needed_ms as
        well, session_needed_ms int: longer than each was away (null: the present one is), detail
        string: the same in words.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        SettingsError: ``within`` is not a length of time.
        InputError: ``at_least`` is below 2.
    """
    seconds = seconds_of("within", within)
    if at_least < 2:
        raise InputError(f"at_least is {at_least}; a storm is of at least 2 rebalances")
    kernel = partial(storms_arrow, within=round(seconds * 1e6), at_least=at_least)
    tasks = cores(rebalances.sparkSession)
    rebalance_rows = conform(rebalances, c.REBALANCES)
    return run_in_tasks(rebalance_rows, kernel, c.STORMS.columns, tasks, keys=("group_id",))


def storms_arrow(table: pa.Table, *, within: int, at_least: int) -> Iterator[pa.Table]:
    """Find the storms of whole groups, from rows of ``REBALANCES``; ``within`` in µs."""
    order = [("group_id", "ascending"), ("at", "ascending"), ("offset", "ascending")]
    table = table.filter(pc.not_equal(table["reason"], c.FIRST)).sort_by(order)
    number, time = names(table["group_id"]).code, times(table["at"])
    time = time - time.min(initial=0)
    # Groups one after the other, further apart than any span.
    clock = time + np.cumsum(np.diff(number, prepend=0) != 0) * (
        int(time.max(initial=0)) + within + 1
    )
    begins = np.arange(len(clock))
    counts = np.searchsorted(clock, clock + within, side="right") - begins
    inside = begins < np.maximum.accumulate(np.where(counts >= at_least, begins + counts, 0))
    # Spans of two groups never meet, but their rows stand side by side.
    edges = np.flatnonzero(~repeats(number, inside)).tolist()
    rows = [
        _storm(table.slice(start, end - start).to_pylist(), int(counts[start:end].max()))
        for start, end in pairwise([*edges, len(clock)])
        if inside[start]
    ]
    yield pa.Table.from_pylist(rows, _ROWS)


def _storm(rows: list[Row], most_within: int) -> Row:
    joins, leaves, kinds = Counter[Client](), Counter[Client](), Counter[tuple[Client, str]]()
    for row in rows:
        joins.update(_clients(row, "joined"))
        gone = _clients(row, "left")
        leaves.update(gone)
        kinds.update(zip(gone, row["left_kinds"], strict=True))
    busy = joins + leaves
    # The busiest; of equally busy ones the first by name.
    client = min(
        busy, key=lambda candidate: (-busy[candidate], str(candidate)), default=(None, None)
    )
    absences = list(_absences(rows))
    present = _count_saved(rows, absences, None)
    needed = _find_timeout(absences)
    longer = present if needed is None else _count_saved(rows, absences, needed)
    pauses = [row["longest_pause"] for row in rows if row["longest_pause"] is not None]
    facts = {
        "group_id": rows[0]["group_id"],
        "begins": rows[0]["at"],
        "ends": rows[-1]["at"],
        "rebalances": len(rows),
        "most_within": most_within,
        "cause": _cause(rows, client, joins, leaves, kinds),
        "client_id": client[0],
        "client_host": client[1],
        "joins": joins[client],
        "leaves": leaves[client],
        "moved": sum(row["moved"] for row in rows),
        "longest_pause": max(pauses, default=None),
        "saved_by_static": present,
        "saved_by_session": longer,
        "session_needed_ms": needed if longer > present else None,
    }
    return facts | {"detail": _detail(facts)}


def _clients(row: Row, prefix: str) -> list[Client]:
    return list(zip(row[f"{prefix}_clients"], row[f"{prefix}_hosts"], strict=True))


def _cause(
    rows: list[Row],
    client: Client,
    joins: Counter[Client],
    leaves: Counter[Client],
    kinds: Counter[tuple[Client, str]],
) -> str:
    mixed = sum(row["subscription_count"] > 1 for row in rows)
    changing = sum(row["reason"] == c.SUBSCRIPTION_CHANGED for row in rows)
    slow, crashed = kinds[client, c.TOO_SLOW], kinds[client, c.CRASHED]
    if slow >= _OVER_AND_OVER and slow >= crashed:
        return c.TOO_SLOW_POLLS
    if crashed >= _OVER_AND_OVER:
        return c.CRASHES
    comes_and_goes = {who for who in joins if leaves[who]}
    if mixed * 2 >= len(rows) and len(comes_and_goes) > 1:
        return c.TWO_DEPLOYMENTS
    if joins[client] >= _OVER_AND_OVER and leaves[client] >= _OVER_AND_OVER:
        return c.RESTARTS
    if changing * 2 >= len(rows):
        return c.SUBSCRIPTIONS
    members = sum(row["reason"] in _MEMBERSHIP for row in rows)
    return c.COMING_AND_GOING if members * 2 >= len(rows) else c.OTHERS


def _absences(rows: list[Row]) -> Iterator[Absence]:
    """Return clients that left in the storm and came back, each with the last time that it left."""
    gone: dict[Client, list[tuple[int, str]]] = {}
    default = Timeouts().session_timeout_ms
    for place, row in enumerate(rows):
        for client, kind in zip(_clients(row, "left"), row["left_kinds"], strict=True):
            gone.setdefault(client, []).append((place, kind))
        for client, away in zip(_clients(row, "joined"), row["joined_away"], strict=True):
            if away is None or not gone.get(client):
                continue
            left_at, kind = gone[client].pop()
            session = row["session_timeout_ms"] or default
            # Who was dropped had been silent for its session timeout before.
            silent = session if kind == c.CRASHED else 0
            yield Absence(left_at, place, kind, round(away * 1000) + silent, session)


def _find_timeout(absences: list[Absence]) -> int | None:
    """Return the session timeout, in whole seconds, within which all returning clients are back."""
    longest = max((a.milliseconds for a in absences if a.kind != c.TOO_SLOW), default=None)
    return None if longest is None else (longest // 1000 + 1) * 1000


def _count_saved(rows: list[Row], absences: list[Absence], session_ms: int | None) -> int:
    """Return how many rebalances would not have happened if the returning clients had been static.

    One is saved when everybody who came or went in it is, and nothing else happened; with it the
    rounds that hand over what it moved.
    """
    left, joined = Counter[int](), Counter[int]()
    for absence in absences:
        session = absence.session_ms if session_ms is None else session_ms
        if not rebalances_without(absence.kind, absence.milliseconds, session):
            left[absence.left_at] += 1
            joined[absence.joined_at] += 1
    saved, follows = 0, False
    for place, row in enumerate(rows):
        if row["reason"] != c.HANDOVER:
            follows = (
                row["reason"] in _MEMBERSHIP
                and not row["changed"]
                and not row["grown_topics"]
                and len(row["left"]) == left[place]
                and len(row["joined"]) == joined[place]
            )
        saved += follows
    return saved


@cache
def rebalances_without(kind: str, away_ms: int, session_timeout_ms: int) -> bool:
    """Return whether a static member's absence starts a rebalance, on leaving or on return.

    By the rules of ``simulate``; ``kind`` is one of ``rebalance_columns.LEFT_KINDS``.
    """

    def same(member: Member) -> Member:
        return member

    topics = ("topic",)
    members = [
        Member(name, id_, None, topics, None, None, None, "range", ("range",), resolved=topics)
        for name, id_ in (("that", "its-instance"), ("another", None))
    ]
    event: dict[str, Any] = dict.fromkeys(EVENTS.columns.names)
    event |= vars(Timeouts(session_timeout_ms=session_timeout_ms))
    event |= {"group_id": "group", "member_id": "that", "new_member_id": "that-again"}
    event |= {"downtime_ms": away_ms, "is_topic": False, "stage": 1}
    if kind == c.TOO_SLOW:
        event["kind"] = "member_polls_too_late"
        return decide(event, change_members(members, event, same), False).cause.rebalance
    event["kind"] = "member_restarts"
    going = change_members(members, event, same)
    if any(change.goes for change in going):
        return True
    back = change_members([change.after for change in going], event | {"stage": 2}, same)
    return decide(event | {"stage": 2}, back, False).cause.rebalance


def _detail(storm: Row) -> str:
    sentences = [c.CAUSES[storm["cause"]]]
    if storm["client_id"] is not None:
        sentences.append(
            f"{storm['client_id']} at {storm['client_host']} joined {storm['joins']} times and "
            f"left {storm['leaves']} times"
        )
    if storm["saved_by_static"]:
        sentences.append(f"a group.instance.id would have saved {storm['saved_by_static']}")
    if storm["session_needed_ms"] is not None:
        sentences.append(
            f"with session.timeout.ms={storm['session_needed_ms']} it would have saved "
            f"{storm['saved_by_session']}"
        )
    return "; ".join(sentences)
