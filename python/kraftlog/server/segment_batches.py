"""The batches of a partition's segments, found by offset and returned as they are, or redacted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import ReadableFile
from kraftlog.disk.file_bytes import FileBytes
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.waiting import about_to_wait, must_not_wait
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import as_listed, located
from kraftlog.server.readable_log import Records
from kraftlog.types import InputFile

if TYPE_CHECKING:
    from kraftlog.server.redacted_batches import RedactedBatches

_MOST_PLACES = 1024  # of next offsets that are remembered for each partition
_LEAST_SENT = 1 << 16  # bytes from which on a system call costs less than a copy
_LEAST_BYTES = 1 << 12  # of a read, so that it has a header


class Place(NamedTuple):
    """A batch: the number of its segment, and its byte there."""

    number: int
    position: int


class Places:
    """Where the next fetches begin: the batch after each of the last fetches; threads may share it."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._lock = Lock()

    def of(self, offset: int) -> Place | None:
        """Return the batch that begins with an offset, if it is known."""
        with self._lock:
            return self._places.get(offset)

    def note(self, offset: int, place: Place) -> None:
        """Note the batch that begins with an offset."""
        with self._lock:
            self._places[offset] = place
            if len(self._places) > _MOST_PLACES:
                self._places.popitem(last=False)


