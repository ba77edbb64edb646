"""How many queries, jobs and tasks of a stage Spark ran for a piece of code, by its own stores."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from py4j.clientserver import ClientServerConnection
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession


@dataclass
class Counted:
    """What ran in a ``counting`` block; filled in when the block ends.

    Attributes:
        queries: SQL executions: a write, a collect or a checkpoint is one, a lazy frame none.
        jobs: Spark jobs; with adaptive execution each shuffle and each broadcast is one.
        most_tasks: of any stage that ran; one that was skipped, as its output was there, does not
            count.
        stage_tasks: the tasks of each stage that ran, the largest first.
        java_calls: what py4j asked Java for: a column of ten operations is some dozens.
    """

    queries: int = 0
    jobs: int = 0
    most_tasks: int = 0
    stage_tasks: tuple[int, ...] = ()
    java_calls: int = 0


@contextmanager
def counting(spark: SparkSession) -> Iterator[Counted]:
    """Count what runs on the session's context in the block; nothing else may run meanwhile.

    Raises:
        AssertionError: more ran than the stores retain (``spark.ui.retainedJobs``,
            ``spark.ui.retainedStages``, ``spark.sql.ui.retainedExecutions``), so the count is lost.
    """
    context = _settled_context(spark)
    first_job, first_query = _next(_job_ids(context)), _next(_query_ids(spark))
    counted = Counted()
    with _java_calls() as asked:
        yield counted
    counted.java_calls = len(asked)
    context = _settled_context(spark)
    jobs = _since(_job_ids(context), first_job, "jobs")
    queries = _since(_query_ids(spark), first_query, "queries")
    tasks = _tasks_of_stages(context, jobs)
    counted.queries, counted.jobs = len(queries), len(jobs)
    counted.stage_tasks = tuple(sorted(tasks, reverse=True))
    counted.most_tasks = max(tasks, default=0)


@contextmanager
def _java_calls() -> Iterator[list[None]]:
    """One element for each call of this process to Java in the block.

    To let go of what is not needed any more is not counted: when Python does so, it decides.
    """
    asked: list[None] = []
    send = ClientServerConnection.send_command

    def counted(connection: Any, command: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):
            asked.append(None)
        return send(connection, command)

    with patch.object(ClientServerConnection, "send_command", counted):
        yield asked


def run_to_nothing(frames: Iterable[DataFrame]) -> None:
    """Compute frames as a write would, and keep nothing."""
    for frame in frames:
        frame.write.format("noop").mode("overwrite").save()


def _settled_context(spark: SparkSession) -> Any:
    """The Scala ``SparkContext``, when its listeners have heard all that has happened."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return context


def _job_ids(context: Any) -> list[int]:
    return sorted(job.jobId() for job in _each(context.statusStore().jobsList(None)))


def _query_ids(spark: SparkSession) -> list[int]:
    store = spark._jsparkSession.sharedState().statusStore()
    return sorted(query.executionId() for query in _each(store.executionsList()))


def _next(ids: list[int]) -> int:
    return ids[-1] + 1 if ids else 0


def _since(ids: list[int], first: int, kind: str) -> list[int]:
    """Ids are given one after the other: a gap is what the store has dropped."""
    result = [number for number in ids if number >= first]
    assert result == list(range(first, first + len(result))), f"the store has dropped {kind}"
    return result


def _tasks_of_stages(context: Any, jobs: list[int]) -> list[int]:
    store = context.statusStore()
    ids = {stage for job in jobs for stage in _each(store.job(job).stageIds())}
    stages = [store.lastStageAttempt(stage) for stage in sorted(ids)]
    return [s.numTasks() for s in stages if s.status().toString() != "SKIPPED"]


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()
