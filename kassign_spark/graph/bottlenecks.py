"""Why groups cannot be more even than they are: bottlenecks, each with its proof."""

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.graph.batch import class_graph, subscribed_of
from kassign_spark.graph.levels import levels
from kassign_spark.graph.proofs import KINDS, NOTHING, proofs
from kassign_spark.groups.look import look
from kassign_spark.groups.named import group_columns, member_ids
from kassign_spark.groups.numbers import Longs
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, in_tasks
from kassign_spark.groups.task_rows import lists_of
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.results import answer
from kassign_spark.settings.computing import Settings

_ROW = (
    "cluster_id string, group_id string, kind string, part int, level int, "
    "member_ids array<string>, topics array<string>, member_count int, topic_count int, "
    "partition_count bigint, least_max bigint, most_min bigint, even_max bigint"
)
_NAMES_SHOWN = 3


def bottlenecks(
    members: DataFrame, topics: DataFrame, *, settings: Settings = Settings()
) -> DataFrame:
    """Say why every group is as uneven as it is, whatever assignor it has.

    Each row can be counted again in the subscriptions. `dense`: only these members can read these
    topics, so one of them has at least least_max. `sparse`: these members can read only these
    topics, so one of them has at most most_min. `part`: both, as it is a connected component of the
    eligibility graph: nobody else can help. The largest least_max of a group's rows is the maximum
    of its best assignment, the least most_min is the minimum. `single_reader`: only this member can
    read these topics. `few_partitions`: each of these topics has fewer partitions than readers,
    which are these members. `idle`: these members can read nothing.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row a partition.
        settings: ``batches``.

    Returns:
        cluster_id string (where the inputs have it), group_id string, kind string,
        part int: as of ``eligibility``, null for `idle`, level int: of `dense` how many levels of
        higher loads are above the last of these members, of `sparse` above the first; else null,
        member_ids `array<string>`, topics `array<string>`, member_count int, topic_count int,
        partition_count bigint: of the topics, least_max bigint: null for `sparse` and `idle`,
        most_min bigint: null but for `part`, `sparse` and `idle`, even_max bigint: what the
        largest load of the group would be if everybody could read everything, detail string: the
        row in a sentence. Of every group with members there is a row; lazy but for the checks.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    eligible = look(conform_inputs(members, topics), None).eligible
    table = fold(eligible._replace(has_racks=False))
    found = in_tasks(table, bottlenecks_arrow, _ROW, settings.batches or eligible.batches)
    return answer(
        found.withColumn("detail", _detail()),
        "bottlenecks",
        has_cluster_id=has_cluster_id(members),
    )


def bottlenecks_arrow(table: pa.Table) -> list[pa.Table]:
    """List the bottlenecks of the groups whose rows are in the table: the columns of _ROW."""
    batch, _ = read_batch(table)
    subscribed = subscribed_of(batch)
    graph = class_graph(subscribed)
    found = proofs(subscribed, graph, levels(graph))
    member_count = np.bincount(batch.member_group, minlength=batch.group_count)
    partitions = np.zeros(batch.group_count, np.int64)
    np.add.at(partitions, batch.topic_group, batch.size)
    even_max = -(-partitions // np.maximum(member_count, 1))
    topics = batch.topic_names.take(pa.array(batch.topic_name[found.topics.item] - 1))
    found_rows = pa.table(
        {
            **group_columns(batch, found.group),
            "kind": pa.array(KINDS).take(pa.array(found.kind)),
            "part": _or_null(found.part, np.int32),
            "level": _or_null(found.level, np.int32),
            "member_ids": lists_of(member_ids(batch, found.members.item), found.member_count),
            "topics": lists_of(topics, found.topic_count),
            "member_count": pa.array(found.member_count.astype(np.int32)),
            "topic_count": pa.array(found.topic_count.astype(np.int32)),
            "partition_count": pa.array(found.partition_count),
            "least_max": _or_null(found.least_max, np.int64),
            "most_min": _or_null(found.most_min, np.int64),
            "even_max": pa.array(even_max[found.group]),
        }
    )
    return [found_rows]


def _or_null(numbers: Longs, data_type: type[np.signedinteger]) -> pa.Array:
    return pa.array(numbers.astype(data_type), mask=numbers == NOTHING)


def _detail() -> Column:
    """Put a row into a sentence."""
    names, who = _some_names("topics", "topic"), _some_names("member_ids", "member")
    partitions = _counted("partition_count", "partition")
    one = F.col("member_count") == 1
    what = F.concat(names, F.lit(" ("), partitions, F.lit(")"))
    least, most = (F.format_number(name, 0) for name in ("least_max", "most_min"))
    sentences = {
        "dense": F.concat(
            F.lit("only "), who, F.lit(" can read "), what,
            F.when(one, ": it has at least ").otherwise(": one of them has at least "), least,
        ),
        "sparse": F.concat(
            who, F.lit(" can read only "), what,
            F.when(one, ": it has at most ").otherwise(": one of them has at most "), most,
        ),
        "part": F.concat(
            F.lit("only "), who, F.lit(" can read "), what, F.lit(", and nothing else: "),
            F.when(one, F.concat(F.lit("it has "), least)).otherwise(
                F.concat(F.lit("one has at least "), least, F.lit(", one at most "), most)
            ),
        ),
        "single_reader": F.concat(
            F.lit("only "), who, F.lit(" can read "), what, F.lit(": nobody can take over")
        ),
        "few_partitions": F.concat(
            names,
            F.when(F.col("topic_count") == 1, " has").otherwise(" have, each,"),
            F.lit(" fewer partitions than its "),
            _counted("member_count", "reader"),
            F.lit(": some of them get none of it"),
        ),
        "idle": F.concat(who, F.lit(" can read nothing: no topic of theirs has partitions")),
    }  # fmt: skip
    said = F.lit(None).cast("string")
    for kind, sentence in sentences.items():
        said = F.when(F.col("kind") == kind, sentence).otherwise(said)
    return said


def _some_names(column: str, noun: str) -> Column:
    """All names where they are few; else how many there are."""
    few = F.size(column) <= _NAMES_SHOWN
    listed = F.array_join(column, ", ")
    if noun == "member":
        listed = F.concat(F.when(F.size(column) == 1, "member ").otherwise("members "), listed)
    return F.when(few, listed).otherwise(_counted(f"{noun}_count", noun))


def _counted(column: str, noun: str) -> Column:
    plural = F.when(F.col(column) == 1, noun).otherwise(f"{noun}s")
    return F.concat(F.format_number(column, 0), F.lit(" "), plural)
