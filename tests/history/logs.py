"""Group logs made by hand: what happens to groups, one record after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from kassign_spark.history.log_arrays import Log
from kassign_spark.log.log_schemas import COMMITS, GENERATIONS, LOG_ASSIGNMENT, LOG_MEMBERS
from kassign_spark.schemas import Table
from kassign_spark.spark.spark_versions import arrow_schema

START = datetime(2026, 11, 22, 3, tzinfo=UTC)
Partition = tuple[str, int]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Client:
    """A member as its group knows it."""

    topics: Sequence[str] = ("t",)
    owned: Sequence[Partition] = ()
    client: str | None = None
    """None: its member id up to the first dash."""
    host: str = "/10.0.0.1"
    instance: str | None = None
    session: int | None = 45_000
    polls: int = 300_000
    assignor: str | None = None
    """That it asks the broker for."""
    claims: Sequence[Partition] = ()
    """What it says that it had when it joined, and since when."""
    claimed_in: int | None = None


Members = Mapping[str, Client]


@dataclass
class Made:
    """Records so far; times are seconds."""

    generations: list[dict[str, Any]] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    assignment: list[dict[str, Any]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    computed: list[dict[str, Any]] = field(default_factory=list)
    offset: int = 0

    def classic(
        self, group: str, number: int, seconds: float, members: Members, assignor: str = "range"
    ) -> None:
        place = self._place(seconds)
        self.generations.append(
            {"group_id": group, "group_type": "classic", "generation": number}
            | {"protocol_type": "consumer", "assignor": assignor if members else None}
            | {"leader": min(members, default=None), "member_count": len(members), **place}
        )
        for member_id, member in members.items():
            row = {"group_id": group, "generation": number, "member_id": member_id}
            self.members.append(_member(member_id, member) | row | {"record": "group", **place})
            self._assign(row, member.owned, place, "assigned", "topic")
            self._assign(row, member.claims, place, "owned", "topic")

    def epoch(self, group: str, number: int, seconds: float) -> None:
        self.generations.append(
            {"group_id": group, "group_type": "consumer", "generation": number}
            | self._place(seconds)
        )

    def deleted(self, group: str, group_type: str, seconds: float) -> None:
        place = self._place(seconds) | {"is_tombstone": True}
        self.generations.append({"group_id": group, "group_type": group_type, **place})

    def member(self, group: str, member_id: str, seconds: float, member: Client | None) -> None:
        """A member of the new protocol; None: it left."""
        place = self._place(seconds) | {"is_tombstone": member is None}
        row = {"group_id": group, "member_id": member_id, "record": "member", **place}
        self.members.append((_member(member_id, member) if member else {}) | row)

    def target(
        self, group: str, member_id: str, seconds: float, owned: Sequence[Partition] | None
    ) -> None:
        place = self._place(seconds) | {"is_tombstone": owned is None}
        row = {"group_id": group, "member_id": member_id}
        self.members.append(row | {"record": "target", **place})
        self._assign(row, owned or (), place, "target", "topic_id")

    def computes(self, group: str, number: int, seconds: float) -> None:
        """The targets before it are those of an epoch."""
        self.computed.append({"group_id": group, "generation": number, **self._place(seconds)})

    def commit(self, group: str, topic: str, partition: int, seconds: float) -> None:
        place = self._place(seconds)
        del place["partition"]
        row = {"group_id": group, "topic": topic, "partition": partition}
        self.commits.append(row | {"committed": self.offset, **place})

    def log(self) -> Log:
        return Log(
            _table(self.generations, GENERATIONS),
            _table(self.members, LOG_MEMBERS),
            _table(self.assignment, LOG_ASSIGNMENT),
            _table(self.commits, COMMITS),
        )

    def _place(self, seconds: float) -> dict[str, Any]:
        self.offset += 1
        return {"partition": 7, "offset": self.offset, "at": at(seconds), "is_tombstone": False}

    def _assign(
        self,
        generation: Mapping[str, Any],
        owned: Sequence[Partition],
        place: Mapping[str, Any],
        role: str,
        named: str,
    ) -> None:
        for topic, partition in owned:
            row = {named: topic, "partition": partition, "role": role}
            self.assignment.append({**generation, "offset": place["offset"], **row})


def _member(member_id: str, member: Client) -> dict[str, Any]:
    return {
        "group_instance_id": member.instance,
        "client_id": member.client or member_id.split("-")[0],
        "client_host": member.host,
        "rebalance_timeout_ms": member.polls,
        "session_timeout_ms": member.session,
        "topics": list(member.topics),
        "assignor": member.assignor,
        "owned_generation": member.claimed_in,
    }


def _table(rows: list[dict[str, Any]], table: Table) -> pa.Table:
    return pa.Table.from_pylist(rows, arrow_schema(table.columns))
