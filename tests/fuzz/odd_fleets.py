"""Whole fleets as plain rows: odd ones that mean something, and such with something wrong."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.schemas import MEMBERS, OWNED, TOPIC_PARTITIONS, TOPICS, Table
from tests.fuzz.strategies import names, text, topic_names, whole_numbers

INT_MAX = 2**31 - 1
_MANY = 40
Row = dict[str, Any]
_TABLES = {"members": MEMBERS, "topics": TOPICS, "owned": OWNED}
PATTERNS = (
    ".*",
    "a.*",
    "[",
    "(a|b)+",
    r"\Qa",
    "(?x) a #",
    "",
    "a)(b",
    "(?i)A",
    "\\",
    "^$",
    "x{9999}",
)


@dataclass(frozen=True)
class Fleet:
    """Rows of the tables; ``types`` are those that differ from the declared ones."""

    members: list[Row]
    topics: list[Row]
    owned: list[Row] | None
    has_clusters: bool = False
    dropped: frozenset[tuple[str, str]] = frozenset()
    added: tuple[tuple[str, str], ...] = ()
    types: dict[tuple[str, str], str] = field(default_factory=dict)

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame | None]:
        return (
            self._frame(spark, "members", self.members),
            self._frame(spark, "topics", self.topics),
            None if self.owned is None else self._frame(spark, "owned", self.owned),
        )

    def _frame(self, spark: SparkSession, name: str, rows: list[Row]) -> DataFrame:
        declared: Table = _TABLES[name]
        if name == "topics" and any("partition" in row for row in rows):
            declared = TOPIC_PARTITIONS
        fields = [
            StructField(f.name, _wide(f.dataType))
            for f in declared.columns
            if (self.has_clusters or f.name != "cluster_id") and (name, f.name) not in self.dropped
        ]
        frame = spark.createDataFrame(
            [tuple(row.get(f.name) for f in fields) for row in rows], StructType(fields)
        )
        for (table, column), expression in self.types.items():
            if table == name and column in frame.columns:
                frame = frame.selectExpr(
                    *(f"`{c}`" for c in frame.columns if c != column), f"{expression} AS `{column}`"
                )
        for table, column in self.added:
            if table == name:
                frame = frame.selectExpr("*", f"map('a', 1) AS `{column.replace('`', '``')}`")
        return frame


def _wide(data_type: DataType) -> DataType:
    """As ``bigint``: numbers can be out of range."""
    return LongType() if isinstance(data_type, IntegerType) else data_type


@st.composite
def odd_fleets(
    draw: st.DrawFn,
    *,
    assignors: tuple[str, ...] = tuple(ASSIGNORS),
    by_partition: bool | None = None,
) -> Fleet:
    """Fleets that are odd in every way that is allowed: each must have a result.

    ``by_partition`` is the form of ``topics``; None: either.
    """
    has_clusters = draw(st.booleans())
    clusters = draw(
        st.lists(
            st.none() | st.just("") | names(), min_size=1, max_size=2, unique_by=lambda c: c or ""
        )
        if has_clusters
        else st.just([None])
    )
    if by_partition is None:
        by_partition = draw(st.booleans())
    members: list[Row] = []
    topics: list[Row] = []
    owned: list[Row] = []
    for cluster in clusters:
        at = {"cluster_id": cluster}
        sizes = draw(st.dictionaries(topic_names(), st.integers(0, 7), min_size=1, max_size=5))
        for topic, size in sizes.items():
            topics += _topic(draw, at, topic, size, by_partition)
        known = [*sizes, draw(topic_names())]
        groups = draw(st.lists(names(), min_size=0, max_size=5, unique=True))
        for group in groups:
            in_group = {**at, "group_id": group}
            assignor = draw(st.sampled_from(assignors))
            ids = draw(st.lists(names(), min_size=1, max_size=6, unique=True))
            shared = draw(st.none() | st.lists(st.sampled_from(known), max_size=4))
            for member in ids:
                subscription = shared
                if subscription is None:
                    subscription = draw(st.lists(st.sampled_from(known), max_size=4))
                pattern = draw(st.sampled_from([None] * 8 + [".*", "a.*", "(?i)A|b.?", r"\Qa"]))
                members.append(
                    {
                        **in_group,
                        "member_id": member,
                        "group_instance_id": draw(st.none() | text()),
                        "rack_id": draw(st.sampled_from([None, None, "", "a", "b"])),
                        "topics": subscription
                        if pattern is None
                        else draw(st.sampled_from([None, []])),
                        "topics_pattern": pattern,
                        "generation": draw(st.sampled_from([None, -1, 0, 3, 4, INT_MAX])),
                        "member_seq": draw(st.sampled_from([None, 0, 1, 2, INT_MAX])),
                        "assignor": assignor,
                    }
                )
            owned += draw(
                st.lists(
                    st.fixed_dictionaries(
                        {
                            **{name: st.just(value) for name, value in in_group.items()},
                            "member_id": st.sampled_from([*ids, *ids, "gone"]),
                            "topic": st.sampled_from(known),
                            "partition": st.integers(0, 7) | st.just(INT_MAX),
                        }
                    ),
                    max_size=8,
                )
            )
    # Nobody reads it, so nothing comes of its size; a pattern could.
    has_patterns = any(row["topics_pattern"] for row in members)
    if topics and not by_partition and not has_patterns and draw(st.booleans()):
        topics.append({**at, "topic": "read-by-nobody", "num_partitions": PARTITIONS_OF_A_TOPIC})
    if owned and draw(st.booleans()):
        owned += owned[:2]
    return Fleet(
        draw(st.permutations(members)),
        draw(st.permutations(topics)),
        draw(st.sampled_from([owned, owned, owned, None])),
        has_clusters,
    )


@st.composite
def many_odd_fleets(
    draw: st.DrawFn, *, count: int, assignors: tuple[str, ...] = tuple(ASSIGNORS)
) -> Fleet:
    """Dozens of groups in one fleet: many odd ones, each in clusters of its own.

    The first keeps the names of its clusters, which may be null or empty. If its ``owned`` table is
    left out, that of all is.
    """
    by_partition = draw(st.booleans())
    one = odd_fleets(assignors=assignors, by_partition=by_partition)
    first, *others = (draw(one) for _ in range(count))
    members, topics, owned = list(first.members), list(first.topics), list(first.owned or [])
    for number, fleet in enumerate(others):
        for rows, more in ((members, fleet.members), (topics, fleet.topics)):
            rows += [_in_cluster(number, row) for row in more]
        owned += [_in_cluster(number, row) for row in fleet.owned or []]
    # The first example that is tried is the least there is: here, nothing at all.
    assume(len(members) > _MANY)
    return Fleet(members, topics, None if first.owned is None else owned, has_clusters=True)


def _in_cluster(number: int, row: Row) -> Row:
    return {**row, "cluster_id": f"of fleet {number}: {row.get('cluster_id') or ''}"}


def _topic(draw: st.DrawFn, at: Row, topic: str, size: int, by_partition: bool) -> list[Row]:
    if by_partition:
        return [{**at, "topic": topic, "partition": p} for p in range(size)]
    racks = draw(
        st.none()
        | st.lists(
            st.none() | st.lists(st.sampled_from(["a", "b", "", None]), max_size=3), max_size=8
        )
    )
    row = {**at, "topic": topic, "num_partitions": size, "replica_racks": racks}
    return [row] * draw(st.sampled_from([1, 1, 1, 2]))


_NUMBERS = ("generation", "member_seq", "num_partitions", "partition")
_TYPES = (
    "CAST(NULL AS VOID)",
    "1",
    "1.5D",
    "CAST(1 AS DECIMAL(38, 0))",
    "'x'",
    "current_timestamp()",
    "array('a', NULL)",
    "array(1)",
    "array()",
    "map('a', 1)",
    "named_struct('a', 1)",
    "X'00FF'",
    "'x' COLLATE UTF8_LCASE",
    "CAST(3 AS TINYINT)",
    "true",
    "parse_json('{}')",
)


@st.composite
def bad_fleets(draw: st.DrawFn) -> Fleet:
    """Fleets with something wrong, or nothing: each has a result or is refused."""
    fleet = draw(odd_fleets())
    for _ in range(draw(st.integers(1, 3))):
        fleet = draw(st.sampled_from((_bad_cell, _bad_cell, _bad_row, _bad_columns, _empty)))(
            draw, fleet
        )
    return fleet


def _table(draw: st.DrawFn, fleet: Fleet) -> tuple[str, list[Row]]:
    name = draw(st.sampled_from(["members", "topics", "owned"]))
    return name, [dict(row) for row in getattr(fleet, name) or []]


def _bad_cell(draw: st.DrawFn, fleet: Fleet) -> Fleet:
    name, rows = _table(draw, fleet)
    if rows:
        row = rows[draw(st.integers(0, len(rows) - 1))]
        column = draw(st.sampled_from(list(row)))
        if column in _NUMBERS:
            number = st.sampled_from([-1, -2, 2**31, 2**63 - 1, -(2**63), 2**40]) | st.none()
            row[column] = draw(number | whole_numbers().filter(lambda n: abs(n) < 2**31 and n < 99))
        elif column == "topics":
            row[column] = draw(st.none() | st.lists(st.none() | text(), max_size=3))
        elif column == "replica_racks":
            row[column] = draw(st.none() | st.just([["a"]] * 50))
        elif column == "topics_pattern":
            row[column] = draw(st.none() | st.sampled_from(PATTERNS) | text())
        else:
            row[column] = draw(st.none() | text())
    return replace(fleet, **{name: rows if rows or name != "owned" else None})


def _bad_row(draw: st.DrawFn, fleet: Fleet) -> Fleet:
    name, rows = _table(draw, fleet)
    if rows:
        rows.append(dict(draw(st.sampled_from(rows))))
        if name == "topics" and "num_partitions" in rows[-1] and draw(st.booleans()):
            rows[-1]["num_partitions"] = 8
    return replace(fleet, **{name: rows if rows or name != "owned" else None})


def _bad_columns(draw: st.DrawFn, fleet: Fleet) -> Fleet:
    name, _ = _table(draw, fleet)
    columns = _TABLES[name].columns.names
    column = draw(st.sampled_from(columns))
    change = draw(st.sampled_from(["drop", "type", "type", "add"]))
    if change == "drop":
        return replace(fleet, dropped=fleet.dropped | {(name, column)})
    if change == "type":
        return replace(fleet, types={**fleet.types, (name, column): draw(st.sampled_from(_TYPES))})
    odd = [column, column.upper(), "a.b", "a`b", " ", "partition", "num_partitions", "found", "e"]
    return replace(fleet, added=(*fleet.added, (name, draw(st.sampled_from(odd)))))


def _empty(draw: st.DrawFn, fleet: Fleet) -> Fleet:
    name, _ = _table(draw, fleet)
    return replace(fleet, **{name: []})
