"""Find where the elements of a long list begin, byte by byte, so that all can be read together.

To read one element of every list one step is fast where lists are many; of one list of 100,000 it
is 100,000 steps of one element.
"""

from struct import Struct as Packed
from struct import error as too_short
from typing import Any

import numpy as np

from kassign_spark.log.cursor import FINE, Cursors, Ints

_NUMBER = {2: Packed(">h"), 4: Packed(">i")}
Shape = tuple[tuple[Any, ...], bool]
"""Fields in order, and whether tagged fields follow. A field is the bytes of a fixed one, or the
bytes of its length (0: a varint) with what an element is: the bytes of it, or its shape."""


def starts_of(cursors: Cursors, row: int, count: int, shape: Shape) -> list[int]:
    """Return the position of each element of a row's list, as far as they lie in the message."""
    data, end = cursors.source.data.data, int(cursors.end[row])
    at = int(cursors.position[row])
    starts: list[int] = []
    try:
        while len(starts) < count and at <= end:
            starts.append(at)
            at = _past(data, at, end, shape)
    except (IndexError, too_short):  # the element that is read last says what is wrong
        pass
    return starts


def ends_well(cursors: Cursors, starts: Ints) -> tuple[bool, int]:
    """Return whether elements lie one behind the other; and how many are fine."""
    broken = np.flatnonzero(cursors.wrong != FINE)
    fine = int(broken[0]) if len(broken) else len(starts)
    last = min(fine, len(starts) - 1)
    return bool((cursors.position[:last] == starts[1 : last + 1]).all()), fine


def _past(data: memoryview, at: int, end: int, shape: Shape) -> int:
    fields, has_tags = shape
    for field in fields:
        if isinstance(field, int):
            at += field
            continue
        width, element = field
        if width:
            (length,) = _NUMBER[width].unpack_from(data, at)
            at += width
        else:
            length, at = _varint(data, at)
            length -= 1
        if isinstance(element, int):
            at += element * max(length, 0)
        else:
            for _ in range(min(length, end - at)):
                at = _past(data, at, end, element)
    if has_tags:
        count, at = _varint(data, at)
        for _ in range(min(count, end - at)):
            _, at = _varint(data, at)
            size, at = _varint(data, at)
            at += size
    return at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise IndexError("a number of more than five bytes")
