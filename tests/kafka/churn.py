"""Groups of both protocols that rebalance all the time, by requests of our own: no client each."""

import contextlib
import itertools
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaAdminClient
from kafka.protocol.consumer import (
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)

from tests.kafka import heartbeats
from tests.kafka.raw_members import MEMBER_ID_REQUIRED
from tests.oracles import protocol

_PAUSE = 0.01
"""Seconds between two requests: whoever reads them shall have some processor too."""


@contextlib.contextmanager
def churn(
    bootstrap_server: str, prefix: str, topics: dict[str, int], groups: int = 3
) -> Iterator[None]:
    """So many groups of each protocol rebalance and commit until the block ends; then all leave.

    Raises:
        Exception: what the broker refused, at the end of the block.
    """
    ended, failed = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            _churn(bootstrap_server, prefix, topics, groups, ended)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
    if failed:
        raise failed[0]
    assert not thread.is_alive()


def _churn(
    bootstrap_server: str, prefix: str, topics: dict[str, int], groups: int, ended: threading.Event
) -> None:
    rng = random.Random(18)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_server)
    try:
        (node,) = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
        heartbeats.wait_for_coordinator(admin)
        connection = _Connection(admin, node)
        of_each = [
            group
            for number in range(groups)
            for group in (
                _Classic(connection, f"{prefix}-classic-{number}", topics),
                _New(connection, f"{prefix}-new-{number}", topics),
            )
        ]
        for group in itertools.cycle(of_each):
            group.change(rng)
            if ended.wait(_PAUSE):
                break
        for group in of_each:
            group.leave()
    finally:
        admin.close()


@dataclass(frozen=True)
class _Connection:
    admin: Any
    node: int

    def ask(self, request: Any) -> Any:
        return self.admin._manager.run(self.admin._manager.send, request, self.node)


@dataclass
class _Classic:
    """One member, which is its leader: each time it joins again a generation begins."""

    connection: _Connection
    group_id: str
    topics: dict[str, int]
    member_id: str = ""

    def change(self, rng: random.Random) -> None:
        names = tuple(sorted(rng.sample(sorted(self.topics), rng.randrange(1, 3))))
        metadata = protocol.encode_subscription(protocol.Subscription(names))
        joined = self._join(metadata)
        if joined.error_code == MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = self._join(metadata)
        assert joined.error_code == 0, joined
        owned = tuple((topic, n) for topic in names for n in range(self.topics[topic]))
        synced = self.connection.ask(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=self.member_id,
                        assignment=protocol.encode_assignment(protocol.Assignment(owned)),
                    )
                ],
            )
        )
        assert synced.error_code == 0, synced
        self._commit(joined.generation_id, owned)

    def _join(self, metadata: bytes) -> Any:
        return self.connection.ask(
            JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=300_000,
                rebalance_timeout_ms=300_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
                ],
            )
        )

    def _commit(self, generation: int, owned: tuple[tuple[str, int], ...]) -> None:
        request = OffsetCommitRequest
        place = request.OffsetCommitRequestTopic
        topics = [
            place(
                name=topic,
                partitions=[
                    place.OffsetCommitRequestPartition(
                        partition_index=n, committed_offset=generation, committed_metadata=""
                    )
                    for t, n in owned
                    if t == topic
                ],
            )
            for topic in sorted({topic for topic, _ in owned})
        ]
        committed = self.connection.ask(
            request(
                group_id=self.group_id,
                generation_id_or_member_epoch=generation,
                member_id=self.member_id,
                topics=topics,
                max_version=9,
            )
        )
        codes = {p.error_code for topic in committed.topics for p in topic.partitions}
        assert codes == {0}, committed

    def leave(self) -> None:
        member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        self.connection.ask(LeaveGroupRequest(group_id=self.group_id, members=[member]))


@dataclass
class _New:
    """Members come and go, three at once at most: each time an epoch begins."""

    connection: _Connection
    group_id: str
    topics: dict[str, int]
    members: list[str] = field(default_factory=list)

    def change(self, rng: random.Random) -> None:
        admin, node = self.connection.admin, self.connection.node
        if len(self.members) < 3 and (not self.members or rng.random() < 0.6):
            self.members.append(heartbeats.join(admin, node, self.group_id, sorted(self.topics)))
        else:
            gone = self.members.pop(rng.randrange(len(self.members)))
            heartbeats.leave(admin, node, self.group_id, gone)

    def leave(self) -> None:
        for member in self.members:
            heartbeats.leave(self.connection.admin, self.connection.node, self.group_id, member)
