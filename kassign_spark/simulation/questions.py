"""Parse what-if questions as a person writes them: ``members: -3..+3``, ``partitions: x2``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kassign_spark.display import format_value, is_unicode
from kassign_spark.errors import InputError
from kassign_spark.limits import (
    MEMBERS_OF_A_GROUP,
    NEW_MEMBERS_OF_A_SWEEP,
    PARTITIONS_OF_A_TOPIC,
    VARIANTS_OF_A_SWEEP,
)


class Growth(NamedTuple):
    """The growth of a topic: to ``times`` its partitions, and ``more``."""

    times: int = 1
    more: int = 0


@dataclass(frozen=True)
class Sweep:
    """A what-if question: every number of members with every growth of the topics.

    Attributes:
        members: changes of the number of members.
        partitions: growths of the topics.
        cluster_id: only in this cluster; None: in all.
        group_id: only for this group; None: for all.
        topic: only this topic grows; None: all do.
        line: where it stands in a file, for messages.

    Raises:
        InputError: it asks for impossible counts or for too many variants.
    """

    members: Sequence[int] = (0,)
    partitions: Sequence[Growth] = (Growth(),)
    cluster_id: str | None = None
    group_id: str | None = None
    topic: str | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        if (variants := len(self.members) * len(self.partitions)) > VARIANTS_OF_A_SWEEP:
            raise InputError(f"sweep: {variants:,} variants; at most {VARIANTS_OF_A_SWEEP:,}")
        for change in self.members:
            if not -MEMBERS_OF_A_GROUP <= change <= NEW_MEMBERS_OF_A_SWEEP:
                raise InputError(
                    f"sweep: members {change:+}: at most {NEW_MEMBERS_OF_A_SWEEP:,} members come "
                    f"and {MEMBERS_OF_A_GROUP:,} go"
                )
        for times, more in self.partitions:
            if times < 1 or more < 0:
                raise InputError(f"sweep: partitions x{times} {more:+}: partitions only grow")
            if max(times, more) > PARTITIONS_OF_A_TOPIC:
                raise InputError(
                    f"sweep: partitions x{times} {more:+}: a topic has at most "
                    f"{PARTITIONS_OF_A_TOPIC:,} partitions"
                )


def parse_sweep(value: Any, *, line: int | None = None) -> Sweep:
    """Read a sweep as it is written: ``{"members": "-3..+3", "partitions": "x2"}``.

    ``members`` is a change, or several: ``-1, +2``, or a range ``-3..+3``; ``partitions`` a factor
    ``x2``, or more partitions, ``+4``, or several of them, or a range ``x1..x4``. Lists are taken
    as well. ``cluster_id``, ``group_id`` and ``topic`` narrow it down.

    Args:
        value: the mapping, as YAML or JSON gives it.
        line: where it stands in a file, for messages.

    Returns:
        The question, for ``sweep``.

    Raises:
        InputError: it cannot be read, asks for impossible counts or for too many variants.
    """
    names = ("members", "partitions", "cluster_id", "group_id", "topic")
    if not isinstance(value, Mapping):
        raise InputError(f"a sweep is a mapping of names to values, not {format_value(value)}")
    for name, text in value.items():
        if name not in names:
            raise InputError(f"sweep: unknown name {name!r}; known are {', '.join(names)}")
        if name in names[2:] and not (isinstance(text, str) and text and is_unicode(text)):
            raise InputError(f"sweep: {name} is {format_value(text)}; must be text")
    if "members" not in value and "partitions" not in value:
        raise InputError("sweep: needs members or partitions")
    members = [number for _, number in _numbers("members", value.get("members", "0"))]
    growths = [
        Growth(times=number) if is_factor else Growth(more=number)
        for is_factor, number in _numbers("partitions", value.get("partitions", "x1"))
    ]
    narrowed = {name: value.get(name) for name in names[2:]}
    return Sweep(tuple(members), tuple(growths), line=line, **narrowed)


def _numbers(name: str, value: Any) -> list[tuple[bool, int]]:
    """Read changes: whether each is a factor, and its number; each once, in order."""
    items = value if isinstance(value, list) else [value]
    if isinstance(value, str):
        items = value.split(",")
    numbers: list[tuple[bool, int]] = []
    for item in items:
        if not isinstance(item, str) and not (isinstance(item, int) and abs(item) < 2**63):
            raise InputError(
                f"sweep: {name} {format_value(item)} cannot be read; write {_example(name)}"
            )
        text = str(item).strip()
        ends = [_number(name, end, text) for end in re.split(r"\.\.", text)]
        (is_factor, first), (last_is_factor, last) = ends[0], ends[-1]
        if len(ends) > 2 or is_factor != last_is_factor or last < first:
            raise InputError(f"sweep: {name} {text!r} is not a range; write {_example(name)}")
        if last - first >= VARIANTS_OF_A_SWEEP:
            raise InputError(f"sweep: {name} {text!r}: at most {VARIANTS_OF_A_SWEEP:,} variants")
        numbers += [(is_factor, number) for number in range(first, last + 1)]
    return list(dict.fromkeys(numbers))


def _number(name: str, text: str, whole: str) -> tuple[bool, int]:
    match = re.fullmatch(r"([x\u00d7]?)([+-]?)([0-9]{1,19})", text.strip())
    if not match or (match[1] and (match[2] or name == "members")):
        raise InputError(f"sweep: {name} {whole!r} cannot be read; write {_example(name)}")
    number = int(match[2] + match[3])
    if name == "partitions" and number < (1 if match[1] else 0):
        raise InputError(f"sweep: partitions {whole!r}: partitions only grow")
    return bool(match[1]), number


def _example(name: str) -> str:
    return "-3..+3 or -1, +2" if name == "members" else "x2, x1..x4 or +6"
