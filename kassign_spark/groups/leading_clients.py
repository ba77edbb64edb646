"""The client library that leads each group of a batch, and how it orders the group's members."""

import numpy as np
import pyarrow as pa

from kassign_spark.client_libraries import (
    CLIENTS,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    ORDERS_BY_UTF_16,
)
from kassign_spark.groups.numbers import Flags, Longs

SEVERAL = -1
"""Members run several libraries, and none is known to lead."""
_KNOWS_INSTANCES, _BY_UTF_16 = (
    # One more at the end, for SEVERAL.
    np.array([*(client in clients for client in CLIENTS), True])
    for clients in ((JAVA, FRANZ_GO, KAFKA_PYTHON), ORDERS_BY_UTF_16)
)
"""Whether each of ``CLIENTS`` does so. librdkafka's order is that of ids where it agrees with that
of instances; elsewhere ``client.model`` answers."""


def client_numbers(texts: pa.Array, client: Longs) -> Longs:
    """Return the place in CLIENTS of each member's library; who names none runs Java's."""
    number = {name: place for place, name in enumerate(CLIENTS)}
    of_text = [0, *(number.get(text, 0) for text in texts.to_pylist())]
    return np.array(of_text)[client]


def leading_clients(
    of_member: Longs, is_leader: Flags, member_group: Longs, group_count: int
) -> Longs:
    """Return for each group the number of the client that leads it, or SEVERAL.

    ``of_member`` is as ``client_numbers`` returns it; the other arguments are those of ``Batch``.
    """
    least = np.full(group_count, len(CLIENTS))
    most = np.full(group_count, -1)
    np.minimum.at(least, member_group, of_member)
    np.maximum.at(most, member_group, of_member)
    leading = np.where(least == most, most, SEVERAL)
    leading[member_group[is_leader]] = of_member[is_leader]
    return leading


def order_keys(
    leading: Longs, instance: Longs, name: Longs, name_by_bytes: Longs
) -> tuple[Longs, Longs]:
    """Return the keys of members by which the client that leads their group orders them.

    Args:
        leading: of each member's group, by ``leading_clients``.
        instance: of each member, ascending in Java's order of strings; 0: none.
        name: the same of its id.
        name_by_bytes: the same in the order of the bytes of UTF-8.
    """
    return (
        np.where(_KNOWS_INSTANCES[leading], instance, 0),
        np.where(_BY_UTF_16[leading], name, name_by_bytes),
    )
