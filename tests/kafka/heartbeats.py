"""Members of the new protocol by their heartbeats alone: many groups without a client each."""

import base64
import time
import uuid
from collections.abc import Sequence
from typing import Any

from kafka.errors import CoordinatorNotAvailableError
from kafka.protocol.api_message import ApiMessage


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg]
    pass


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg]
    pass


# kafka-python keeps a weak reference only to the class of a response.
ConsumerGroupHeartbeatRequest.response_class = ConsumerGroupHeartbeatResponse


def wait_for_coordinator(admin: Any, group_id: str = "any-group") -> None:
    """Ask until there is one: the first question has the broker make the topic of groups."""
    for _ in range(60):
        try:
            admin._manager.run(admin._find_coordinator_ids, [group_id])
            return
        except CoordinatorNotAvailableError:
            time.sleep(1)
    raise RuntimeError("the broker names no coordinator after a minute")


def join(admin: Any, broker: int, group_id: str, topics: Sequence[str]) -> str:
    """Let a member join a group; the session ends 45 s later, as nobody heartbeats again.

    Returns:
        Its id.
    """
    member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    _heartbeat(
        admin,
        broker,
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
    return member_id


def leave(admin: Any, broker: int, group_id: str, member_id: str) -> None:
    """Let a member leave."""
    _heartbeat(admin, broker, group_id=group_id, member_id=member_id, member_epoch=-1)


def _heartbeat(admin: Any, broker: int, **fields: Any) -> None:
    request = ConsumerGroupHeartbeatRequest(**fields)

    async def ask() -> Any:
        return await admin._manager.send(request, node_id=broker)

    answer = admin._manager.run(ask)
    assert answer.error_code == 0, answer
