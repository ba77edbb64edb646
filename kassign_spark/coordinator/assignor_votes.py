"""Choose the coordinator's assignor for a group by the members' votes."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS


class Choice(NamedTuple):
    """The assignor of a group.

    Attributes:
        assignor: its name.
        undecided: positions of the two members between whose votes the choice goes to and fro for
            ever; else empty.
        unknown: positions of members that name an assignor which the broker does not have: they
            are refused with UNSUPPORTED_ASSIGNOR and have no vote.
    """

    assignor: str
    undecided: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()


def choose_assignor(
    votes: Sequence[str | None], assignors: Sequence[str] = COORDINATOR_ASSIGNORS
) -> Choice:
    """Choose as ``ConsumerGroup.computePreferredServerAssignor``: most votes of those that vote.

    With exactly one vote for each of `uniform` and `range`, every heartbeat of the member that
    named `uniform` computes `range`, which is not the group's, so the group's epoch rises each
    time and the target flips whenever the two assign differently (kip-848.md, 2).

    Votes are ``group.remote.assignor`` of each member, or None; ``assignors`` are the broker's
    (``group.consumer.assignors``), the default one first. Of `uniform` and `range` with equal votes
    it is `uniform`.
    """
    counts = Counter(vote for vote in votes if vote in assignors)
    unknown = tuple(i for i, vote in enumerate(votes) if vote is not None and vote not in assignors)
    if not counts:
        return Choice(assignors[0], unknown=unknown)
    first = max((*COORDINATOR_ASSIGNORS, *assignors), key=counts.__getitem__)
    undecided = COORDINATOR_ASSIGNORS if counts == {"uniform": 1, "range": 1} else ()
    return Choice(first, tuple(i for i, vote in enumerate(votes) if vote in undecided), unknown)
