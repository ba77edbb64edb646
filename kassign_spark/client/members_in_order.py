"""The order in which each client library goes through the members of a group."""

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import combinations, groupby

from kassign_spark.client.hash_order import java_string_key
from kassign_spark.client_libraries import (
    KAFKA_PYTHON,
    KNOWS_INSTANCES,
    LIBRDKAFKA,
    ORDERS_BY_UTF_16,
)


def members_in_order(
    client: str, ids: Sequence[str], instances: Sequence[str | None]
) -> list[int] | None:
    """Return the positions of a group's members in the order in which a library goes through them.

    Args:
        client: one of ``CLIENTS``.
        ids: of the members, in the order of the JoinGroup response.
        instances: ``group.instance.id`` of each, or None.

    Returns:
        positions. Of kafka-python only the last run of static and the last run of dynamic members,
        in the order of the response, take part. None: librdkafka compares two static members by
        their instances and any other two by their ids, and that is no order of these members.
    """
    key = java_string_key if client in ORDERS_BY_UTF_16 else str.encode
    by_id = [key(member_id) for member_id in ids]
    places = list(range(len(ids)))
    if client not in KNOWS_INSTANCES:
        return sorted(places, key=by_id.__getitem__)
    by_instance = [None if instance is None else key(instance) for instance in instances]
    if client == LIBRDKAFKA:
        return _order_as_librdkafka(places, by_id, by_instance)
    if client == KAFKA_PYTHON:
        runs = groupby(places, key=lambda place: instances[place] is None)
        last = {is_dynamic: list(run) for is_dynamic, run in runs}
        places = [*last.get(False, ()), *last.get(True, ())]
    return sorted(
        places, key=lambda place: (instances[place] is None, by_instance[place] or by_id[place])
    )


def _order_as_librdkafka(
    places: list[int], by_id: Sequence[bytes], by_instance: Sequence[bytes | None]
) -> list[int] | None:
    def compare(one: int, other: int) -> int:
        keys = by_instance if None not in (by_instance[one], by_instance[other]) else by_id
        a, b = keys[one] or b"", keys[other] or b""
        return (a > b) - (a < b)

    ordered = sorted(places, key=cmp_to_key(compare))
    is_order = all(compare(one, other) <= 0 for one, other in combinations(ordered, 2))
    return ordered if is_order else None
