"""What is certain of an answer by lot: what all the answers that can be drawn have in common."""

from collections.abc import Iterable

from kassign_spark.client.group_state import DRAWN, OK, ClaimedIds, Outcome
from kassign_spark.display import plural

SEED = 0
"""Of the draws: the same state gets the same answer each time."""


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
    first: tuple[list[list[int]], dict[int, int]] | None = None
    sizes: set[tuple[int, ...]] = set()
    kept_counts: set[int] = set()
    is_drawn = False
    owned = [set(partitions) for partitions in claims.by_member]
    for assigned, moving in answers:
        first = first or (assigned, moving)
        is_drawn = is_drawn or [*map(set, assigned)] != [*map(set, first[0])]
        sizes.add(tuple(map(len, assigned)))
        kept_counts.add(sum(map(len, map(set.intersection, owned, assigned))))
    assert first is not None, "there is an answer at least"
    if not is_drawn:
        assigned, moving = first
        for partition, member in moving.items():
            assigned[member].remove(partition)
        return Outcome(OK, None, assigned, moving, claims.layout)
    parts = [reason, _sizes_say(sizes), _kept_says(kept_counts)]
    detail = "; ".join(filter(None, parts))
    return Outcome(DRAWN, detail, [[] for _ in owned], {}, claims.layout)


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
