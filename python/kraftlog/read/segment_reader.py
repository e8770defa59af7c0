"""The bytes of a segment, for all its readers.

A segment is read through a window with ``pread``, never mapped, so that truncation during the read is an error and not
a signal. A reader sees the bytes that the file had when it was listed, and ignores data appended later. If some of the
bytes are gone, there is one fault ``unreadable_file``, or an exception with ``strict``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kraftlog.codec.header_scan import HEADERS_AT_ONCE, HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.errors import CorruptRecordError, Fault, InputError, RecordError
from kraftlog.layout.replica_directory import replica_of
from kraftlog.layout.segment import Segment


class _Nothing:
    """Replaces a file that cannot be opened."""

    path = ""
    size = 0

    def read(self, start: int, end: int) -> bytes:
        """Return nothing."""
        return b""

    def read_into(self, target: memoryview, start: int) -> None:
        """Read nothing."""

    def close(self) -> None:
        """Close nothing."""


@contextmanager
def as_listed(segment: Segment) -> Iterator[ReadableFile]:
    """Open a log file with its size at the listing; data appended later is ignored.

    Raises
    ------
    OSError
        When it cannot be opened or, within the block, read.
    """
    file = disk().open(segment.path, segment.size)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def segment_file(
    segment: Segment, faults: list[Fault], *, strict: bool, opened: ReadableFile | None = None
) -> Iterator[ReadableFile]:
    """Open a log file for ``RecordDecoder``, ``HeaderScan``, ``Lookahead`` and ``seek``; the block's end closes it.

    Parameters
    ----------
    segment : Segment
    faults : list of Fault
        Receives one fault ``unreadable_file`` if the file cannot be opened, or a read within the block raises OSError;
        this ends the block.
    strict : bool
        Raise instead.
    opened : ReadableFile, optional
        The file, if it is open.

    Returns
    -------
    context manager of ReadableFile
        Its ``size`` is that of the listing; 0 if the file cannot be opened.

    Raises
    ------
    CorruptRecordError
        With ``strict``.
    """
    try:
        file = disk().open(segment.path, segment.size) if opened is None else opened
    except OSError as error:
        _note_unreadable(segment, 0, error, faults, strict=strict)
        yield _Nothing()
        return
    try:
        yield file
    except OSError as error:
        position = error.position if isinstance(error, InputError) else 0
        _note_unreadable(segment, position, error, faults, strict=strict)
    finally:
        file.close()


def segment_headers(
    segment: Segment,
    faults: list[Fault],
    *,
    strict: bool = False,
    start: int = 0,
    end: int = NO_BOUND,
    check_crc: bool = False,
    check_control: bool = False,
) -> Iterator[Headers]:
    """Return the batch headers of a segment as structured arrays.

    Parameters
    ----------
    segment : Segment
    faults : list of Fault
        Receives faults in headers, with their file, and one ``unreadable_file`` if the file cannot be opened or read to
        its end.
    strict : bool
        Raise at the first fault instead.
    start, end : int
        Batches that start at bytes [start, end).
    check_crc, check_control : bool
        Verify the crc of all batches, or only of control batches.

    Raises
    ------
    RecordError
        With ``strict``.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.segment_reader import segment_headers
    >>> segment = kraftlog.open("tests/golden/codecs/log/codec-lz4-0").found.segments[0]
    >>> sum(len(headers) for headers in segment_headers(segment, []))
    15
    """
    with segment_file(segment, faults, strict=strict) as file:
        scan = HeaderScan(file, start, end, check_crc=check_crc, check_control=check_control)
        yield from scanned(segment, scan, faults, strict=strict)


def scanned(
    segment: Segment,
    scan: HeaderScan,
    faults: list[Fault],
    *,
    strict: bool = False,
    at_once: int = HEADERS_AT_ONCE,
) -> Iterator[Headers]:
    """Return the headers of a scan over a segment's file, with its faults located in the file."""
    try:
        yield from scan.headers(at_once, strict=strict)
    except RecordError as error:
        raise relocated(segment, error) from None
    finally:
        faults.extend(located(segment, fault) for fault in scan.faults)


def _note_unreadable(segment: Segment, position: int, error: OSError, faults: list[Fault], *, strict: bool) -> None:
    """Add the fault that a file cannot be read from a byte on, or raise CorruptRecordError with ``strict``."""
    size = max(segment.size - position, 0)
    fault = located(segment, Fault("unreadable_file", error.strerror or str(error), position or None, size))
    if strict:
        raise CorruptRecordError(fault.message, fault) from error
    faults.append(fault)


def located(segment: Segment, fault: Fault) -> Fault:
    """Add the file to a fault."""
    of = segment.topic, segment.partition, segment.file_base_offset
    return fault.located(segment.name, *of, replica_of(segment), segment.first_byte or 0)


def relocated(segment: Segment, error: RecordError) -> RecordError:
    """Add the file to an error."""
    if error.fault is None:
        return error
    fault = located(segment, error.fault)
    return type(error)(fault.message, fault)
