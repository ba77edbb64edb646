"""A snapshot of three small groups, written by hand in three formats of text."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MEMBERS = """group_id,member_id,topics,assignor,generation,rack_id
billing,billing-a,orders;payments,range,4,east
billing,billing-b,orders;payments,range,4,west
mail,mail-a,orders,cooperative-sticky,2,
mail,mail-b,orders,cooperative-sticky,1,
search,search-a,"[""orders"",""payments""]",roundrobin,1,
search,search-b,"[""payments""]",roundrobin,1,
"""
TOPICS: list[dict[str, Any]] = [
    {"topic": "orders", "num_partitions": 5},
    {"topic": "payments", "num_partitions": 3, "replica_racks": [["east"], ["west"], ["east"]]},
]


def _owned() -> Iterable[dict[str, Any]]:
    for partition in range(5):
        yield {"group_id": "mail", "member_id": "mail-a", "topic": "orders", "partition": partition}
    yield {"group_id": "billing", "member_id": "billing-b", "topic": "orders", "partition": 4}


def write_small_fleet(folder: Path, **changed: str) -> Path:
    """Write the files; ``changed`` replaces the whole text of a table."""
    folder.mkdir()
    texts = {
        "members.csv": changed.get("members", MEMBERS),
        "topics.jsonl": changed.get("topics", _lines(TOPICS)),
        "owned.json": changed.get("owned", _lines(_owned())),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
