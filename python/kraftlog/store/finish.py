"""Puts what was decided in its place. Each step may be repeated, so that a crash at any moment costs nothing.

Readers at read_committed see nothing of it before the markers; the old segments of topics that are overwritten go
before them, so that nobody sees both.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from kraftlog.codec.end_transaction_marker import encode_marker
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.disk.durable import give_to_owner, sync_folder, write_file
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import IndexBuilder
from kraftlog.layout.leader_epochs import LeaderEpochs
from kraftlog.layout.names import parse_segment_file
from kraftlog.layout.small_files import producer_snapshot_bytes
from kraftlog.store.decision import Decision, PartitionDecision, PlacedFile
from kraftlog.store.log_end import producers_at, segment_file
from kraftlog.store.placing import placed_headers, write_headers
from kraftlog.store.staging import PRODUCER_EPOCH, read_headers
from kraftlog.store.streams import keep_batch_id
from kraftlog.store.write_id import WriteId
from kraftlog.transactions.producer_state import ProducerStates

_LOGGER = logging.getLogger("kraftlog.store")

PRODUCER_EXPIRATION_MS = 86_400_000  # Kafka's default of producer.id.expiration.ms


def finish(log_directory: Path, decision: Decision) -> None:
    """Finish a write; what was done of it before is not done again.

    Parameters
    ----------
    log_directory : Path
        Which the caller has locked.
    decision : Decision
        Its staged files are kept: whoever calls removes the write's folder.

    Raises
    ------
    CorruptRecordError
        When a staged file is neither in the write's folder nor in its place.
    """
    folder = decision.write.folder(log_directory)
    for partition in decision.partitions:
        for file in missing_files(log_directory, decision.write, partition):
            raise CorruptRecordError(
                f"{folder / file.path}: neither here nor in its place in {partition.folder(log_directory)}; "
                "kraftlog.store.abort_unfinished gives the partition up, finishes the others and ends all other writes"
            )
    for partition in decision.partitions:
        _make_folder(log_directory, partition)
        _place_files(partition.folder(log_directory), folder, decision, partition)
    if decision.overwrite:
        for partition in decision.partitions:
            _delete_older(partition.folder(log_directory), partition.base_offset)
    for partition in decision.partitions:
        if partition.files:
            _end_transaction(log_directory, folder, decision, partition)
    if decision.write.transactional_id is not None and decision.write.batch_id is not None:
        keep_batch_id(log_directory, decision.write.transactional_id, decision.write.batch_id)


def _make_folder(log_directory: Path, partition: PartitionDecision) -> None:
    folder = partition.folder(log_directory)
    if not folder.exists():
        folder.mkdir()
        fd = os.open(folder, os.O_RDONLY)
        try:
            give_to_owner(fd, log_directory)
        finally:
            os.close(fd)
        sync_folder(log_directory)
    epochs = LeaderEpochs(folder, partition.base_offset + 1, [(partition.leader_epoch, partition.base_offset)])
    epochs.write()


def missing_files(log_directory: Path, write: WriteId, partition: PartitionDecision) -> list[PlacedFile]:
    """Return the files of a partition that are neither in the write's folder nor in their places."""
    staged, folder = write.folder(log_directory), partition.folder(log_directory)
    return [
        file
        for file in partition.files
        if not (staged / file.path).exists() and not segment_file(folder, file.base_offset).exists()
    ]


def _place_files(folder: Path, write_folder: Path, decision: Decision, partition: PartitionDecision) -> None:
    waiting = [file for file in partition.files if (write_folder / file.path).exists()]
    if not partition.files and not segment_file(folder, partition.base_offset).exists():
        producers = _producers_before(partition.base_offset, decision, partition, folder)
        _write_snapshot(folder, partition.base_offset, producers, decision)
        write_file(segment_file(folder, partition.base_offset), b"")
    if not waiting:
        return
    producers = _producers_before(waiting[0].base_offset, decision, partition, folder)
    for file in waiting:
        headers = _placed(write_folder, partition, file)
        write_headers(write_folder / file.path, headers, folder)
        _write_snapshot(folder, file.base_offset, producers, decision)
        (write_folder / file.path).replace(segment_file(folder, file.base_offset))
        sync_folder(folder)
        producers.add(headers)


def _producers_before(offset: int, decision: Decision, partition: PartitionDecision, folder: Path) -> ProducerStates:
    """Return the producers before a new segment; those of deleted segments go with them, as do open transactions."""
    if offset > partition.base_offset:
        return producers_at(folder, offset)
    if decision.overwrite:
        return ProducerStates()
    producers = producers_at(folder, offset)
    for state in producers.states():
        if state.current_transaction_first_offset is not None:
            _LOGGER.warning(
                "%s: the transaction of producer %d that began at offset %d is open; until it ends, readers at "
                "read_committed do not see what is written behind it",
                folder,
                state.producer_id,
                state.current_transaction_first_offset,
            )
    return producers


def _placed(write_folder: Path, partition: PartitionDecision, file: PlacedFile) -> Headers:
    return placed_headers(
        read_headers(write_folder / file.path),
        base_offset=file.base_offset,
        base_sequence=file.base_sequence,
        partition_leader_epoch=partition.leader_epoch,
    )


def _write_snapshot(folder: Path, offset: int, producers: ProducerStates, decision: Decision) -> None:
    """Keep the producers at the start of a segment; like Kafka, without those that have been idle for a day."""
    if offset == 0:
        return
    least = decision.timestamp_ms - PRODUCER_EXPIRATION_MS
    kept = [
        state
        for state in producers.states()
        if state.last_timestamp >= least or state.current_transaction_first_offset is not None
    ]
    write_file(segment_file(folder, offset, "snapshot"), producer_snapshot_bytes(kept))


def _delete_older(folder: Path, base_offset: int) -> None:
    """Delete segments as retention does: from the oldest on, each with the files beside it."""
    for path in sorted(folder.iterdir()):
        name = parse_segment_file(path.name)
        if name is not None and not name.state and name.base_offset < base_offset:
            path.unlink()
    sync_folder(folder)


def _end_transaction(log_directory: Path, write_folder: Path, decision: Decision, partition: PartitionDecision) -> None:
    """Append the marker, and write the index files of the new segments."""
    folder = partition.folder(log_directory)
    marker = encode_marker(
        "COMMIT",
        producer_id=decision.write.producer_id,
        producer_epoch=PRODUCER_EPOCH,
        base_offset=partition.next_offset,
        partition_leader_epoch=partition.leader_epoch,
        timestamp_ms=decision.timestamp_ms,
    )
    last = partition.files[-1]
    with segment_file(folder, last.base_offset).open("r+b") as log:
        log.seek(partition.marker_position)
        log.write(marker)
        log.flush()
        os.fsync(log.fileno())
    for file in partition.files:
        headers = _placed(write_folder, partition, file)
        if file is last:
            headers = np.concatenate((headers, _header_of(marker, partition.marker_position)))
        index = IndexBuilder(file.base_offset, partition.interval_bytes)
        index.add(headers)
        write_file(segment_file(folder, file.base_offset, "index"), index.index())
        write_file(segment_file(folder, file.base_offset, "timeindex"), index.timeindex())


def _header_of(marker: pa.Buffer, position: int) -> Headers:
    (header,) = HeaderScan(marker).headers()
    placed = header.copy()
    placed["position"] = position
    return placed
