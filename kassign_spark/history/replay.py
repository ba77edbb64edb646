"""What a static membership would have made of an absence, by the rules of ``simulate``."""

from functools import cache
from typing import Any

from kassign_spark.history.columns import TOO_SLOW
from kassign_spark.simulation.decisions import decide
from kassign_spark.simulation.events import EVENTS
from kassign_spark.simulation.members import Member, change_members
from kassign_spark.simulation.timeouts import Timeouts


@cache
def rebalances_without(kind: str, away_ms: int, session_timeout_ms: int) -> bool:
    """Whether a static member's absence starts a rebalance, when it goes or when it is back.

    Args:
        kind: one of ``columns.LEFT_KINDS``.
        away_ms: how long it was away.
        session_timeout_ms: that it has.
    """
    members = [_member("that", "its-instance"), _member("another", None)]
    event = _event(kind, away_ms, session_timeout_ms)
    if kind == TOO_SLOW:
        return decide(event, change_members(members, event, _same), False).said.rebalance
    going = change_members(members, event | {"stage": 1}, _same)
    if any(change.goes for change in going):
        return True
    back = change_members([change.after for change in going], event | {"stage": 2}, _same)
    return decide(event | {"stage": 2}, back, False).said.rebalance


def _same(member: Member) -> Member:
    return member


def _member(name: str, instance: str | None) -> Member:
    topics = ("topic",)
    return Member(
        name, instance, None, topics, None, None, None, "range", ("range",), resolved=topics
    )


def _event(kind: str, away_ms: int, session_timeout_ms: int) -> dict[str, Any]:
    event: dict[str, Any] = dict.fromkeys(EVENTS.columns.names)
    event |= vars(Timeouts(session_timeout_ms=session_timeout_ms))
    named = "member_polls_too_late" if kind == TOO_SLOW else "member_restarts"
    return event | {
        "kind": named,
        "group_id": "group",
        "member_id": "that",
        "new_member_id": "that-again",
        "downtime_ms": away_ms,
        "is_topic": False,
        "stage": 1,
    }
