"""Move members to a new target, heartbeat by heartbeat (``CurrentAssignmentBuilder``).

Nobody waits for the group: each partition waits for its one holder. A member first gives up what
its target lacks, and is given nothing before it has said that it did; so a change is over after
three rounds, swaps and chains included.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassign_spark.coordinator.orders import Ints

RETAINED, REVOKED, ASSIGNED, WITHHELD = "retained", "revoked", "assigned", "withheld"
ACTIONS = (RETAINED, REVOKED, ASSIGNED, WITHHELD)
NEVER = 0
"""The round of steps that wait for a static member that is away."""
MOST_ROUNDS = 3


class Pairs(NamedTuple):
    """Partitions with their members, one entry per partition."""

    members: Ints
    partitions: Ints


@dataclass(frozen=True, slots=True)
class Steps:
    """The change of every partition that a member has or is meant to have.

    A partition that changes hands appears twice: as the loser's and as the gainer's.

    Attributes:
        members: positions of members.
        partitions: as given.
        is_held: whether the member has it at the beginning; else it is to receive it.
        changed_in: round in which a holder gives it up, or a gainer has it at the latest;
            ``NEVER``: a holder keeps it, or a gainer does not get it before a static member that is
            away has come back or expired.
        round_count: after which nothing changes any more; 0 to ``MOST_ROUNDS``.
        arrived_in: for each member the round in which it reaches the target's epoch; ``NEVER`` for
            a static member that is away.
    """

    members: Ints
    partitions: Ints
    is_held: NDArray[np.bool_]
    changed_in: Ints
    round_count: int
    arrived_in: Ints


def reconcile(owned: Pairs, target: Pairs, is_away: NDArray[np.bool_]) -> Steps:
    """Follow a group from what its members hold to a target that was just computed.

    Round 1 is each member's next regular heartbeat: losers learn which partitions to give up; the
    others move to the new epoch and get what is free. Round 2 comes at once after a loser's
    listener has returned: it confirms, moves on, and gets what was free before. Round 3 is the next
    regular heartbeat after that: released partitions arrive. A gainer whose heartbeat falls late
    enough can have some of them in round 2 already.

    Args:
        owned: the partitions that members own now and have not revoked yet; no partition twice.
        target: what they are to own; no partition twice.
        is_away: of each member, whether it is static and away (epoch -2): it keeps what it has.

    Returns:
        The steps, in the order of ``owned``, then the partitions that only ``target`` has.
    """
    codes, coded = np.unique(
        np.concatenate((owned.partitions, target.partitions)), return_inverse=True
    )
    of_held, of_target = coded[: len(owned.partitions)], coded[len(owned.partitions) :]
    holder, target_holder = np.full(len(codes), -1), np.full(len(codes), -1)
    holder[of_held], target_holder[of_target] = owned.members, target.members
    stays = target_holder[of_held] == owned.members
    goes = ~stays & ~is_away[owned.members]
    is_loser = np.zeros(len(is_away), dtype=bool)
    is_loser[owned.members[goes]] = True
    comes = holder[of_target] != target.members
    gainers, arriving = target.members[comes], of_target[comes]
    before = holder[arriving]
    is_free = before == -1
    # A static member that is away neither releases nor receives.
    stuck = is_away[gainers] | (~is_free & is_away[before])
    arrives = np.where(is_free, 1 + is_loser[gainers], MOST_ROUNDS)
    arrives[stuck] = NEVER
    changed_in = np.concatenate((goes.astype(np.int64), arrives))
    return Steps(
        np.concatenate((owned.members, gainers)),
        np.concatenate((owned.partitions, codes[arriving])),
        np.arange(len(changed_in)) < len(goes),
        changed_in,
        int(changed_in.max(initial=0)),
        np.where(is_away, NEVER, 1 + is_loser),
    )


def actions_in(steps: Steps, number: int) -> NDArray[np.str_]:
    """Return for every row of the steps what happens to it in a round.

    Returns:
        `retained`: the member has it before and after the round, `revoked`: it gives it up,
        `assigned`: it receives it, `withheld`: it is to receive it and has not yet; empty where it
        has given it up before.
    """
    is_now = (steps.changed_in == number) & (number > NEVER)
    is_later = (steps.changed_in > number) | (steps.changed_in == NEVER)
    action = np.where(is_now, np.where(steps.is_held, REVOKED, ASSIGNED), "").astype("<U8")
    action[is_later] = np.where(steps.is_held, RETAINED, WITHHELD)[is_later]
    action[~is_now & ~is_later & ~steps.is_held] = RETAINED
    return action


def action_numbers(actions: NDArray[np.str_]) -> Ints:
    """Return the places of actions in ``ACTIONS``."""
    numbers: Ints = np.argmax(actions[:, None] == np.array(ACTIONS), axis=1)
    return numbers
