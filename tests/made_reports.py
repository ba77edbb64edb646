"""What a report is rendered from, made up: any number of groups, with names that would do harm."""

import random
from typing import Any

from kassign_spark.display import printable
from kassign_spark.report.collect import MAX_PROBLEMS, PageContents, fitting
from kassign_spark.report.details import MAX_MEMBERS, MAX_MOVES
from kassign_spark.report.past import MAX_TIMELINES, Past
from kassign_spark.report.weight_section import MAX_CURVES, WeightSection

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'><b onmouseover=alert(3)>",
    "&lt;i&gt; & <!--",
    "a\nb\u202e\u2028c",
)


def made_contents(group_count: int, *, details: int = 200, seed: int = 8) -> PageContents:
    """Numbers that a fleet could have; the first groups, the worst, have the hostile names."""
    made = random.Random(seed)
    groups = [_group(made, place, group_count) for place in range(group_count)]
    texts = [_details(made, group) for group in groups[:details]]
    problems = [
        {
            "source": "snapshot",
            "kind": made.choice(["topic_without_metadata", "owner_not_in_group"]),
            "cluster_id": "",
            "group_id": group["group_id"],
            "member_id": f"{group['group_id']}-0",
            "topic": made.choice(HOSTILE),
            "partition": made.choice([None, 3]),
            "detail": f"about {group['group_id']}",
        }
        for group in groups
        if group["problem_count"]
    ]
    counts: dict[str, int] = {}
    for row in problems:
        counts[row["kind"]] = counts.get(row["kind"], 0) + 1
    brokers = [
        {
            "cluster_id": "",
            "coordinator": broker,
            "coordinator_partition_count": 10,
            "group_count": group_count // 5,
            "member_count": 100 * (5 - broker),
            "partition_count": 1000,
            "load_ratio": (5 - broker) / 2.4,
            "is_hot": broker == 0,
        }
        for broker in range(5)
    ]
    return PageContents(
        totals=_totals(groups),
        groups=groups,
        details=texts[: fitting(texts)],
        spreads=[
            {"label": label, "before": group_count // 3, "after": group_count // 4}
            for label in ("0", "1", "2", "3 to 5")
        ],
        brokers=brokers,
        hot_count=1,
        problem_counts=[
            {"source": "snapshot", "kind": kind, "count": counts[kind]} for kind in sorted(counts)
        ],
        problems=problems[:MAX_PROBLEMS],
    )


def made_by_weight(group_count: int = 12, *, seed: int = 9) -> WeightSection:
    """Loads by weight of some groups, the first of which have the hostile names."""
    made = random.Random(seed)
    names = [printable(HOSTILE[i]) if i < len(HOSTILE) else f"g{i}" for i in range(group_count)]
    groups: list[dict[str, Any]] = [
        {
            "name": name,
            "fair": made.uniform(10, 2e6),
            "max_before": made.uniform(10, 2e6),
            "max_after": made.uniform(10, 2e6),
            "skew_before": 3 - i / group_count if i else None,
            "skew_after": 2 - i / group_count,
            "moved_weight": made.uniform(0, 1e6) if i else None,
        }
        for i, name in enumerate(names)
    ]
    curves = [
        {
            "name": name,
            "points": [
                {"moves": m * m * i, "skew": 3 - m / 2, "floor": 1.2, "is_knee": m == 2}
                for m in range(4 if i else 1)
            ],
        }
        for i, name in enumerate(names[:MAX_CURVES])
    ]
    return WeightSection(group_count + 3, groups, curves)


def made_past(group_count: int = 12) -> Past:
    """What was of some groups, the first of which have the hostile names."""
    names = [printable(HOSTILE[i]) if i < len(HOSTILE) else f"g{i}" for i in range(group_count)]
    reasons = ("member_left", "member_joined", "member_crashed")
    days = [
        {"day": f"2026-11-{1 + day:02}", "reason": reason, "count": 1 + day}
        for day in range(9)
        for reason in reasons
    ]
    groups: list[dict[str, Any]] = [
        {
            "name": name,
            "rebalances": 3 * (group_count - i),
            "moved": 7 * i,
            "longest_pause": 1.5 * i if i else None,
            "mostly": "a member left",
            "storms": int(i == 0),
        }
        for i, name in enumerate(names)
    ]
    timelines = [
        {
            "name": name,
            "points": [
                {
                    "at": 1_793_000_000_000 + 60_000 * (i + at),
                    "generation": at,
                    "reason": reasons[at % 3],
                    "moved": at,
                    "pause": 0.5 if at else None,
                }
                for at in range(4)
            ],
        }
        for i, name in enumerate(names[:MAX_TIMELINES])
    ]
    return Past(3 * 78, group_count + 2, 1, days, groups, timelines)


def _group(made: random.Random, place: int, count: int) -> dict[str, Any]:
    members = made.choice([1, 3, 8, 20, 150])
    partitions = members * made.randrange(1, 30)
    spread = (count - place) * 40 // count
    least = max(0, partitions // members - spread)
    cooperative = made.random() < 0.3
    moved = made.randrange(partitions)
    name = f"team-{place % 97}.service-{place}.events-v2"
    return {
        "cluster_id": "",
        "group_id": HOSTILE[place] if place < len(HOSTILE) else name,
        "assignor": "cooperative-sticky" if cooperative else made.choice(["range", "roundrobin"]),
        "member_count": members,
        "partition_count": partitions,
        "min_before": least,
        "max_before": least + spread + 3,
        "idle_before": 0,
        "min_assigned": least,
        "max_assigned": least + spread,
        "mean_assigned": partitions / members,
        "stddev_assigned": spread / 2,
        "idle_after": int(least == 0),
        "is_balance_optimal": spread < 20,
        "moved": moved,
        "least_moves": moved // 2,
        "cross_rack_count": None,
        "protocol": "cooperative" if cooperative else "eager",
        "planned_rounds": 2 if cooperative else 1,
        "planned_paused": moved if cooperative else partitions,
        "planned_settles": True,
        "withheld_count": moved if cooperative else 0,
        "eager_rounds": 1,
        "eager_moved": moved,
        "eager_paused": partitions,
        "cooperative_rounds": 2,
        "cooperative_moved": moved // 2,
        "cooperative_paused": moved // 2,
        "cooperative_settles": True,
        "coordinator_partition": place % 50,
        "coordinator": place % 5,
        "problem_count": int(place % 3 == 0),
        "violation_count": 0,
    }


def _details(made: random.Random, group: dict[str, Any]) -> dict[str, Any]:
    listed = min(group["member_count"], MAX_MEMBERS)
    ids = [f"{group['group_id']}-{i}-{made.getrandbits(128):032x}" for i in range(listed)]
    moves = min(MAX_MOVES, group["moved"])
    return {
        "members": [[name, made.randrange(40), made.randrange(40), 0] for name in ids],
        "more_members": group["member_count"] - listed,
        "moves": [
            ["moved", made.choice(ids), made.choice(ids), 4, "orders[0-3]  payments.settled[1,7]"]
            for _ in range(moves)
        ],
        "more_moves": 0,
        "problems": [["owner_not_in_group", HOSTILE[0], HOSTILE[1]]] * group["problem_count"],
        "why": _why(made, group) if group["member_count"] > 1 else None,
    }


def _why(made: random.Random, group: dict[str, Any]) -> dict[str, Any]:
    """A hundred kinds of members and twelve classes, the first ones dense."""
    return {
        "reason": f"only member {HOSTILE[0]} can read orders (36 partitions)",
        "before": [group["max_assigned"], group["max_assigned"] - group["min_assigned"]],
        "advice": [[f"let {HOSTILE[1]} read orders as well", 11, 1, 27, 42, 1]] * 3,
        "rows": [
            [[f"{group['group_id']}-{i}-9f3a"], 1 + i % 3, int(i < 10),
             "".join(made.choice("01") for _ in range(12))]
            for i in range(100)
        ],
        "classes": [[[f"topic-{i}", HOSTILE[2]], 2 + i, 12, int(i < 3)] for i in range(12)],
        "more_rows": 20,
        "more_classes": 0,
    }  # fmt: skip


def _totals(groups: list[dict[str, Any]]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(group[name] or 0 for group in groups)

    result: dict[str, Any] = {
        name: total(name)
        for name in (
            *("member_count", "partition_count", "idle_before", "idle_after", "least_moves"),
            *("moved", "withheld_count", "violation_count"),
        )
    }
    for protocol in ("planned", "eager", "cooperative"):
        result[f"{protocol}_moved"] = total(
            "moved" if protocol == "planned" else f"{protocol}_moved"
        )
        result[f"{protocol}_paused"] = total(f"{protocol}_paused")
        result[f"{protocol}_rounds"] = max(group[f"{protocol}_rounds"] for group in groups)
        result[f"{protocol}_paused_groups"] = len(groups)
    return {
        **result,
        "group_count": len(groups),
        "idle_group_count": sum(group["idle_after"] > 0 for group in groups),
        "uneven_count": sum(not group["is_balance_optimal"] for group in groups),
        "cross_rack_count": None,
        "cross_rack_group_count": 0,
        "moving_group_count": sum(group["moved"] > 0 for group in groups),
        "unsettled_count": 0,
        "problem_group_count": sum(group["problem_count"] > 0 for group in groups),
        "eager_group_count": sum(group["protocol"] == "eager" for group in groups),
        "knows_owned": True,
        "knows_leaders": True,
    }
