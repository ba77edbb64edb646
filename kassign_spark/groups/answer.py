"""What an assignor answers for many groups at once."""

from dataclasses import dataclass
from typing import Literal

from kassign_spark.groups.numbers import Flags, Longs

Moving = Literal["given", "withheld", "told"]
"""What becomes of a partition that somebody else has now: its new owner is given it; nobody is, if
its group is one of `cooperative-sticky`; or it is given, and the column is_moving tells."""


@dataclass(frozen=True)
class Answer:
    """Who is to have each partition of a batch.

    Attributes:
        owner: of each slot a member; -1: nobody, because there is no answer for the group.
        is_moving: whether somebody else has the slot now, so that a cooperative rebalance
            withholds it for one round.
    """

    owner: Longs
    is_moving: Flags
