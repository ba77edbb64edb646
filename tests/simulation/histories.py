"""Random fleets of one cluster, and events that are possible in them, one after the other."""

import random
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
_ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
# Names that Java, Python and Spark order otherwise, and such as have to be quoted.
_IDS = ["a", "b", "B", "c-1", "\uffee", "\U0001f600", "z z", 'q"', "m1", "m2", "m3", "消"]
PATTERNS = ["t.*", ".*", "u|t1", "(?i)T1", "none", "orders-.*"]
_NEW_TOPICS = ["new1", "new2", "t9", "orders-us", "__transaction_state"]
_ONE_OF_A_KIND = ("member_leaves", "member_crashes", "member_polls_too_late")


@dataclass
class History:
    """Tables of a cluster, and what happens to it."""

    members: list[Row] = field(default_factory=list)
    topics: list[Row] = field(default_factory=list)
    owned: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)

    def tables(self) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
        return self.members, self.topics, self.owned, self.events


def history(seed: int, *, groups: int = 40, length: int = 5) -> History:
    """Groups whose members are mostly odd, and about so many events of each."""
    rnd = random.Random(seed)
    made = History()
    is_racked = rnd.random() < 0.5
    names = [f"t{i}" for i in range(rnd.randint(1, 5))] + ["u", "orders-eu", "__consumer_offsets"]
    for name in names:
        size = rnd.randint(0, 7)
        racks = [rnd.choice([None, ["a"], ["a", "b"], ["b"], []]) for _ in range(size)]
        row = {"topic": name, "num_partitions": size}
        made.topics.append({**row, "replica_racks": racks if is_racked else None})
    known = [*names, "missing", "new1"]
    for number in range(groups):
        _add_group(rnd, made, f"g{number}", known, is_racked)
    _add_events(rnd, made, length, known)
    return made


def _add_group(
    rnd: random.Random, made: History, group: str, known: list[str], is_racked: bool
) -> None:
    ids = rnd.sample(_IDS, rnd.randint(1, 6))
    assignor, is_static, by_pattern = rnd.choice(_ASSIGNORS), rnd.random() < 0.4, rnd.random() < 0.2
    shared = rnd.choice([None, rnd.sample(known, rnd.randint(0, 3))])
    for place, member_id in enumerate(ids):
        pattern = rnd.choice(PATTERNS) if by_pattern and rnd.random() < 0.7 else None
        own = rnd.sample(known, rnd.randint(0, 3)) if shared is None else shared
        made.members.append(
            {
                "group_id": group,
                "member_id": member_id,
                "group_instance_id": f"i-{member_id}" if is_static and place else None,
                "rack_id": rnd.choice([None, "a", "b", ""]) if is_racked else None,
                "topics": None if pattern else own,
                "topics_pattern": pattern,
                "generation": rnd.choice([None, 0, 3, 3, 3, 4, -1]),
                "member_seq": rnd.choice([None, place, place]),
                "assignor": assignor,
            }
        )
    for _ in range(rnd.choice([0, 4, 10])):
        claim = {"member_id": rnd.choice([*ids, *ids, "gone"]), "topic": rnd.choice(known)}
        made.owned.append({"group_id": group, **claim, "partition": rnd.randint(0, 7)})


def _add_events(rnd: random.Random, made: History, length: int, known: list[str]) -> None:
    sizes = {r["topic"]: r["num_partitions"] for r in made.topics if r["num_partitions"]}
    ids: dict[str, dict[str, tuple[str | None, bool]]] = {}
    for row in made.members:
        at = ids.setdefault(row["group_id"], {})
        at[row["member_id"]] = (row["group_instance_id"], True)
    for number in range(0, 2 * length, 2):
        if rnd.random() < 0.4:
            made.events.append({"event": number, **_topic_event(rnd, sizes)})
        for group, members in ids.items():
            if rnd.random() < 0.8:
                event = _member_event(rnd, members, number, known)
                made.events.append({"event": number + 1, "group_id": group, **event})
    for place, event in enumerate(made.events):
        event["line"] = place + 1


def _topic_event(rnd: random.Random, sizes: dict[str, int]) -> Row:
    new = [name for name in _NEW_TOPICS if name not in sizes]
    kind = rnd.choice(["topic_appears", "topic_disappears", "topic_grows"])
    if new and (kind == "topic_appears" or not sizes):
        topic = rnd.choice(new)
        sizes[topic] = rnd.randint(1, 6)
        return {"kind": "topic_appears", "topic": topic, "num_partitions": sizes[topic]}
    topic = rnd.choice(sorted(sizes))
    if kind == "topic_disappears":
        del sizes[topic]
        return {"kind": kind, "topic": topic}
    sizes[topic] += rnd.randint(1, 4)
    return {"kind": "topic_grows", "topic": topic, "num_partitions": sizes[topic]}


def _member_event(
    rnd: random.Random, members: dict[str, tuple[str | None, bool]], number: int, known: list[str]
) -> Row:
    """An event of a group; ``members`` has of each its instance, and whether it is here."""
    here = sorted(name for name, (_, is_here) in members.items() if is_here)
    away = sorted(set(members) - set(here))
    kinds = [*_ONE_OF_A_KIND, "member_restarts", "assignor_changes", "subscription_changes"]
    kind = rnd.choice([*kinds, *kinds[3:], "member_joins"]) if here else "member_joins"
    event: Row = {"kind": kind}
    if rnd.random() < 0.1:
        event["session_timeout_ms"] = rnd.choice([1, 6000])
    if kind == "member_joins":
        name = rnd.choice([*away, f"new{number}"])
        event |= {"member_id": name, **_subscription(rnd, known)}
        event["assignors"] = rnd.choice([["cooperative-sticky", "range"], [rnd.choice(_ASSIGNORS)]])
        instance = members.get(name, (None, False))[0]
        if rnd.random() < 0.2:
            instance = event["group_instance_id"] = f"i-{name}"
        members[name] = (instance, True)
        return event
    if kind == "subscription_changes":
        return event | _subscription(rnd, known) | rnd.choice([{}, {"member_id": rnd.choice(here)}])
    name = rnd.choice(here)
    instance = members[name][0]
    event["member_id"] = rnd.choice([name, name, instance or name])
    if kind in _ONE_OF_A_KIND:
        members[name] = (instance, False)
        return event
    event["downtime_ms"] = rnd.choice([None, 0, 20_000, 50_000])
    if rnd.random() < 0.4:
        event["new_member_id"] = f"{name}'{number}"
        members[event["new_member_id"]] = members.pop(name)
    if kind == "assignor_changes":
        lists = (rnd.sample(_ASSIGNORS, rnd.randint(1, 4)), ["cooperative-sticky", "range"])
        event["assignors"] = rnd.choice([*lists, ["cooperative-sticky"]])
    elif rnd.random() < 0.4:
        event |= _subscription(rnd, known)
        event["rack_id"] = rnd.choice([None, "a", "b"])
    return event


def _subscription(rnd: random.Random, known: list[str]) -> Row:
    if rnd.random() < 0.3:
        return {"topics_pattern": rnd.choice(PATTERNS)}
    return {"topics": rnd.sample(known, rnd.randint(0, 3))}
