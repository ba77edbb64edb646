"""The door of the kernels: groups in, plans and curves out, whatever their size."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kassign_spark.assignors.weighted.answer import NOTHING_TO_DO, WITHIN_LIMIT, Answer
from kassign_spark.assignors.weighted.counts import best_counts, count_difference, deal_by_count
from kassign_spark.assignors.weighted.large import plan_large
from kassign_spark.assignors.weighted.problem import Group, Longs
from kassign_spark.assignors.weighted.small import Wanted, plan_small

LARGE = 400
"""Groups of more partitions go by bulk steps."""
_ELEMENTS = 4_000_000
_MOST_TOGETHER = 500


def plan_groups(groups: Sequence[Group], wanted: Wanted) -> list[Answer]:
    """Plan groups, each on its own; those of similar size side by side.

    Partitions without weight are free to stay, and new ones go by count, unless counts are bounded.
    """
    with_counts = wanted.bounds.max_count_difference is not None
    has_weight = [bool((group.weight > 0).any()) for group in groups]
    answers = {i: _by_count(groups[i]) for i, weighs in enumerate(has_weight) if not weighs}
    at = [i for i, weighs in enumerate(has_weight) if weighs]
    rest = [groups[i] if with_counts else weighted_part(groups[i]) for i in at]
    for rows in batches(rest):
        some = [rest[row] for row in rows]
        large = len(some[0].weight) > LARGE
        found = [plan_large(some[0], wanted)] if large else plan_small(some, wanted)
        for row, answer in zip(rows, found, strict=True):
            answers[at[row]] = with_idle(groups[at[row]], answer)
    return [answers[i] for i in range(len(groups))]


def batches(groups: Sequence[Group]) -> Iterator[list[int]]:
    """Put groups of similar size together; a large one stays alone."""
    sizes = [(len(g.weight), len(g.capacity), len(g.eligible)) for g in groups]
    order = sorted(range(len(groups)), key=lambda i: (*_rounded(*sizes[i][:2]), i))
    batch: list[int] = []
    most = (0, 0, 0)
    for i in order:
        wider = tuple(max(a, b) for a, b in zip(most, sizes[i], strict=True))
        elements = (len(batch) + 1) * wider[0] * max(wider[0], wider[1], wider[2])
        similar = not batch or _rounded(*sizes[i][:2]) == _rounded(*sizes[batch[0]][:2])
        full = elements > _ELEMENTS or len(batch) >= _MOST_TOGETHER
        if batch and (not similar or full or sizes[i][0] > LARGE):
            yield batch
            batch, wider = [], sizes[i]
        batch.append(i)
        most = (wider[0], wider[1], wider[2])
    if batch:
        yield batch


def _rounded(partitions: int, members: int) -> tuple[int, int]:
    """Sizes that share a batch: partitions, which cost most, about a half apart."""
    return int(np.ceil(np.log(partitions + 1) * 2.5)), int(np.ceil(np.log(members + 1)))


def weighted_part(group: Group) -> Group:
    """The partitions that have weight, which come first."""
    return group.heaviest(int((group.weight > 0).sum()))


def with_idle(group: Group, answer: Answer) -> Answer:
    """Put the partitions without weight back: where they are, or by count."""
    done = len(answer.owner)
    if done == len(group.weight):
        return answer
    owner = np.concatenate([answer.owner, group.home[done:]])
    deal_idle(group, owner)
    verdict = answer.verdict
    if verdict == NOTHING_TO_DO and (group.home[done:] < 0).any():
        verdict = WITHIN_LIMIT
    difference = count_difference(group, owner)
    return replace(answer, owner=owner, verdict=verdict, count_difference=difference)


def deal_idle(group: Group, owner: Longs) -> None:
    """Give what nobody has, which weighs nothing, by count: fills in ``owner``."""
    free = np.flatnonzero(owner < 0)
    if len(free):
        # Of a group that was cut these may be bundles, all of about one size.
        unit = 1 if group.rest is None else int(group.rest.stands_for[free].max())
        count = group.counts(owner) // unit
        deal_by_count(group.class_, group.eligible, count, free, owner)


def _by_count(group: Group) -> Answer:
    """A group without weight: best balance of counts, then the fewest moves."""
    owner = best_counts(group)
    moves = int(group.away(owner).sum())
    nothing = not (owner != group.home).any()
    return Answer(
        owner=owner,
        verdict=NOTHING_TO_DO if nothing else WITHIN_LIMIT,
        is_proven=True,
        max_load=0.0,
        fair_load=0.0,
        load_bound=0.0,
        limit=0.0,
        best_load=0.0,
        moves=moves,
        moves_bound=moves,
        moved_weight=0.0,
        count_difference=count_difference(group, owner),
        by_count=True,
    )
