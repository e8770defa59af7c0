"""Finishes a decided write: staged files become segments of their logs, and get a commit marker.

Each step can be repeated, so that a crash at any moment loses nothing. Readers at read_committed see the new rows when
the marker is there. The old segments of topics that are overwritten are deleted before that, so that a reader never
sees both.
"""

from __future__ import annotations

import logging
from pathlib import Path

from kraftlog.codec.end_transaction_marker import encode_marker
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.names import parse_segment_file
from kraftlog.store.committed_batches import keep_batch_id
from kraftlog.store.decision import Decision, PartitionDecision, PlacedFile
from kraftlog.store.placing import placed_headers, write_headers
from kraftlog.store.staging import PRODUCER_EPOCH, read_headers
from kraftlog.store.write_id import WriteId
from kraftlog.write.log_end import LogEnd, find_log_end
from kraftlog.write.log_files import segment_file
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import record_recovery_points

_LOGGER = logging.getLogger("kraftlog.store")

PRODUCER_EXPIRATION_MS = 86_400_000  # Kafka's default of producer.id.expiration.ms


def finish(log_directory: Path, decision: Decision) -> None:
    """Finish a write; what was done of it before is not done again.

    Parameters
    ----------
    log_directory : Path
        Which the caller has locked.
    decision : Decision
        Its staged files are kept: the caller removes the write's folder.

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
            _end_transaction(partition.folder(log_directory), decision, partition)
    record_recovery_points(log_directory, {(each.topic, each.partition): each.log_end for each in decision.partitions})
    if decision.write.transactional_id is not None and decision.write.batch_id is not None:
        keep_batch_id(log_directory, decision.write.transactional_id, decision.write.batch_id)


def _make_folder(log_directory: Path, partition: PartitionDecision) -> None:
    disk().make_folder(partition.folder(log_directory))


def missing_files(log_directory: Path, write: WriteId, partition: PartitionDecision) -> list[PlacedFile]:
    """Return the files of a partition that are neither in the write's folder nor in their places."""
    staged, folder = write.folder(log_directory), partition.folder(log_directory)
    return [
        file
        for file in partition.files
        if disk().entry(staged / file.path) is None and disk().entry(segment_file(folder, file.base_offset)) is None
    ]


def _place_files(folder: Path, write_folder: Path, decision: Decision, partition: PartitionDecision) -> None:
    """Make the staged files segments of the log; a partition without any gets an empty segment."""
    waiting = [file for file in partition.files if disk().entry(write_folder / file.path) is not None]
    if partition.files and not waiting:
        return
    # what lies behind the end that was decided is cut off, as long as nothing of the write is there
    known = partition.base_offset if len(waiting) == len(partition.files) else None
    end = _log_end(folder, partition, partition.base_offset, recovery_point=known)
    is_new = end.next_offset == partition.base_offset
    if is_new and not decision.overwrite:
        _warn_of_open_transactions(end)
    end.epochs.add([(partition.leader_epoch, partition.base_offset)])
    log = PartitionLog(end, _options(decision))
    try:
        if is_new and decision.overwrite:
            log.forget_producers()
        for file in waiting:
            headers = _placed(write_folder, partition, file)
            write_headers(write_folder / file.path, headers)
            log.adopt(write_folder / file.path, headers)
        if not partition.files:
            log.roll()
            log.close()
    finally:
        log.abandon()  # it is completed behind the marker


def _log_end(
    folder: Path, partition: PartitionDecision, sound_before: int, recovery_point: int | None = None
) -> LogEnd:
    return find_log_end(
        folder,
        index_interval_bytes=partition.interval_bytes,
        recovery_point=recovery_point,
        sound_before=sound_before,
        start_offset=partition.base_offset,
    )


def _options(decision: Decision) -> LogOptions:
    return LogOptions(least_timestamp=decision.timestamp_ms - PRODUCER_EXPIRATION_MS)


def _warn_of_open_transactions(end: LogEnd) -> None:
    for state in end.producers.states():
        if state.current_transaction_first_offset is not None:
            _LOGGER.warning(
                "%s: the transaction of producer %d that began at offset %d is open; until it ends, readers at "
                "read_committed do not see what is written behind it",
                end.folder,
                state.producer_id,
                state.current_transaction_first_offset,
            )


def _placed(write_folder: Path, partition: PartitionDecision, file: PlacedFile) -> Headers:
    return placed_headers(
        read_headers(write_folder / file.path),
        base_offset=file.base_offset,
        base_sequence=file.base_sequence,
        partition_leader_epoch=partition.leader_epoch,
    )


def _delete_older(folder: Path, base_offset: int) -> None:
    """Delete segments as retention does: from the oldest on, each with the files beside it."""
    for entry in disk().entries(folder):
        name = parse_segment_file(entry.name)
        if name is not None and not name.state and name.base_offset < base_offset:
            disk().unlink(folder / entry.name)
    disk().sync_folder(folder)


def _end_transaction(folder: Path, decision: Decision, partition: PartitionDecision) -> None:
    """Append the marker, unless it is there, and complete the files beside the segments."""
    with PartitionLog(_log_end(folder, partition, partition.next_offset), _options(decision)) as log:
        if log.next_offset < partition.next_offset:
            raise CorruptRecordError(f"{folder}: the log ends at {log.next_offset}, not at {partition.next_offset}")
        if log.next_offset == partition.next_offset:
            marker = encode_marker(
                "COMMIT",
                producer_id=decision.write.producer_id,
                producer_epoch=PRODUCER_EPOCH,
                base_offset=partition.next_offset,
                partition_leader_epoch=partition.leader_epoch,
                timestamp_ms=decision.timestamp_ms,
            )
            log.append(marker, commit=True)
