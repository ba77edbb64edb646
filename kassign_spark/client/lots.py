"""Answers by lot: drawn several times, and what all of them have in common."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from kassign_spark.client.group_state import (
    DRAWN,
    ClaimedIds,
    Draws,
    GroupState,
    Outcome,
    are_disputed,
    withholding,
)
from kassign_spark.client_libraries import FRANZ_GO
from kassign_spark.display import plural

SEED = 0
"""Of the draws: the same state gets the same answer each time."""
_ENOUGH_DRAWS = 8
"""Answers that are drawn where they differ; for a certain one all have to be the same."""


class NotModelled(Exception):  # noqa: N818 - the library has an answer
    """How the library goes on is not modelled."""


def count_draws(partition_count: int) -> int:
    """Return how many answers are drawn and compared for a group of this many partitions."""
    return min(max(100_000 // max(partition_count, 1), 8), 64)


def are_alike(state: GroupState) -> bool:
    """Return whether members subscribe to the same topics, of those that exist."""
    existing = {*state.topics}
    first = existing.intersection(state.subscriptions[0])
    return all(existing.intersection(topics) == first for topics in state.subscriptions)


def compare_draws(
    reason: str,
    state: GroupState,
    claims: ClaimedIds,
    answers: Iterable[tuple[list[list[int]], dict[int, int]]],
) -> Outcome:
    """Compare the answers that can be drawn; one is enough if all are the same.

    If members subscribe alike, each one's size and the number of partitions that stay are the same
    in all answers. Otherwise franz-go gives the same sizes, but not always to the same members.
    Where several members claim a partition, the sizes alone are certain, and not whose they are.

    Args:
        reason: where the lot comes in.
        state: the group.
        claims: its claims.
        answers: one at least: partitions by member, and what is withheld of them.

    Returns:
        the answer, if there is only one; otherwise `drawn`, and what is certain all the same.
    """
    drawn: list[list[list[int]]] = []
    first: Outcome | None = None
    is_drawn = False
    sizes: list[int] = []
    kept_count = 0
    for assigned, moving in answers:
        if first is None:
            sizes, kept_count = [*map(len, assigned)], _kept_count(claims, assigned)
        outcome = withholding(assigned, moving, None, claims.layout)
        drawn.append(assigned)
        first = first or outcome
        is_drawn = is_drawn or [*map(set, assigned)] != [*map(set, first.assigned)]
        if is_drawn and len(drawn) >= _ENOUGH_DRAWS:
            break
    assert first is not None, "there is an answer at least"
    if not is_drawn:
        return first
    nothing: list[list[int]] = [[] for _ in sizes]
    draws = Draws(drawn)
    certain = [reason]
    is_alike = are_alike(state)
    if is_alike or state.client == FRANZ_GO:
        # Which of several claimants counts is drawn, and with it what stays.
        is_disputed = are_disputed(claims)
        of_members = sizes if is_alike and not is_disputed else None
        draws = Draws(drawn, of_members, sorted(sizes), None if is_disputed else kept_count)
        least, most = min(sizes), max(sizes)
        certain.append(
            f"members get {least} to {most} partitions in the end in any case"
            if of_members is None
            else "how many partitions each member gets in the end is certain"
        )
    if draws.kept_count:
        stays = "stays" if kept_count == 1 else "stay"
        certain.append(f"{plural(kept_count, 'owned partition')} {stays} in any case")
    return Outcome(DRAWN, "; ".join(certain), nothing, {}, claims.layout, draws=draws)


def may_be_drawn(
    outcome: Outcome,
    state: GroupState,
    claims: ClaimedIds,
    assigned: Sequence[Collection[tuple[str, int]]],
) -> bool:
    """Return whether members may have got these partitions, topic and number, by lot.

    That is certain of an answer that was drawn. Any other one has to give out partitions as it is
    possible at all, and to agree in what is certain.
    """
    layout, draws = claims.layout, outcome.draws
    counts = dict(zip(layout.topics, layout.counts, strict=True))
    if any(
        number >= counts.get(topic, 0) or topic not in subscription
        for of_member, subscription in zip(assigned, state.subscriptions, strict=True)
        for topic, number in of_member
    ):
        return False
    first_id = dict(zip(layout.topics, layout.starts, strict=False))
    seen = [[first_id[topic] + number for topic, number in of_member] for of_member in assigned]
    if [*map(set, seen)] in ([*map(set, answer)] for answer in draws.answers):
        return True
    everything = [*chain.from_iterable(seen)]
    withholds = state.assignor == "cooperative-sticky"
    if len({*everything}) < len(everything) or not (
        withholds or len(everything) == sum(layout.counts)
    ):
        return False
    sizes = [*map(len, seen)]
    if withholds:
        is_size = draws.sizes is None or all(map(int.__le__, sizes, draws.sizes))
    else:
        is_size = draws.sizes in (None, sizes) and draws.sorted_sizes in (None, sorted(sizes))
    return is_size and draws.kept_count in (None, _kept_count(claims, seen))


def _kept_count(claims: ClaimedIds, assigned: Sequence[Sequence[int]]) -> int:
    pairs = zip(claims.by_member, assigned, strict=True)
    return sum(len({*own} & {*partitions}) for own, partitions in pairs)
