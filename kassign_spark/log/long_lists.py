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
    position = int(cursors.position[row])
    starts: list[int] = []
    try:
        while len(starts) < count and position <= end:
            starts.append(position)
            position = _past(data, position, end, shape)
    except (IndexError, too_short):  # the element that is read last says what is wrong
        pass
    return starts


def ends_well(cursors: Cursors, starts: Ints) -> tuple[bool, int]:
    """Return whether elements lie one behind the other; and how many are fine."""
    broken = np.flatnonzero(cursors.wrong != FINE)
    fine = int(broken[0]) if len(broken) else len(starts)
    last = min(fine, len(starts) - 1)
    return bool((cursors.position[:last] == starts[1 : last + 1]).all()), fine


def _past(data: memoryview, position: int, end: int, shape: Shape) -> int:
    fields, has_tags = shape
    for field in fields:
        if isinstance(field, int):
            position += field
            continue
        width, element = field
        if width:
            (length,) = _NUMBER[width].unpack_from(data, position)
            position += width
        else:
            length, position = _varint(data, position)
            length -= 1
        if isinstance(element, int):
            position += element * max(length, 0)
        else:
            for _ in range(min(length, end - position)):
                position = _past(data, position, end, element)
    if has_tags:
        count, position = _varint(data, position)
        for _ in range(min(count, end - position)):
            _, position = _varint(data, position)
            size, position = _varint(data, position)
            position += size
    return position


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise IndexError("a number of more than five bytes")
