"""Problems that ``validate`` finds by looking at whole groups, many of them in one task.

The kernel finds and counts; ``validation`` puts what it found into words.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.group_names import with_nulls
from kassign_spark.groups.input_counts import fold_topics
from kassign_spark.groups.numbers import Longs, Names, dense, find, key, names
from kassign_spark.groups.rows import run_in_tasks
from kassign_spark.groups.task_rows import (
    MEMBER,
    OWNED,
    SUBSCRIBED,
    TaskTable,
    find_repeated,
    lists_of,
    member_places,
    one_piece,
    read,
    rows,
)
from kassign_spark.inputs.checks import TOO_LARGE
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.measures.violations_tasks import subscriptions
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.validation.member_order import crowded_groups, hash_codes, unknown_orders
from kassign_spark.validation.misled import is_sticky, misled_in_task

GROUP_PROBLEMS = (
    "cluster_id string, group_id string, problem string, member_id string, topic string, "
    "partition bigint, number bigint, text string, texts array<string>, numbers array<bigint>"
)
"""What a task gives back. ``problem`` says what ``number``, ``text`` and the lists are:
duplicate_member: number of its rows; group_has_too_many_members, group_reads_too_much: number of
them; assignor_unusable: texts are the different assignors of a
classic group, for the caller to judge; topic_without_metadata, topic_without_partitions: number of
subscribers, and as numbers that of partitions which members own of it; duplicate_group_instance_id:
text is the instance, texts are its members, numbers has an entry where the group is of the new
protocol; owned_partition_missing: number of partitions of the topic, null: no such topic, text is
there where the group's assignor counts the claim; claims_mislead_client: text is what Kafka's
client does; owner_not_in_group: number of rows; claimed_twice: texts are the claimants, numbers
their generations; hash_order_not_reproduced: number of the members of a bucket;
member_order_unknown: texts are the members, number is how many of them keep one partition more."""

_OF_MEMBERS = {
    "generation": "bigint",
    "member_seq": "bigint",
    "group_instance_id": "string",
    "assignor": "string",
    "is_known": "boolean",
    "is_empty": "boolean",
    "group_type": "string",
    "racks": "string",
    "client": "string",
    "is_leader": "boolean",
}
"""``racks`` are the replicas' of a topic, as JSON."""


def problems_in_tasks(inputs: Inputs, tasks: int) -> DataFrame:
    """Check whole groups of conforming tables, many in each task; lazy: ``GROUP_PROBLEMS``."""
    about_topics = rows(subscriptions(inputs.members), SUBSCRIBED, **_OF_MEMBERS)
    if inputs.owned is not None:
        about_topics = about_topics.unionByName(rows(inputs.owned, OWNED, **_OF_MEMBERS))
    sized = about_topics.drop("size", "is_known", "is_empty", "racks").join(
        _sizes(inputs.topics), on=[CLUSTER_ID, "topic"], how="left"
    )
    members = rows(inputs.members.withColumn("texts", F.col("topics")), MEMBER, **_OF_MEMBERS)
    return run_in_tasks(
        members.unionByName(sized), one_piece(problems_arrow), GROUP_PROBLEMS, tasks
    )


def _sizes(topics: DataFrame) -> DataFrame:
    is_empty = "num_partitions <=> 0" if "num_partitions" in topics.columns else "false"
    size, known = "num_partitions as size", "true as is_known"
    of_topics = fold_topics(topics, bad_row=is_empty, racks=True)
    return of_topics.selectExpr(
        CLUSTER_ID, "topic", size, known, "bad_rows > 0 as is_empty", "racks"
    )


