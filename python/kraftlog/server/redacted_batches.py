"""Record batches as a redaction lets them leave a server."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from threading import Lock

import numpy as np

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.compression import decompressor
from kraftlog.codec.control import KEY_SIZE
from kraftlog.codec.filtered_batch import Fields, rewritten_batch
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.tables.redaction import Redaction

NOT_REDACTED = "not_redacted"
_MAGIC = 2
_MARKER_VALUE_SIZE = 6  # version and coordinator epoch


class RedactedBatches:
    """Redacts record batches; its methods may run in several threads at once.

    Keys, values and headers are other ones, and the rest of a batch stays: offsets, timestamps, producer, sequence,
    compression. Markers of transactions are the same bytes. A batch that is not understood as a whole is refused, since
    any of its bytes may be of what is redacted.

    Parameters
    ----------
    redaction : Redaction
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = copy(redaction)  # which counts what is no JSON, and is not for several threads
        self._decompressor = decompressor(ReadOptions.max_decompressed_bytes)
        self._lock = Lock()

    def of(self, batch: bytes, header: np.void) -> bytes | Fault:
        """Return a batch as it may leave, or why it may not; a fault without what was read.

        Parameters
        ----------
        batch : bytes
            With a verified checksum.
        header : numpy.void
            As of a header scan.
        """
        if header["magic"] != _MAGIC:
            return _refused(header, f"expected magic {_MAGIC}, found magic {header['magic']}")
        change = _checked_markers if header["attributes"] & CONTROL_BIT else self._redaction.records
        try:
            with self._lock:
                made = rewritten_batch(batch, _of_count(int(header["records_count"]), change), self._decompressor)
        except ValueError:  # its message may show what was read
            return _refused(header, "its records cannot be decoded")
        return made

    def notes(self) -> list[str]:
        """Return notes on what was redacted."""
        return self._redaction.notes()


def _of_count(count: int, change: Callable[[list[Fields]], list[Fields]]) -> Callable[[list[Fields]], list[Fields]]:
    def changed(records: list[Fields]) -> list[Fields]:
        if len(records) != count:
            raise ValueError(f"expected {count} records, found {len(records)}")
        return change(records)

    return changed


def _checked_markers(records: list[Fields]) -> list[Fields]:
    """Return control records that are markers of transactions, which hold nothing of a producer's."""
    for key, value, headers in records:
        if key is None or value is None or (len(key), len(value)) != (KEY_SIZE, _MARKER_VALUE_SIZE) or headers:
            raise ValueError("a control record that is not the marker of a transaction")
    return records


def _refused(header: np.void, reason: str) -> Fault:
    message = f"batch at offset {header['base_offset']}: not redacted, and therefore not served: {reason}"
    return Fault(NOT_REDACTED, message, base_offset=int(header["base_offset"]))
