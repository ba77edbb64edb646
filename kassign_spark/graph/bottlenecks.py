"""Why groups cannot be more even than they are: bottlenecks, each with its proof."""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.engine.segments import Segments
from kassign_spark.graph.class_batch import class_graph, subscribed_of
from kassign_spark.graph.levels import levels
from kassign_spark.graph.proofs import KINDS, NOTHING, proofs
from kassign_spark.groups.group_names import group_columns, member_ids
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.numbers import Longs
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.groups.task_rows import lists_of
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.rules import sql_sentence
from kassign_spark.results import to_result
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
    """Explain why every group is as uneven as it is, whatever its assignor.

    Each row can be counted again in the subscriptions. `dense`: only these members can read these
    topics, so one of them has at least least_max. `sparse`: these members can read only these
    topics, so one of them has at most most_min. `part`: both, as it is a connected component of the
    eligibility graph: nobody else can help. The largest least_max of a group's rows is the maximum
    of its best assignment, the least most_min is the minimum. `single_reader`: only this member can
    read these topics. `few_partitions`: each of these topics has fewer partitions than readers,
    which are these members. `idle`: these members can read nothing.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition.
        settings: ``batches``.

    Returns:
        cluster_id string (where the inputs have it), group_id string, kind string,
        part int: as in ``eligibility``, null for `idle`, level int: of `dense` how many levels of
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
    eligible = inspect_inputs(conform_inputs(members, topics), None).eligible
    table = fold(eligible._replace(has_racks=False))
    rows = run_in_tasks(table, bottlenecks_arrow, _ROW, settings.batches or eligible.batches)
    return to_result(
        rows.withColumn("detail", F.expr(_detail())),
        "bottlenecks",
        has_cluster_id=has_cluster_id(members),
    )


def bottlenecks_arrow(table: pa.Table) -> list[pa.Table]:
    """List the bottlenecks of the groups whose rows are in the table: the columns of _ROW."""
    batch, _ = read_batch(table)
    subscribed = subscribed_of(batch)
    graph = class_graph(subscribed)
    proven = proofs(subscribed, graph, levels(graph))
    member_count = np.bincount(batch.member_group, minlength=batch.group_count)
    partitions = Segments(batch.topic_group, batch.group_count).sum(batch.size)
    even_max = -(-partitions // np.maximum(member_count, 1))
    topics = batch.topic_names.take(pa.array(batch.topic_name[proven.topics.item] - 1))
    rows_of_groups = pa.table(
        {
            **group_columns(batch, proven.group),
            "kind": pa.array(KINDS).take(pa.array(proven.kind)),
            "part": _or_null(proven.part, np.int32),
            "level": _or_null(proven.level, np.int32),
            "member_ids": lists_of(member_ids(batch, proven.members.item), proven.member_count),
            "topics": lists_of(topics, proven.topic_count),
            "member_count": pa.array(proven.member_count.astype(np.int32)),
            "topic_count": pa.array(proven.topic_count.astype(np.int32)),
            "partition_count": pa.array(proven.partition_count),
            "least_max": _or_null(proven.least_max, np.int64),
            "most_min": _or_null(proven.most_min, np.int64),
            "even_max": pa.array(even_max[proven.group]),
        }
    )
    return [rows_of_groups]


def _or_null(numbers: Longs, data_type: type[np.signedinteger]) -> pa.Array:
    return pa.array(numbers.astype(data_type), mask=numbers == NOTHING)


def _detail() -> str:
    """Describe a row in a sentence, in SQL."""
    topics, members = _some_names("topics", "topic"), _some_names("member_ids", "member")
    topics_and_size = sql_sentence("{} ({})", topics, _count_sql("partition_count", "partition"))
    least, most = (f"format_number({name}, 0)" for name in ("least_max", "most_min"))
    one_has = "if(member_count = 1, 'it has', 'one of them has')"
    alone, several = (
        sql_sentence("it has {}", least),
        sql_sentence("one has at least {}, one at most {}", least, most),
    )
    both = f"if(member_count = 1, {alone}, {several})"
    sentences = {
        "dense": sql_sentence(
            "only {} can read {}: {} at least {}", members, topics_and_size, one_has, least
        ),
        "sparse": sql_sentence(
            "{} can read only {}: {} at most {}", members, topics_and_size, one_has, most
        ),
        "part": sql_sentence(
            "only {} can read {}, and nothing else: {}", members, topics_and_size, both
        ),
        "single_reader": sql_sentence(
            "only {} can read {}: nobody can take over", members, topics_and_size
        ),
        "few_partitions": sql_sentence(
            "{} {} fewer partitions than its {}: some of them get none of it",
            topics,
            "if(topic_count = 1, 'has', 'have, each,')",
            _count_sql("member_count", "reader"),
        ),
        "idle": sql_sentence("{} can read nothing: no topic of theirs has partitions", members),
    }
    cases = " ".join(f"when '{kind}' then {sentence}" for kind, sentence in sentences.items())
    return f"case kind {cases} end"


def _some_names(column: str, noun: str) -> str:
    """Return all names where they are few; else how many there are."""
    names = f"array_join({column}, ', ')"
    if noun == "member":
        names = sql_sentence("{} {}", f"if(size({column}) = 1, 'member', 'members')", names)
    return f"if(size({column}) <= {_NAMES_SHOWN}, {names}, {_count_sql(f'{noun}_count', noun)})"


def _count_sql(column: str, noun: str) -> str:
    return sql_sentence(
        "{} {}", f"format_number({column}, 0)", f"if({column} = 1, '{noun}', '{noun}s')"
    )