class SegmentBatches:
    """The batches of segments of a partition; its methods may run in several threads at once.

    Parameters
    ----------
    segments : sequence of Segment
        In order.
    leaves_out_damaged : bool
        Whether damaged batches are left out; otherwise a fetch that begins with one fails.
    first_position : int
        The byte of the first segment from which it is read, if index files need not be asked.
    redacts : RedactedBatches, optional
        Without it, batches are returned as they are. Batches that it refuses count as damaged.
    places : Places, optional
        Those of an earlier object with the same segments, the last of which may have grown since.

    Attributes
    ----------
    faults : list of Fault
        Damage that was met.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        leaves_out_damaged: bool = False,
        first_position: int = -1,
        redacts: RedactedBatches | None = None,
        places: Places | None = None,
    ) -> None:
        self._segments = segments
        self._redacts = redacts
        self._leaves_out_damaged = leaves_out_damaged
        self._first_position = first_position
        self._base_offsets = np.array([segment.base_offset or 0 for segment in segments])
        self._places = Places() if places is None else places
        self._lock = Lock()
        self.faults: list[Fault] = []

    def read(self, offset: int, max_bytes: int, end_offset: int) -> tuple[Records, int]:
        """Return batches from the one with an offset on, and the last offset in them.

        Parameters
        ----------
        offset : int
        max_bytes : int
            At least one batch is returned, whatever its size.
        end_offset : int
            Batches from there on are not returned.

        Raises
        ------
        RecordError
            When the first batch is damaged, unless such batches are left out.
        OSError
            When a segment cannot be read.
        """
        if offset >= end_offset:
            return b"", -1
        place = self._places.of(offset)
        if place is None:
            number = max(int(np.searchsorted(self._base_offsets, offset, side="right")) - 1, 0)
            place = Place(number, self._first_position if number == 0 else -1)
        for number in range(place.number, len(self._segments)):
            position = place.position if number == place.number else 0
            found = self._batches_of(number, position, offset, max_bytes, end_offset)
            if found is not None:
                return found
        return b"", -1

    def _batches_of(
        self, number: int, position: int, offset: int, max_bytes: int, end_offset: int
    ) -> tuple[Records, int] | None:
        """Return batches of a segment; None if it has none from the offset on."""
        segment = self._segments[number]
        with as_listed(segment) as file:
            if position < 0:
                position, _ = seek(segment, file, ReadOptions(start_offset=offset))
            size = max(max_bytes, _LEAST_BYTES)
            while position < file.size:
                data = np.empty(min(size, file.size - position), np.uint8).data  # a bytearray would be zeroed
                file.read_into(data, position)
                headers = _sound(data)
                if not len(headers):
                    position, end = self._next_batch(segment, file, position)
                    size = max(size, end - position)  # it may be larger than what was read
                    continue
                is_wanted = (last_offsets(headers) >= offset) & (headers["base_offset"] < end_offset)
                if is_wanted.any():
                    place, found = Place(number, position), headers if is_wanted.all() else headers[is_wanted]
                    if self._redacts is None:
                        return self._take(file, data, place, found)
                    redacted = self._redacted(self._redacts, data, place, found, max_bytes)
                    if redacted is not None:
                        return redacted
                    position += int(ends(found[:1])[0])
                    continue
                if int(headers["base_offset"][-1]) >= end_offset:
                    return b"", -1
                position += int(ends(headers[-1:])[0])
        return None

    def _take(self, file: ReadableFile, data: memoryview, place: Place, headers: Headers) -> tuple[Records, int]:
        """Return batches that were read; a connection of this thread sends many bytes from their file."""
        start, end = int(headers["position"][0]), int(ends(headers[-1:])[0])
        taken: Records = data[start:end]
        if end - start >= _LEAST_SENT and isinstance(file, LocalFile) and must_not_wait():
            taken = FileBytes(file, place.position + start, place.position + end)
        return taken, self._taken(place, headers, end)

    def _taken(self, place: Place, headers: Headers, end: int) -> int:
        """Remember where the next fetch begins, and return the last offset of batches."""
        last_offset = int(last_offsets(headers[-1:])[0])
        self._places.note(last_offset + 1, Place(place.number, place.position + end))
        return last_offset

    def _redacted(
        self, redacts: RedactedBatches, data: memoryview, place: Place, headers: Headers, max_bytes: int
    ) -> tuple[bytes, int] | None:
        """Return redacted batches up to one that is refused; None if the first one is left out.

        Raises
        ------
        RecordError
            When the first batch is refused, unless such batches are left out.
        """
        about_to_wait()
        batches, size = list[bytes](), 0
        for header, end in zip(headers, ends(headers).tolist(), strict=True):
            start = int(header["position"])
            made = redacts.of(bytes(data[start:end]), header)
            if isinstance(made, Fault):
                if not batches:
                    fault = replace(made, position=place.position + start, size_in_bytes=end - start)
                    self._note(located(self._segments[place.number], fault))
                    return None
                break
            if batches and size + len(made) > max_bytes:  # it may be larger than what it redacts
                break
            batches.append(made)
            size += len(made)
        taken = headers[: len(batches)]
        return b"".join(batches), self._taken(place, taken, int(ends(taken[-1:])[0]))

    def _note(self, fault: Fault) -> None:
        """Note damage; raise it, unless damaged batches are left out."""
        with self._lock:
            if fault not in self.faults:
                self.faults.append(fault)
        if not self._leaves_out_damaged:
            raise error_from_fault(fault)

    def _next_batch(self, segment: Segment, file: InputFile, position: int) -> tuple[int, int]:
        """Return the first and last byte of the next intact batch, or the end of the file twice; note damage before it.

        Raises
        ------
        RecordError
            For damage, unless damaged batches are left out.
        """
        about_to_wait()
        scan = HeaderScan(file, position, check_crc=True, salvage=True)
        intact = (headers for headers in scan.headers(1) if len(headers) and headers["crc_ok"][0])
        found = next(intact, None)
        if scan.faults:
            self._note(located(segment, scan.faults[0]))
        return (file.size, file.size) if found is None else (int(found["position"][0]), int(ends(found)[0]))


def _sound(data: memoryview) -> Headers:
    """Return the headers of the whole and intact batches before the first other one."""
    headers = next(HeaderScan(data, check_crc=True).headers(), None)
    if headers is None:
        return np.empty(0, HEADER_DTYPE)
    is_sound = (headers["crc_ok"] == 1) & (ends(headers) <= len(data))
    return headers if is_sound.all() else headers[: int(np.argmin(is_sound))]
