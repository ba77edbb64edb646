"""What is kept of a group, as bytes for the state of a stream."""

import struct

import pyarrow as pa

from kassign_spark.history.following import Kept
from kassign_spark.history.log_arrays import Before, Log

_HEAD = struct.Struct("<q")
_LENGTH = struct.Struct("<i")


def to_bytes(kept: Kept) -> bytes:
    """The offset that was told, and then each table as an Arrow stream, its length before it."""
    parts = [_HEAD.pack(kept.told)]
    for table in (*kept.log, kept.targets, *kept.before):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        written = sink.getvalue().to_pybytes()
        parts += [_LENGTH.pack(len(written)), written]
    return b"".join(parts)


def from_bytes(data: bytes) -> Kept:
    """Read what ``to_bytes`` has written."""
    (told,) = _HEAD.unpack_from(data)
    place, tables = _HEAD.size, []
    while place < len(data):
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        with pa.ipc.open_stream(pa.BufferReader(data[place : place + length])) as reader:
            tables.append(reader.read_all())
        place += length
    return Kept(Log(*tables[:4]), tables[4], Before(*tables[5:]), told)
