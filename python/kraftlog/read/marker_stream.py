"""The transaction markers of a segment, from its headers alone and only as far as they are wanted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE
from kraftlog.codec.headers import CONTROL_TYPES, Headers
from kraftlog.codec.options import NO_BOUND
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_headers
from kraftlog.transactions.producer import ABORTED, COMMITTED


class MarkerStream:
    """Hands out markers in the order of the log, beside someone who reads the records.

    A marker whose checksum does not match says nothing that can be believed. What else is wrong with the segment is
    for the one who reads its records to say.

    Parameters
    ----------
    segment : Segment
    end_offset : int
        Markers from here on do not count.
    """

    def __init__(self, segment: Segment, end_offset: int = NO_BOUND) -> None:
        self._headers: Iterator[Headers] = segment_headers(segment, [], check_control=True)
        self._end_offset = end_offset
        self._next: Headers | None = next(self._headers, None)

    def through(self, offset: int) -> pa.RecordBatch:
        """Return those up to an offset that were not returned yet: ``offset``, ``producer_id`` and ``control_type``."""
        parts: list[Headers] = []
        while self._next is not None:
            later = np.flatnonzero(self._next["base_offset"] > offset)
            if len(later):
                parts.append(self._next[: later[0]])
                self._next = self._next[later[0] :]
                break
            parts.append(self._next)
            self._next = next(self._headers, None)
        return self._markers(parts)

    def rest(self) -> pa.RecordBatch:
        """Return those that were not returned yet."""
        return self.through(NO_BOUND)

    def _markers(self, parts: list[Headers]) -> pa.RecordBatch:
        found = [part[self._are_markers(part)] for part in parts]
        headers = np.concatenate(found) if found else np.empty(0, HEADER_DTYPE)
        names = np.where(headers["control_type"] == COMMITTED, CONTROL_TYPES[COMMITTED], CONTROL_TYPES[ABORTED])
        return pa.record_batch(
            {
                "offset": pa.array(headers["base_offset"].copy(), pa.int64()),
                "producer_id": pa.array(headers["producer_id"].copy(), pa.int64()),
                "control_type": pa.array(names, pa.string()),
            }
        )

    def _are_markers(self, headers: Headers) -> npt.NDArray[np.bool_]:
        is_end = (headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED)
        is_sound = (headers["attributes"] & CONTROL_BIT != 0) & (headers["crc_ok"] != 0)
        return np.asarray(is_end & is_sound & (headers["base_offset"] < self._end_offset))
