"""Transaction markers of the metadata log, found in one walk over its records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog import schema
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.types import Buffer, InputFile

BYTES_AT_ONCE = 16 << 20
_COLUMNS = schema.RECORDS.select(["offset", "value"])


def scan_markers(
    buffer: Buffer | InputFile, faults: list[Fault], *, start: int = 0, end: int = NO_BOUND, strict: bool = False
) -> Iterator[tuple[Headers, npt.NDArray[np.int64], tuple[bytes, ...]]]:
    """Find the markers in the batches that start in [start, end) of a buffer.

    Returns
    -------
    iterator of tuple
        Headers of all batches of a stretch, whose ``rows`` say how many markers each one has; offsets of the markers;
        their values.
    """
    options = ReadOptions(strict=strict, batch_bytes=BYTES_AT_ONCE)
    decoder = RecordDecoder(buffer, start, end, _COLUMNS, options, only_markers=True)
    for rows in decoder.chunks(faults):
        values = rows.binary("value", _COLUMNS.field("value").type, rows.chunk.rows)
        yield rows.headers, rows.numbers("offset"), tuple(values.to_pylist())


def api_key(marker: bytes) -> int:
    """Return the api key of a marker record; its varints may be longer than needed."""
    frame_size = next(at for at, byte in enumerate(marker) if byte < 0x80) + 1
    return marker[frame_size] & 0x7F  # keys of markers fit one group of seven bits
