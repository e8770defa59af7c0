"""The transaction markers of a segment, from the headers of batches that are read for their records."""

from __future__ import annotations

import numpy as np

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND
from kraftlog.messages.last_records import NO_MARKERS, Markers
from kraftlog.transactions.producer import ABORTED, COMMITTED


class MarkerStream:
    """Collects markers.

    Parameters
    ----------
    end_offset : int
        End offset of markers, exclusive.
    """

    def __init__(self, end_offset: int = NO_BOUND) -> None:
        self._end_offset = end_offset
        self._markers: list[Headers] = []

    def see(self, headers: Headers) -> None:
        """Add the markers among batches with verified checksums of control batches."""
        is_control = headers["attributes"] & CONTROL_BIT != 0
        if is_control.any():
            markers = headers[is_control]
            is_end = (markers["control_type"] == ABORTED) | (markers["control_type"] == COMMITTED)
            self._markers.append(markers[is_end & (markers["base_offset"] < self._end_offset)])

    def take(self) -> Markers:
        """Return the new markers, in log order."""
        if not self._markers:
            return NO_MARKERS
        markers: Headers = np.concatenate(self._markers) if len(self._markers) > 1 else self._markers[0]
        self._markers.clear()
        offsets, producer_ids = markers["base_offset"].astype(np.int64), markers["producer_id"].astype(np.int64)
        return Markers(offsets, producer_ids, markers["control_type"] == COMMITTED)
