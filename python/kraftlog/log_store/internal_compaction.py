"""Compaction of the topics that the coordinators write: a store runs it by itself, as a broker does.

A commit writes three records of its id and one for each offset, and only the last record of each key counts. Without
compaction the topics would grow for ever, and opening a store after a crash would read all of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.errors import RecordError
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, read_offset_checkpoint
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.log_store.errors import StoreError
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.threads import Threads
from kraftlog.log_store.transaction_state import TopicPartition

_LEAST_DIRTY = 0.5  # min.cleanable.dirty.ratio, a fraction of the bytes of closed segments

_LOGGER = logging.getLogger("kraftlog.log_store")


class InternalCompaction:
    """Cleans a coordinator's partition when half of its closed segments is newer than its last cleaning.

    Parameters
    ----------
    log_directory : Path
    clock : callable
        Returns the time in milliseconds.
    threads : Threads or None
        Threads that run it; None runs it in the caller's.
    """

    def __init__(self, log_directory: Path, clock: Callable[[], int], threads: Threads | None) -> None:
        self._log_directory = log_directory
        self._clock = clock
        self._threads = threads
        self._seen: dict[TopicPartition, int] = {}  # base offset of the last segment at the last check
        self._is_closed = False
        self._one_cleans = threading.Lock()

    def note_write(self, partition: Partition) -> None:
        """Check a partition after a write, if one of its segments was closed since the last check. It never raises."""
        last = partition.last_base_offset
        if self._seen.get(partition.key, 0) == last:
            return
        self._seen[partition.key] = last
        if self._threads is None:
            self._clean(partition)
            return
        with suppress(RuntimeError):  # the store is being closed
            self._threads.submit(self._clean, partition)

    def close(self) -> None:
        """Wait for running work, and start no more."""
        self._is_closed = True
        with self._one_cleans:
            pass

    def _clean(self, partition: Partition) -> None:
        from kraftlog.log_store.housekeeping import clean

        try:
            with self._one_cleans:
                if not self._is_closed and self._is_dirty(partition):
                    clean(partition, self._log_directory, self._clock(), roll=False)
        except (StoreError, RecordError, OSError) as error:  # the next write reports a failing disk itself
            _LOGGER.warning("%s: it could not be compacted: %s", partition.folder, error)

    def _is_dirty(self, partition: Partition) -> bool:
        path = self._log_directory / CLEANER_OFFSETS
        cleaned = read_offset_checkpoint(path).get(partition.key, 0) if disk().entry(path) is not None else 0
        closed = PartitionFolder.of(partition.folder).segments[:-1]
        dirty = sum(segment.size for segment in closed if (segment.base_offset or 0) >= cleaned)
        return dirty > 0 and dirty >= _LEAST_DIRTY * sum(segment.size for segment in closed)
