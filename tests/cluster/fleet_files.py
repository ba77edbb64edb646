"""A fleet of few groups, so that a run on a cluster takes seconds: its cost is that of its jobs."""

import json
from pathlib import Path

from tests.small_fleet import MEMBERS, TOPICS, write_small_fleet

_MIXED = """index,index-a,orders;payments,sticky,3,
index,index-b,payments;refunds,sticky,3,
index,index-c,refunds;orders,sticky,2,
"""
_OWNED = [("mail-a", "orders", 5), ("index-a", "orders", 5), ("index-a", "payments", 3)]


def write_fleet(folder: Path) -> Path:
    """The small fleet, all four assignors, and a group of differing subscriptions.

    In that group one member owns too much, so that the general pass has something to transfer.
    """
    owned = [
        {"group_id": member[:-2], "member_id": member, "topic": topic, "partition": partition}
        for member, topic, count in _OWNED
        for partition in range(count)
    ]
    topics = [*TOPICS, {"topic": "refunds", "num_partitions": 4}]
    return write_small_fleet(
        folder, members=MEMBERS + _MIXED, topics=_lines(topics), owned=_lines(owned)
    )


def _lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
