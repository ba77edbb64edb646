"""The rounds that follow an event where members of a group have different protocols."""

from dataclasses import replace

import numpy as np

from kassign_spark.assignors.in_tasks import part_of
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.plans.rounds import (
    REVOKED,
    Followed,
    Steps,
    follow,
    held_claims,
    steps_of_claims,
)


def follow_mixed(
    batch: Batch,
    claims: Claims,
    assignor: Longs,
    is_eager: Flags,
    *,
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
) -> Followed:
    """Follow groups in which eager members give up everything before each round.

    The assignor is a cooperative one, as cooperative members list no other. It sees what the
    cooperative members own; of the eager ones it knows nothing (``ConsumerCoordinator`` clears
    their owned partitions). A round follows while cooperative members have to give something up.

    The arguments are those of ``rounds.follow``, but for ``is_eager``, which is of each member.
    """
    claims = claims.where(claims.member >= 0)
    # Which members, slots and groups of the batch that was given those of the round are.
    members, slots, groups = (
        np.arange(len(rows)) for rows in (batch.member_group, batch.slot_group, batch.group)
    )
    parts: list[Steps] = []
    owner = np.full(len(slots), -1)
    rounds = np.zeros(len(groups), np.int64)
    settles = np.zeros(len(groups), bool)
    for number in range(1, max_rounds + 1):
        gives_all = is_eager[claims.member]
        found = follow(
            batch,
            claims.where(~gives_all),
            assignor,
            np.ones(len(groups), bool),
            racks_before_moves=racks_before_moves,
            max_rounds=1,
        )
        parts += [
            replace(step, round=np.full(len(step.round), number), member=members[step.member])
            for step in (found.steps, steps_of_claims(claims.where(gives_all), number, REVOKED))
        ]
        has = np.flatnonzero(found.owner >= 0)
        owner[slots] = -1
        owner[slots[has]] = members[found.owner[has]]
        rounds[groups] = number
        settles[groups] = found.settles
        revoked = found.steps.action == REVOKED
        revoked &= batch.subscribes(found.steps.member, found.steps.topic)
        again = np.zeros(len(groups), bool)
        again[batch.member_group[found.steps.member[revoked]]] = True
        if not again.any():
            break
        held = has[again[batch.slot_group[has]]]
        claims = held_claims(batch, held, found.owner[held])
        batch, of_members, of_slots = batch.part(again)
        claims = part_of(claims, again, of_members, of_slots)
        # All have come through the round, and so are of one generation.
        batch = replace(batch, generation=np.full(len(of_members), number))
        members, slots, groups = members[of_members], slots[of_slots], groups[again]
        is_eager, assignor = is_eager[of_members], assignor[again]
    return Followed(Steps.join(parts), rounds, owner, settles)
