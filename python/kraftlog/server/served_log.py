"""The topics and partitions of a log that is only read, as clients of the protocol see them."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import EARLIEST, LATEST, READ_COMMITTED, ReadOptions
from kraftlog.disk.waiting import slow_property
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from kraftlog.read.lineage import NO_EPOCH, Lineage, LogEnd, lineage_of, log_end
from kraftlog.read.log_pass import Pass
from kraftlog.read.segment_reader import as_listed
from kraftlog.server.aborted_transactions import aborted_transactions, overlapping
from kraftlog.server.as_of import ExistingTopics
from kraftlog.server.readable_log import (
    NO_TOPIC_ID,
    AbortedTransaction,
    Fetched,
    ReadablePartition,
    ReadableTopic,
)
from kraftlog.server.redacted_batches import RedactedBatches
from kraftlog.server.segment_batches import SegmentBatches
from kraftlog.tables.found_offset import Found, Time
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import some_names
from kraftlog.tables.partition_ends import PartitionEnds, live_logs
from kraftlog.tables.redaction import Redaction
from kraftlog.topics import CLUSTER_METADATA, TopicPartition
from kraftlog.types import IsolationLevel


class ServedPartition:
    """A partition that is read by offset, as it was when the log was opened.

    Methods may run in several threads at once.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of the replica that is read, in order.
    leaves_out_damaged : bool
        Whether damaged batches are left out; otherwise a fetch that begins with one fails.
    redaction : Redaction, optional
        Redacts what is fetched; batches that cannot be redacted count as damaged.

    Attributes
    ----------
    segments : list of Segment
    faults : list of Fault
        What could not be read so far, or is damaged.
    """

    def __init__(
        self, segments: list[Segment], *, leaves_out_damaged: bool = False, redaction: Redaction | None = None
    ) -> None:
        self.segments = segments
        self._leaves_out_damaged = leaves_out_damaged
        self._redacts = None if redaction is None else RedactedBatches(redaction)
        self._batches = SegmentBatches(segments, leaves_out_damaged=leaves_out_damaged, redacts=self._redacts)
        self.faults = self._batches.faults

    @slow_property
    def _ends(self) -> PartitionEnds:
        return PartitionEnds(self.segments, self.faults)

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

    @property
    def known_end_offset(self) -> int | None:
        """The high watermark; None if the last segment cannot be read."""
        return None if self._ends.log_end_offset is None else self.high_watermark

    @slow_property
    def _salvaged_end(self) -> int:
        """The offset after the last intact batch behind damage, which is not the log's end if it is left out."""
        if not self._leaves_out_damaged:
            return -1
        with as_listed(self.segments[-1]) as file:
            scan = HeaderScan(file, check_crc=True, salvage=True)
            for _ in scan.headers():
                pass
        return scan.reached[1]

    def notes(self) -> list[str]:
        """Return notes on what was redacted so far."""
        return [] if self._redacts is None else [f"{self._name}: {note}" for note in self._redacts.notes()]

    @property
    def _name(self) -> str:
        return str(self.segments[0].topic_partition)

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

    @slow_property
    def _log_end(self) -> LogEnd:
        faults = list[Fault]()
        end = log_end(self.segments, faults)
        self._note(faults)
        return end

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the last batch; -1 if the log has none."""
        return self._log_end.last_epoch

    @slow_property
    def lineage(self) -> Lineage:
        """The leader epochs of the batches, and the end of the log."""
        faults = list[Fault]()
        lineage = lineage_of(self.segments, self._log_end, faults)
        self._note(faults)
        return replace(lineage, end_offset=self.high_watermark).starting_at(self.log_start_offset)

    def _note(self, faults: list[Fault]) -> None:
        self.faults += [fault for fault in faults if fault not in self.faults]

    def end_offset(self, isolation_level: IsolationLevel) -> int:
        """Return the offset after the last record that a reader gets."""
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def offset_at(self, time: Time, isolation_level: IsolationLevel) -> Found:
        """Return the offset for a time, as ``PartitionEnds.at``."""
        options = ReadOptions(isolation_level=isolation_level, strict=False)
        return self._ends.at(time, Pass(options, self.faults))

    @slow_property
    def _aborted(self) -> list[AbortedTransaction]:
        return aborted_transactions(self.segments, self.high_watermark)

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
            raise OffsetOutOfRangeError(f"the log does not have offset {offset}")
        found = self._batches.read(offset, max_bytes, end_offset)
        is_committed = isolation_level == READ_COMMITTED
        aborted = overlapping(self._aborted, offset, found.last_offset) if is_committed else None
        return Fetched(found.records, aborted, found.check_next)


class EmptyServedPartition:
    """A partition without a segment, which begins and ends at its log start offset.

    Parameters
    ----------
    log_start_offset : int
    """

    def __init__(self, log_start_offset: int) -> None:
        self.log_start_offset = self.high_watermark = self.last_stable_offset = log_start_offset
        self.lineage = Lineage((), log_start_offset)
        self.leader_epoch = NO_EPOCH

    def offset_at(self, time: Time, _: IsolationLevel) -> Found:
        """Return the offset for a time: no record has one."""
        return Found(self.log_start_offset) if time in (EARLIEST, LATEST) else Found()

    def fetch(self, offset: int, _: int, isolation_level: IsolationLevel) -> Fetched:
        """Return no batches.

        Raises
        ------
        OffsetOutOfRangeError
            When the offset is not that of the end.
        """
        if offset != self.log_start_offset:
            raise OffsetOutOfRangeError(f"the log does not have offset {offset}")
        return Fetched(b"", [] if isolation_level == READ_COMMITTED else None)


class ServedLog:
    """The topics of a log; the metadata log, which no client can read, is not among them.

    Parameters
    ----------
    log : Log
    leaves_out_damaged, redaction
        As in ``ServedPartition``.
    existing : ExistingTopics, optional
        The only topics and partitions that are served; by default all.

    Attributes
    ----------
    topics : dict of str to ReadableTopic
    cluster_id : str or None
    notes : list of str
        What a reader should know of the replicas that are read.
    """

    def __init__(
        self,
        log: Log,
        *,
        leaves_out_damaged: bool = False,
        redaction: Redaction | None = None,
        existing: ExistingTopics | None = None,
    ) -> None:
        self.notes: list[str] = []
        lines = {(one.topic, one.partition): one.line for one in log.lines.partitions}
        partitions: dict[str, dict[int, ReadablePartition]] = {}
        self._served: dict[TopicPartition, ServedPartition] = {}
        for segments in live_logs(log.line_files(self.notes).segments):
            of = segments[0].topic_partition
            if of is None or of.topic == CLUSTER_METADATA:
                continue
            if existing is None or (of, lines[of].topic_id) in existing:
                served = ServedPartition(segments, leaves_out_damaged=leaves_out_damaged, redaction=redaction)
                partitions.setdefault(of.topic, {})[of.partition] = self._served[of] = served
        topic_ids = {of: one.topic_id for of, one in lines.items()}
        for empty in log.found.empty_partitions:
            of = TopicPartition(empty.topic, empty.partition)
            if of in topic_ids or of.topic == CLUSTER_METADATA:
                continue  # another replica has segments
            topic_ids[of] = empty.topic_id
            if existing is None or (of, topic_ids[of]) in existing:
                partitions.setdefault(of.topic, {})[of.partition] = EmptyServedPartition(empty.log_start_offset)
        self.topics = {
            name: ReadableTopic(name, _bytes_of(topic_ids[name, min(some)]), some)
            for name, some in sorted(partitions.items())
        }
        if existing is not None:
            self.notes += _notes_on(existing, log, self.topics)
        self._topics_by_id = {one.topic_id: one for one in self.topics.values() if one.topic_id != NO_TOPIC_ID}
        clusters = [one.cluster_id for one in lines.values() if one.cluster_id is not None]
        self.cluster_id: str | None = clusters[0] if clusters else None

    def topic(self, name: str, topic_id: bytes) -> ReadableTopic | None:
        """Return the topic of a request, by its id, or by its name if the id is zero; None if it is unknown."""
        return self.topics.get(name) if topic_id == NO_TOPIC_ID else self._topics_by_id.get(topic_id)

    def partition(self, of: TopicPartition) -> ServedPartition | None:
        """Return a partition; None if it is not served."""
        return self._served.get(of)

    def created_on_use(self, name: str) -> ReadableTopic:
        """Raise an UnknownTopicOrPartitionError: nothing is written."""
        raise UnknownTopicOrPartitionError(f"topic {name!r}: the log has no such topic, and is only read")

    def growth(self, _: Iterable[TopicPartition]) -> asyncio.Future[None]:
        """Return a future that is never done."""
        return asyncio.get_running_loop().create_future()

    def redaction_notes(self) -> list[str]:
        """Return notes on what was redacted so far."""
        return [note for one in self._served.values() for note in one.notes()]

    @property
    def faults(self) -> list[Fault]:
        """What could not be read so far, or is damaged."""
        return [fault for one in self._served.values() for fault in one.faults]


def _notes_on(existing: ExistingTopics, log: Log, served: Mapping[str, ReadableTopic]) -> list[str]:
    """Return notes on topics that are left out, and on those without files."""
    there = {one.topic for one in log.partitions if one.topic is not None}
    there |= {one.topic for one in log.found.empty_partitions}
    later = sorted(there - {CLUSTER_METADATA} - served.keys())
    lost = [] if log.found.not_wanted else [name for name in existing.names if name not in served]
    notes = []
    if later:
        notes.append(f"topics that did not exist then are not served: {some_names(later)}")
    if lost:
        notes.append(f"topics that existed then have no files: {some_names(lost)}")
    return notes


def _bytes_of(topic_id: str | None) -> bytes:
    return NO_TOPIC_ID if topic_id is None else urlsafe_b64decode(topic_id + "==")
