"""Rows that report events and their consequences: first numbers, then names."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.groups.group_names import PIECE, schema_of
from kassign_spark.groups.numbers import Longs
from kassign_spark.plans.rebalance_rounds import ACTIONS, RebalanceSteps
from kassign_spark.results import columns_of
from kassign_spark.simulation.simulated_group import Naming

HAPPENED = f"{columns_of('simulate')}, line bigint, problem string"
"""The columns of ``simulate``; line and problem of an event that is not possible, or else null."""

LOST = len(ACTIONS)
"""The action of a member that goes without giving up what it has."""
_ACTIONS = pa.array([*ACTIONS, "lost"])
OF_ROUNDS = ("round", "member_id", "topic", "partition", "action")
_SCHEMA = schema_of(HAPPENED)
_OF_EVENT = pa.schema([field for field in _SCHEMA if field.name not in OF_ROUNDS])
_ROWS_OF_A_TABLE = 100_000


@dataclass
class Step:
    """The report on the nth events of groups.

    Attributes:
        happened: of each event the columns of ``HAPPENED`` that are not of the rounds.
        rows: of rounds; their member is the code of a name.
        place: of which of the events they are.
    """

    happened: list[dict[str, Any]] = field(default_factory=list)
    place: list[Longs] = field(default_factory=list)
    rows: list[RebalanceSteps] = field(default_factory=list)

    def tell(self, row: dict[str, Any], steps: RebalanceSteps) -> None:
        """Add an event, and rows of its rounds."""
        self.place.append(np.full(len(steps.round), len(self.happened)))
        self.rows.append(steps)
        self.happened.append(row)


def simulated_rows(steps: Iterable[Step], naming: Naming) -> Iterator[pa.Table]:
    """Name what happened: the columns of ``HAPPENED``, in pieces of many steps, or of a part."""
    small: list[pa.Table] = []
    for step in steps:
        for piece in _tables(step, naming):
            if len(piece) >= _ROWS_OF_A_TABLE:
                yield piece
            else:
                small.append(piece)
        if sum(map(len, small)) >= _ROWS_OF_A_TABLE:
            yield pa.concat_tables(small).combine_chunks()
            small = []
    if small:
        yield pa.concat_tables(small).combine_chunks()


def _tables(step: Step, naming: Naming) -> Iterator[pa.Table]:
    """Name what happened: the columns of ``HAPPENED``, in pieces; at least one row an event."""
    events = pa.Table.from_pylist(step.happened, _OF_EVENT)
    rows = RebalanceSteps.join(step.rows)
    place = np.concatenate([np.zeros(0, np.int64), *step.place])
    without = np.flatnonzero(np.bincount(place, minlength=len(events)) == 0)
    nothing = pa.nulls(len(without), pa.int64())
    columns = {
        "round": (rows.round, None),
        "member_id": (rows.member - 1, naming.members.strings),
        "topic": (rows.topic - 1, naming.topics.strings),
        "partition": (rows.partition, None),
        "action": (rows.action, _ACTIONS),
    }
    place = np.concatenate((place, without))
    for first in range(0, len(place), PIECE):
        piece = events.take(pa.array(place[first : first + PIECE]))
        for name, (numbers, strings) in columns.items():
            column = pa.chunked_array([pa.array(numbers), nothing]).slice(first, PIECE)
            piece = piece.append_column(name, column if strings is None else strings.take(column))
        yield piece.select(_SCHEMA.names).cast(_SCHEMA)