def problems_arrow(table: pa.Table) -> pa.Table:
    """Find problems: ``task_rows.rows`` and ``_OF_MEMBERS`` in, ``GROUP_PROBLEMS`` out."""
    rows = read(table)
    members, owned = rows.rows_of(MEMBER), rows.rows_of(OWNED)
    member_keys, first = np.unique(
        key(rows.group[members], rows.member[members]), return_index=True
    )
    holder = member_places(rows, member_keys, owned)
    is_new = pc.fill_null(pc.equal(table["group_type"], CONSUMER), False).to_numpy()[members]
    parts = [
        _duplicate_members(table, rows, members),
        *_too_large(table, rows, members),
        _assignors(table, rows, members[~is_new]),
        *_topics(table, rows, members, owned[holder >= 0]),
        _instances(table, rows, members),
        _gone(table, rows, owned),
        _strangers(rows, owned[holder < 0]),
        _claims(table, rows, owned[holder >= 0], members[first][holder[holder >= 0]]),
    ]
    misled, details = misled_in_task(table, rows, owned[holder >= 0])
    parts.append(_table(rows, "claims_mislead_client", misled, text=pa.array(details, pa.string())))
    codes = hash_codes(rows)
    crowded, sizes = crowded_groups(table, rows, members, codes)
    parts.append(_table(rows, "hash_order_not_reproduced", crowded, number=pa.array(sizes)))
    orders = unknown_orders(table, rows, members, codes, members[first], holder)
    numbers, ids = pa.array(orders.number), rows.member_name.take(orders.member)
    texts = lists_of(ids, orders.size)
    parts.append(_table(rows, "member_order_unknown", orders.row, number=numbers, texts=texts))
    return pa.concat_tables(parts)


def _table(rows: TaskTable, problem: str, places: Longs, **about: pa.Array) -> pa.Table:
    """Return rows of ``GROUP_PROBLEMS``; columns that are not given are null."""
    columns = rows.group_columns(places) | {"problem": pa.repeat(problem, len(places))} | about
    return with_nulls(GROUP_PROBLEMS, columns)


def _ids(rows: TaskTable, places: Longs) -> pa.Array:
    return rows.member_name.take(rows.member[places])


def _topics_of(rows: TaskTable, places: Longs) -> pa.Array:
    return rows.topic_name.take(rows.topic[places])


def _column(table: pa.Table, name: str, places: Longs) -> pa.Array:
    return table[name].take(pa.array(places)).combine_chunks()


def _duplicate_members(table: pa.Table, rows: TaskTable, members: Longs) -> pa.Table:
    """Return ids that appear more than once, but for empty and missing ones."""
    has_names = np.ones(len(members), bool)
    for name in ("member_id", "group_id"):
        length = pc.fill_null(pc.binary_length(table[name].take(pa.array(members))), 0)
        has_names &= length.to_numpy() > 0
    places = members[has_names]
    same = find_repeated((rows.group[places], rows.member[places]))
    places, number = places[same.first], pa.array(same.sizes)
    return _table(rows, "duplicate_member", places, member_id=_ids(rows, places), number=number)


def _too_large(table: pa.Table, rows: TaskTable, members: Longs) -> list[pa.Table]:
    """Return groups with more members, or more partitions, than ``limits`` allow."""
    count = int(rows.group.max(initial=-1)) + 1
    read = rows.rows_of(SUBSCRIBED)
    read = read[np.unique(key(rows.group[read], rows.topic[read]), return_index=True)[1]]
    size = pc.fill_null(table["size"], 0).to_numpy()[read].clip(0, PARTITIONS_OF_A_TOPIC)
    partitions = np.zeros(count, np.int64)
    np.add.at(partitions, rows.group[read], size)
    of_members = np.bincount(rows.group[members], minlength=count)
    a_row = np.zeros(count, np.int64)
    a_row[rows.group[members]] = members
    parts = []
    for problem, number in (
        ("group_has_too_many_members", of_members),
        ("group_reads_too_much", partitions),
    ):
        groups = np.flatnonzero(number > TOO_LARGE[problem].most)
        parts.append(_table(rows, problem, a_row[groups], number=pa.array(number[groups])))
    return parts


def _assignors(table: pa.Table, rows: TaskTable, members: Longs) -> pa.Table:
    assignors: Names = names(pc.fill_null(table["assignor"].take(pa.array(members)), ""))
    pairs, first = np.unique(key(rows.group[members], assignors.code), return_index=True)
    _, begins, count = np.unique(pairs >> 32, return_index=True, return_counts=True)
    texts = lists_of(assignors.take(pairs & 0xFFFF_FFFF), count)
    return _table(rows, "assignor_unusable", members[first[begins]], texts=texts)


