"""The topics and partitions of a log, as clients of the protocol see them."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import OrderedDict
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.errors import Fault, KraftlogError, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import as_listed, located
from kraftlog.read.transaction_map import TransactionMap, open_rows
from kraftlog.tables.log import Log
from kraftlog.tables.partition_offsets import Found, PartitionEnds, Time, live_logs
from kraftlog.topics import CLUSTER_METADATA, INTERNAL_TOPICS
from kraftlog.transactions.producer import ABORTED
from kraftlog.types import InputFile, IsolationLevel

NO_TOPIC_ID = bytes(16)
"""Clients then name topics in all requests."""
_MOST_PLACES = 1024  # of next offsets that are remembered for each partition
_LEAST_BYTES = 1 << 12  # of a read, so that it has a header


class OffsetOutOfRangeError(KraftlogError, kafka_error="OFFSET_OUT_OF_RANGE"):
    """A fetch before the log start offset or after the end of a partition."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records readers with ``read_committed`` drop, from its first offset to its marker."""

    producer_id: int
    first_offset: int
    marker_offset: int


class Fetched(NamedTuple):
    """Record batches as they are in the log, and the aborted transactions that overlap them."""

    records: bytes | memoryview
    aborted: list[AbortedTransaction] | None


class _Place(NamedTuple):
    """A batch: the number of its segment, and its byte there."""

    number: int
    position: int


class ServedPartition:
    """A partition that is read by offset, as it was when the log was opened.

    Methods may run in several threads at once.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of the replica that is read, in order.
    leaves_out_damaged : bool
        Whether damaged batches are left out; otherwise a fetch that begins with one fails.
    """

    def __init__(self, segments: list[Segment], *, leaves_out_damaged: bool = False) -> None:
        self._segments = segments
        self._leaves_out_damaged = leaves_out_damaged
        self._base_offsets = np.array([segment.base_offset or 0 for segment in segments])
        self._places: OrderedDict[int, _Place] = OrderedDict()
        self._lock = Lock()
        self.faults: list[Fault] = []

    @cached_property
    def _ends(self) -> PartitionEnds:
        return PartitionEnds(self._segments, self.faults)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._ends.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The end of the log; replication does not hold back records of a log that nobody writes.

        Raises
        ------
        RecordError
            When the last segment cannot be read.
        """
        return max(self._known(self._ends.log_end_offset), self._salvaged_end)

    @cached_property
    def _salvaged_end(self) -> int:
        """The offset after the last intact batch behind damage, which is not the log's end if it is left out."""
        if not self._leaves_out_damaged:
            return -1
        with as_listed(self._segments[-1]) as file:
            scan = HeaderScan(file, check_crc=True, salvage=True)
            for _ in scan.headers():
                pass
        return scan.reached[1]

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the earliest open transaction, or the end.

        Raises
        ------
        RecordError
            When a segment that decides it cannot be read.
        """
        stable = self._known(self._ends.last_stable_offset)
        return self.high_watermark if stable == self._ends.log_end_offset else stable

    def _known(self, offset: int | None) -> int:
        if offset is None:
            raise error_from_fault(self.faults[-1])
        return offset

    def end_offset(self, isolation_level: IsolationLevel) -> int:
        """Return the offset after the last record that a reader gets."""
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def offset_at(self, time: Time, isolation_level: IsolationLevel) -> Found:
        """Return the offset for a time, as ``PartitionEnds.at``."""
        options = ReadOptions(isolation_level=isolation_level, strict=False)
        return self._ends.at(time, Pass(options, self.faults))

    @cached_property
    def _aborted(self) -> list[AbortedTransaction]:
        found = TransactionMap(self._segments)
        rows = [step.ended for step in found.along(0)]
        if self._segments[-1].is_cut:  # what is open at a cut counts as aborted, and has no marker
            rows.append(open_rows(found.open_at_end()))
        joined = np.concatenate(rows) if rows else open_rows([])
        is_aborted = (joined["state"] == ABORTED) | (joined["marker_offset"] > self.high_watermark)
        return sorted(
            (AbortedTransaction(*map(int, row)) for row in joined[is_aborted][list(AbortedTransaction._fields)]),
            key=lambda one: one.first_offset,
        )

    def fetch(self, offset: int, max_bytes: int, isolation_level: IsolationLevel) -> Fetched:
        """Return batches from the one with an offset on; at least one, whatever its size.

        Raises
        ------
        OffsetOutOfRangeError
            When the offset is not in the log.
        RecordError
            When the first batch is damaged, unless such batches are left out.
        OSError
            When the log cannot be read.
        """
        end_offset = self.end_offset(isolation_level)
        if not self.log_start_offset <= offset <= self.high_watermark:
            raise OffsetOutOfRangeError
        records, last_offset = self._batches(offset, max_bytes, end_offset)
        if isolation_level != READ_COMMITTED:
            return Fetched(records, None)
        overlapping = [one for one in self._aborted if one.first_offset <= last_offset and one.marker_offset >= offset]
        return Fetched(records, overlapping)

    def _batches(self, offset: int, max_bytes: int, end_offset: int) -> tuple[bytes | memoryview, int]:
        """Return batches, and the last offset in them."""
        if offset >= end_offset:
            return b"", -1
        with self._lock:
            place = self._places.get(offset)
        if place is None:
            number = max(int(np.searchsorted(self._base_offsets, offset, side="right")) - 1, 0)
            place = _Place(number, -1)
        for number in range(place.number, len(self._segments)):
            position = place.position if number == place.number else 0
            found = self._batches_of(number, position, offset, max_bytes, end_offset)
            if found is not None:
                return found
        return b"", -1

    def _batches_of(
        self, number: int, position: int, offset: int, max_bytes: int, end_offset: int
    ) -> tuple[bytes | memoryview, int] | None:
        """Return batches of a segment; None if it has none from the offset on."""
        segment = self._segments[number]
        with as_listed(segment) as file:
            if position < 0:
                position, _ = seek(segment, file, ReadOptions(start_offset=offset))
            size = max(max_bytes, _LEAST_BYTES)
            while position < file.size:
                data = memoryview(file.read(position, min(position + size, file.size)))
                headers = _sound(data)
                if not len(headers):
                    position, end = self._next_batch(segment, file, position)
                    size = max(size, end - position)  # it may be larger than what was read
                    continue
                is_wanted = (last_offsets(headers) >= offset) & (headers["base_offset"] < end_offset)
                if is_wanted.any():
                    return self._take(data, _Place(number, position), headers[is_wanted])
                if int(headers["base_offset"][-1]) >= end_offset:
                    return b"", -1
                position += int(ends(headers[-1:])[0])
        return None

    def _take(self, data: memoryview, place: _Place, headers: Headers) -> tuple[memoryview, int]:
        start, end = int(headers["position"][0]), int(ends(headers[-1:])[0])
        last_offset = int(last_offsets(headers[-1:])[0])
        with self._lock:
            self._places[last_offset + 1] = _Place(place.number, place.position + end)
            if len(self._places) > _MOST_PLACES:
                self._places.popitem(last=False)
        return data[start:end], last_offset

    def _next_batch(self, segment: Segment, file: InputFile, position: int) -> tuple[int, int]:
        """Return the first and last byte of the next intact batch, or the end of the file twice; note damage before it.

        Raises
        ------
        RecordError
            For damage, unless damaged batches are left out.
        """
        scan = HeaderScan(file, position, check_crc=True, salvage=True)
        intact = (headers for headers in scan.headers(1) if len(headers) and headers["crc_ok"][0])
        found = next(intact, None)
        if scan.faults:
            fault = located(segment, scan.faults[0])
            with self._lock:
                if fault not in self.faults:
                    self.faults.append(fault)
            if not self._leaves_out_damaged:
                raise error_from_fault(fault)
        return (file.size, file.size) if found is None else (int(found["position"][0]), int(ends(found)[0]))


def _sound(data: memoryview) -> Headers:
    """Return the headers of the whole and intact batches before the first other one."""
    headers = next(HeaderScan(data, check_crc=True).headers(), None)
    if headers is None:
        return np.empty(0, HEADER_DTYPE)
    is_sound = (headers["crc_ok"] == 1) & (ends(headers) <= len(data))
    return headers if is_sound.all() else headers[: int(np.argmin(is_sound))]


class ServedTopic:
    """A topic.

    Attributes
    ----------
    name : str
    topic_id : bytes
        16 bytes; zeros if the files do not tell it.
    partitions : dict of int to ServedPartition
    """

    def __init__(self, name: str, topic_id: str | None, partitions: dict[int, ServedPartition]) -> None:
        self.name = name
        self.topic_id = NO_TOPIC_ID if topic_id is None else urlsafe_b64decode(topic_id + "==")
        self.partitions = partitions

    @property
    def is_internal(self) -> bool:
        """Whether it is one of the coordinators' topics."""
        return self.name in INTERNAL_TOPICS


