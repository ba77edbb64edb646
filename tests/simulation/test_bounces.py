"""From `range` to `cooperative-sticky`, member by member, in two rolling bounces (KIP-429)."""

from pyspark.sql import Row

from tests import builders
from tests.simulation.test_simulate import Simulated, e

_BOTH, _ONE = ["cooperative-sticky", "range"], ["cooperative-sticky"]
_CHANGES = [("C0", _BOTH), ("C1", _BOTH), ("C0", _ONE), ("C1", _ONE)]
_GROUPS = ("bounced-static", "bounced-dynamic")

TOPICS = {"bounced": 3}
MEMBERS = [
    {
        "group_id": name,
        "member_id": member,
        "topics": ["bounced"],
        "generation": 1,
        "assignor": "range",
        "group_instance_id": member if name == "bounced-static" else None,
    }
    for name in _GROUPS
    for member in ("C0", "C1")
]
OWNED = [
    row
    for name in _GROUPS
    for row in builders.owner_rows("C0: bouncedp0 bouncedp1; C1: bouncedp2", name)
]
EVENTS = [
    {**e("assignor_changes", member, assignors=names), "group_id": name, "event": number}
    for name in _GROUPS
    for number, (member, names) in enumerate(_CHANGES)
]


def _of(simulated: Simulated, name: str) -> dict[tuple[int, int], list[Row]]:
    """By the number of the change, from 1, and stage."""
    return {
        (event + 1, stage): rows
        for (group, event, stage), rows in simulated.items()
        if group == name and event < len(_CHANGES)
    }


def test_static_members_rebalance_only_when_the_assignor_changes(simulated: Simulated) -> None:
    of_group = _of(simulated, "bounced-static")
    assert sorted(of_group) == [(1, 2), (2, 2), (3, 2), (4, 2)]
    first = {key: (r[0].rebalance, r[0].assignor, r[0].protocol) for key, r in of_group.items()}
    assert first == {
        (1, 2): (False, "range", "eager"),
        (2, 2): (True, "cooperative-sticky", "eager"),
        (3, 2): (False, "cooperative-sticky", "mixed"),
        (4, 2): (False, "cooperative-sticky", "cooperative"),
    }
    assert of_group[2, 2][0].reason == (
        "a static member is back in time, but the chosen assignor changes from range to "
        "cooperative-sticky"
    )


def test_dynamic_members_rebalance_each_time(simulated: Simulated) -> None:
    of_group = _of(simulated, "bounced-dynamic")
    assert sorted(of_group) == [(n, stage) for n in range(1, 5) for stage in (1, 2)]
    assert all(rows[0].rebalance for rows in of_group.values())
    chosen = {key: (rows[0].assignor, rows[0].protocol) for key, rows in of_group.items()}
    # Alone, a member uses what it lists first.
    assert chosen == {
        (1, 1): ("range", "eager"),
        (1, 2): ("range", "eager"),
        (2, 1): ("cooperative-sticky", "eager"),
        (2, 2): ("cooperative-sticky", "eager"),
        (3, 1): ("cooperative-sticky", "eager"),
        (3, 2): ("cooperative-sticky", "mixed"),
        (4, 1): ("cooperative-sticky", "cooperative"),
        (4, 2): ("cooperative-sticky", "cooperative"),
    }
    for (event, stage), rows in of_group.items():
        last = max(r["round"] for r in rows)
        has = [(r.member_id, r.partition) for r in rows if r["round"] == last and _holds(r)]
        assert sorted(p for _, p in has) == [0, 1, 2], (event, stage)
    mixed = of_group[3, 2]
    # The eager member gives up what it has: nobody has to wait for it.
    assert {r.action for r in mixed if r.member_id == "C1" and r["round"] == 1} == {
        "revoked",
        "assigned",
    }
    assert max(r["round"] for r in mixed) == 1
    assert max(r["round"] for r in of_group[4, 2]) == 2


def _holds(row: Row) -> bool:
    return row.action in ("retained", "assigned")
