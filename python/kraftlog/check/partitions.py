"""All checks of the segments of partitions, each segment in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kraftlog.check.decoded_headers import SOUND_HEADER, decoded_headers
from kraftlog.check.index_files import IndexCheck
from kraftlog.check.offsets import OffsetCheck
from kraftlog.check.producers import ProducerCheck
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.disk.in_order import in_order
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.index_files import PREALLOCATED, IndexColumns, read_index
from kraftlog.layout.segment import Segment
from kraftlog.metadata_log.faults import metadata_faults
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.ranges import Range, plan, relevant
from kraftlog.read.segment_end import MISSING_BATCHES, end_fault
from kraftlog.read.segment_reader import located, segment_file
from kraftlog.topics import COORDINATOR_TOPICS
from kraftlog.transactions.sequences import SequenceCheck

RANGE_BYTES = 16 << 20  # bytes of log per thread


def check_segments(
    segments: list[Segment],
    read: Pass,
    *,
    compares: bool = True,
    observe: Observer | None = None,
) -> Iterator[Fault]:
    """Read everything and return the faults, partition by partition, in the order of the files.

    The caller decides where faults go: they are not added to those of the pass.

    Parameters
    ----------
    segments : list of Segment
    read : Pass
        ``strict`` raises at the first batch or record that cannot be read. Records within bounds are decoded; with
        bounds transactions are those of the whole log, and ``compares`` has no effect. Notes are the positions of torn
        tails.
    compares : bool
        Whether offsets, sequences and the entries of ``.index`` and ``.timeindex`` are checked as well. Without it
        faults are only unreadable data, and signs that records are missing or wrongly visible.
    observe : callable, optional
        Called with each segment, the faults of its batches and records, and the headers of the sound batches around
        them, as they are read: at least once for each segment.
    """
    options = replace(read.options, include_deleted=True)
    read = read.with_options(options)
    is_whole = not (options.bounds_offsets or options.bounds_timestamps)
    for group in by_partition(segments):
        check = _PartitionCheck(group, compares=compares and is_whole, checks_producers=is_whole)
        for segment in group if is_whole else relevant(group, options):
            passes = _decoded(segment, read)
            yield from check.segment(segment, passes if observe is None else _observed(segment, passes, observe))
        if is_whole:
            yield from check.finish()
            yield from metadata_faults(group)
        else:  # index files and transactions are those of the whole log
            yield from transaction_faults(group)


def transaction_faults(segments: list[Segment]) -> Iterator[Fault]:
    """Return the faults of transactions and producers, for a reader that decodes the segments itself."""
    for group in by_partition(segments):
        check = _PartitionCheck(group, compares=False)
        for segment in group:
            yield from check.header_faults(segment)
        yield from check.finish()
        yield from metadata_faults(group)


def side_file_faults(segments: list[Segment]) -> Iterator[Fault]:
    """Return the differences between index files and snapshots, and the headers of the log.

    Index files of a segment with damaged batches are not compared, nor producers from there on.
    """
    for group in by_partition(segments):
        check = _PartitionCheck(group, compares=True)
        for segment in group:
            yield from check.header_faults(segment)
        yield from check.finish()


Observer = Callable[[Segment, list[Fault], Headers], None]
_Decoded = Iterator[tuple[list[Fault], Headers]]


def _observed(segment: Segment, passes: _Decoded, observe: Observer) -> _Decoded:
    for unread, headers in passes:
        observe(segment, unread, headers)
        yield unread, headers


def _decoded(segment: Segment, read: Pass) -> _Decoded:
    """Decode a segment; return faults, each time with the headers that follow them."""

    def whole(part: Range) -> list[tuple[list[Fault], Headers]]:
        return list(decoded_headers(part, read))

    if read.workers > 1:
        for passes in in_order(whole, plan([segment], read.options, RANGE_BYTES), read.workers, ahead=1):
            yield from passes
    else:
        for part in plan([segment], read.options, None):
            yield from decoded_headers(part, read)


class _PartitionCheck:
    """The checks of one partition: each processes the headers of its segments, in order."""

    def __init__(self, group: list[Segment], *, compares: bool, checks_producers: bool = True) -> None:
        self._last = group[-1]
        self._compares = compares
        self._offsets = OffsetCheck()
        self._sequences = SequenceCheck(compare_sequences=group[0].topic not in COORDINATOR_TOPICS)
        self._producers = ProducerCheck(group[0])
        is_log = not group[0].state and group[0].base_offset is not None and not is_metadata(group[0])
        self._checks_producers = checks_producers and is_log

    def segment(self, segment: Segment, passes: _Decoded) -> Iterator[Fault]:
        """Process the next segment."""
        files, faults = _index_files(segment, PREALLOCATED)
        index = IndexCheck(segment, files)
        self._offsets.begin(segment)
        faults += self._begin_producers(segment)
        skipped: list[int] = []
        is_short = False  # its end is missing, as the index shows: one fault for all entries
        for unread, headers in passes:
            yield from unread
            is_short |= any(fault.error == MISSING_BATCHES for fault in unread)
            skipped = [fault.position for fault in unread if fault.position is not None]
            self._checks_producers &= all(fault.error in SOUND_HEADER for fault in unread)
            if not len(headers):
                continue
            if self._checks_producers:
                self._producers.add(headers)
            if self._compares:
                unlike = list(index.add(headers, skipped))
                if unlike and _growth(segment) < 0:
                    unlike.clear()
                for fault in (*self._offsets.add(headers), *unlike, *self._odd(headers)):
                    yield located(segment, fault)
        if self._compares:
            behind = [] if is_short else list(index.finish(skipped))
            faults += behind if behind and _growth(segment) == 0 else []
        txnindex, odd = _txnindex(segment)
        yield from (located(segment, fault) for fault in (*faults, *odd))
        yield from self._end_producers(segment, txnindex)

    def header_faults(self, segment: Segment) -> Iterator[Fault]:
        """Process the next segment, reading only headers: check producers, and index files if they are compared."""
        yield from (located(segment, fault) for fault in self._begin_producers(segment))
        if not (self._checks_producers or self._compares):
            return
        files, odd = _index_files(segment, PREALLOCATED if self._compares else ())
        index = IndexCheck(segment, files)
        unread: list[Fault] = []
        with segment_file(segment, unread, strict=False) as file:
            scan = HeaderScan(file, check_crc=True)
            for headers in scan.headers():
                if self._checks_producers and not scan.faults:
                    self._producers.add(headers)
                if self._compares and not scan.faults:
                    odd += index.add(headers, [])
            at_end = end_fault(segment, scan, scan.faults, file)
            unread += [] if at_end is None else [at_end]
        is_sound = not scan.faults and not unread
        self._checks_producers &= is_sound
        if self._compares and is_sound and _growth(segment) == 0:
            yield from (located(segment, fault) for fault in (*odd, *index.finish([])))
        if self._checks_producers:
            yield from self._end_producers(segment, _txnindex(segment)[0])

    def finish(self) -> Iterator[Fault]:
        """Process the end of the log."""
        if self._checks_producers:
            yield from (located(self._last, fault) for fault in self._producers.finish())

    def _begin_producers(self, segment: Segment) -> list[Fault]:
        return list(self._producers.begin(segment)) if self._checks_producers else []

    def _end_producers(self, segment: Segment, txnindex: IndexColumns | None) -> Iterator[Fault]:
        self._checks_producers &= not self._producers.is_over
        if self._checks_producers:
            faults = list(self._producers.end(txnindex))
            growth = _growth(segment) if faults else 0
            if growth > 0:
                faults = list(self._producers.end(self._producers.before_end(txnindex)))
            elif growth < 0:
                faults.clear()
            yield from (located(segment, fault) for fault in faults)

    def _odd(self, headers: Headers) -> Iterator[Fault]:
        """Return the batches of producers that a broker would not have accepted."""
        for odd in self._sequences.add(headers):
            yield Fault(
                odd.error, f"batch at byte {odd.position}: {odd.what}", odd.position, base_offset=odd.base_offset
            )


def _growth(segment: Segment) -> int:
    """Return by how many bytes a log file has grown since it was listed; a deleted one has shrunk by all its bytes.

    A check reads the log as it was listed, and its index files as they are now: entries for a broker's later appends
    are not faults. After a cleaner has replaced the log, or a follower has truncated it, they belong to another log.
    """
    entry = disk().entry(segment.path)
    return (0 if entry is None else entry.size or 0) - segment.size


def _index_files(segment: Segment, kinds: Iterable[str]) -> tuple[dict[str, IndexColumns], list[Fault]]:
    """Return the entries of the index files of a segment, and faults of the files themselves."""
    files: dict[str, IndexColumns] = {}
    faults: list[Fault] = []
    for kind in kinds:
        path = segment.beside.get(kind)
        if path is not None and segment.base_offset is not None:
            try:
                files[kind], odd = _read_index(path, kind, segment.base_offset)
                faults += odd
            except OSError as error:
                faults.append(Fault("unreadable_file", f"{path.name}: {error.strerror or error}"))
    return files, faults


def _read_index(path: LogPath, kind: str, base_offset: int) -> tuple[IndexColumns, list[Fault]]:
    """Read an index file; repeat it if the file seems damaged, as a broker may be writing an entry."""
    faults: list[Fault] = []
    columns = read_index(path, kind, base_offset, faults)
    if faults:
        faults = []
        columns = read_index(path, kind, base_offset, faults)
    return columns, faults


def _txnindex(segment: Segment) -> tuple[IndexColumns | None, list[Fault]]:
    """Return the entries of a ``.txnindex``; None without a file.

    It is read after the log, since a broker writes an entry after its marker, and makes the file with the first entry.
    """
    if not (segment.is_closed or segment.state or segment.stored or "txnindex" in segment.kinds_beside):
        now = replace(segment, kinds_beside=(*segment.kinds_beside, "txnindex"))
        if segment.base_offset is not None and disk().entry(now.beside["txnindex"]) is not None:
            segment = now
    files, faults = _index_files(segment, ["txnindex"])
    return files.get("txnindex"), faults