class ServedLog:
    """The topics of a log; the metadata log, which no client can read, is not among them.

    Parameters
    ----------
    log : Log
    leaves_out_damaged : bool
        As in ``ServedPartition``.

    Attributes
    ----------
    topics : dict of str to ServedTopic
    topics_by_id : dict of bytes to ServedTopic
        Those whose id is known.
    cluster_id : str or None
    notes : list of str
        What a reader should know of the replicas that are read.
    """

    def __init__(self, log: Log, *, leaves_out_damaged: bool = False) -> None:
        self.notes: list[str] = []
        lines = {(one.topic, one.partition): one.line for one in log.lines.partitions}
        partitions: dict[str, dict[int, ServedPartition]] = {}
        for segments in live_logs(log.line_files(self.notes).segments):
            of = segments[0].topic_partition
            if of is not None and of.topic != CLUSTER_METADATA:
                served = ServedPartition(segments, leaves_out_damaged=leaves_out_damaged)
                partitions.setdefault(of.topic, {})[of.partition] = served
        self.topics = {
            name: ServedTopic(name, lines[name, min(some)].topic_id, some) for name, some in sorted(partitions.items())
        }
        self.topics_by_id = {one.topic_id: one for one in self.topics.values() if one.topic_id != NO_TOPIC_ID}
        clusters = [one.cluster_id for one in lines.values() if one.cluster_id is not None]
        self.cluster_id: str | None = clusters[0] if clusters else None

    def topic(self, name: str, topic_id: bytes) -> ServedTopic | None:
        """Return the topic of a request, by its id, or by its name if the id is zero; None if it is unknown."""
        return self.topics.get(name) if topic_id == NO_TOPIC_ID else self.topics_by_id.get(topic_id)

    @property
    def faults(self) -> list[Fault]:
        """What could not be read so far, or is damaged."""
        return [fault for topic in self.topics.values() for one in topic.partitions.values() for fault in one.faults]
