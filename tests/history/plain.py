"""``rebalances`` read slowly: one record after the other, in plain Python. The judge of the kernel.

It takes the rows of ``logs.Made``, and shares no code with the kernel.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.history.logs import Made, Partition

Row = dict[str, Any]
_TEN_MINUTES = timedelta(minutes=10)


@dataclass
class _Generation:
    """A generation and what was committed in it."""

    number: int
    group_type: str
    at: datetime
    assignor: str | None
    members: dict[str, Row]
    """As it ended: static members may have come back under other ids."""
    begun_with: dict[str, Row]
    owners: dict[Partition, set[str]]
    commits: dict[Partition, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    returned: int = 0

    def names(self) -> dict[str, str]:
        """Member ids by identity."""
        return {_identity(member): m for m, member in self.members.items()}


def _identity(member: Row) -> str:
    instance = member.get("group_instance_id")
    return f"static {instance}" if instance else f"dynamic {member['member_id']}"


def read(made: Made) -> list[Row]:
    rows = []
    groups = {row["group_id"] for row in [*made.generations]}
    for group in sorted(groups):
        rows += _Reader(made, group).rows()
    return rows


class _Reader:
    def __init__(self, made: Made, group: str) -> None:
        self.group = group
        tagged = [("generation", row) for row in made.generations]
        tagged += [("member", row) for row in made.members if row["record"] == "member"]
        tagged += [("target", row) for row in made.members if row["record"] == "target"]
        tagged += [("commit", row) for row in made.commits]
        self.events = sorted(
            ((kind, row) for kind, row in tagged if row["group_id"] == group),
            key=lambda event: event[1]["offset"],
        )
        self.members = [r for r in made.members if r["group_id"] == group]
        self.assignment = [r for r in made.assignment if r["group_id"] == group]
        self.epoch_members: dict[str, Row] = {}
        self.targets: dict[str, list[Partition]] = {}
        self.last: _Generation | None = None
        self.deleted: str | None = None
        self.last_owner: dict[Partition, tuple[str, int]] = {}
        self.largest: dict[str, int] = {}
        self.last_commit: dict[Partition, tuple[datetime, int]] = {}
        self.leaves: list[tuple[str | None, str, datetime]] = []
        self.place = -1
        self.firsts: set[int] = set()
        self.rebalances: list[Row] = []
        self.paused: dict[int, tuple[float, str, int]] = {}

    def rows(self) -> list[Row]:
        for kind, row in self.events:
            getattr(self, f"_{kind}")(row)
        self._settle()
        return self.rebalances

    def _member(self, row: Row) -> None:
        if row["is_tombstone"]:
            self.epoch_members.pop(row["member_id"], None)
        else:
            self.epoch_members[row["member_id"]] = row

    def _target(self, row: Row) -> None:
        """Targets follow their epoch: they change the last generation, which is not told yet."""
        if row["is_tombstone"]:
            self.targets.pop(row["member_id"], None)
            return
        self.targets[row["member_id"]] = self._assigned(row["offset"], row["member_id"])
        if self.last is not None:
            self.last.owners = self._target_owners(self.last.members)

    def _target_owners(self, members: dict[str, Row]) -> dict[Partition, set[str]]:
        owners: dict[Partition, set[str]] = defaultdict(set)
        for member_id, partitions in self.targets.items():
            for partition in partitions:
                owners[partition].add(_identity(members[member_id]))
        return owners

    def _commit(self, row: Row) -> None:
        partition = (row["topic"], row["partition"])
        before = self.last_commit.get(partition)
        self.last_commit[partition] = (row["at"], self.place)
        if self.last is None:
            return
        self.last.commits[partition].append(row["at"])
        if before is None or before[1] == self.place or self.place in self.firsts:
            return
        if row["at"] - self.last.at <= _TEN_MINUTES:
            pause = (row["at"] - before[0]).total_seconds()
            best = self.paused.get(self.place, (-1.0, "", 0))
            if (-pause, *partition) < (-best[0], best[1], best[2]):
                self.paused[self.place] = (pause, *partition)

    def _assigned(self, offset: int, member_id: str) -> list[Partition]:
        return [
            (row.get("topic") or row.get("topic_id"), row["partition"])
            for row in self.assignment
            if row["offset"] == offset and row["member_id"] == member_id
        ]

    def _generation(self, row: Row) -> None:
        if row["is_tombstone"]:
            self.deleted = row["group_type"]
            return
        group_type, number = row["group_type"], row["generation"]
        last, deleted, self.deleted = self.last, self.deleted, None
        converted = last is not None and last.group_type != group_type
        if last is not None and (number < last.number or (deleted is not None and not converted)):
            self._settle()
            last, converted = None, False
            self.last_owner, self.largest = {}, {}
        if group_type == "classic":
            members_there = [r for r in self.members if r["offset"] == row["offset"]]
            members = {r["member_id"]: r for r in members_there}
            owners: dict[Partition, set[str]] = defaultdict(set)
            for member_id, member in members.items():
                for partition in self._assigned(row["offset"], member_id):
                    owners[partition].add(_identity(member))
            assignor = row["assignor"]
        else:
            members = dict(self.epoch_members)
            owners = self._target_owners(members)
            votes = [m["assignor"] for m in members.values()]
            assignor = "range" if votes.count("range") > votes.count("uniform") else "uniform"
            assignor = assignor if members else None
        if last is not None and not converted and last.number == number:
            mine = {_identity(m): i for i, m in members.items()}
            last.returned += sum(mine.get(who, i) != i for who, i in last.names().items())
            last.members = members
            return
        self._settle()
        self.before, self.converted = last, converted
        self.place += 1
        self.firsts = {*self.firsts, self.place} if last is None else self.firsts
        self.last = _Generation(number, group_type, row["at"], assignor, members, members, owners)
        # What left has to be seen now: the targets of the epoch follow, the commits too.
        self.left_before = self._left(last, self.last)

    def _left(self, last: _Generation | None, now: _Generation) -> list[tuple[str, str]]:
        """Members that are gone, and how each went."""
        if last is None:
            return []
        here, problems = now.names(), []
        for who, member_id in sorted(last.names().items(), key=lambda item: item[1]):
            if who in here:
                continue
            member = last.members[member_id]
            had = [p for p, owners in last.owners.items() if who in owners]
            commits = [last.commits[p] for p in had if last.commits.get(p)]
            silence = min(((now.at - of[-1]).total_seconds() for of in commits), default=None)
            gaps = [(of[-1] - of[-2]).total_seconds() for of in commits if len(of) > 1]
            session = (member["session_timeout_ms"] or 45_000) / 1000
            kind = "left"
            if silence is not None and gaps and silence > 2 * min(gaps):
                if silence >= member["rebalance_timeout_ms"] / 1000:
                    kind = "too_slow"
                elif silence >= session:
                    kind = "crashed"
            if kind == "left" and member.get("group_instance_id"):
                kind = "left" if silence is not None and silence < session else "crashed"
            problems.append((member_id, kind))
        return problems

    def _settle(self) -> None:
        """Tell the generation that ends here."""
        now = self.last
        if now is None:
            return
        self.last = None
        last = self.before
        mine = {_identity(member): m for m, member in now.begun_with.items()}
        joined: list[str] = []
        changed: list[str] = []
        renamed = 0
        if last is not None:
            theirs = last.names()
            joined = sorted(m for who, m in mine.items() if who not in theirs)
            for who, member_id in mine.items():
                if who in theirs:
                    old, new = last.members[theirs[who]], now.begun_with[member_id]
                    renamed += theirs[who] != member_id
                    if set(old["topics"]) != set(new["topics"]):
                        changed.append(member_id)
            for member_id, _ in self.left_before:
                member = last.members[member_id]
                self.leaves.append((member["client_id"], member["client_host"], now.at))
        away: list[float | None] = []
        for member_id in joined:
            member = now.begun_with[member_id]
            times = [
                (now.at - gone).total_seconds()
                for client, host, gone in self.leaves
                if (client, host) == (member["client_id"], member["client_host"])
            ]
            away.append(times[-1] if times and times[-1] <= 600 else None)
        moved = kept = handed = 0
        grown = set()
        for partition in sorted(now.owners):
            owner = min(now.owners[partition], key=_in_kernel_order)
            before = self.last_owner.get(partition)
            if before is not None:
                kept += before[0] == owner
                moved += before[0] != owner
                handed += before[1] != self.place - 1
            topic = partition[0]
            if topic in self.largest:
                if partition[1] > self.largest[topic]:
                    grown.add(topic)
            elif last is not None:
                waited = any(topic in m["topics"] for m in last.members.values())
                by_id = now.group_type == "consumer" and not joined and not changed
                if waited or by_id:
                    grown.add(topic)
            self.last_owner[partition] = (
                max(now.owners[partition], key=_in_kernel_order),
                self.place,
            )
        for topic, number in now.owners:
            self.largest[topic] = max(self.largest.get(topic, -1), number)
        kinds = [kind for _, kind in self.left_before] if last is not None else []
        owners = {who for of in now.owners.values() for who in of}
        pause = self.paused.get(self.place)
        self.rebalances.append(
            {
                "group_id": self.group,
                "generation": now.number,
                "previous_generation": None if last is None else last.number,
                "at": now.at,
                "assignor": now.assignor,
                "member_count": len(now.begun_with),
                "joined": joined,
                "joined_away": away,
                "left": [m for m, _ in self.left_before] if last is not None else [],
                "left_kinds": kinds,
                "changed": sorted(changed),
                "grown_topics": sorted(grown),
                "moved": moved,
                "kept": kept,
                "idle": max(len(now.begun_with) - len(owners), 0),
                "longest_pause": None if pause is None else pause[0],
                "longest_pause_topic": None if pause is None else pause[1],
                "longest_pause_partition": None if pause is None else pause[2],
                "static_restarts": (0 if last is None else last.returned)
                + (renamed if now.group_type == "consumer" else 0),
                "reason": self._reason(
                    last, now, joined, away, kinds, renamed, changed, grown, handed
                ),
            }
        )

    def _reason(
        self,
        last: _Generation | None,
        now: _Generation,
        joined: list[str],
        away: list[float | None],
        kinds: list[str],
        renamed: int,
        changed: list[str],
        grown: set[str],
        handed: int,
    ) -> str:
        if last is None:
            return "first"
        if self.converted:
            return "protocol_changed"
        if now.number != last.number + 1:
            return "gap"
        for kind in ("crashed", "too_slow"):
            if kind in kinds:
                return f"member_{kind}"
        restarted = sum(a is not None for a in away)
        # Of the new protocol the return of a static member makes no epoch.
        renamed *= now.group_type == "classic"
        if (joined or renamed) and restarted == len(joined) and len(kinds) <= restarted:
            return "member_restarted"
        if joined and kinds:
            return "members_changed"
        if joined or kinds:
            return "member_joined" if joined else "member_left"
        if last.assignor and now.assignor and last.assignor != now.assignor:
            return "assignor_changed"
        if changed:
            return "subscription_changed"
        if grown:
            return "partitions_added"
        return "handover" if handed else "unknown"


def _in_kernel_order(who: str) -> tuple[bool, str]:
    kind, name = who.split(" ", 1)
    return kind == "static", name
