"""Headers of a log file, and the faults that are visible in headers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import (
    CHECK_ALL,
    CHECK_CONTROL,
    CHECK_LENGTH,
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    Scanner,
    header_at,
)
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault, error_from_fault, fault_from_native, input_error
from kraftlog.types import Buffer, InputFile

HEADERS_AT_ONCE = 1 << 16


class HeaderScan:
    """Walks over the batch headers of a buffer or file.

    Parameters
    ----------
    buffer : buffer or file
        A file, as ``Disk.open`` returns it, is read through a window.
    start, end : int
        Batches that start at bytes [start, end).
    check_crc : bool
        Verify the crc of every batch; a mismatch is a fault. Otherwise only the crc of batches that no header follows
        is verified.
    check_control : bool
        Verify the crc of control batches; ``crc_ok`` of their headers has the result.
    salvage : bool
        Search for batches after damage.

    Attributes
    ----------
    faults : list of Fault
        Complete at the end of the walk.
    torn_at : int
        Byte at which a torn tail starts; -1 when there is none.
    gave_up_at : int
        Byte of the fault after which nothing was read; -1 if there is none.
    salvaged_at : int
        Byte of the first batch found by a search; -1 if there is none.
    """

    def __init__(
        self,
        buffer: Buffer | InputFile,
        start: int = 0,
        end: int = NO_BOUND,
        *,
        check_crc: bool = False,
        check_control: bool = False,
        salvage: bool = False,
    ) -> None:
        check = CHECK_ALL if check_crc else CHECK_CONTROL if check_control else CHECK_LENGTH
        self._scanner = Scanner(buffer, start, end, check, salvage)
        self.faults: list[Fault] = []
        self.gave_up_at = -1
        self._next_offset = -1

    @property
    def size(self) -> int:
        """Bytes of the buffer or file."""
        return self._scanner.size

    @property
    def torn_at(self) -> int:
        """Byte at which a torn tail starts; -1 when there is none."""
        return self._scanner.torn_at

    @property
    def consumed(self) -> int:
        """End of the last complete batch of the walk, in bytes."""
        return self.torn_at if self.torn_at >= 0 else self._scanner.position

    @property
    def reached(self) -> tuple[int, int]:
        """End of the last complete batch, in bytes, and the offset after the last sound one; -1 before it."""
        return self.consumed, self._next_offset

    @property
    def salvaged_at(self) -> int:
        """Byte of the first batch found by a search; -1 if there is none."""
        return self._scanner.salvaged_at

    def headers(self, at_once: int = HEADERS_AT_ONCE, *, strict: bool = False) -> Iterator[Headers]:
        """Return the headers as structured arrays; a fault ends an array, and the walk continues after it.

        Raises
        ------
        InputError
            When the file cannot be read, after the preceding headers.
        RecordError
            At the first fault, with ``strict``.
        """
        more = True
        while more:
            headers, more, found = self._scanner.run(at_once)
            sound = np.flatnonzero(headers["crc_ok"] != 0)
            if len(sound):
                self._next_offset = int(last_offsets(headers[sound[-1:]])[0]) + 1
            if isinstance(found, BaseException):
                if len(headers):
                    yield headers
                raise input_error(found, self._scanner.position)
            if found is not None:
                fault = fault_from_native(found)
                if strict:
                    raise error_from_fault(fault)
                self.faults.append(fault)
                if found[-1]:
                    self.gave_up_at = found[5]
            if len(headers):
                yield headers


def sound_batches_behind(buffer: Buffer | InputFile, position: int) -> int:
    """Return the number of batches with a matching crc that a search finds after an unreadable position."""
    scan = HeaderScan(buffer, position, check_crc=True, salvage=True)
    return sum(int((headers["crc_ok"] == 1).sum()) for headers in scan.headers())


def within(headers: Headers, options: ReadOptions) -> Headers:
    """Return the headers of batches that may contain records within the bounds."""
    keep = np.ones(len(headers), bool)
    if options.bounds_offsets:
        last = np.maximum(last_offsets(headers), headers["base_offset"])
        wrapper = (headers["magic"] < 2) & (headers["attributes"] & COMPRESSION_MASK != 0)  # its offset is its last
        keep &= (last >= options.start_offset) & (wrapper | (headers["base_offset"] < options.end_offset))
    if options.bounds_timestamps:
        stamped = headers["max_timestamp"] != -1
        keep &= ~stamped | (headers["max_timestamp"] >= options.start_timestamp)
        same_for_all = headers["attributes"] & TIMESTAMP_TYPE_BIT != 0  # only then the least timestamp is known
        keep &= ~(stamped & same_for_all) | (headers["max_timestamp"] < options.end_timestamp)
    return headers if keep.all() else headers[keep]


def ends(headers: Headers) -> npt.NDArray[np.int64]:
    """Return the end of each batch, in bytes."""
    return np.asarray(headers["position"] + headers["batch_length"] + LOG_OVERHEAD)


def batch_with(file: Buffer | InputFile, position: int, offset: int) -> Headers | None:
    """Return the header at a position if that batch contains the offset."""
    headers = header_at(file, position)
    holds = len(headers) == 1 and headers["base_offset"][0] <= offset <= last_offsets(headers)[0]
    return headers if holds else None


def indexed_batch(
    file: Buffer | InputFile, offsets: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], at: int
) -> Headers | None:
    """Return the header to which an ``.index`` entry points, if the entry is valid for that batch.

    An entry has the last offset of its batch. An entry written by a follower before KAFKA-806 has the last offset of
    all batches of a fetch, and points to the first of them, which begins after the offset of the previous entry. Other
    bytes may look the same; therefore the checksum is verified. Batches before it have smaller offsets.

    Parameters
    ----------
    file : buffer or file
    offsets, positions : numpy.ndarray
        Offsets and positions of all entries.
    at : int
        Number of the entry.
    """
    position, offset = int(positions[at]), int(offsets[at])
    found = batch_with(file, position, offset)
    if found is not None:
        return found
    before = int(offsets[at - 1]) if at else -1
    headers = header_at(file, position)
    if len(headers) != 1 or not before < headers["base_offset"][0] <= offset:
        return None
    checked = next(HeaderScan(file, position, position + 1, check_crc=True).headers(), None)
    return checked if checked is not None and checked["crc_ok"][0] == 1 else None
