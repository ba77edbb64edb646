"""Whole groups as rows of few columns, which tell claims by hashes.

Nine rows in ten of a fleet are claims, and the names in them stand in the rows of members and
topics as well. To an assignment a claim matters only if its member and topic are there; so it names
them by 64-bit hashes of the group and the name. Two names of one hash in a task are noticed, and
nothing is answered. A claim of somebody who is *not* there, whose hash is that of somebody of the
group who is, would go unnoticed: of a million such claims in groups of a thousand members, once in
10^10 runs.

Before each row that Spark 4.1 hands over to Python it adds up how large all columns have become
(``BatchedPythonArrowInput``, ``spark.sql.execution.arrow.maxBytesPerBatch``), which takes longer
than to write their values. So what only the few other rows have is one text, and the number of a
claim's partition stands in the lower half of its group's hash.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kassign_spark.groups.batch import Batch, Claims, claims_at
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.numbers import Longs, dense, find, key, names
from kassign_spark.groups.read import MEMBER, SUBSCRIPTION, TOPIC, parsed, read_batch
from kassign_spark.groups.rows import fold
from kassign_spark.schemas import GROUP_KEY

HASHED_KEY = ("shiftright(place, 32)",)
"""The rows of a group are equal in it: in the upper half of its hash."""

_LOWER_HALF = (1 << 32) - 1
_GROUP = f"xxhash64({', '.join(GROUP_KEY)})"
_LINES = {
    "kind": pa.int8(),
    "number": pa.int64(),
    "place": pa.int64(),
    "texts": pa.string(),
    "name": pa.string(),
}
"""Of a text, with their types. Names may have line ends of their own: theirs is the last one."""


def fold_hashed(eligible: Eligible, owned: DataFrame) -> DataFrame:
    """Put the tables of the groups, and what is owned, into the rows of one; runs no job.

    Returns:
        place bigint, subscription bigint, hash bigint, text string.
        Of a claim: place (the upper half of its group's hash, then its partition), and the hashes
        of its group and topic, as subscription, and of its group and member_id.
        Of other rows of ``rows.fold``: place (its group's hash), subscription, hash (of its group
        and name), text (``_LINES``); name is a member_id or topic, and of SUBSCRIPTION its group,
        as JSON.
    """
    name = f"coalesce(member_id, topic, to_json(array({', '.join(GROUP_KEY)})))"
    lines = {"name": name, "texts": "coalesce(texts, 'null')"}
    told = fold(eligible, claims=False).selectExpr(
        f"{_GROUP} as place",
        "subscription",
        f"xxhash64({_GROUP}, coalesce(member_id, topic)) as hash",
        f"concat_ws(chr(10), {', '.join(lines.get(line, line) for line in _LINES)}) as text",
    )
    claims = owned.selectExpr(
        f"{_GROUP} & {~_LOWER_HALF}L | partition as place",
        f"xxhash64({_GROUP}, topic) as subscription",
        f"xxhash64({_GROUP}, member_id) as hash",
        "cast(null as string) as text",
    )
    return told.unionByName(claims)


def read_hashed(table: pa.Table) -> tuple[Batch, Claims]:
    """Read the rows of whole groups, and of claims those whose member and topic are there.

    Raises:
        AssertionError: two names have the same hash.
    """
    told = table.filter(table["text"].is_valid())
    line = _lines(told["text"])
    kind, name = line["kind"].to_numpy(), line["name"]
    # Each group has a list at least, whose row names it.
    lists = np.flatnonzero(kind == SUBSCRIPTION)
    of_row = told["place"].to_numpy()
    pair = names(name.take(pa.array(lists))).code
    hash_of_group, first = _different(of_row[lists], pair, "groups")
    both = parsed(name, lists[first], pa.list_(pa.string())).flatten()
    cluster_id, group_id = both[::2], both[1::2]
    group = find(hash_of_group, of_row)
    of_kind = {of: pc.if_else(pa.array(kind == of), name, None) for of in (MEMBER, TOPIC)}
    rows = {
        "cluster_id": cluster_id.take(pa.array(group)),
        "group_id": group_id.take(pa.array(group)),
        "kind": line["kind"],
        "member_id": of_kind[MEMBER],
        "topic": of_kind[TOPIC],
        "number": line["number"],
        "place": line["place"],
        "subscription": told["subscription"],
        "texts": line["texts"],
    }
    batch, _ = read_batch(pa.table(rows))
    # As the batch numbers them.
    codes = (names(pa.chunked_array([of], pa.string())).code for of in (cluster_id, group_id))
    group = dense(*codes)[1][group]

    claims = table.filter(table["text"].is_null())
    found = []
    for of, column, known, keys in (
        (MEMBER, "hash", batch.member_names, key(batch.member_group, batch.member_name)),
        (TOPIC, "subscription", batch.topic_names, key(batch.topic_group, batch.topic_name)),
    ):
        at = np.flatnonzero(kind == of)
        place = find(keys, key(group[at], _codes(name.take(pa.array(at)), known)))
        found.append(_places(claims[column], told["hash"].to_numpy()[at], place))
    is_there = (found[0] >= 0) & (found[1] >= 0)
    member, topic = (places[is_there] for places in found)
    in_group = batch.member_group[member] == batch.topic_group[topic]
    partition = claims["place"].to_numpy()[is_there] & _LOWER_HALF
    return batch, claims_at(batch, member[in_group], topic[in_group], partition[in_group])


def _lines(text: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """The lines of texts, by name."""
    parts = pc.split_pattern(text, "\n", max_splits=len(_LINES) - 1)
    return {
        name: pc.list_element(parts, at).cast(of) for at, (name, of) in enumerate(_LINES.items())
    }


def _different(hashed: Longs, code: Longs, what: str) -> tuple[Longs, Longs]:
    """The different hashes, ascending, and where each is first; ``code`` is of what is hashed."""
    different, first, number = np.unique(hashed, return_index=True, return_inverse=True)
    if (code != code[first[number]]).any():
        raise AssertionError(f"two {what} have the same 64-bit hash")
    return different, first


def _codes(name: pa.ChunkedArray, known: pa.Array) -> Longs:
    """The codes of names, all of which are known: strings by code - 1."""
    codes: Longs = pc.index_in(name, value_set=known).to_numpy().astype(np.int64) + 1
    return codes


def _places(wanted: pa.ChunkedArray, hashed: Longs, place: Longs) -> Longs:
    """The places of what is wanted by hashes; ``place`` is of what is hashed; -1: it is none."""
    different, first = _different(hashed, place, "names")
    at = pc.index_in(wanted, value_set=pa.array(different))
    found: Longs = np.append(place[first], -1)[pc.fill_null(at, -1).to_numpy()]
    return found
