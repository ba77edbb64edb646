"""One line for people that explains a verdict."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kassign_spark.assignors.weighted.answer import (
    BOUNDED_BY_COUNTS,
    BOUNDED_BY_MOVES,
    BOUNDED_BY_PARTITION,
    BOUNDED_BY_SUBSCRIPTIONS,
    NOT_FOUND,
    NOTHING_TO_DO,
    WeightedPlan,
)
from kassign_spark.assignors.weighted.options import Bounds
from kassign_spark.display import first_names

_NAMED = 3


class Names(NamedTuple):
    """The names behind the numbers of an answer."""

    partition: Callable[[int], str]
    member: Callable[[int], str]
    topics: Callable[[Sequence[int]], list[str]]
    weight: Callable[[int], float]
    capacity: Callable[[Sequence[int]], float]
    class_weight: Callable[[Sequence[int]], float]


def number(value: float) -> str:
    """Return a number as people read it: thousands apart, four figures of small ones."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def times(skew: float) -> str:
    """Return a load by the fair load of its group as people read it."""
    return f"{skew:.3g}x"


def sentence(answer: WeightedPlan, names: Names, bounds: Bounds) -> str:
    """Describe the plan, its bound and the obstacle."""
    if answer.by_count:
        return f"planned by counts, as nothing has weight; {_moves(answer)}"
    load = f"max {number(answer.max_load)} ({times(answer.skew)} the fair load)"
    floor = f"no plan below {number(answer.load_bound)}"
    parts = [f"{load}, {floor}", _moves(answer), _reason(answer, names, bounds)]
    return "; ".join(filter(None, parts))


def _moves(answer: WeightedPlan) -> str:
    moves = _count_moves(answer.moves)
    if answer.verdict == NOTHING_TO_DO:
        return f"{moves}, the present is the plan"
    if answer.by_count or answer.verdict in (BOUNDED_BY_MOVES, NOT_FOUND, BOUNDED_BY_COUNTS):
        return moves
    if answer.moves_bound > answer.moves:
        return moves
    return f"{moves}, no plan under this limit moves fewer than {answer.moves_bound}"


def _count_moves(moves: int) -> str:
    return f"{moves} move{'' if moves == 1 else 's'}"


def _reason(answer: WeightedPlan, names: Names, bounds: Bounds) -> str:
    proof = answer.proof
    if answer.verdict == BOUNDED_BY_PARTITION and proof.partition >= 0:
        weight = names.weight(proof.partition)
        remedy = f"; a capacity of {number(weight / answer.limit)} would do" if answer.limit else ""
        return f"partition {names.partition(proof.partition)} alone weighs {number(weight)}{remedy}"
    if answer.verdict == BOUNDED_BY_PARTITION:
        topics = first_names(names.topics(proof.classes), _NAMED)
        return (
            f"the {proof.heaviest} heaviest partitions of {topics} "
            f"find no place under the limit in {_members(proof.members, names)}"
        )
    if answer.verdict == BOUNDED_BY_SUBSCRIPTIONS:
        return (
            f"only {_members(proof.members, names)} may take "
            f"{first_names(names.topics(proof.classes), _NAMED)}, which weigh "
            f"{number(names.class_weight(proof.classes))} for a capacity of "
            f"{number(names.capacity(proof.members))}"
        )
    if answer.verdict == BOUNDED_BY_MOVES:
        bound = "max_moves" if bounds.max_moves is not None else "max_moved_weight"
        return (
            f"{bound} stops it: {_count_moves(answer.moves_needed)}, of "
            f"{number(answer.weight_needed)} together, "
            f"{'meets' if answer.moves_needed == 1 else 'meet'} the limit"
        )
    if answer.verdict == BOUNDED_BY_COUNTS:
        if 0 <= (bounds.max_count_difference or 0) < answer.least_difference:
            return f"subscriptions allow no difference of counts below {answer.least_difference}"
        return "with this difference of counts no plan within the limit was found"
    if answer.verdict == NOT_FOUND:
        return f"the limit {number(answer.limit)} was neither reached nor refuted"
    return ""


def _members(members: Sequence[int], names: Names) -> str:
    return first_names([names.member(m) for m in members], _NAMED)
