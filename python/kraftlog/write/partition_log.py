"""The log of one partition, open for writing. Only this module opens log files for writing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_files
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.names import parse_partition_folder
from kraftlog.layout.segment import Segment
from kraftlog.transactions.producer_state import ProducerState
from kraftlog.types import Buffer
from kraftlog.write.active_segment import ActiveSegment, fitting
from kraftlog.write.appended_batches import check_offsets, headers_of
from kraftlog.write.log_directory_state import remove_clean_shutdown
from kraftlog.write.log_end import LogEnd
from kraftlog.write.log_files import segment_file, segment_name
from kraftlog.write.log_options import LogOptions
from kraftlog.write.log_repair import cut_back, repair, take_back
from kraftlog.write.older_segments import delete_segments_before, forget_producers
from kraftlog.write.producers import LogProducers
from kraftlog.write.recovery_points import RecoveryPoint
from kraftlog.write.segment_state import empty_segment

_DEFAULTS = LogOptions()


class PartitionLog:
    """The end of a log, open for writing; the caller holds the lock of the log directory.

    The log is truncated at the end, and index files that do not match it are rewritten. A log without segments gets one
    with the first append, or when it is closed. ``.kafka_cleanshutdown`` of the log directory is removed, so that a
    broker recovers the log when this process is killed.

    Parameters
    ----------
    end : LogEnd
        From ``find_log_end``; this object takes it over.
    options : LogOptions
    recovery_point : RecoveryPoint, optional
        Receives the offset up to which everything is on disk.

    Attributes
    ----------
    epochs : LeaderEpochs
    failure : BaseException or None
        The error that stopped all writes.
    least_timestamp, segment_bytes : int
        As in ``LogOptions``; they are updated while a log stays open for long.

    Raises
    ------
    OSError
        When a step of the recovery fails.

    Examples
    --------
    >>> import tempfile, kraftlog, pyarrow as pa
    >>> from kraftlog.write.log_end import find_log_end
    >>> batches = kraftlog.encode(pa.record_batch({"value": ["one", "two"]}))
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name) / "orders-0"
    ...     folder.mkdir()
    ...     with PartitionLog(find_log_end(folder)) as log:
    ...         log.append(batches, commit=True)
    ...     kraftlog.open(folder).records(["offset"]).to_table()["offset"].to_pylist()
    [0, 1]
    """

    def __init__(
        self, end: LogEnd, options: LogOptions = _DEFAULTS, recovery_point: RecoveryPoint | None = None
    ) -> None:
        self.epochs = end.epochs
        self.failure: BaseException | None = None
        self.least_timestamp = options.least_timestamp
        self.segment_bytes = options.segment_bytes
        self._folder = end.folder
        self._topic_partition = parse_partition_folder(end.folder.name) or (None, None)
        self._options = options
        self._recovery_point = recovery_point
        self._producers = end.producers
        self._interval_bytes = end.index_interval_bytes
        self._last_timestamp = NO_TIMESTAMP  # files of the segments before the last one
        self._started: list[int] = []  # base offsets of the segments that the current append has begun
        self._before: tuple[int, int] | None = None  # base offset and size of the last segment before that append
        remove_clean_shutdown(self._folder.parent)
        repair(end)
        self.epochs.write()
        if recovery_point is not None:
            recovery_point.record(end.next_offset)
        if end.checked:
            last = end.checked[-1]
            self._segment = ActiveSegment(self._folder, last.base_offset, last.state, last.txnindex)
            self._segment.open()
        else:
            self._segment = self._empty_segment(end.start_offset)

    @property
    def next_offset(self) -> int:
        """Offset of the next record."""
        return self._segment.state.next_offset

    @property
    def last_base_offset(self) -> int:
        """Base offset of the last segment."""
        return self._segment.base_offset

    @property
    def last_timestamp(self) -> int:
        """Largest timestamp of the last batch, in milliseconds."""
        return self._segment.state.last_timestamp

    def begin_append(self) -> tuple[int, int]:
        """Note the end of the log: ``take_back`` truncates it there.

        Each append does this itself. A caller with more to undo calls it before the first step.

        Returns
        -------
        (int, int)
            Base offset and size of the last segment.
        """
        self._before = None  # until both belong to the same append
        self._started.clear()
        self._before = self._segment.base_offset, self._segment.state.size
        return self._before

    def append(self, batches: Buffer, *, commit: bool) -> None:
        """Append whole batches, all or none; with ``commit`` the caller relies on them from now on.

        Parameters
        ----------
        batches : buffer
            Record batches of magic 2, the first of which begins at ``next_offset``, and each other one at the end of
            the one before, or later where the options allow gaps.
        commit : bool

        Raises
        ------
        ValueError
            For other batches; nothing is written then.
        OSError
            When a write fails. The log is then truncated to its earlier end, and nothing more is written.
        """
        self.check()
        view = memoryview(batches).cast("B")
        headers = headers_of(view)
        check_offsets(headers, self.next_offset, self._folder, allows_gaps=self._options.allows_gaps)
        if self._segment.is_open:
            self._segment.open()
        before = self.begin_append()
        try:
            while len(headers):
                self._open_segment()
                count = self._fitting(headers)
                if not count:
                    self._roll()
                    continue
                appended = headers[: 1 if self._options.fsync == "batch" else count]
                self._segment.write(view, appended)
                self._take(appended)
                if self._options.fsync == "batch":
                    self._sync()
                headers = headers[len(appended) :]
            if commit and self._options.fsync == "commit":
                self._sync()
        except BaseException as error:
            self._undo(error, *before)
            raise

    def waits_to_append(self, size: int, leader_epoch: int) -> bool:
        """Whether an append of so many bytes of a leader epoch writes another file, or waits for the disk."""
        segment = self._segment
        return (
            self._options.fsync == "batch"
            or not segment.is_open
            or segment.state.size + size > self.segment_bytes
            or leader_epoch > self.epochs.last
        )

    def adopt(self, staged: Path, headers: Headers) -> None:
        """Take a file of batches as the next segment, by a rename.

        Parameters
        ----------
        staged : Path
            A file in the same file system. It is synced before the rename makes it part of the log.
        headers : structured array of HEADER_DTYPE
            Headers of all batches in it, as ``append`` takes them.

        Raises
        ------
        ValueError
            When the offsets do not follow the log, or are too far apart for one segment.
        OSError
            When a step fails; nothing more is written then.
        """
        self.check()
        self._before = None
        check_offsets(headers, self.next_offset, self._folder)
        base_offset = self.next_offset
        if last_offsets(headers)[-1] - base_offset > LARGEST_RELATIVE_OFFSET:
            raise ValueError(f"{staged}: its offsets do not fit one segment")
        try:
            self._finish_segment()
            write_files(self._snapshot(base_offset))
            disk().sync_file(staged)  # with the headers of a staged file it could be taken for a part of the log
            disk().give_to_owner(staged, self._folder)
            disk().rename(staged, segment_file(self._folder, base_offset))
            disk().sync_folder(self._folder)
            self._segment.close()
            self._segment = self._empty_segment(base_offset)
            self._segment.open()
            self._segment.state.add(headers)
            self._take(headers)
        except BaseException as error:
            self.failure = error
            raise

    def roll(self, at: int | None = None) -> None:
        """Begin a new segment, unless the last one is empty.

        Parameters
        ----------
        at : int, optional
            Its base offset, where the options allow gaps; by default, and at least, ``next_offset``.

        Raises
        ------
        OSError
            When a step fails; nothing more is written then.
        """
        self.check()
        before = self.begin_append()
        try:
            self._open_segment()
            if self._segment.state.size:
                if at is not None and self._options.allows_gaps:
                    self._segment.state.next_offset = max(at, self.next_offset)
                self._roll()
        except BaseException as error:
            self._undo(error, *before)
            raise

    def begin_epoch(self, epoch: int) -> None:
        """Begin a leader epoch at ``next_offset``; the file of epochs is synced first, as in Kafka."""
        self.epochs.assign(epoch, self.next_offset)
        self.epochs.write()

    def sync(self, lock: AbstractContextManager[object]) -> int:
        """Wait until everything appended so far is on disk, while other threads append.

        Parameters
        ----------
        lock : context manager
            The lock that every thread holds when it calls another method; this caller does not. Only one thread at a
            time may call this method.

        Returns
        -------
        int
            The offset up to which all is on disk, as in the recovery point.

        Raises
        ------
        OSError
            When the disk fails, now or before; nothing more is written then.
        """
        with lock:
            self.check()
            segment, end = self._segment, self.next_offset
            file = segment.hold()
        try:
            if file is not None:
                file.sync()
        except OSError as error:
            self.failure = error  # at once: another fsync would succeed, and lost data would count as on disk
            raise
        finally:
            with lock:
                segment.release()
        with lock:
            if self._recovery_point is not None:
                self._recovery_point.advance(end)
        return end

    def last_segment(self, offset: int) -> tuple[Segment, int] | None:
        """Return the last segment, as far as it is written, and the byte from which to read up to an offset.

        Returns
        -------
        (Segment, int) or None
            None when the offset lies in an earlier segment.
        """
        segment = self._segment
        if offset < segment.base_offset or not segment.is_open:
            return None
        topic, partition = self._topic_partition
        name = segment_name(segment.base_offset)
        last = Segment(self._folder, name, segment.state.size, segment.base_offset, topic, partition)
        return last, segment.state.index.position_before(offset)

    def rest(self) -> None:
        """Close the log file; the next append or sync reopens it."""
        self._segment.rest()

    def producer_states(self) -> list[ProducerState]:
        """Return the state of each producer at the end of the log."""
        return self._producers.states()

    def delete_before(self, offset: int, producer_id: int) -> None:
        """Delete the segments before one, and drop all producers except the one that wrote after them.

        Parameters
        ----------
        offset : int
            Base offset of a segment.
        producer_id : int

        Raises
        ------
        OSError
            When a step fails; the call can be repeated.
        """
        self.check()
        self._producers = LogProducers([each for each in self.producer_states() if each.producer_id == producer_id])
        forget_producers(self._folder, offset, producer_id)
        delete_segments_before(self._folder, offset)

    def take_back(self) -> None:
        """Truncate the log to its end before the last append, and close it: its state may be inconsistent.

        For an append that an exception other than one of the disk has interrupted, such as KeyboardInterrupt.
        """
        self.abandon()
        if self._before is not None:
            take_back(self._folder, *self._before, self._started)

    def check(self) -> None:
        """Raise when an earlier write failed."""
        if self.failure is not None:
            raise OSError(f"{self._folder}: an earlier write failed ({self.failure}); reopen the log")

    def close(self) -> None:
        """Complete index files, checkpoints and ``.snapshot``; after a failure the next ``PartitionLog`` does."""
        try:
            if self.failure is None:
                self._open_segment()
                self._finish_segment()
                self.epochs.write()
                if self._recovery_point is not None:
                    self._recovery_point.end(self.next_offset)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files without completing them, which the next ``PartitionLog`` does; a second time does nothing."""
        self._segment.close()
        if self._recovery_point is not None:
            self._recovery_point.close()

    def __enter__(self) -> PartitionLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _fitting(self, headers: Headers) -> int:
        return fitting(
            headers,
            size=self._segment.state.size,
            most_bytes=self.segment_bytes,
            base_offset=self._segment.base_offset,
            most_offsets=LARGEST_RELATIVE_OFFSET,
        )

    def _take(self, headers: Headers) -> None:
        self._segment.txnindex += self._producers.add(headers)
        epochs = self._segment.state.epochs
        if epochs and epochs[-1][0] > self.epochs.last:
            self.epochs.add(epochs)
            self.epochs.write()

    def _open_segment(self) -> None:
        """Open the first segment of a log that had none."""
        if not self._segment.is_open:
            self._begin(self._segment)

    def _roll(self) -> None:
        self._finish_segment()
        self._last_timestamp = self.last_timestamp
        full, following = self._segment, self._empty_segment(self.next_offset)
        self._begin(following)
        self._segment = following
        full.close()

    def _begin(self, segment: ActiveSegment) -> None:
        write_files(self._snapshot(segment.base_offset))
        self._started.append(segment.base_offset)
        segment.open()

    def _finish_segment(self) -> None:
        """Sync all files of the last segment to disk."""
        if self._segment.is_open:
            self._sync()
            write_files(self._segment.index_files() | self._snapshot(self.next_offset))

    def _snapshot(self, offset: int) -> dict[Path, bytes]:
        """Return the ``.snapshot`` file at an offset; Kafka has none at the start of a log."""
        if offset == 0:
            return {}
        self._producers.expire(self.least_timestamp)
        data = self._producers.snapshot()
        return {segment_file(self._folder, offset, "snapshot"): data}

    def _sync(self) -> None:
        self._segment.sync()
        if self._recovery_point is not None:
            self._recovery_point.advance(self.next_offset)

    def _empty_segment(self, base_offset: int) -> ActiveSegment:
        state = empty_segment(base_offset, self._interval_bytes)
        state.last_timestamp = self._last_timestamp
        return ActiveSegment(self._folder, base_offset, state)

    def _undo(self, error: BaseException, base_offset: int, size: int) -> None:
        self.failure = error
        note = cut_back(self._folder, base_offset, size, self._started)
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{error.strerror}; {note}") from error
