"""Kafka's own assignors, of the pinned kafka-clients jar, called on the Spark session's JVM.

A group is plain Python data; hundreds of them are answered in one call through py4j::

    group = Group({"t0": 3}, [Member("C0", ["t0"]), Member("C1", ["t0"])], "range")
    assert assign(spark, [group]) == [{"C0": [("t0", 0), ("t0", 1)], "C1": [("t0", 2)]}]
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark.schemas import MEMBERS, OWNED, TOPICS, Table

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

Assigned = dict[str, list[tuple[str, int]]]
"""What each member gets, in the assignor's own order; a member without partitions has ``[]``."""


@dataclass(frozen=True)
class Member:
    """One row of a JoinGroup response.

    ``owned`` and ``generation`` are what the member claims: in its subscription, or for `sticky`
    in the user data that StickyAssignor reads (there is none when neither is given). ``user_data``
    replaces those bytes.
    """

    member_id: str
    topics: Sequence[str]
    owned: Sequence[tuple[str, int]] = ()
    generation: int | None = None
    group_instance_id: str | None = None
    rack_id: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True)
class Group:
    """Members in JoinGroup order, and the cluster's topics that matter to this group alone.

    A topic's value is its number of partitions or, for each partition, its replicas' racks.
    """

    topics: Mapping[str, int | Sequence[Sequence[str | None]]]
    members: Sequence[Member]
    assignor: str = "range"


def assign(
    spark: SparkSession, groups: Iterable[Group], *, assignor: str | None = None, seconds: float = 5
) -> list[Assigned | str]:
    """What Kafka answers for each group, each with a fresh assignor.

    Args:
        spark: The tests' session, which has the kafka-clients jar.
        groups: Any number.
        assignor: Takes the place of each group's own.
        seconds: Of processor time, after which a group counts as never ending.

    Returns:
        For each group its assignment, or the simple name of the class of the exception it ended
        with, or ``TimeLimit``.
    """
    lines = [json.dumps(_group_as_json(group, assignor)) for group in groups]
    if not lines:
        return []
    answers = _assignors(spark).assign("\n".join(lines), int(seconds * 1000))
    return [_assigned(json.loads(line)) for line in answers.splitlines()]


def rack_use(spark: SparkSession, groups: Iterable[Group], *, seconds: float = 5) -> list[bool]:
    """Of each group whether its assignor finds that racks count; one that asks by topic, for any.

    Kafka's own answer: its ``useRackAwareAssignment``, as the assignor itself calls it. Groups of
    `roundrobin`, which never asks, are refused.
    """
    lines = [json.dumps(_group_as_json(group, None)) for group in groups]
    return list(_assignors(spark).rackUse("\n".join(lines), int(seconds * 1000)))


def seconds_taken(
    spark: SparkSession, groups: Iterable[Group], *, assignor: str | None = None, times: int = 5
) -> list[float]:
    """How long Kafka's assignors took for all groups, in memory and on one thread, each time.

    The first times warm the JVM up. Reading the groups is not counted.
    """
    lines = "\n".join(json.dumps(_group_as_json(group, assignor)) for group in groups)
    return [nanos / 1e9 for nanos in _assignors(spark).time(lines, times)]


class Tables(NamedTuple):
    members: DataFrame
    topics: DataFrame
    owned: DataFrame


def group_id(index: int) -> str:
    """The ``group_id`` of the group at ``index`` in the tables of ``to_tables``."""
    return f"g{index}"


def to_tables(spark: SparkSession, groups: Sequence[Group]) -> Tables:
    """The groups as the three tables of the design, in one frame each.

    Topics belong to a cluster and every random group has sizes of its own: so the group at
    ``index`` is group ``g<index>``, alone in cluster ``c<index>``.
    """
    members, topics, owned = [], [], []
    for index, group in enumerate(groups):
        cluster, name = f"c{index}", group_id(index)
        for topic, racks in group.topics.items():
            if isinstance(racks, int):
                topics.append((cluster, topic, racks, None))
            else:
                topics.append((cluster, topic, len(racks), [list(of) for of in racks]))
        for seq, m in enumerate(group.members):
            subscription = (list(m.topics), None, m.generation, seq, group.assignor)
            members.append(
                (cluster, name, m.member_id, m.group_instance_id, m.rack_id, *subscription)
            )
            owned += [(cluster, name, m.member_id, topic, p) for topic, p in m.owned]
    return Tables(
        spark.createDataFrame(members, _first(MEMBERS, 10), verifySchema=False),
        spark.createDataFrame(topics, _first(TOPICS, 4), verifySchema=False),
        spark.createDataFrame(owned, OWNED.columns, verifySchema=False),
    )


def _first(table: Table, count: int) -> StructType:
    """Its first columns: those behind are of groups of the new protocol."""
    return StructType(table.columns.fields[:count])


def from_table(assignment: DataFrame, groups: Sequence[Group]) -> list[Assigned]:
    """An assignment of ``to_tables`` as the oracle's form, each member's list sorted."""
    result: list[Assigned] = [{m.member_id: [] for m in group.members} for group in groups]
    for row in assignment.collect():
        member = result[int(row.group_id[1:])].setdefault(row.member_id, [])
        member.append((row.topic, row.partition))
    return [{member: sorted(tps) for member, tps in group.items()} for group in result]


def as_sets(answer: Assigned | str) -> Assigned | str:
    """An answer in ``from_table``'s form: the order within a member's list forgotten."""
    if isinstance(answer, str):
        return answer
    return {member: sorted(tps) for member, tps in answer.items()}


def new_java_object(spark: SparkSession, name: str) -> JavaObject:
    """A new object of the class in ``<name>.java`` beside this file, compiled in Spark's JVM."""
    constructor = _java_class(spark, name).getDeclaredConstructors()[0]
    no_arguments = spark._sc._gateway.new_array(spark._jvm.Object, 0)  # type: ignore[union-attr]
    return constructor.newInstance(no_arguments)


@cache
def _java_class(spark: SparkSession, name: str) -> JavaObject:
    """Compiled once: py4j looks methods up by class name, whichever loader it is from."""
    jvm = spark._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.ClassLoader.getSystemClassLoader())
    compiler.cook((Path(__file__).parent / f"{name}.java").read_text())
    return compiler.getClassLoader().loadClass(name)


@cache
def _assignors(spark: SparkSession) -> Any:
    return new_java_object(spark, "Assignors")


def _group_as_json(group: Group, assignor: str | None) -> dict[str, Any]:
    return {
        "assignor": assignor or group.assignor,
        "topics": {
            topic: racks if isinstance(racks, int) else [list(of) for of in racks]
            for topic, racks in group.topics.items()
        },
        "members": [
            {
                **vars(member),
                "topics": list(member.topics),
                "owned": [list(tp) for tp in member.owned],
                "user_data": None
                if member.user_data is None
                else base64.b64encode(member.user_data).decode(),
            }
            for member in group.members
        ],
    }


def _assigned(answer: dict[str, Any]) -> Assigned | str:
    if "error" in answer:
        return str(answer["error"])
    return {
        member: [(topic, partition) for topic, partition in tps]
        for member, tps in answer["members"].items()
    }
