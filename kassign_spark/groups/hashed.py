"""Whole groups as rows that tell claims by hashes: a fifth less to shuffle and to give to Python.

Nine rows in ten of a fleet are claims, and the names in them stand in the rows of members and
topics as well. To an assignment a claim matters only if its member and topic are there; so it names
its group, member and topic by 64-bit hashes. Two names of one hash in a task are noticed, and
nothing is answered. A claim of somebody who is *not* there, whose hash is that of somebody who is,
would go unnoticed: of a million such claims in groups of a thousand members, once in 10^10 runs.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kassign_spark.groups.batch import Batch, Claims, claims_of
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.numbers import Longs, dense, find, names
from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC, parsed, read_batch
from kassign_spark.groups.rows import fold

HASHED_KEY = ("group_hash",)
"""The rows of a group are equal in it."""


def fold_hashed(eligible: Eligible, owned: DataFrame) -> DataFrame:
    """Put the tables of the groups, and what is owned, into the rows of one; runs no job.

    Returns:
        group_hash bigint, kind tinyint, number bigint, place bigint, subscription bigint,
        hash bigint, name string, texts string; by kind, where it differs from ``rows.fold``:
        MEMBER: name (member_id) and its hash;
        SUBSCRIPTION: name (cluster_id and group_id, as JSON);
        TOPIC: name (topic) and its hash;
        CLAIM: hash (of the member_id), subscription (hash of the topic), number (partition).
    """
    name = "coalesce(member_id, topic)"
    told = fold(eligible, claims=False).selectExpr(
        "xxhash64(cluster_id, group_id) as group_hash",
        "kind",
        "number",
        "place",
        "subscription",
        f"xxhash64({name}) as hash",
        f"if(kind = {SUBSCRIPTION}, to_json(array(cluster_id, group_id)), {name}) as name",
        "texts",
    )
    claims = owned.selectExpr(
        "xxhash64(cluster_id, group_id) as group_hash",
        f"cast({CLAIM} as tinyint) as kind",
        "cast(partition as bigint) as number",
        "0L as place",
        "xxhash64(topic) as subscription",
        "xxhash64(member_id) as hash",
        "cast(null as string) as name",
        "cast(null as string) as texts",
    )
    return told.unionByName(claims)


def read_hashed(table: pa.Table) -> tuple[Batch, Claims]:
    """Read the rows of whole groups, and of claims those whose member and topic are there.

    Raises:
        AssertionError: two names have the same hash.
    """
    is_claim = table["kind"].to_numpy() == CLAIM
    told = table.filter(pa.array(~is_claim))
    kind, name, hashed = told["kind"].to_numpy(), told["name"], told["hash"].to_numpy()
    # Each group has a list at least, whose row names it.
    lists = np.flatnonzero(kind == SUBSCRIPTION)
    of_row = told["group_hash"].to_numpy()
    pair = names(name.take(pa.array(lists))).code
    hash_of_group, first = _different(of_row[lists], pair, "groups")
    both = parsed(name, lists[first], pa.list_(pa.string())).flatten()
    cluster_id, group_id = both[::2], both[1::2]
    group = find(hash_of_group, of_row)
    of_kind = {of: pc.if_else(pa.array(kind == of), name, None) for of in (MEMBER, TOPIC)}
    rows = {
        "cluster_id": cluster_id.take(pa.array(group)),
        "group_id": group_id.take(pa.array(group)),
        "member_id": of_kind[MEMBER],
        "topic": of_kind[TOPIC],
    }
    as_they_are = ("kind", "number", "place", "subscription", "texts")
    batch, _ = read_batch(pa.table(rows | {column: told[column] for column in as_they_are}))
    # As the batch numbers them.
    codes = (names(pa.chunked_array([of], pa.string())).code for of in (cluster_id, group_id))
    _, number_of_group = dense(*codes)

    claims = table.select(["group_hash", "number", "subscription", "hash"])
    claims = claims.filter(pa.array(is_claim))
    place = _places(claims["group_hash"], hash_of_group)
    member, topic = (
        _codes(claims[column], hashed[kind == of], name.filter(pa.array(kind == of)), known)
        for column, of, known in (
            ("hash", MEMBER, batch.member_names),
            ("subscription", TOPIC, batch.topic_names),
        )
    )
    is_there = (place >= 0) & (member > 0) & (topic > 0)
    return batch, claims_of(
        batch,
        number_of_group[place[is_there]],
        member[is_there],
        topic[is_there],
        claims["number"].to_numpy()[is_there],
    )


def _codes(wanted: pa.ChunkedArray, hashed: Longs, name: pa.ChunkedArray, known: pa.Array) -> Longs:
    """The codes of the names that are wanted by their hashes; 0: of no name.

    ``hashed`` are the hashes of ``name``, ``known`` the strings by code - 1.
    """
    code = pc.index_in(name, value_set=known).to_numpy().astype(np.int64) + 1
    different, first = _different(hashed, code, "names")
    return np.append(code[first], 0)[_places(wanted, different)]


def _different(hashed: Longs, code: Longs, what: str) -> tuple[Longs, Longs]:
    """The different hashes, ascending, and where each is first; ``code`` is of what is hashed."""
    different, first, number = np.unique(hashed, return_index=True, return_inverse=True)
    if (code != code[first[number]]).any():
        raise AssertionError(f"two {what} have the same 64-bit hash")
    return different, first


def _places(wanted: pa.ChunkedArray, known: Longs) -> Longs:
    """Where each hash is among those that are known; -1: it is not."""
    at = pc.index_in(wanted, value_set=pa.array(known))
    found: Longs = pc.fill_null(at, -1).to_numpy().astype(np.int64)
    return found
