"""Spans of bytes as Arrow arrays: texts, bytes, topic ids."""

import numpy as np
import pyarrow as pa

from kassign_spark.log.cursor import Bools, Bytes, Span
from kassign_spark.log.value_columns import Column, Items, numbers, spans

_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8
)
_ID_BYTES, _ID_TEXT = 16, 22


def binary(source: Bytes, span: Span) -> pa.Array:
    """Return the bytes of spans in the order of their bytes; null where the length is -1.

    The spans and the gaps between them are one array over the bytes as they are; taking every
    second of its values copies each span at once.
    """
    is_present = span.length >= 0
    end = np.maximum.accumulate(np.where(is_present, span.start + span.length, 0))
    before = np.concatenate([np.zeros(1, dtype=np.int64), end[:-1]]) if len(end) else end
    offsets = np.zeros(2 * len(end) + 1, dtype=np.int32)
    offsets[1::2] = np.where(is_present, span.start, before)
    offsets[2::2] = end
    valid = np.ones(2 * len(end), dtype=np.bool_)
    valid[1::2] = is_present
    buffers = [
        pa.py_buffer(np.packbits(valid, bitorder="little")),
        pa.py_buffer(offsets),
        pa.py_buffer(source.data),
    ]
    gaps_and_spans = pa.Array.from_buffers(pa.binary(), 2 * len(end), buffers)
    return gaps_and_spans.take(pa.array(np.arange(1, 2 * len(end), 2)))


def texts(source: Bytes, span: Span) -> pa.Array:
    """Return the texts of spans, as ``binary``; bytes that are not UTF-8 become what Java reads."""
    raw = binary(source, span)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        encoded = raw.dictionary_encode()
        decoded = [value.decode("utf-8", "replace") for value in encoded.dictionary.to_pylist()]
        return pa.array(decoded, pa.string()).take(encoded.indices)


def lists_of_texts(source: Bytes, lists: Items, is_present: Bools | None = None) -> pa.Array:
    """Return lists of texts; null where not ``there`` (such a list must be empty)."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lists.counts)])
    values = texts(source, spans(lists[""]))
    mask = None if is_present is None else pa.array(~is_present)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


def ids(source: Bytes, span: Span) -> pa.Array:
    """Return ids as Kafka writes them, base64 for URLs; null where the id is zero or not there."""
    is_present = span.length == _ID_BYTES
    if not is_present.any():
        return pa.nulls(len(is_present), pa.string())
    start = np.where(is_present, span.start, 0)
    # A zero byte fills the last group of six bits, and goes with it.
    raw = np.zeros((len(start), _ID_BYTES + 2), dtype=np.uint32)
    place = np.minimum(start[:, None] + np.arange(_ID_BYTES), len(source.data) - 1)
    raw[:, :_ID_BYTES] = source.data[place] * is_present[:, None]
    triples = raw.reshape(-1, 6, 3)
    joined = triples[:, :, 0] << 16 | triples[:, :, 1] << 8 | triples[:, :, 2]
    sixes = np.stack([joined >> shift & 63 for shift in (18, 12, 6, 0)], axis=2)
    letters = _ALPHABET[sixes.reshape(-1, 24)[:, :_ID_TEXT]]
    offsets = np.arange(len(start) + 1, dtype=np.int32) * _ID_TEXT
    is_id = is_present & raw.any(axis=1)
    buffers = [
        pa.py_buffer(np.packbits(is_id, bitorder="little")),
        pa.py_buffer(offsets),
        pa.py_buffer(np.ascontiguousarray(letters)),
    ]
    return pa.Array.from_buffers(pa.string(), len(start), buffers)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        array = column.combine_chunks()
        return array if isinstance(array, pa.Array) else pa.array([], column.type)
    return column


def not_negative(values: Column) -> pa.Array:
    """Return numbers of 32 bits, of which a negative one means none."""
    plain = numbers(values)
    return pa.array(plain, mask=plain < 0).cast(pa.int32())
