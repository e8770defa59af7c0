"""``kraftlog.replay``: the records of a log directory, produced into a live broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from kraftlog.broker.client import Client, Place
from kraftlog.broker.errors import NotDeliveredError, ReplayError
from kraftlog.broker.mapping import MappingFile, Run, runs_of
from kraftlog.broker.pace import Pace
from kraftlog.broker.state import State, path_of
from kraftlog.broker.stretch import COLUMNS, Stretch, check_headers, sizes_of
from kraftlog.broker.target import batch_bytes, check_empty, check_topics, notes_of
from kraftlog.broker.uncut import Uncut
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.discover import AnyPath, Discovery
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.extract import chosen_partitions
from kraftlog.log_store.topics import check_name
from kraftlog.read.partitions import log_start_offset
from kraftlog.read.records import Progress
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.table_rows import note_unreadable
from kraftlog.tables.user_options import read_options
from kraftlog.topics import INTERNAL_TOPICS

TRANSACTION_BYTES = 64 << 20
TRANSACTION_SECONDS = 5.0
STEP_ROWS = 4096
DEFAULT_TIMEOUT = 60.0


@dataclass
class ReplayedPartition:
    """What was produced to a partition.

    Attributes
    ----------
    topic, partition : str, int
        As they are called at the target.
    source_topic : str
    records : int
        By this call; those of earlier ones are in the mapping.
    start_offset, end_offset : int
        Offsets of the log at which this call began, and at which a later one would.
    """

    topic: str
    partition: int
    source_topic: str
    records: int
    start_offset: int
    end_offset: int


@dataclass
class Replay:
    """What ``replay`` has done.

    Attributes
    ----------
    partitions : list of ReplayedPartition
    faults : list of Fault
        What could not be read, and is missing.
    notes : list of str
        Where a read_committed reader stops, and what the target does to timestamps.
    """

    partitions: list[ReplayedPartition] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay(
    paths: AnyPath | Iterable[AnyPath],
    to: str,
    mapping: str | Path,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: datetime | str | int | None = None,
    end_timestamp: datetime | str | int | None = None,
    rename: Mapping[str, str] | None = None,
    create_topics: bool = False,
    append: bool = False,
    rate: int | str | None = None,
    compression: str | None = None,
    include_deleted: bool = False,
    strict: bool = False,
    client_settings: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    redact: Iterable[str] = (),
    redact_key: bytes | None = None,
) -> Replay:
    """Produce the records of partitions into a live broker: those that a ``read_committed`` consumer would get.

    Keys, values, partitions, timestamps and headers stay. Records go in transactions, and each transaction commits how
    far it came, in a group of the target: after a crash, or when the broker was gone, the same call with the same
    mapping goes on where the last committed transaction ended. Nothing is lost, and nothing comes twice. A transaction
    of the log is never cut: its records of one partition become visible together.

    Parameters
    ----------
    paths : path or iterable of paths
        As ``kraftlog.open`` takes them.
    to : str
        HOST:PORT of a broker; several with commas between them.
    mapping : path
        The file that says which offset became which, as CSV with the columns ``source_topic``, ``partition``,
        ``source_offset``, ``target_topic``, ``target_offset`` and ``records_count``: a line for records that follow
        each other on both sides, and at the end one with a count of 0 for each partition. A file beside it, which ends
        in ``.state``, says what was asked for.
    topics : iterable of str, optional
        Only these; by default all but Kafka's own.
    partitions : iterable of int, optional
        Only these.
    start_offset, end_offset : int, optional
        Offsets in [start_offset, end_offset), of each partition.
    start_timestamp, end_timestamp : datetime, str or int, optional
        Timestamps in [start_timestamp, end_timestamp).
    rename : mapping of str to str, optional
        New names of topics.
    create_topics : bool
        Make topics that the target does not have, with as many partitions, and its default settings.
    append : bool
        Also into partitions that hold records already.
    rate : int or str, optional
        Records a second, or bytes of keys and values, such as ``"10MB"``.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}, optional
        Of what is sent; by default none.
    include_deleted : bool
        Also what lies before the log start offset.
    strict : bool
        Raise at the first fault; what was committed before stays.
    client_settings : mapping of str to str, optional
        Properties of librdkafka, such as ``security.protocol``.
    timeout : float
        Seconds after which a broker that does not answer is given up.
    redact : iterable of str
        What is taken out of records, as ``kraftlog.extract`` has it.
    redact_key : bytes, optional

    Returns
    -------
    Replay

    Raises
    ------
    ReplayError
        When the target lacks a topic or partitions, holds records already, refuses a record, or does not answer.
    ValueError
        When the mapping is of another replay, a topic is not there, or a setting is none.
    RecordError
        With ``strict``.
    ImportError
        When confluent-kafka is not installed.

    Examples
    --------
    >>> import kraftlog
    >>> done = kraftlog.replay(  # doctest: +SKIP
    ...     "backup", "localhost:9092", "orders.csv", topics=["orders"], create_topics=True
    ... )
    >>> [(one.topic, one.partition, one.records) for one in done.partitions]  # doctest: +SKIP
    [('orders', 0, 118), ('orders', 1, 60), ('orders', 2, 29)]
    """
    given_topics = None if topics is None else [topics] if isinstance(topics, str) else list(topics)
    options = read_options(
        start_offset=start_offset,
        end_offset=end_offset,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        isolation_level=READ_COMMITTED,
        include_deleted=include_deleted,
        strict=strict,
    )
    redaction = Redaction(redact, redact_key) if (redact := list(redact)) else None
    return replay_log(
        open_log(paths, topics=given_topics, partitions=partitions),
        Target(to, Path(mapping), create_topics, append, rate, compression, client_settings or {}, timeout, redaction),
        options,
        rename or {},
        is_chosen=given_topics is not None,
    )


@dataclass(frozen=True)
class Target:
    """Where records go, and how; as ``replay`` has it."""

    to: str
    mapping: Path
    creates: bool = False
    appends: bool = False
    rate: int | str | None = None
    compression: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    redaction: Redaction | None = None


def replay_log(
    log: Log,
    target: Target,
    options: ReadOptions,
    rename: Mapping[str, str],
    *,
    is_chosen: bool = False,
    on_progress: Progress | None = None,
) -> Replay:
    """Do what ``replay`` does, with a log that was opened; ``is_chosen`` says whether topics were named."""
    pace = Pace(target.rate)
    groups = chosen_partitions(log, rename, is_chosen=is_chosen)
    _check_names(groups)
    done = Replay()
    note_unreadable(log.found, done.faults, strict=options.strict)
    found = State.read(target.mapping)
    redact = [] if target.redaction is None else target.redaction.identity
    asked = State.new("", _bounds(options), dict(rename), redact)
    client = Client(target.to, (found or asked).name, target.settings, target.timeout)
    asked = replace(asked, cluster_id=client.cluster_id())
    if found is not None:
        found.check(target.mapping, asked)
    with closing(client):
        check_topics(client, _counts(groups), creates=target.creates)
        state = found or asked
        new = {place: _start(segments, options) for place, segments in groups.items() if place not in state.starts}
        if not target.appends:
            check_empty(client, new)
        state = state.with_starts(new)
        if state != found:
            state.write(target.mapping)
        try:
            lock = disk().lock(path_of(target.mapping))
        except BlockingIOError:
            raise ValueError(f"{target.mapping}: another replay is writing it") from None
        with lock:
            configs = client.configs(sorted({topic for topic, _ in groups}))
            client.open(target.compression, batch_bytes(configs))
            reached = client.reached(state.starts)
            if disk().entry(target.mapping) is not None:
                file = MappingFile.settle(target.mapping, state.starts, reached)
            elif reached.items() <= state.starts.items():
                file = MappingFile.make(target.mapping)
            else:
                raise ValueError(f"{target.mapping} is missing, and part of the replay was committed: bring it back")
            with closing(file):
                client.begin()
                client.commit(reached := state.starts | reached)
                run = _Run(client, file, pace, options, configs, done, on_progress, target.redaction)
                for place, segments in groups.items():
                    run.partition(place, segments, reached[place])
                run.finish()
    done.notes += [] if target.redaction is None else target.redaction.notes()
    return done


class _Run:
    """Goes through partitions, one after the other."""

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
    ) -> None:
        self._client, self._file, self._pace = client, file, pace
        self._options, self._configs, self._done = options, configs, done
        self._on_progress, self._redaction = on_progress, redaction
        self._is_exact = False

    def partition(self, place: Place, segments: list[Segment], start: int) -> None:
        """Produce the rest of a partition."""
        topic, partition = place
        one = ReplayedPartition(topic, partition, segments[0].topic or "", 0, start, start)
        self._done.partitions.append(one)
        if (first := _start(segments, self._options)) > start:
            self._done.notes.append(
                f"{one.source_topic}-{partition}: offsets {start} to {first - 1} were deleted from the log before they"
                " were replayed"
            )
        uncut = Uncut.of(segments)
        while True:
            faults, notes = list[Fault](), list[str]()
            try:
                for stretch in self._stretches(place, segments, one, uncut, faults, notes):
                    self._commit(stretch, one)
                break
            except NotDeliveredError as error:
                self._client.abort()
                if self._is_exact:
                    raise ReplayError(str(error)) from None
                self._is_exact = True
        self._done.faults += [fault for fault in faults if fault not in self._done.faults]
        self._done.notes += [note for note in notes if note not in self._done.notes]

    def _stretches(
        self,
        place: Place,
        segments: list[Segment],
        one: ReplayedPartition,
        uncut: Uncut,
        faults: list[Fault],
        notes: list[str],
    ) -> Iterator[Stretch]:
        """Produce records; returns them where a transaction may end."""
        bounds = replace(self._options, start_offset=one.end_offset)
        log = Log(Discovery(segments=segments))
        stream = log.scan("records", COLUMNS, bounds, on_progress=self._on_progress)
        stretch, until, most = None, 0.0, min(STEP_ROWS, self._pace.records_at_once)
        for rows in stream.batches():
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
        notes += stream.notes

    def _commit(self, stretch: Stretch, one: ReplayedPartition) -> None:
        """Commit a transaction; its mapping is on disk before."""
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
        """Write down where each partition ended."""
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
            note = f"{topic}: records with timestamp 0 get timestamp 1 ms, as the client takes 0 for the present time"
            if note not in self._done.notes:
                self._done.notes.append(note)


def _bounds(options: ReadOptions) -> dict[str, int]:
    names = ("start_offset", "end_offset", "start_timestamp", "end_timestamp")
    return {name: value for name in names if abs(value := getattr(options, name)) != NO_BOUND}


def _counts(groups: Mapping[Place, list[Segment]]) -> dict[str, int]:
    """Return how many partitions each topic of the target must have."""
    counts: dict[str, int] = {}
    for topic, partition in groups:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


def _check_names(groups: Mapping[Place, list[Segment]]) -> None:
    for topic, _ in groups:
        if topic in INTERNAL_TOPICS:
            raise ValueError(f"{topic} belongs to the coordinators of a cluster: brokers take no records for it")
        try:
            check_name(topic, ())
        except InvalidTopicError as error:
            raise ValueError(str(error)) from None


def _start(segments: list[Segment], options: ReadOptions) -> int:
    return max(log_start_offset(segments, options), options.start_offset)


def _in(seconds: float) -> float:
    return time.monotonic() + seconds
