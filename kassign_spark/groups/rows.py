"""Whole groups as rows of one table, of several kinds, so that one task gets all of a group.

A task can be given one table only: members, their subscriptions, topics and claims say what they
are by ``kind``. A subscription that many members share is there once, and members name it by its
number; so a group costs as much as its members plus its topics, not their product.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.read import (
    CLAIM,
    MEMBER,
    OBSERVED,
    REGEX,
    SUBSCRIPTION,
    TARGET,
    TOPIC,
)
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.archives import forgetting_archives
from kassign_spark.spark.sessions import cores

_COLUMNS = {
    "member_id": "string",
    "topic": "string",
    "number": "bigint",
    "place": "bigint",
    "list_number": "bigint",
    "texts": "string",
}
OF_CLIENTS = ("topics_regex", "client", "if(is_leader, 'true', null)")
"""More texts of members, in SQL, for groups of other clients than Java's."""
WORK_OF_ONE_TASK = 20_000
_MOST_WORK_OF_A_TASK = 2_000_000

Kernel = Callable[[pa.Table], Iterable[pa.Table]]
"""From all rows of a task to what it answers, in pieces."""


def fold(eligible: Eligible, *, regexes: bool = False, claims: bool = True) -> DataFrame:
    """Fold the tables of the groups into rows of one table, claims optional; runs no job.

    Returns:
        cluster_id string, group_id string, kind tinyint, and by kind:
        MEMBER: member_id, number (generation, or -1), place (member_seq, or -1),
        list_number (which of the group's lists of topics), texts (group_instance_id, rack_id,
        assignor, and with ``regexes`` topics_regex; where some member names its client all four,
        client and whether it leads), topic (group_type);
        SUBSCRIPTION: list_number, texts (the topics);
        TOPIC: topic, number (partitions), texts (replica_racks, where some member has a rack),
        member_id (the topic's id, where the look kept it): those that exist, and that a member of
        the group subscribes to;
        CLAIM: member_id, topic, number (partition), place (position, or 0).
        Others are null. Texts are lists as JSON: a column of lists, though it is null in nearly
        all rows, takes Spark ten times as long to hand over to Python.
    """
    topics = "coalesce(topics, cast(array() as array<string>))"
    members = eligible.members.coalesce(1) if eligible.one_folds else eligible.members
    members = members.withColumn("topics", F.expr(topics))
    # Where a group has one list, members need not be read with it to know which is theirs.
    members = (
        members.withColumn("list_number", F.lit(0))
        if eligible.one_list
        else number_lists(members, "topics")
    )
    more = OF_CLIENTS if eligible.has_clients else ("topics_regex",) if regexes else ()
    table = member_rows(members, *more).unionByName(_lists_and_topics(members, eligible))
    if claims and eligible.owned is not None:
        place = "coalesce(position, 0)" if "position" in eligible.owned.columns else "0"
        table = table.unionByName(rows(eligible.owned, CLAIM, number="partition", place=place))
    return table


def number_lists(members: DataFrame, *columns: str) -> DataFrame:
    """Add list_number: members of a group that are equal in the columns have the same.

    It is a rank, in which no two lists can meet as two hashes can. Beside a hash it costs a group
    of 10,000 members and 50 lists of 100 topics 0.2 s more, one of 4,000 lists 0.4 s less.
    """
    of_group = Window.partitionBy(*GROUP_KEY).orderBy(*columns)
    return members.withColumn("list_number", F.dense_rank().over(of_group))


def _lists_and_topics(members: DataFrame, eligible: Eligible) -> DataFrame:
    """Return the rows of kinds SUBSCRIPTION and TOPIC."""
    lists = members.selectExpr(*GROUP_KEY, "list_number", "topics").distinct()
    on, topics = [CLUSTER_ID, "topic"], eligible.topics
    # Of an outer explode Spark infers no filter, which would have the list shuffled once more.
    if not eligible.one_folds:
        subscriptions = lists.selectExpr(*GROUP_KEY, "explode_outer(topics) as topic")
        return rows(lists, SUBSCRIPTION, texts="to_json(topics)").unionByName(
            topic_rows(subscriptions.join(topics, on=on, how="inner"))
        )
    # Members are read once for both kinds: the null before the topics makes the row of the list.
    topic = "explode_outer(concat(array(null), topics)) as topic"
    subscriptions = lists.selectExpr(*GROUP_KEY, "list_number", "to_json(topics) as list", topic)
    # Topics are joined within the task, and need no job that broadcasts them.
    with_topics = subscriptions.join(
        topics.coalesce(1).hint("shuffle_hash"), on=on, how="left"
    ).where("topic is null or num_partitions is not null")
    values = _topic_values(with_topics)
    values["texts"] = f"if(topic is null, list, {values['texts']})"
    values["list_number"] = "if(topic is null, list_number, 0)"
    return rows(with_topics, f"if(topic is null, {SUBSCRIPTION}, {TOPIC})", GROUP_KEY, **values)


