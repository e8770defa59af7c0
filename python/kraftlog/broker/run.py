"""One run over partitions of a log: their records to a broker, in transactions, with the mapping of their offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.broker.client import Client, Place
from kraftlog.broker.errors import NotDeliveredError, ReplayError
from kraftlog.broker.mapping import MappingFile, Run, runs_of
from kraftlog.broker.pace import Pace
from kraftlog.broker.stretch import COLUMNS, Stretch, check_headers, sizes_of
from kraftlog.broker.target import notes_of
from kraftlog.broker.uncut import Uncut
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Progress
from kraftlog.read.partitions import log_start_offset
from kraftlog.tables.left_out import LeftOut
from kraftlog.tables.log import Log
from kraftlog.tables.redaction import Redaction

TRANSACTION_BYTES = 256 << 20  # records between two polls of the client
TRANSACTION_SECONDS = 5.0
STEP_ROWS = 4096


@dataclass
class ReplayedPartition:
    """The replay of a partition.

    Attributes
    ----------
    topic, partition : str, int
        Names at the target.
    source_topic : str
    records : int
        Records of this call; those of earlier calls are in the mapping.
    start_offset, end_offset : int
        Offsets of the log at which this call began, and at which a later one would begin.
    """

    topic: str
    partition: int
    source_topic: str
    records: int
    start_offset: int
    end_offset: int


@dataclass
class Replay:
    """The result of ``replay``.

    Attributes
    ----------
    partitions : list of ReplayedPartition
    faults : list of Fault
        What could not be read, and is missing.
    notes : list of str
        Where a read_committed reader stops, how the target changes timestamps, and the number of records of aborted
        and open transactions that were left out.
    """

    partitions: list[ReplayedPartition] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class ReplayRun:
    """Replays partitions one after the other."""

    def __init__(
        self,
        client: Client,
        file: MappingFile,
        pace: Pace,
        options: ReadOptions,
        configs: Mapping[str, Mapping[str, str]],
        done: Replay,
        on_progress: Progress | None,
        redaction: Redaction | None,
        excluded: ExcludedKeys | None,
    ) -> None:
        self._client, self._file, self._pace = client, file, pace
        self._options, self._configs, self._done = options, configs, done
        self._on_progress, self._redaction, self._excluded = on_progress, redaction, excluded
        self._excluded_records = 0
        self._is_exact = False
        self._left_out = LeftOut()

    def partition(self, place: Place, segments: list[Segment], start: int) -> None:
        """Produce the rest of a partition."""
        topic, partition = place
        one = ReplayedPartition(topic, partition, segments[0].topic or "", 0, start, start)
        self._done.partitions.append(one)
        if (first := start_of(segments, self._options)) > start:
            self._done.notes.append(
                f"{one.source_topic}-{partition}: offsets {start} to {first - 1} were deleted from the log before they"
                " were replayed"
            )
        uncut = Uncut.of(segments)
        while True:
            faults, notes = list[Fault](), Notes()
            try:
                for stretch in self._stretches(place, segments, one, uncut, faults, notes):
                    self._commit(stretch, one)
                break
            except NotDeliveredError as error:
                try:
                    self._client.abort()
                except ReplayError as failure:
                    raise ReplayError(f"{error}; then {failure}") from None
                if self._is_exact:
                    raise ReplayError(str(error)) from None
                self._is_exact = True
        self._done.faults += [fault for fault in faults if fault not in self._done.faults]
        self._done.notes += [note for note in notes if note not in self._done.notes]
        self._left_out.add(Log(Discovery(segments=segments)), notes, replace(self._options, start_offset=start))

    def _stretches(
        self,
        place: Place,
        segments: list[Segment],
        one: ReplayedPartition,
        uncut: Uncut,
        faults: list[Fault],
        notes: Notes,
    ) -> Iterator[Stretch]:
        """Produce records; yield where a transaction may end."""
        bounds = replace(self._options, start_offset=one.end_offset)
        log = Log(Discovery(segments=segments))
        stream = log.scan("records", COLUMNS, bounds, on_progress=self._on_progress)
        is_excluded = None if self._excluded is None else self._excluded.of_topic(one.source_topic)
        stretch, until, most = None, 0.0, min(STEP_ROWS, self._pace.records_at_once)
        for rows in stream.batches():
            if is_excluded is not None:
                kept = rows.filter(pc.invert(is_excluded(rows["key"])))
                self._excluded_records += rows.num_rows - kept.num_rows
                rows = kept
            check_headers(rows, one.source_topic)
            if self._redaction is not None:
                rows = self._redaction.rows(rows)
            self._note_times(place[0], rows)
            sizes, may_end = sizes_of(rows), uncut.may_end(rows["offset"].to_numpy())
            sums = np.cumsum(sizes)
            at = 0
            while at < rows.num_rows:
                if stretch is None:
                    self._client.begin()
                    stretch, until = Stretch(self._client, place, is_exact=self._is_exact), _in(TRANSACTION_SECONDS)
                sent = int(sums[at - 1]) if at else 0
                fits = int(np.searchsorted(sums, sent + self._pace.bytes_at_once, "right"))
                end = min(at + most, max(at + 1, fits), rows.num_rows)
                is_due = stretch.size_in_bytes >= TRANSACTION_BYTES or time.monotonic() >= until
                if is_due and may_end[at:end].any():
                    end = at + int(may_end[at:end].argmax()) + 1
                step = rows.slice(at, end - at)
                self._pace.wait(end - at, int(sums[end - 1]) - sent, self._client.pause)
                stretch.send(step, sizes[at:end])
                if may_end[end - 1] and (stretch.size_in_bytes >= TRANSACTION_BYTES or time.monotonic() >= until):
                    yield stretch
                    stretch = None
                at = end
        if stretch is not None:
            yield stretch
        faults += stream.faults
        notes.add(stream.notes)

    def _commit(self, stretch: Stretch, one: ReplayedPartition) -> None:
        """Commit a transaction, after syncing its mapping."""
        source, target = stretch.delivered()
        reached = int(source[-1]) + 1
        self._file.append(runs_of(one.source_topic, one.partition, source, one.topic, target))
        try:
            self._client.commit({(one.topic, one.partition): reached})
        except NotDeliveredError:
            self._file.take_back()
            raise
        one.records += len(stretch)
        one.end_offset = reached
        self._file.ends[one.topic, one.partition] = int(target[-1]) + 1

    def finish(self) -> None:
        """Write the end of each partition to the mapping, and note what was left out."""
        self._done.notes.append(str(self._left_out))
        self._done.notes += [] if self._excluded is None else [self._excluded.note(self._excluded_records)]
        places = [(one.topic, one.partition) for one in self._done.partitions]
        known = self._file.ends
        ends = self._client.ends(place for place in places if place not in known)
        self._file.append(
            Run(
                *(one.source_topic, one.partition, one.end_offset, one.topic),
                known[place] if place in known else ends[place][1],
                0,
            )
            for place, one in zip(places, self._done.partitions, strict=True)
        )

    def _note_times(self, topic: str, rows: pa.RecordBatch) -> None:
        times = rows["timestamp_ms"].to_numpy()
        for note in notes_of(topic, self._configs.get(topic, {}), int(times.min())) if len(times) else ():
            if note not in self._done.notes:
                self._done.notes.append(note)
        if (times == 0).any():
            note = f"{topic}: records with timestamp 0 get timestamp 1 ms, as the client takes 0 for the current time"
            if note not in self._done.notes:
                self._done.notes.append(note)


def start_of(segments: list[Segment], options: ReadOptions) -> int:
    """Return the offset of the log at which a partition begins."""
    return max(log_start_offset(segments, options), options.start_offset)


def _in(seconds: float) -> float:
    return time.monotonic() + seconds
