"""Members that join a group with bytes of our choice, as a faulty or foreign client would."""

import contextlib
from collections.abc import Iterator

from kafka import KafkaAdminClient
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest

from tests.kafka.heartbeats import wait_for_coordinator

MEMBER_ID_REQUIRED = 79


@contextlib.contextmanager
def raw_member(
    bootstrap_server: str,
    group_id: str,
    metadata: bytes,
    assignment: bytes,
    *,
    protocol_type: str = "consumer",
    protocol: str = "range",
) -> Iterator[str]:
    """The only member of a stable group, until the broker misses its heartbeats after 20 s."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_server)
    send = admin._manager.send
    try:
        (coordinator,) = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
        wait_for_coordinator(admin, group_id)
        member_id = ""
        for _ in range(2):  # the first request only earns the member its id
            joined = admin._manager.run(
                send,
                JoinGroupRequest(
                    group_id=group_id,
                    session_timeout_ms=20_000,
                    rebalance_timeout_ms=20_000,
                    member_id=member_id,
                    protocol_type=protocol_type,
                    protocols=[
                        JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=metadata)
                    ],
                ),
                coordinator,
            )
            member_id = joined.member_id
            if joined.error_code != MEMBER_ID_REQUIRED:
                break
        assert joined.error_code == 0, joined
        synced = admin._manager.run(
            send,
            SyncGroupRequest(
                group_id=group_id,
                generation_id=joined.generation_id,
                member_id=member_id,
                protocol_type=protocol_type,
                protocol_name=protocol,
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member_id, assignment=assignment
                    )
                ],
            ),
            coordinator,
        )
        assert synced.error_code == 0, synced
        yield member_id
    finally:
        admin.close()
