r"""Patterns of java.util.regex that may not end, matched in linear time instead.

java.util.regex tries one way after the other: what repeats a group, or repeats often, can keep it
busy for years. Which whole names match does not hang on the engine, as long as the pattern is a
regular one; so such patterns go to RE2 (``re2j``), with the look-aheads that they begin with one by
one. Those that RE2 does not take, or reads otherwise, are not resolved.

All other patterns take at most some hundred million steps a name: a name has at most
``LONGEST_NAME`` characters, and the pattern repeats no group and at most ``_REPEATS`` times.
"""

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.inputs import re2j
from kassign_spark.limits import PATTERN_CHARACTERS
from kassign_spark.spark.spark_versions import try_reflect

LONGEST_NAME = 249
"""Characters of a topic's name (``org.apache.kafka.common.internals.Topic``)."""
UNENDING = (
    "matching it may take without end: it repeats what repeats or chooses in a way that needs "
    "backtracking; write it without look-arounds, references and possessive repetitions, or list "
    "the topics"
)

_LONG = 1_000
_MOST_BRACKETS = 200
"""Java reads brackets within brackets by recursion."""
_REPEATED_GROUP = r"\)[*+{]"
_REPEAT = r"[*+{]|(?<!\()\?"
_GROUP = r"\((?!\?)|\(\?:"
_IRREGULAR = r"\(\?(?:[=!>]|<[=!])|\\[1-9k]|[*+?}]\+|&&"
"""Finds what RE2 has not: look-arounds, references, possessive repetitions, meets of classes."""
_REPEATS, _IRREGULAR_REPEATS = 2, 4
_CLASS = re.compile(r"\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_BEGIN = re.compile(r"\^?(\(\?[imsU]+\))?\^?")


def may_not_end(pattern: str) -> bool:
    """Return whether java.util.regex may need too many steps for the pattern."""
    weight = len(re.findall(_REPEAT, pattern))
    weight += len(re.findall(_GROUP, pattern)) if "|" in pattern else 0
    most = _IRREGULAR_REPEATS if re.search(_IRREGULAR, pattern) else _REPEATS
    is_long = len(pattern) > _LONG
    return is_long or weight > most or re.search(_REPEATED_GROUP, pattern) is not None


def may_not_end_in_sql(pattern: str) -> str:
    """Return ``may_not_end`` of a column, in SQL; null where it is null."""
    groups = f"if(contains({pattern}, '|'), regexp_count({pattern}, r'{_GROUP}'), 0)"
    most = f"if(rlike({pattern}, r'{_IRREGULAR}'), {_IRREGULAR_REPEATS}, {_REPEATS})"
    return (
        f"(length({pattern}) > {_LONG} or rlike({pattern}, r'{_REPEATED_GROUP}') "
        f"or regexp_count({pattern}, r'{_REPEAT}') + {groups} > {most})"
    )


def is_compiled(pattern: str) -> str:
    """Return in SQL whether Java accepts a pattern; one it may fail to read is refused."""
    brackets = rf"regexp_count({pattern}, r'\(') <= {_MOST_BRACKETS}"
    fits = f"length({pattern}) between 1 and {PATTERN_CHARACTERS} and {brackets}"
    return f"if({fits}, {compile_pattern(pattern)} is not null, false)"


def compile_pattern(pattern: str) -> str:
    """Return the pattern itself, in SQL, or null where Java refuses it."""
    return try_reflect("java.util.regex.Pattern", "compile", pattern)


def match_each(patterns: pa.Array, names: pa.Array) -> pa.Array:
    """Call ``matching`` for each pattern and its names: array<string>; null: no answer."""
    rows = []
    for pattern, of_cluster in zip(patterns.to_pylist(), names, strict=True):
        names_of_cluster = of_cluster.values if of_cluster.is_valid else pa.array([], pa.string())
        matched = matching(pattern, names_of_cluster)
        rows.append(None if matched is None else matched.to_pylist())
    return pa.array(rows, pa.list_(pa.string()))


def matching(pattern: str, names: pa.StringArray) -> pa.StringArray | None:
    """Find the names that a pattern matches as a whole; None where RE2 cannot decide."""
    parts = _regular_parts(pattern)
    if parts is None:
        return None
    for is_positive, regex in parts:
        matches = re2j.matching(regex, names)
        names = (
            matches if is_positive else names.filter(pc.invert(pc.is_in(names, value_set=matches)))
        )
    return names


def _regular_parts(pattern: str) -> list[tuple[bool, str]] | None:
    """Cut a pattern into regexes that a name must or must not match; None: it has no such form."""
    begin = _BEGIN.match(pattern)
    assert begin is not None, "all of it may be empty"
    flags, position = begin[1] or "", begin.end()
    parts: list[tuple[bool, str]] = []
    while pattern.startswith(("(?=", "(?!"), position):
        end = _closing(pattern, position)
        if end is None:
            return None
        regex = f"{flags}(?:{pattern[position + 3 : end]})(?s:.*)"
        parts.append((pattern[position + 2] == "=", regex))
        position = end + 1
    rest = pattern[position:]
    if parts and any(char == "|" and not depth for _, char, depth in _structure(rest)):
        return None  # the look-aheads are of the first choice alone
    parts.append((True, f"{flags}(?:{rest})"))
    is_regular = all(
        re2j.problem(regex) is None and not re.search(re2j.READ_OTHERWISE, regex)
        for _, regex in parts
    )
    return parts if is_regular else None


def _closing(pattern: str, position: int) -> int | None:
    """Return the position of the bracket that closes the one at a position."""
    within = ((position + i, char, depth) for i, char, depth in _structure(pattern[position:]))
    return next((i for i, char, depth in within if char == ")" and not depth), None)


def _structure(pattern: str) -> Iterator[tuple[int, str, int]]:
    """Return the place and the depth of each bracket and bar that is no literal."""
    position = depth = 0
    while position < len(pattern):
        char = pattern[position]
        if pattern.startswith(r"\Q", position):
            end = pattern.find(r"\E", position)
            position = len(pattern) if end < 0 else end
        elif char == "[":
            position += 2 if pattern.startswith("^", position + 1) else 1
            closed = _CLASS.match(pattern, position)
            position = len(pattern) if closed is None else closed.end() - 1
        elif char in "()|":
            depth -= char == ")"
            yield position, char, depth
            depth += char == "("
        position += 2 if char == "\\" else 1