def _topics(table: pa.Table, rows: TaskTable, members: Longs, owned: Longs) -> list[pa.Table]:
    """Return subscribed topics that the cluster lacks, or that are empty."""
    listing = members[rows.listed.row]
    has_member = rows.member[listing] > 0
    pairs = key(rows.group[listing], rows.topic_of_list)[has_member]
    topic_keys, pair = np.unique(pairs, return_inverse=True)
    subscribers = np.bincount(
        np.unique(key(pair, rows.member[listing][has_member])) >> 32, minlength=len(topic_keys)
    )
    places = rows.rows_of(SUBSCRIBED)
    keys, first = np.unique(key(rows.group[places], rows.topic[places]), return_index=True)
    places, count = places[first], np.append(subscribers, 0)[find(topic_keys, keys)]
    is_known, is_empty = (
        pc.fill_null(table[name], False).to_numpy()[places] for name in ("is_known", "is_empty")
    )
    place = find(keys, key(rows.group[owned], rows.topic[owned]))
    owned_count = np.bincount(place[place >= 0], minlength=len(keys))
    of_problem = {"topic_without_metadata": ~is_known, "topic_without_partitions": is_empty}
    return [
        _table(
            rows,
            problem,
            places[odd],
            topic=_topics_of(rows, places[odd]),
            number=pa.array(count[odd]),
            numbers=lists_of(pa.array(owned_count[odd]), np.ones(odd.sum(), np.int64)),
        )
        for problem, odd in of_problem.items()
    ]


def _instances(table: pa.Table, rows: TaskTable, members: Longs) -> pa.Table:
    code = names(table["group_instance_id"].take(pa.array(members))).code
    has_both = (code > 0) & (rows.member[members] > 0)
    places, code = members[has_both], code[has_both]
    same = find_repeated((rows.group[places], code), rows.member[places])
    first = places[same.first]
    is_new = pc.fill_null(pc.equal(table["group_type"], CONSUMER), False).to_numpy()[first]
    return _table(
        rows,
        "duplicate_group_instance_id",
        first,
        member_id=_ids(rows, first),
        text=_column(table, "group_instance_id", first),
        texts=lists_of(_ids(rows, places[same.row]), same.sizes),
        numbers=lists_of(pa.nulls(is_new.sum(), pa.int64()), is_new.astype(np.int64)),
    )


def _gone(table: pa.Table, rows: TaskTable, owned: Longs) -> pa.Table:
    size, partition = _column(table, "size", owned), _column(table, "partition", owned)
    beyond = pc.fill_null(pc.greater_equal(partition, size), False)
    is_gone = pc.or_(beyond, size.is_null()).to_numpy(zero_copy_only=False)
    places = owned[is_gone]
    counts = is_sticky(table["assignor"], rows.group)[places]
    return _table(
        rows,
        "owned_partition_missing",
        places,
        member_id=_ids(rows, places),
        topic=_topics_of(rows, places),
        partition=_column(table, "partition", places),
        number=_column(table, "size", places),
        text=pc.if_else(pa.array(counts), "sticky", pa.scalar(None, pa.string())),
    )


def _strangers(rows: TaskTable, places: Longs) -> pa.Table:
    _, first, count = np.unique(
        key(rows.group[places], rows.member[places]), return_index=True, return_counts=True
    )
    places = places[first]
    return _table(
        rows, "owner_not_in_group", places, member_id=_ids(rows, places), number=pa.array(count)
    )


def _claims(table: pa.Table, rows: TaskTable, places: Longs, claimant: Longs) -> pa.Table:
    """Return partitions that a member claims twice; ``claimant``: each claim's member row."""
    partition = pc.fill_null(table["partition"], 0).to_numpy()[places]
    is_null = table["partition"].is_null().to_numpy()[places]
    generation = pc.fill_null(table["generation"], -1).to_numpy()[claimant]
    _, topic = dense(rows.group[places], rows.topic[places])
    same = find_repeated((topic, is_null, partition), rows.member[places], generation)
    first = places[same.first]
    return _table(
        rows,
        "claimed_twice",
        first,
        member_id=_ids(rows, first),
        topic=_topics_of(rows, first),
        partition=_column(table, "partition", first),
        texts=lists_of(_ids(rows, places[same.row]), same.sizes),
        numbers=lists_of(pa.array(generation[same.row]), same.sizes),
    )
