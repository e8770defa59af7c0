"""Transaction markers of the metadata log, found in one walk over its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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


class MarkerBlock(NamedTuple):
    """Batches one behind the other, and their markers.

    Attributes
    ----------
    headers : numpy.ndarray
        Of all batches that can be read; ``rows`` says how many markers each one has.
    offsets : numpy.ndarray of int64
    values : tuple of bytes
        Of the markers.
    cut : numpy.ndarray of bool
        The batches of which some records at the end cannot be read.
    position : int
        The byte behind them.
    """

    headers: Headers
    offsets: npt.NDArray[np.int64]
    values: tuple[bytes, ...]
    cut: npt.NDArray[np.bool_]
    position: int

    @property
    def api_keys(self) -> npt.NDArray[np.int64]:
        """Of the markers."""
        return np.array([api_key(value) for value in self.values], np.int64)


def scan_markers(
    buffer: Buffer | InputFile, faults: list[Fault], *, start: int = 0, end: int = NO_BOUND, strict: bool = False
) -> Iterator[MarkerBlock]:
    """Find the markers in the batches that start in [start, end) of a buffer, and compare the crc of each batch."""
    options = ReadOptions(strict=strict, batch_bytes=BYTES_AT_ONCE)
    decoder = RecordDecoder(buffer, start, end, _COLUMNS, options, only_markers=True)
    seen = len(faults)
    for rows in decoder.chunks(faults):
        values = rows.binary("value", _COLUMNS.field("value").type, rows.chunk.rows)
        cut_at = [fault.position or 0 for fault in faults[seen:] if fault.record_index is not None]
        seen = len(faults)
        cut = np.isin(rows.headers["position"], cut_at)
        torn_at = decoder.torn_at
        position = decoder.position if torn_at < 0 else torn_at
        yield MarkerBlock(rows.headers, rows.numbers("offset"), tuple(values.to_pylist()), cut, position)


def api_key(marker: bytes) -> int:
    """Return the api key of a marker record; its varints may be longer than needed."""
    frame_size = next(at for at, byte in enumerate(marker) if byte < 0x80) + 1
    return marker[frame_size] & 0x7F  # keys of markers fit one group of seven bits
