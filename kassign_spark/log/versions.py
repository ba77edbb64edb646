"""Messages of several versions read together: those that can be, and of the others the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kassign_spark.log.cursor import FINE, REASONS, Bools, Bytes, Cursors, Ints, distinct
from kassign_spark.log.structs import Struct
from kassign_spark.log.value_columns import Columns, concatenate, take

NEWER = "this version is not known"


@dataclass(frozen=True)
class UnreadMessages:
    """Messages that no table has: what they are, and the row of each among those given."""

    kind: str
    version: int | None
    reason: str
    rows: Ints


class ReadMessages(NamedTuple):
    """The result of reading: ``rows`` (of those given, in order), their columns, the rest."""

    rows: Ints
    columns: Columns
    unread: Sequence[UnreadMessages]


def read_versioned(
    kind: str, struct: Struct, source: Bytes, rows: Ints, newest: int, *, lenient: bool = False
) -> ReadMessages:
    """Read messages that begin with their version: those of ``rows``, ascending.

    ``kind`` is what they are called where they cannot be read. Versions above the ``newest`` that
    is known are read as that where ``lenient``, as the consumers' protocol does.
    """
    cursors = Cursors(source, source.start[rows], source.end[rows])
    versions = cursors.number(2)
    is_readable = (versions >= 0) & ((versions <= newest) | lenient)
    short = cursors.wrong != FINE
    unread = _broken(kind, None, cursors.wrong, rows)
    for version in distinct(versions[~is_readable & ~short]):
        unread.append(UnreadMessages(kind, version, NEWER, rows[~short & (versions == version)]))
    read_as = np.minimum(versions, newest)
    parts: list[Columns] = [struct.read(cursors.at(np.zeros(0, dtype=np.int64)), newest)]
    places = [np.zeros(0, dtype=np.int64)]
    for version in distinct(read_as[is_readable & ~short]):
        of_version = np.flatnonzero(is_readable & ~short & (read_as == version))
        subset = cursors.at(of_version)
        columns = struct.read(subset, version)
        fine = subset.wrong == FINE
        unread += _broken(kind, version, subset.wrong, rows[of_version])
        parts.append(columns if fine.all() else take(columns, np.flatnonzero(fine)))
        places.append(of_version[fine])
    if len(parts) == 2:
        return ReadMessages(rows[places[1]], parts[1], unread)
    place = np.concatenate(places)
    order = np.argsort(place)
    return ReadMessages(rows[place[order]], take(concatenate(parts), order), unread)


def read_keys(
    kind: str, struct: Struct, cursors: Cursors, rows: Ints
) -> tuple[Bools, Columns, list[UnreadMessages]]:
    """Read what follows the type in keys, of ``rows``; the columns are of those that are fine."""
    columns = struct.read(cursors, 0)
    fine = cursors.wrong == FINE
    unread = _broken(kind, None, cursors.wrong, rows, "its key: ")
    return fine, columns if fine.all() else take(columns, np.flatnonzero(fine)), unread


def _broken(
    kind: str, version: int | None, wrong: npt.NDArray[np.int8], rows: Ints, where: str = ""
) -> list[UnreadMessages]:
    return [
        UnreadMessages(kind, version, where + text, rows[wrong == reason])
        for reason, text in REASONS.items()
    ]
