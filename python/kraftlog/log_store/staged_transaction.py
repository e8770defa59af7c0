"""The transaction of a staged write: its files, its topics and its progress, in a store that is open."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from kraftlog.log_store.directory import partition_folders
from kraftlog.log_store.errors import ReusedTransactionalIdError
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.overwrites import Overwrite
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.staging import StagedFile, StagingOptions, read_headers
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.topics import DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_SEGMENT_BYTES
from kraftlog.log_store.transaction_coordinator import LONGEST_TIMEOUT_MS
from kraftlog.log_store.transaction_state import NONE, TopicPartition
from kraftlog.log_store.write_id import ONCE, WriteId
from kraftlog.transactions.producer_state import SEQUENCES

BATCHES = ("kraftlog-batches", 0)
"""A group's committed offset of this topic, which does not exist, is the number of committed batches of a sequence.

The metadata of the commit is the query id."""

_LOGGER = logging.getLogger("kraftlog.log_store")


def last_batch(groups: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]], write: WriteId) -> int | None:
    """Return the last committed batch of a sequence, if that is the batch of a write or a later one.

    Raises
    ------
    ReusedTransactionalIdError
        When another query has committed it.
    """
    if write.transactional_id is None or write.batch_id is None:
        return None
    batch = groups.get(write.transactional_id, {}).get(BATCHES)
    if batch is not None and batch.metadata and write.query_id and batch.metadata != write.query_id:
        raise ReusedTransactionalIdError(
            f"transactional id {write.transactional_id!r}: {batch.offset} batches of query {batch.metadata} are "
            f"committed under it; batch {write.batch_id} is of query {write.query_id}, whose checkpoint "
            "is another one and numbers batches from 0. Give it its own transactional id"
        )
    return batch.offset - 1 if batch is not None and batch.offset > write.batch_id else None


def committed_batch(store: LogStore, write: WriteId) -> int | None:
    """Return ``last_batch`` for a store."""
    if write.transactional_id is None:
        return None
    return last_batch({write.transactional_id: store.committed(write.transactional_id)}, write)


class StagedTransaction:
    """A transaction of staged files.

    Parameters
    ----------
    store : LogStore
    write : WriteId
    folder : Path
        Folder of the write.

    Attributes
    ----------
    may_be_decided, is_decided : bool
        Whether writing the decision has begun, and whether it is on disk.
    """

    def __init__(self, store: LogStore, write: WriteId, folder: Path) -> None:
        self._store, self._parts = store, store._parts
        self._write, self._folder = write, folder
        self._transactional_id = write.transactional_id or ONCE
        self._state = self._parts.transactions.init_producer_id(self._transactional_id, LONGEST_TIMEOUT_MS)
        self._overwrite: Overwrite | None = None
        self.may_be_decided = self.is_decided = False

    def append(
        self,
        files: Iterable[StagedFile],
        topics: Mapping[str, int],
        *,
        overwrite: bool,
        options: StagingOptions,
    ) -> dict[TopicPartition, int]:
        """Append files in order; return the first offset of each partition."""
        by_partition: dict[TopicPartition, list[StagedFile]] = {}
        for file in files:
            by_partition.setdefault((file.topic, file.partition), []).append(file)
        self._make_topics(by_partition, topics, options, also_empty=overwrite)
        overwritten: list[TopicPartition] = []
        if overwrite:
            names = {topic for topic, _ in by_partition} | set(topics)
            overwritten = [(name, at) for name in sorted(names) for at in range(self._store.topics[name].partitions)]
        self._add({*by_partition, *overwritten})
        if overwrite:
            starts = {key: self._parts.partition_of(key).roll() for key in overwritten}
            self._overwrite = Overwrite(
                self._transactional_id, self._state.producer_id, self._state.producer_epoch, starts
            )
        return {key: self._append(key, each, warns=not overwrite) for key, each in sorted(by_partition.items())}

    def commit(self) -> None:
        """Commit the files and the progress, or neither."""
        if not self._state.is_ongoing:  # without rows and a batch number there is nothing to commit
            return
        if self._overwrite is not None:
            self._overwrite.write(self._folder)
        self.may_be_decided = True
        self._state = self._parts.transactions.end(self._state, is_commit=True, on_decision=self._decided)

    def _decided(self) -> None:
        self.is_decided = True
        if self._overwrite is not None:
            self._overwrite.finish(self._parts.partition_of)

    def _make_topics(
        self,
        files: Iterable[TopicPartition],
        counts: Mapping[str, int],
        options: StagingOptions,
        *,
        also_empty: bool,
    ) -> None:
        least: dict[str, int] = dict.fromkeys(counts, 1) if also_empty else {}
        for topic, partition in files:
            least[topic] = max(least.get(topic, 1), partition + 1)
        for topic, partitions in sorted(least.items()):
            if topic in self._store.topics:
                continue
            folders = partition_folders(self._store.path).get(topic, [])
            count = max(partitions, counts.get(topic, 1), *(at + 1 for at in folders))
            self._store.create_topic(topic, count, _configs(options))
            for at in range(count):  # as a broker does, which makes all folders at once
                self._parts.partition_of((topic, at))

    def _add(self, keys: set[TopicPartition]) -> None:
        """Add all partitions to the transaction before writing to them."""
        progress = self._progress()
        if progress is not None:
            group, _ = progress
            offsets = self._parts.groups.partition_for(group)
            self._parts.partition_of(offsets)  # the partition exists before a transaction names it
            keys = {*keys, offsets}
        if keys:
            self._state = self._parts.transactions.add_partitions(self._state, frozenset(keys))
        if progress is not None:
            stamp = Stamp(self._state.producer_id, self._state.producer_epoch, NONE, is_transactional=True)
            name, committed = progress
            self._parts.groups.commit_in_transaction(GroupMetadata(name), committed, stamp)

    def _progress(self) -> tuple[str, dict[TopicPartition, OffsetAndMetadata]] | None:
        write = self._write
        if write.transactional_id is None or write.batch_id is None:
            return None
        return write.transactional_id, {BATCHES: OffsetAndMetadata(write.batch_id + 1, write.query_id)}

    def _append(self, key: TopicPartition, files: list[StagedFile], *, warns: bool) -> int:
        partition, sequence, first = self._parts.partition_of(key), 0, -1
        for producer_id, entry in partition.producers.open_transactions().items() if warns else ():
            _LOGGER.warning(
                "%s: the transaction of producer %d that began at offset %d is open; until it ends, readers at "
                "read_committed do not see records after it",
                partition.folder,
                producer_id,
                entry.transaction_start,
            )
        for file in files:
            path = self._folder / file.path
            stamp = Stamp(self._state.producer_id, self._state.producer_epoch, sequence, is_transactional=True)
            offset = partition.append_staged(path, read_headers(path), stamp, self._parts.clock())
            first = offset if first < 0 else first
            sequence = (sequence + file.records_count) % SEQUENCES
        return first


def _configs(options: StagingOptions) -> dict[str, int]:
    """Return the configuration for sizes other than Kafka's; it allows small segments only under another name."""
    configs: dict[str, int] = {}
    if options.segment_bytes != DEFAULT_SEGMENT_BYTES:
        name = "segment.bytes" if options.segment_bytes >= 1 << 20 else "internal.segment.bytes"
        configs[name] = max(options.segment_bytes, 1 << 10)
    if options.max_batch_bytes > DEFAULT_MAX_MESSAGE_BYTES:
        configs["max.message.bytes"] = options.max_batch_bytes
    return configs
