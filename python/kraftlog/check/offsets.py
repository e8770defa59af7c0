"""Offsets rise from batch to batch and from segment to segment; compaction leaves gaps between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.offset_order import going_back
from kraftlog.layout.segment import Segment

_NO_OFFSET = np.iinfo(np.int64).min


class OffsetCheck:
    """Goes through the headers of one partition."""

    def __init__(self) -> None:
        self._least = _NO_OFFSET  # minimum for the next batch
        self._largest = _NO_OFFSET  # last offset of the segment
        self._first_in_file: int | None = None

    def begin(self, segment: Segment) -> None:
        """Start the next segment."""
        self._first_in_file = None if segment.state else segment.base_offset
        if self._largest != _NO_OFFSET:
            self._least = self._largest + 1
        self._largest = _NO_OFFSET

    def add(self, headers: Headers) -> Iterator[Fault]:
        """Process the next headers and return those whose offsets are out of order."""
        base, last = headers["base_offset"], last_offsets(headers)
        yield from going_back(headers, self._least)
        for at in np.flatnonzero(last < base):
            delta = last[at] - base[at]
            yield _fault(headers[at], "bad_last_offset_delta", f"last_offset_delta {delta} is negative")
        if self._first_in_file is not None and base[0] < self._first_in_file and headers["magic"][0] >= 2:
            what = f"base_offset {base[0]} is less than the file name's {self._first_in_file}"
            yield _fault(headers[0], "offset_goes_back", what)
        self._first_in_file = None
        self._least = int(last[-1]) + 1
        self._largest = max(self._largest, int(last.max()))


def _fault(header: np.void, error: str, what: str) -> Fault:
    position = int(header["position"])
    return Fault(error, f"batch at byte {position}: {what}", position, base_offset=int(header["base_offset"]))
