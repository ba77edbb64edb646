"""Edges of a range of topic classes, in as few bytes as their counts need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kassign_spark.engine.packed import pack, unpack
from kassign_spark.engine.segments import Integers, Longs, totals

Flags = npt.NDArray[np.bool_]
_AS_IT_IS = ("member_of", "surcharge", "supply", "turn")
"""Fields that are pickled unchanged; the class of each edge follows from the classes' sizes."""


@dataclass
class Edges:
    """Edges (class, member), sorted by class, then by member; each class has one at least.

    Attributes:
        class_of: class of each edge, dense from 0.
        member_of: member of each edge.
        owned: partitions of the class that the member owns, for each edge.
        surcharge: what one partition costs there, moved or not, for each edge; None: nothing.
        supply: partitions of each class.
        turn: number of each class within its group; rotates whom it serves first.
    """

    class_of: Integers
    member_of: Integers
    owned: Integers
    surcharge: Longs | None
    supply: Longs
    turn: Longs

    def __post_init__(self) -> None:
        self.starts = np.flatnonzero(np.diff(self.class_of, prepend=-1))
        self.sizes = np.diff(self.starts, append=len(self.class_of))

    def __len__(self) -> int:
        return len(self.class_of)

    def __getstate__(self) -> dict[str, Any]:
        packed = {"owned": pack(self.owned), "sizes": self.sizes.astype(np.int32)}
        return {name: self.__dict__[name] for name in _AS_IT_IS} | packed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, owned=unpack(state["owned"]))
        self.sizes = self.sizes.astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.class_of = np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)

    def subset(self, rows: Flags) -> "tuple[Edges, Flags]":
        """Keep these rows; also return the classes that have any."""
        kept = np.add.reduceat(rows, self.starts, dtype=np.int64)
        classes = kept > 0
        kept = kept[classes]
        edges = Edges(
            np.repeat(np.arange(len(kept), dtype=np.int32), kept),
            self.member_of[rows],
            self.owned[rows],
            None if self.surcharge is None else self.surcharge[rows],
            self.supply[classes],
            self.turn[classes],
        )
        return edges, classes

    def least(self, values: Longs) -> Longs:
        """Return the minimum of each class."""
        return np.minimum.reduceat(values, self.starts)

    def by_class(self, rows: Integers, values: Integers) -> Longs:
        """Return the total of each class over these rows."""
        return totals(self.class_of[rows], values, len(self.supply))

    def first_members(self) -> Integers:
        """Return one member of each class."""
        return self.member_of[self.starts]


def compact_edges(
    class_of: Longs,
    member_of: Longs,
    owned: Longs,
    supply: Longs,
    turn: Longs,
    surcharge: Longs | None = None,
) -> Edges:
    """Make ``Edges``, without classes that nobody may take.

    Numbers of an edge have 32 bits each, or 64 where a group of so many partitions needs them.
    """
    is_taken = np.bincount(class_of, minlength=len(supply)) > 0
    if not is_taken.all():
        class_of = (np.cumsum(is_taken) - 1)[class_of]
        supply, turn = supply[is_taken], turn[is_taken]
    is_small = supply.sum() < np.iinfo(np.int32).max
    return Edges(
        class_of.astype(np.int32),
        member_of.astype(np.int32),
        owned.astype(np.int32 if is_small else np.int64),
        surcharge,
        supply.astype(np.int64),
        turn.astype(np.int64),
    )