def topic_rows(topics: DataFrame) -> DataFrame:
    """Return rows of kind TOPIC, of ``Eligible.topics`` beside the groups that read them."""
    return rows(topics, TOPIC, GROUP_KEY, **_topic_values(topics))


def _topic_values(topics: DataFrame) -> dict[str, str]:
    return {
        "number": "num_partitions",
        "texts": "to_json(replica_racks)" if "replica_racks" in topics.columns else "null",
        "member_id": "topic_id" if "topic_id" in topics.columns else "null",
    }


def member_rows(members: DataFrame, *more_texts: str) -> DataFrame:
    """Return rows of kind MEMBER, from ``schemas.MEMBERS`` and list_number; more texts are SQL."""
    texts = ("group_instance_id", "rack_id", "assignor", *more_texts)
    all_texts, none = ", ".join(texts), ",".join(["null"] * len(texts))
    return rows(
        members,
        MEMBER,
        number="coalesce(generation, -1)",
        place="coalesce(member_seq, -1)",
        topic="group_type",
        # Nearly all members say none of them, and need no JSON writer: it takes its time a row.
        texts=f"if(coalesce({all_texts}) is null, '[{none}]', to_json(array({all_texts})))",
    )


def observed_rows(assignment: DataFrame) -> DataFrame:
    """Return rows of kind OBSERVED for a table of ``fold``, from ``schemas.ASSIGNMENT``."""
    return rows(assignment, OBSERVED, number="partition")


def target_rows(target: DataFrame) -> DataFrame:
    """Return rows of kind TARGET, of ``schemas.TARGET``; place is the position, or -1."""
    return rows(target, TARGET, number="partition", place="coalesce(position, -1)")


def regex_rows(matches: DataFrame) -> DataFrame:
    """Return rows of kind REGEX, from ``match_regexes``: topic is the regex, texts its topics."""
    return rows(matches, REGEX, topic="topics_regex", texts="to_json(names)")


def rows(
    frame: DataFrame, kind: int | str, keys: tuple[str, ...] = GROUP_KEY, **values: str
) -> DataFrame:
    """Return ``frame`` with the columns of the table; missing ones are null, numbers 0.

    ``values`` is SQL of columns that are not as ``frame`` has them.
    """
    return rows_of_kind(frame, kind, _COLUMNS, keys, zeros=("bigint",), **values)


def rows_of_kind(
    frame: DataFrame,
    kind: int | str,
    types: Mapping[str, str],
    keys: tuple[str, ...] = GROUP_KEY,
    zeros: tuple[str, ...] = (),
    **values: str,
) -> DataFrame:
    """Return ``frame``, which has ``keys``, with the columns of a tasks' table.

    These are ``keys``, kind tinyint (a number, or SQL), and ``types``: as ``values``, SQL, or as
    ``frame`` has them, else null, or 0 if the type is one of ``zeros``.
    """
    values = {name: name for name in frame.columns} | values
    columns = []
    for name, type_ in types.items():
        value = f"cast({values.get(name, 'null')} as {type_})"
        columns.append(f"{f'coalesce({value}, 0)' if type_ in zeros else value} as {name}")
    return frame.selectExpr(*keys, f"cast({kind} as tinyint) as kind", *columns)


def run_in_tasks(
    table: DataFrame,
    kernel: Kernel,
    schema: str | StructType,
    tasks: int,
    keys: tuple[str, ...] = GROUP_KEY,
) -> DataFrame:
    """Call ``kernel`` in ``tasks`` tasks, each with all rows of the groups that fall to it.

    ``schema`` is of the answers; rows that are equal in ``keys``, which are SQL, stay together.
    """
    # One task needs no shuffle.
    cut = table.coalesce(1) if tasks == 1 else table.repartition(tasks, *map(F.expr, keys))
    return cut.mapInArrow(all_rows(kernel), schema)


def all_rows(kernel: Kernel) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Call ``kernel`` with all rows of a task, if it has any."""
    return forgetting_archives(partial(_call, kernel))


def _call(kernel: Kernel, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    arrived = list(batches)
    if arrived:
        table = pa.Table.from_batches(arrived)
        del arrived
        for piece in kernel(table):
            yield from piece.to_batches()


def tasks_for(work: int, session: SparkSession) -> int:
    """Return the number of tasks for the work (members, claims, partitions), given the cores.

    Small work is one task: another one costs more than it saves. Large work is as many as there
    are cores, or several times that where one would outgrow its memory. Not more: Spark takes 0.15
    s of a core to begin and end a task with Python in it. ``spark.sql.shuffle.partitions`` says
    nothing about any of this.
    """
    if work <= WORK_OF_ONE_TASK:
        return 1
    at_once = cores(session)
    rounds = -(-work // (_MOST_WORK_OF_A_TASK * at_once))
    return min(work // WORK_OF_ONE_TASK + 1, rounds * at_once)
