"""The batches of a partition's segments, found by offset and returned as they are, or redacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import ReadableFile
from kraftlog.disk.entries import FileState
from kraftlog.disk.file_bytes import FileBytes
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.waiting import about_to_wait, must_not_wait
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import as_listed, located
from kraftlog.server.places import Asked, Checked, Place, Places
from kraftlog.server.readable_log import Records
from kraftlog.types import InputFile

if TYPE_CHECKING:
    from kraftlog.server.redacted_batches import RedactedBatches

_LEAST_SENT = 1 << 16  # bytes from which on a system call costs less than a copy
_MOST_SENT = 1 << 21  # what a socket does not take is read in the event loop
_LEAST_BYTES = 1 << 12  # of a read, so that it has a header


class Batches(NamedTuple):
    """Batches, the last offset in them, and what checks the batches behind them, if that is worth it."""

    records: Records
    last_offset: int = -1
    check_next: Callable[[], None] | None = None


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

    def read(self, offset: int, max_bytes: int, end_offset: int) -> Batches:
        """Return batches from the one with an offset on.

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
            return Batches(b"")
        asked = Asked(offset, max_bytes, end_offset)
        if must_not_wait():
            unchanged = self._unchanged(asked)
            if unchanged is not None:
                return unchanged
        place = self._places.of(offset)
        if place is None:
            number = max(int(np.searchsorted(self._base_offsets, offset, side="right")) - 1, 0)
            place = Place(number, self._first_position if number == 0 else -1)
        for number in range(place.number, len(self._segments)):
            at = place if number == place.number else Place(number, 0)
            found = self._batches_of(at, asked)
            if found is not None:
                return found
        return Batches(b"")

    def _unchanged(self, asked: Asked) -> Batches | None:
        """Return batches that were checked before, if their file has not changed since."""
        checked = self._places.checked(asked)
        if checked is None:
            return None
        with as_listed(self._segments[checked.number]) as file:
            if not isinstance(file, LocalFile) or file.state() != checked.state:
                return None
            file.check_cached(checked.start, checked.end)
            return self._sent(file, asked, checked)

    def _batches_of(self, place: Place, asked: Asked) -> Batches | None:
        """Return batches of a segment; None if it has none from the offset on."""
        number, position, _ = place
        segment = self._segments[number]
        with as_listed(segment) as file:
            if position < 0 or _is_replaced(file, place):
                position, _ = seek(segment, file, ReadOptions(start_offset=asked.offset))
            size = max(asked.max_bytes, _LEAST_BYTES)
            while position < file.size:
                piece = _Piece.read(file, Place(number, position), size)
                if not len(piece.headers):
                    position, end = self._next_batch(segment, file, position)
                    size = max(size, end - position)  # it may be larger than what was read
                    continue
                wanted = piece.wanted(asked)
                if len(wanted):
                    if self._redacts is None:
                        return self._take(file, asked, piece, wanted)
                    redacted = self._redacted(self._redacts, piece, wanted, asked.max_bytes)
                    if redacted is not None:
                        return redacted
                    position += int(ends(wanted[:1])[0])
                    continue
                if int(piece.headers["base_offset"][-1]) >= asked.end_offset:
                    return Batches(b"")
                position += int(ends(piece.headers[-1:])[0])
        return None

    def _take(self, file: ReadableFile, asked: Asked, piece: _Piece, wanted: Headers) -> Batches:
        """Return batches that were read; a connection of this thread sends many bytes from their file."""
        checked = self._note_checked(asked, piece, wanted)
        if checked is not None and isinstance(file, LocalFile) and must_not_wait():
            return self._sent(file, asked, checked)
        start, end = int(wanted["position"][0]), int(ends(wanted[-1:])[0])
        return Batches(
            piece.data[start:end], self._taken(piece.place, wanted) if checked is None else checked.last_offset
        )

    def _sent(self, file: LocalFile, asked: Asked, checked: Checked) -> Batches:
        records = FileBytes(file, checked.start, checked.end)
        following = asked._replace(offset=checked.last_offset + 1)
        is_known = following.offset >= asked.end_offset or self._places.checked(following) is not None
        return Batches(records, checked.last_offset, None if is_known else partial(self._check, following))

    def _check(self, asked: Asked) -> None:
        """Check what a reader in order asks next, so that it need not wait for this; it meets all that is wrong."""
        place = self._places.of(asked.offset)
        if place is not None and place.position >= self._segments[place.number].size:
            place = Place(place.number + 1, 0) if place.number + 1 < len(self._segments) else None
        if place is None or asked.max_bytes > _MOST_SENT:
            return
        with suppress(OSError), as_listed(self._segments[place.number]) as file:
            if _is_replaced(file, place):
                return
            piece = _Piece.read(file, place, asked.max_bytes)
            self._note_checked(asked, piece, piece.wanted(asked))

    def _note_checked(self, asked: Asked, piece: _Piece, wanted: Headers) -> Checked | None:
        """Note batches that are intact, and return them, if there are enough bytes to send them from the file."""
        if not len(wanted) or piece.state is None:
            return None
        start, end = int(wanted["position"][0]), int(ends(wanted[-1:])[0])
        if not _LEAST_SENT <= end - start <= _MOST_SENT:
            return None
        at = piece.place.position
        checked = Checked(piece.place.number, at + start, at + end, self._taken(piece.place, wanted), piece.state)
        self._places.note_checked(asked, checked)
        return checked

    def _taken(self, place: Place, headers: Headers) -> int:
        """Remember where the next fetch begins, and return the last offset of batches."""
        last_offset = int(last_offsets(headers[-1:])[0])
        self._places.note(last_offset + 1, place._replace(position=place.position + int(ends(headers[-1:])[0])))
        return last_offset

    def _redacted(self, redacts: RedactedBatches, piece: _Piece, headers: Headers, max_bytes: int) -> Batches | None:
        """Return redacted batches up to one that is refused; None if the first one is left out.

        Raises
        ------
        RecordError
            When the first batch is refused, unless such batches are left out.
        """
        about_to_wait()
        data, place = piece.data, piece.place
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
        return Batches(b"".join(batches), self._taken(place, headers[: len(batches)]))

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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes of a segment.

    Attributes
    ----------
    place : Place
        Where they begin.
    data : memoryview
    headers : Headers
        Of the whole and intact batches before the first other one.
    state : FileState or None
        Of a local file, before they were read.
    """

    place: Place
    data: memoryview
    headers: Headers
    state: FileState | None

    @classmethod
    def read(cls, file: ReadableFile, place: Place, size: int) -> _Piece:
        """Read a number of bytes, or those up to the end.

        Raises
        ------
        OSError
            When they cannot be read.
        """
        state = file.state() if isinstance(file, LocalFile) else None
        data = np.empty(min(size, file.size - place.position), np.uint8).data  # a bytearray would be zeroed
        file.read_into(data, place.position)
        inode = None if state is None else state.inode
        return cls(place._replace(inode=inode), data, _sound(data), state)

    def wanted(self, asked: Asked) -> Headers:
        """Return the headers of the batches that are asked for."""
        is_wanted = (last_offsets(self.headers) >= asked.offset) & (self.headers["base_offset"] < asked.end_offset)
        return self.headers if is_wanted.all() else self.headers[is_wanted]


def _is_replaced(file: ReadableFile, place: Place) -> bool:
    """Whether a place is one of another file, which a cleaner has replaced by this one."""
    return place.inode is not None and isinstance(file, LocalFile) and file.state().inode != place.inode


def _sound(data: memoryview) -> Headers:
    """Return the headers of the whole and intact batches before the first other one."""
    headers = next(HeaderScan(data, check_crc=True).headers(), None)
    if headers is None:
        return np.empty(0, HEADER_DTYPE)
    is_sound = (headers["crc_ok"] == 1) & (ends(headers) <= len(data))
    return headers if is_sound.all() else headers[: int(np.argmin(is_sound))]
