"""The caller's options: the limit of a member's load and the bounds that come before it."""

import math
from dataclasses import dataclass

from kassign_spark.errors import SettingsError

DEFAULT_TOLERANCE = 0.05
KICKS = {"fast": 0, "default": 24, "thorough": 150}
"""Number of times that the search disturbs its best plan, by ``effort``."""
COSTS = ("moves", "weight")


@dataclass(frozen=True)
class Limit:
    """The greatest relative load that a member may have, stated in one of three ways.

    A member's relative load is the sum of its weights by its capacity. A group falls into parts
    that are each held to a level of their own: a partition heavier than anybody's fair share has a
    member for itself, and members that only some topics can reach lie lower than the others.

    Attributes:
        tolerance: how much more than the best load that was found for its part, as a share of it.
            At 0 the loads are made as even as can be before moves are saved. 0.05 where nothing is
            said.
        max_skew: how many times the fair level of its part, which is known without search; >= 1.
        max_load: a relative load; with capacities in the unit of the weights it is utilisation.

    Raises:
        SettingsError: more than one of them is given, or one is no such number.
    """

    tolerance: float | None = None
    max_skew: float | None = None
    max_load: float | None = None

    def __post_init__(self) -> None:
        names = [n for n in ("tolerance", "max_skew", "max_load") if getattr(self, n) is not None]
        if len(names) > 1:
            raise SettingsError(f"limit: give one of tolerance, max_skew, max_load, not {names}")
        if not names:
            object.__setattr__(self, "tolerance", DEFAULT_TOLERANCE)
        for name, least in (("tolerance", 0.0), ("max_skew", 1.0), ("max_load", 0.0)):
            _check_number(f"limit, {name}", getattr(self, name), least)


@dataclass(frozen=True)
class Bounds:
    """Promises that come before the limit of the load, strongest first; None: no bound.

    Attributes:
        max_moves: the most partitions that leave a valid owner.
        max_moved_weight: they weigh at most so much together.
        max_count_difference: the greatest difference between members' numbers of partitions.

    Raises:
        SettingsError: a bound is no such number.
    """

    max_moves: int | None = None
    max_moved_weight: float | None = None
    max_count_difference: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_moves", "max_count_difference"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise SettingsError(f"bounds, {name}: {value!r} is not a whole number >= 0")
            _check_number(f"bounds, {name}", value, 0)
        _check_number("bounds, max_moved_weight", self.max_moved_weight, 0)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the known ones.

    Raises:
        SettingsError: it is not.
    """
    if value not in choices:
        raise SettingsError(f"{name} {value!r} is not known; known are {', '.join(choices)}")


def _check_number(name: str, value: object, least: float) -> None:
    if value is None:
        return
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not math.isfinite(value) or value < least:  # type: ignore[arg-type, operator]
        raise SettingsError(f"{name}: {value!r} is not a number >= {least:g}")
