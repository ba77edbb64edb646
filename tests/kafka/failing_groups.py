"""Recorded groups of which the real client throws, never ends or never settles."""

import json
from pathlib import Path

from tests.kafka.oracle import Group, Member

_FAILING = Path(__file__).parent / "failing-groups.jsonl"


def failing_group(case: str) -> Group:
    (record,) = (r for r in map(json.loads, _FAILING.read_text().splitlines()) if r["id"] == case)
    return Group(
        record["topics"],
        [
            Member(
                m["id"],
                m["topics"],
                [tuple(tp) for tp in m["owned"]],
                m["generation"],
                rack_id=m["rack"],
            )
            for m in record["members"]
        ],
        record["strategy"],
    )
