"""What is certain of an answer by lot: what all the answers that can be drawn have in common."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain

from kassign_spark.client.group_state import DRAWN, OK, ClaimedIds, GroupState, Outcome
from kassign_spark.display import plural

SEED = 0
"""Of the draws: the same state gets the same answer each time."""

Plan = list[set[int]]
"""Ids of partitions by member."""


class NotModelled(Exception):  # noqa: N818 - the library has an answer
    """How the library goes on is not modelled."""


def count_draws(partition_count: int) -> int:
    """Return how many answers are drawn, and compared, for a group of so many partitions."""
    return min(max(100_000 // max(partition_count, 1), 8), 64)


def compare_draws(
    reason: str, claims: ClaimedIds, answers: Iterable[tuple[list[list[int]], dict[int, int]]]
) -> Outcome:
    """Compare the answers that can be drawn; one is enough if all are the same.

    Args:
        reason: where the lot comes in.
        claims: of the group.
        answers: one at least: partitions by member, and what is withheld of them.

    Returns:
        the answer, if there is only one; otherwise `drawn`, and what is certain all the same.
    """
    draws: list[list[list[int]]] = []
    sizes: set[tuple[int, ...]] = set()
    kept_counts: set[int] = set()
    is_drawn = False
    owned = [set(partitions) for partitions in claims.by_member]
    first: Outcome | None = None
    for assigned, moving in answers:
        sizes.add(tuple(map(len, assigned)))
        kept_counts.add(_kept_count(owned, [*map(set, assigned)]))
        for partition, member in moving.items():
            assigned[member].remove(partition)
        draws.append(assigned)
        first = first or Outcome(OK, None, assigned, moving, claims.layout)
        is_drawn = is_drawn or [*map(set, assigned)] != [*map(set, first.assigned)]
    assert first is not None, "there is an answer at least"
    if not is_drawn:
        return first
    detail = "; ".join(filter(None, [reason, _sizes_say(sizes), _kept_says(kept_counts)]))
    nothing: list[list[int]] = [[] for _ in owned]
    return Outcome(DRAWN, detail, nothing, {}, claims.layout, draws=draws)


def may_be_drawn(
    outcome: Outcome,
    state: GroupState,
    claims: ClaimedIds,
    assigned: Sequence[Collection[tuple[str, int]]],
) -> bool:
    """Return whether members may have got these partitions, topic and number, by lot.

    That is certain of an answer that was drawn. Any other one has to agree in what all that were
    drawn have in common: partitions, sizes, how many stay, and who has which. Where none could be
    drawn, members get partitions of their own topics, each of which one member gets.
    """
    layout = claims.layout
    sizes = dict(zip(layout.topics, layout.counts, strict=True))
    if any(
        number >= sizes.get(topic, 0) or topic not in subscription
        for of_member, subscription in zip(assigned, state.subscriptions, strict=True)
        for topic, number in of_member
    ):
        return False
    first_id = dict(zip(layout.topics, layout.starts, strict=False))
    seen = [{first_id[topic] + number for topic, number in of_member} for of_member in assigned]
    draws = [[*map(set, draw)] for draw in outcome.draws]
    if seen in draws:
        return True
    if not draws:
        is_whole = state.assignor == "cooperative-sticky" or len(_everything(seen)) == sum(
            layout.counts
        )
        return is_whole and len({*_everything(seen)}) == len(_everything(seen))
    owned = [set(partitions) for partitions in claims.by_member]
    common = [set.intersection(*of_member) for of_member in zip(*draws, strict=True)]
    return all(map(set.issubset, common, seen)) and all(
        measure(seen) == measure(draws[0])
        for measure in (_everything, _sizes, _sorted_sizes, partial(_kept_count, owned))
        if all(measure(draw) == measure(draws[0]) for draw in draws)
    )


def _everything(plan: Plan) -> list[int]:
    return sorted(chain.from_iterable(plan))


def _sizes(plan: Plan) -> list[int]:
    return [*map(len, plan)]


def _sorted_sizes(plan: Plan) -> list[int]:
    return sorted(map(len, plan))


def _kept_count(owned: Plan, plan: Plan) -> int:
    return sum(map(len, map(set.intersection, owned, plan)))


def _sizes_say(sizes: set[tuple[int, ...]]) -> str:
    if len(sizes) == 1:
        return "how many partitions each member gets in the end is certain"
    if len({tuple(sorted(each)) for each in sizes}) == 1:
        counts = min(sizes)
        return f"members get {min(counts)} to {max(counts)} partitions in the end in any case"
    return ""


def _kept_says(counts: set[int]) -> str:
    (count, *others) = counts
    if others or not count:
        return ""
    return f"{plural(count, 'owned partition')} {'stays' if count == 1 else 'stay'} in any case"
