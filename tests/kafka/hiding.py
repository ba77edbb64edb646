"""Groups and topics that the user of the SASL listener may not see."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from tests.kafka.secured import SecuredBroker


@contextmanager
def hidden(broker: SecuredBroker, kind: ResourceType, name: str) -> Iterator[None]:
    """Let only somebody else read a group or topic, until the block ends."""
    only_others = ACL(
        principal="User:somebody-else",
        host="*",
        operation=ACLOperation.ALL,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(kind, name),
    )
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
    try:
        admin.create_acls([only_others])
        yield
        admin.delete_acls([only_others])
    finally:
        admin.close()
