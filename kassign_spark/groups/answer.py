"""What an assignor answers for many groups at once."""

from dataclasses import dataclass

from kassign_spark.groups.numbers import Flags, Longs


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
