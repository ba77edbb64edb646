"""Edges of groups as blocks in one process."""

from itertools import pairwise

import numpy as np

from kassign_spark.engine.block import Block
from kassign_spark.engine.costs import MOVE
from kassign_spark.engine.edges import Edges
from kassign_spark.engine.segments import Longs


def cut_into_blocks(edges: Edges, count: int, move: int = MOVE) -> list[Block]:
    """Cut edges into blocks of about as many edges each; some may be empty."""
    ends = np.append(edges.starts, len(edges))
    fair = np.arange(count + 1) * len(edges) // count
    bounds = np.searchsorted(ends, fair)
    return [Block(_slice(edges, int(low), int(high), ends), move) for low, high in pairwise(bounds)]


def _slice(edges: Edges, low: int, high: int, ends: Longs) -> Edges:
    """Keep the classes from ``low`` to before ``high``."""
    rows = slice(ends[low], ends[high])
    return Edges(
        edges.class_of[rows] - np.int32(low),
        edges.member_of[rows],
        edges.owned[rows],
        None if edges.surcharge is None else edges.surcharge[rows],
        edges.supply[low:high],
        edges.turn[low:high],
    )
