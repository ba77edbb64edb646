"""Rows of the records of consumer groups, those of the new protocol (KIP-848)."""

import pyarrow as pa

from kassign_spark.log import log_schemas
from kassign_spark.log.messages import MEMBER_STATES
from kassign_spark.log.records import Part, Records, expand_assigned, part, repeat_columns
from kassign_spark.log.value_columns import items, spans
from kassign_spark.log.values import ids, lists_of_texts, not_negative, texts


def epochs(records: Records) -> list[Part]:
    """Return rows of ``generations``: group epochs."""
    generation = records.values["generation"]
    return records.parts(log_schemas.GENERATIONS, {"group_type": "consumer"}, generation=generation)


def targets(records: Records) -> list[Part]:
    """Return rows of ``log_targets``: epochs of targets."""
    return records.parts(log_schemas.LOG_TARGETS, {}, generation=records.values["generation"])


def topics(records: Records) -> list[Part]:
    """Return rows of ``log_topics``, one per topic."""
    present, values, tombstones = records
    source = present.batch.values
    topic_items = items(values["topics"])
    row = topic_items.rows()
    return [
        part(
            log_schemas.LOG_TOPICS,
            present.record[row],
            topic=texts(source, spans(topic_items["topic"])),
            topic_id=ids(source, spans(topic_items["topic_id"])),
            num_partitions=topic_items["num_partitions"],
            **repeat_columns({"group_id": present.text("group_id"), **present.place()}, row),
        ),
        tombstones.part(log_schemas.LOG_TOPICS),
    ]


def regexes(records: Records) -> list[Part]:
    """Return rows of ``log_regexes``."""
    listed = lists_of_texts(records.present.batch.values, items(records.values["topics"]))
    return records.parts(log_schemas.LOG_REGEXES, {}, topics=listed)


def members(records: Records) -> list[Part]:
    """Return rows of ``log_members``: members as they joined or changed."""
    source, values = records.present.batch.values, records.values
    columns = (
        "group_instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topics_regex",
        "assignor",
    )
    return records.parts(
        log_schemas.LOG_MEMBERS,
        {"record": "member"},
        rebalance_timeout_ms=not_negative(values["rebalance_timeout_ms"]),
        session_timeout_ms=not_negative(values["session_timeout_ms"]),
        topics=lists_of_texts(source, items(values["topics"])),
        **{name: texts(source, spans(values[name])) for name in columns},
    )


def target_members(records: Records) -> list[Part]:
    """Return rows of ``log_members`` and ``log_assignment``: what members are to have."""
    return records.parts(log_schemas.LOG_MEMBERS, {"record": "target"}) + _owned_parts(
        records, "target"
    )


def current_members(records: Records) -> list[Part]:
    """Return rows of ``log_members``, and of ``log_assignment``: what members have and give up."""
    values = records.values
    numbered = pa.array(list(MEMBER_STATES), pa.int64())
    state = pa.compute.index_in(pa.array(values["state"]), numbered)
    generation = pa.array(values["generation"])
    members = records.parts(
        log_schemas.LOG_MEMBERS,
        {"record": "current"},
        generation=generation,
        previous_generation=values["previous_generation"],
        state=pa.array(list(MEMBER_STATES.values())).take(state),
    )
    return members + _owned_parts(records, "assigned", "revoking", generation=generation)


def _owned_parts(records: Records, *roles: str, **generation: pa.Array) -> list[Part]:
    """Return rows of ``log_assignment`` from lists of topic ids of these names."""
    present, values, _ = records
    member = {
        "group_id": present.text("group_id"),
        "member_id": present.text("member_id"),
        "offset": present.offsets(),
        **generation,
    }
    parts = []
    for role in roles:
        owned = items(values[role])
        topic_ids = {"topic_id": ids(present.batch.values, spans(owned["topic_id"]))}
        parts.append(expand_assigned(present.record, owned, topic_ids, role, **member))
    return parts
