"""Writes the loss ledger: as Parquet, and as log directories that ``replay`` produces into a live broker."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.loss_ledger import LostRecords, lost_records
from kraftlog.backup.extract import copy_topic_id
from kraftlog.backup.new_folder import check_new_folder, new_folder
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import new_file
from kraftlog.disk.writing import AppendedFile
from kraftlog.errors import Fault
from kraftlog.layout.discover import READINGS
from kraftlog.layout.names import printable
from kraftlog.read.held_offsets import Stretch
from kraftlog.read.index_interval import shown_interval
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Replica
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.read import Read
from kraftlog.tables.record_rows import record_rows
from kraftlog.write.extracted_batches import ExtractedBatches, Piece
from kraftlog.write.extracted_log import write_extracted
from kraftlog.write.recovery_points import record_recovery_points

LEDGER_FILE = "loss-ledger.parquet"
RECORD_COLUMNS = [
    *("topic", "partition", "offset", "partition_leader_epoch", "timestamp", "timestamp_type", "key", "value"),
    *("headers", "producer_id", "producer_epoch", "transaction_state"),
]
OWN_COLUMNS = {"is_committed": pa.bool_(), "node_id": pa.int32(), "directory": pa.string()}


@dataclass
class LossLedger:
    """What was written.

    Attributes
    ----------
    records_count : int
    folders : list of Path
        The log directories, one for each log directory that holds lost records.
    faults : list of Fault
    """

    records_count: int = 0
    folders: list[Path] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def write_loss_ledger(log: Log, target: Path) -> LossLedger:
    """Write the records that only lost lines hold.

    If a broker deletes or replaces files that cannot be read then, all are listed and read again.

    Parameters
    ----------
    log : Log
        The files of all brokers.
    target : Path
        A new or empty folder. It gets ``loss-ledger.parquet``, and a log directory for each broker that has lost
        records, named by its node id. Offsets, producers and transactions are unchanged.

    Raises
    ------
    ValueError
        When the target is not empty or is inside a source.
    OSError
        When a write fails. Nothing is left at the target.
    """
    check_new_folder(target, log.folders)
    evidence = Evidence.of(log.found, Pass())
    with new_folder(target) as folder:
        done = _write(evidence, folder)
        for _ in range(1, READINGS):
            again = evidence.listed_again() if done.faults else None
            stale = set() if again is None else evidence.stale(again)
            if again is None or not any((one.topic, one.partition) in stale for one in done.faults):
                break
            disk().remove_tree(folder)
            disk().make_folder(folder)
            evidence = Evidence.of(again, Pass())
            done = _write(evidence, folder)
    done.folders = [target / one.name for one in done.folders]
    return done


def _write(evidence: Evidence, folder: Path) -> LossLedger:
    """Write a ledger of the files as they were listed, to an empty folder."""
    done = LossLedger(faults=evidence.read.faults)
    own = [pa.field(name, kind) for name, kind in OWN_COLUMNS.items()]
    schema = pa.schema([*TABLES["records"].schema.select(RECORD_COLUMNS), *own])
    names: dict[str, str] = {}
    with (
        new_file(folder / LEDGER_FILE) as file,
        io.BufferedWriter(cast(io.RawIOBase, AppendedFile(file))) as buffered,
        ParquetWriter(buffered, schema, compression="zstd") as ledger,
    ):
        for lost in lost_records(evidence):
            for batch in _rows(lost, schema, evidence.read):
                ledger.write_batch(batch)
                done.records_count += batch.num_rows
            _write_log(lost, folder / _name(lost.replica, names), evidence.read)
    done.folders = [folder / name for name in names.values()]
    return done


def _name(replica: Replica, names: dict[str, str]) -> str:
    """Return the name of the log directory for those of a source; ``names`` has those of other sources."""
    source = str(replica.directory)
    if source not in names:
        name = f"replica-{len(names)}" if replica.node_id is None else f"node-{replica.node_id}"
        names[source] = name if name not in names.values() else f"{name}-{len(names)}"
    return names[source]


def _is_lost(lost: LostRecords, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    firsts, ends = np.array(lost.stretches, np.int64).T
    at = np.searchsorted(firsts, offsets, side="right") - 1
    return np.asarray((at >= 0) & (offsets < ends[at]))


def _options(stretch: Stretch) -> ReadOptions:
    return ReadOptions(start_offset=stretch.first_offset, end_offset=stretch.end_offset, include_deleted=True)


def _rows(lost: LostRecords, schema: pa.Schema, read: Pass) -> Iterator[pa.RecordBatch]:
    """Return the lost records of a replica; markers are left out."""
    records = Read.of_segments(
        TABLES["records"], lost.replica.segments, RECORD_COLUMNS, _options(lost.offsets), read.faults
    )
    for rows in record_rows(records):
        batch = rows.filter(pa.array(_is_lost(lost, rows.column("offset").to_numpy())))
        own = {
            "is_committed": pa.array(batch.column("offset").to_numpy() < lost.committed_until),
            "node_id": pa.repeat(pa.scalar(lost.replica.node_id, pa.int32()), batch.num_rows),
            "directory": pa.repeat(printable(str(lost.replica.directory)), batch.num_rows),
        }
        yield pa.RecordBatch.from_arrays([*batch.columns, *(own[name] for name in OWN_COLUMNS)], schema=schema)


def _write_log(lost: LostRecords, directory: Path, read: Pass) -> None:
    """Write the lost batches of a replica, with the markers that end their transactions, as a partition's folder."""
    first = lost.replica.segments[0]
    next_first = [*(one.first_offset for one in lost.stretches[1:]), lost.replica.end.end_offset]

    def pieces() -> Iterator[Piece]:
        for stretch, limit in zip(lost.stretches, next_first, strict=True):
            batches = ExtractedBatches(lost.replica.segments, _options(stretch))
            for piece in batches.pieces():
                if piece.base_offset < limit:  # a later marker is in one of the next stretches
                    yield piece
            read.faults.extend(fault for fault in batches.faults if fault not in read.faults)

    folder = directory / f"{first.topic}-{first.partition}"
    disk().make_folder(directory)
    written = write_extracted(folder, pieces(), index_interval_bytes=shown_interval([first]), leader_epoch=None)
    copy_topic_id(first, folder)
    assert first.topic_partition is not None
    record_recovery_points(directory, {first.topic_partition: written.end_offset})
    disk().sync_folder(directory)
