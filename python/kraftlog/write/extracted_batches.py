"""Batches of a partition's log with records within bounds: copied, or cut if only some records are.

Transactions with records among them keep their markers, even outside of the bounds, so that readers of the extract see
the same state of each transaction as readers of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kraftlog._native.scanner import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kraftlog.codec.compression import decompressor
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.end_transaction_marker import encode_marker
from kraftlog.codec.filtered_batch import Fields, recompressed_batch, rewritten_batch
from kraftlog.codec.header_scan import HeaderScan, ends, within
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, READ_UNCOMMITTED, ReadOptions
from kraftlog.disk.disk import ReadableFile
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass
from kraftlog.read.marker_walk import Stretch, stretches
from kraftlog.read.records import torn_tail_note
from kraftlog.read.segment_end import end_fault
from kraftlog.read.segment_reader import located, scanned, segment_file
from kraftlog.schema import RECORDS
from kraftlog.transactions.producer import ABORTED, COMMITTED
from kraftlog.transactions.view import FOREVER, ProducerView
from kraftlog.write.excluded_records import NOT_EXTRACTED, IsExcluded, batch_of_records, excluded_records

HEADERS_AT_ONCE = 1024
PIECE_BYTES = 2 << 20  # few enough to stay in the caches until they are written
LARGEST_EPOCH = 2**15 - 1


@dataclass(frozen=True)
class Piece:
    """Consecutive batches.

    Attributes
    ----------
    segment : Segment
        The segment of the batches.
    data : buffer
        Valid until the next piece.
    records : int
        Number of records, without markers.
    is_copied : bool
        Whether all bytes are unchanged copies from the log.
    """

    segment: Segment
    base_offset: int
    data: bytes | memoryview
    records: int
    is_copied: bool


class ExtractedBatches:
    """Goes through the log of a partition.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of one partition, in order.
    options : ReadOptions
        Bounds; with ``read_committed`` only records of committed transactions, and records without a transaction.
    compression : int, optional
        Index into ``COMPRESSION_TYPES`` for the result; by default each batch keeps its compression.
    on_progress : callable, optional
        Called with the bytes of log that were read since the last call.
    change : callable, optional
        Returns new keys, values and headers for the records of a batch.
    is_excluded : callable, optional
        Returns of a column of keys which records are left out. Offsets, producers and sequences stay, as after
        compaction: a batch that loses all of its records becomes an empty one.

    Attributes
    ----------
    faults : list of Fault
        What could not be read, and is missing.
    notes : Notes
        Where a read_committed reader stops, and how long a torn tail is.
    open_producers : dict
        Producers whose transactions have records among the batches but no marker yet, with the offset of the first.
    aborted_transactions : int
        Number of transactions that are open where the log is cut, and that markers abort.
    producer_epochs : dict of int to int
        The largest epoch of each producer that wrote in transactions, with that of the marker that aborts the last one.
    last_timestamp : int
        The largest one of the last batch, in milliseconds; 0 without batches.
    leader_epoch : int
        Of the last batch; -1 without batches.
    excluded_records : int
        Number of records that were left out for their keys.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        options: ReadOptions,
        compression: int | None = None,
        on_progress: Callable[[int], None] | None = None,
        change: Callable[[list[Fields]], list[Fields]] | None = None,
        is_excluded: IsExcluded | None = None,
    ) -> None:
        self._segments = segments
        self._options = options.from_log_start(segments[0].log_start_offset)
        self._commits = options.isolation_level == READ_COMMITTED
        self._compression = compression
        self._change = change
        self._is_excluded = is_excluded
        self._aborts_from = NO_BOUND if self._commits else options.end_timestamp  # the time of a marker
        self._replaced = 0
        self._on_progress = on_progress or (lambda _: None)
        self._decompressor = decompressor(options.max_decompressed_bytes)
        self._next_offset = 0
        self._memory = memoryview(b"")
        self.faults: list[Fault] = []
        self.notes = Notes()
        self.open_producers: dict[int, int] = {}
        self.aborted_transactions = 0
        self.producer_epochs: dict[int, int] = {}
        self.last_timestamp = 0
        self.leader_epoch = -1
        self.excluded_records = 0
        self._last: dict[int, np.void] = {}  # headers of the last transactional batches of producers
        self._coordinator_epochs: dict[int, int] = {}  # of the last markers of producers

    @property
    def next_offset(self) -> int:
        """The offset after the batches so far."""
        return self._next_offset

    def pieces(self) -> Iterator[Piece]:
        """Return the batches, in order; transactions that are open where a log is cut, or at the end time, are aborted.

        Raises
        ------
        RecordError
            With ``strict``, at the first fault.
        """
        for stretch in stretches(self._segments, Pass(self._options, self.faults, self.notes)):
            if stretch.is_wanted:
                yield from self._wanted(stretch)
            elif self.open_producers:
                yield from self._markers(stretch)
        if self._segments[-1].is_cut or self._aborts_from != NO_BOUND:
            yield from self._aborts()
        if self._replaced:
            self._note_aborts(self._replaced)

    def _wanted(self, stretch: Stretch) -> Iterator[Piece]:
        part, segment = stretch.part, stretch.part.segment
        view = part.transactions if isinstance(part.transactions, ProducerView) else None
        options = self._options
        if view is not None and view.last_stable_offset != FOREVER:
            options = replace(options, end_offset=min(options.end_offset, view.last_stable_offset))
        with segment_file(segment, self.faults, strict=options.strict) as file:
            scan = HeaderScan(file, part.start, part.end, check_crc=True)
            at_once = _at_once(file, part.start)
            for scanned_headers in scanned(segment, scan, self.faults, strict=options.strict, at_once=at_once):
                headers = self._sound(segment, scanned_headers)
                if not len(headers):
                    continue
                self.last_timestamp = max(0, int(headers["max_timestamp"][-1]))
                self.leader_epoch = int(headers["partition_leader_epoch"][-1])
                chosen = self._chosen(headers, options, view)
                yield from self._copied(segment, file, headers if chosen.all() else headers[chosen], options)
                self._on_progress(int(ends(scanned_headers)[-1] - scanned_headers["position"][0]))
            at_end = end_fault(segment, scan, scan.faults, file, options)
            if at_end is not None:
                self._note(at_end)
            else:
                self.notes.extend(torn_tail_note(segment, scan.torn_at, file))

    def _markers(self, stretch: Stretch) -> Iterator[Piece]:
        """Return the markers of transactions with records among the batches."""
        part, segment = stretch.part, stretch.part.segment
        with segment_file(segment, self.faults, strict=self._options.strict) as file:
            scan = HeaderScan(file, part.start, part.end, check_control=True)
            for headers in scan.headers():
                control = headers[(headers["attributes"] & CONTROL_BIT != 0) & (headers["magic"] == 2)]
                control = control[(control["crc_ok"] == 1) & (control["base_offset"] >= self._next_offset)]
                ending = np.zeros(len(control), bool)
                for at, producer_id in enumerate(control["producer_id"].tolist()):
                    ending[at] = self.open_producers.pop(producer_id, None) is not None
                yield from self._copied(segment, file, control[ending], replace(self._options, end_offset=NO_BOUND))
                if not self.open_producers:
                    return

    def _aborts(self) -> Iterator[Piece]:
        """Return a marker for each transaction that is open where the log is cut.

        Its epoch is raised, as by a coordinator that aborts for a producer that is gone.
        """
        for producer_id in sorted(self.open_producers):
            header = self._last[producer_id].copy()
            header["base_offset"] = self._next_offset
            header["partition_leader_epoch"] = self.leader_epoch  # there may have been elections since its last batch
            header["producer_epoch"] = min(int(header["producer_epoch"]) + 1, LARGEST_EPOCH)
            self.producer_epochs[producer_id] = int(header["producer_epoch"])
            yield Piece(self._segments[-1], self._next_offset, self._abort(header, header), 0, is_copied=False)
            self._next_offset += 1
        if self.open_producers:
            self.aborted_transactions = len(self.open_producers)
            self._note_aborts(self.aborted_transactions)
            self.open_producers.clear()

    def _abort(self, header: np.void, before: np.void) -> bytes:
        """Return an ABORT marker with the offset and epochs of a header, and the time of a batch before it.

        Coordinators of a producer have rising epochs; a batch of records has none.
        """
        producer_id = int(header["producer_id"])
        marker = encode_marker(
            "ABORT",
            producer_id=producer_id,
            producer_epoch=int(header["producer_epoch"]),
            coordinator_epoch=max(int(header["coordinator_epoch"]), self._coordinator_epochs.get(producer_id, 0)),
            base_offset=int(header["base_offset"]),
            partition_leader_epoch=int(header["partition_leader_epoch"]),
            timestamp_ms=int(before["max_timestamp"]),
        )
        data: bytes = marker.to_pybytes()
        return data

    def _note_aborts(self, count: int) -> None:
        what = "1 transaction is open at the cut; an ABORT marker ends it"
        if count > 1:
            what = f"{count} transactions are open at the cut; ABORT markers end them"
        self.notes.append(f"{self._segments[0].topic_partition}: {what}")

    def _sound(self, segment: Segment, headers: Headers) -> Headers:
        """Return the batches that a log can hold; report the others as faults."""
        sound = headers["crc_ok"] == 1
        base, last = headers["base_offset"], last_offsets(headers)
        least = self._next_offset
        rises = (base <= last).all() and (base >= np.concatenate(([least], last[:-1] + 1))).all()
        if rises and sound.all() and (headers["magic"] == 2).all():
            self._next_offset = int(last[-1]) + 1
            return headers
        for at in np.flatnonzero(sound).tolist():
            position, what = int(headers["position"][at]), ""
            if headers["magic"][at] < 2:
                error, what = NOT_EXTRACTED, f"expected magic 2, found magic {headers['magic'][at]}, which is not"
                what += " copied"
            elif last[at] < base[at]:
                error, what = "bad_last_offset_delta", f"last_offset_delta {headers['last_offset_delta'][at]}"
            elif base[at] < least:
                error, what = "offset_goes_back", f"expected base_offset {least} or more, found {base[at]}"
            else:
                least = int(last[at]) + 1
            if what:
                sound[at] = False
                size = int(ends(headers)[at]) - position
                message = f"batch at byte {position}: {what}"
                self._note(located(segment, Fault(error, message, position, size, int(base[at]))))
        self._next_offset = least
        return np.asarray(headers[sound])

    def _chosen(self, headers: Headers, options: ReadOptions, view: ProducerView | None) -> np.ndarray:
        """Return which batches have records to copy."""
        is_chosen = within(headers, options)
        is_all = len(is_chosen) == len(headers)
        chosen = np.ones(len(headers), bool) if is_all else np.isin(headers["position"], is_chosen["position"])
        is_control = headers["attributes"] & CONTROL_BIT != 0
        if view is not None:
            chosen &= ~view.hides(headers)
            chosen &= ~is_control | (headers["control_type"] != ABORTED)
        for at in np.flatnonzero(headers["attributes"] & TRANSACTIONAL_BIT != 0).tolist():
            producer_id, epoch = int(headers["producer_id"][at]), int(headers["producer_epoch"][at])
            self.producer_epochs[producer_id] = max(epoch, self.producer_epochs.get(producer_id, epoch))
            if is_control[at]:
                self._coordinator_epochs[producer_id] = int(headers["coordinator_epoch"][at])
                chosen[at] |= self.open_producers.pop(producer_id, None) is not None
            elif chosen[at]:
                self.open_producers.setdefault(producer_id, int(headers["base_offset"][at]))
                self._last[producer_id] = headers[at].copy()
        return chosen

    def _copied(self, segment: Segment, file: ReadableFile, headers: Headers, options: ReadOptions) -> Iterator[Piece]:
        """Return batches, unchanged neighbours together."""
        if not len(headers):
            return
        changes = self._changes(headers, options)
        starts, stops = headers["position"], ends(headers)
        is_control = headers["attributes"] & CONTROL_BIT != 0
        is_apart = changes[1:] | changes[:-1] | (starts[1:] != stops[:-1])
        breaks = [*(np.flatnonzero(is_apart) + 1).tolist(), len(headers)]
        begin = 0
        while begin < len(headers):
            while breaks[0] <= begin:
                breaks.pop(0)
            fits = int(np.searchsorted(stops, starts[begin] + PIECE_BYTES, "right"))
            end = min(breaks[0], max(fits, begin + 1))
            base_offset = int(headers["base_offset"][begin])
            if not changes[begin]:
                data = self._read(file, int(starts[begin]), int(stops[end - 1]))
                count = int(headers["records_count"][begin:end][~is_control[begin:end]].sum(dtype=np.int64))
                yield Piece(segment, base_offset, data, count, is_copied=True)
            else:
                changed = bytes(file.read(int(starts[begin]), int(stops[end - 1])))
                yield from self._changed(segment, headers[begin], changed, options)
            begin = end

    def _read(self, file: ReadableFile, start: int, end: int) -> memoryview:
        """Read into reused memory: the kernel would have to clear new memory page by page."""
        if len(self._memory) < end - start:
            self._memory = memoryview(bytearray(max(end - start, PIECE_BYTES)))
        view = self._memory[: end - start]
        file.read_into(view, start)
        return view

    def _changes(self, headers: Headers, options: ReadOptions) -> np.ndarray:
        """Return which batches must be decoded: some of their records may be outside of the bounds."""
        attributes = headers["attributes"]
        changes = (headers["base_offset"] < options.start_offset) | (last_offsets(headers) >= options.end_offset)
        if options.bounds_timestamps:
            changes |= attributes & TIMESTAMP_TYPE_BIT == 0  # otherwise all records have the timestamp of the header
        if self._change is not None or self._is_excluded is not None:
            changes |= True
        if self._compression is not None:
            changes |= attributes & COMPRESSION_MASK != self._compression
        changes &= (attributes & CONTROL_BIT == 0) & (headers["records_count"] > 0)
        return np.asarray(changes | self._ends_too_late(headers))

    def _ends_too_late(self, headers: Headers) -> np.ndarray:
        """Return which batches are markers of transactions that were open at the end time."""
        is_marker = (headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED)
        return np.asarray(is_marker & (headers["max_timestamp"] >= self._aborts_from))

    def _changed(self, segment: Segment, header: np.void, data: bytes, options: ReadOptions) -> Iterator[Piece]:
        """Return the records of a batch within the bounds; a marker after the end time becomes an ABORT."""
        if header["attributes"] & CONTROL_BIT:
            before = self._last.get(int(header["producer_id"]), header)
            yield Piece(segment, int(header["base_offset"]), self._abort(header, before), 0, is_copied=False)
            self._replaced += 1
            return
        faults: list[Fault] = []
        every = _offsets(data, ReadOptions(max_decompressed_bytes=options.max_decompressed_bytes), faults)
        offsets = _offsets(data, replace(options, isolation_level=READ_UNCOMMITTED, strict=False), [])
        if faults or len(every) != header["records_count"]:
            for fault in faults or [Fault("bad_records_count", f"{len(every)} records can be read")]:
                position = int(header["position"])
                self._note(located(segment, replace(fault, position=position, size_in_bytes=len(data))))
            return
        keeps = np.isin(every, offsets)
        if not keeps.any():
            return
        if self._is_excluded is not None:
            is_left_out = keeps & excluded_records(data, self._is_excluded, options.max_decompressed_bytes)
            self.excluded_records += int(is_left_out.sum())
            keeps &= ~is_left_out
        base_offset, count = int(header["base_offset"]), int(keeps.sum())
        if not keeps.all():
            made = batch_of_records(data, header, keeps, self._decompressor, self._compression)
        elif self._compression is None or header["attributes"] & COMPRESSION_MASK == self._compression:
            made = data
        else:
            made = recompressed_batch(data, self._compression, self._decompressor)
        if self._change is not None and count:
            made = rewritten_batch(made, self._change, self._decompressor, self._compression)
        yield Piece(segment, base_offset, made, count, is_copied=made is data)

    def _note(self, fault: Fault) -> None:
        if self._options.strict:
            raise error_from_fault(fault)
        self.faults.append(fault)


def _at_once(file: ReadableFile, start: int) -> int:
    """Return how many batches to scan before they are read: few enough to stay in the caches."""
    first = next(HeaderScan(file, start).headers(1), None)
    size = PIECE_BYTES if first is None else max(1, int(ends(first)[0] - first["position"][0]))
    return min(max(PIECE_BYTES // size, 1), HEADERS_AT_ONCE)


def _offsets(batch: bytes, options: ReadOptions, faults: list[Fault]) -> np.ndarray:
    """Return the offsets of a batch's records within bounds."""
    decoder = RecordDecoder(batch, 0, NO_BOUND, DecodePlan(RECORDS.select(["offset"]), options))
    offsets = [rows.column("offset").to_numpy() for rows in decoder.batches(faults)]
    return np.concatenate(offsets) if offsets else np.empty(0, np.int64)
