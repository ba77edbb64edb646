"""What members of classic groups say that they own, as the group's assignor reads it.

The columns' form of ``live.protocol.claims`` (``memberData`` of the sticky assignors).
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.log.columns import Columns, Items, items, numbers, spans, spread, take
from kassign_spark.log.cursor import FINE, Bools, Bytes, Cursors, Ints, Span
from kassign_spark.log.messages import STICKY_USER_DATA


class Claims(NamedTuple):
    """Of every member the generation (-1: none), and lists of topics, each with its partitions."""

    generation: Ints
    owned: list[Items]


def claims(
    source: Bytes, subscriptions: Columns, is_sticky: Bools, is_cooperative_sticky: Bools
) -> Claims:
    """Read what members claim.

    Args:
        source: the bytes.
        subscriptions: of every member.
        is_sticky: of every member whether its group's assignor is `sticky`, which reads its user
            data alone; what is broken there is nothing.
        is_cooperative_sticky: whether it is `cooperative-sticky`, which reads the generation of
            subscriptions before version 2 from its user data.
    """
    generation = numbers(subscriptions["owned_generation"]).copy()
    user_data = spans(subscriptions["user_data"])
    owned = [items(subscriptions["owned"])]
    if is_sticky.any():
        plain = take({"owned": owned[0]}, np.flatnonzero(~is_sticky))
        generation[is_sticky] = -1
        of_sticky = _read_sticky(source, user_data, is_sticky, generation)
        owned = [items(spread(plain, ~is_sticky)["owned"]), of_sticky]
    lacking = np.flatnonzero(is_cooperative_sticky & (generation < 0) & (user_data.length >= 4))
    generation[lacking] = _cursors(source, user_data, lacking).number(4)
    return Claims(generation, owned)


def _read_sticky(source: Bytes, user_data: Span, is_sticky: Bools, generation: Ints) -> Items:
    """Give the partitions that user data name, and put the generations where they belong."""
    rows = np.flatnonzero(is_sticky & (user_data.length > 0))
    cursors = _cursors(source, user_data, rows)
    columns = STICKY_USER_DATA.read(cursors, 0)
    fine = cursors.wrong == FINE
    # Version 0 is what does not go on with four more bytes.
    newer = np.flatnonzero(fine & (cursors.remaining() >= 4))
    generation[rows[newer]] = cursors.at(newer).number(4)
    there = np.zeros(len(is_sticky), dtype=np.bool_)
    there[rows[fine]] = True
    return items(spread(take(columns, np.flatnonzero(fine)), there)["owned"])


def _cursors(source: Bytes, span: Span, rows: Ints) -> Cursors:
    inner = source.within(span)
    return Cursors(inner, inner.start[rows], inner.end[rows])
