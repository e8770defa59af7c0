"""``PartitionLog``: appends, rolls, transactions; closed, killed, opened again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from known_reads import read_once
from partition_state import state_faults
from process import Process
from runner import Notes, Workload
from units import assert_closed, assert_possible

import kraftlog
from kraftlog.codec.end_transaction_marker import encode_marker
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.disk.lock import lock_log_directories
from kraftlog.layout.checkpoints import LOG_START_OFFSETS
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import RecoveryPoint

FOLDER = Path("/sim/logs/orders-0")
PRODUCERS = (7, 8)
LAST = "last"  # what a recovery appends, unless one before it did


class PartitionWorkload(Workload):
    """Three writers, one after the other, the second of which is stopped without a close.

    Parameters
    ----------
    fsync : {"commit", "batch"}
    has_point : bool
        Whether there is a recovery point.
    """

    def __init__(self, fsync: str = "commit", *, has_point: bool = True) -> None:
        self.fsync, self.has_point = fsync, has_point

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.fsync}{'' if self.has_point else ', no recovery point'})"

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(FOLDER.parent)
        with disk().create(FOLDER.parent / ".kafka_cleanshutdown") as file:
            file.append(b'{"version":0,"brokerEpoch":-1}')

    def open(self) -> PartitionLog:
        disk().make_folder(FOLDER)
        point = RecoveryPoint(FOLDER) if self.has_point else None
        end = find_log_end(FOLDER, recovery_point=point.offset if point else None)
        return PartitionLog(end, LogOptions(segment_bytes=self.segment_bytes, fsync=self.fsync), point)

    def run(self, process: Process) -> None:
        self.segment_bytes = process.random.choice((1400, 5000))
        number = 0
        sequences = dict.fromkeys(PRODUCERS, 0)
        for writer in range(3):
            with lock_log_directories([FOLDER]):
                process.note("opened")
                log = self.open()
                if process.random.random() < 0.7:
                    log.begin_epoch(writer)
                for _ in range(process.random.randrange(1, 4)):
                    number = self.unit(process, log, number, writer, sequences)
                if writer != 1:
                    log.close()
                    process.note("closed")
                else:
                    log.abandon()

    def unit(self, process: Process, log: PartitionLog, number: int, epoch: int, sequences: dict[int, int]) -> int:
        """Append some batches, as one that is acknowledged; return the number of the next row."""
        dice = process.random
        if dice.random() < 0.3:
            log.roll()
        if dice.random() < 0.2:
            if dice.random() < 0.5:  # it is on disk before what follows it
                process.note("begin", (row := f"{number:04} before",))
                append(log, process, row, epoch, commit=False)
                number += 1
            process.note("begin", (row := f"{number:04} adopted",))
            adopt(log, process, row, epoch)
            process.note("done")
            return number + 1
        sizes = [dice.choice((10, 200, 700)) for _ in range(dice.randrange(1, 6))]
        rows = tuple(f"{number + n:04}".ljust(size, ".") for n, size in enumerate(sizes))
        producer = dice.choice((None, *PRODUCERS))
        if producer is None and dice.random() < 0.5:  # at once, into several segments
            for row in rows:
                process.note("begin", (row,))
            batches = [batch_of(log, process, row, epoch, behind=n) for n, row in enumerate(rows)]
            log.append(b"".join(batches), commit=True)
            process.note("done")
            return number + len(rows)
        for row in rows:
            process.note("begin", (row,))
            if producer is None:
                append(log, process, row, epoch, commit=row is rows[-1])
            else:
                append(log, process, row, epoch, commit=False, producer_id=producer, base_sequence=sequences[producer])
                sequences[producer] += 1
        if producer is not None:
            marker = encode_marker(
                dice.choice(("COMMIT", "ABORT")),
                producer_id=producer,
                producer_epoch=0,
                base_offset=log.next_offset,
                partition_leader_epoch=epoch,
                timestamp_ms=process.clock(),
            )
            log.append(marker, commit=True)
        process.note("done")
        return number + len(rows)

    def recover(self, process: Process) -> Any:
        process.note("opens", disk().entry(FOLDER.parent / ".kafka_cleanshutdown") is not None)
        self.segment_bytes = 1400
        process.note("found", tuple(state_faults(FOLDER, is_closed=True)))
        before = state_faults(FOLDER, is_closed=False)
        with lock_log_directories([FOLDER]):
            process.note("opened")
            log = self.open()
            shown = rows_of()
            process.note("shown", shown)
            if shown[-1:] != (LAST,):
                process.note("begin", (LAST,))
                append(log, process, LAST, 0, commit=True)
                process.note("done")
            log.close()
        process.note("closed")
        messages = verified(FOLDER)
        faults = messages + state_faults(FOLDER, is_closed=True)
        return {"before": before, "rows": rows_of(), "faults": faults}

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["faults"] == [], seen["faults"]
        assert seen["before"] == [], seen["before"]
        assert_possible(seen["rows"], notes)
        assert_closed(notes)
        at = notes.index(("opens", True)) if ("opens", True) in notes else 0
        assert ("done",) not in notes[:at], "a broker would not recover what was written"


def batch_of(log: PartitionLog, process: Process, row: str, epoch: int, behind: int = 0, **ids: int) -> bytes:
    """Return a batch of one row, so many offsets behind the end of a log."""
    return kraftlog.encode(
        pa.record_batch({"value": [row]}),
        base_offset=log.next_offset + behind,
        partition_leader_epoch=max(epoch, log.epochs.last),
        timestamp_ms=process.clock(),
        **({"producer_epoch": 0, "is_transactional": True, **ids} if ids else {}),
    ).to_pybytes()


def append(log: PartitionLog, process: Process, row: str, epoch: int, *, commit: bool, **ids: int) -> None:
    """Append a batch of one row."""
    log.append(batch_of(log, process, row, epoch, **ids), commit=commit)


def adopt(log: PartitionLog, process: Process, row: str, epoch: int) -> None:
    """Stage a file, and take it as the next segment, with other bytes than those that were staged."""
    staged, batch = FOLDER.parent / "staged", batch_of(log, process, row, epoch)
    with disk().create(staged) as file:
        file.append(batch_of(log, process, "?" * len(row), epoch))
        file.sync()
    disk().sync_folder(FOLDER.parent)
    with disk().open_update(staged) as file:
        file.pwrite(batch, 0)
    (headers,) = HeaderScan(batch).headers()
    log.adopt(staged, headers)


def verified(folder: Path) -> list[str]:
    """Return what ``verify`` finds in a partition or a log directory."""
    found = [fault.message for fault in kraftlog.open(folder).unreadable()]
    for each in partitions_in(folder):
        found += read_once(("verify",), [each, each.parent / LOG_START_OFFSETS], partial(_verified, each))
    return found


def _verified(folder: Path) -> list[str]:
    return [fault.message for fault in kraftlog.open(folder).verify()]


def partitions_in(folder: Path) -> list[Path]:
    """Return the folders of the partitions in a log directory, which ``verify`` takes one by one; or a partition's."""
    below = [folder / each.name for each in disk().entries(folder) if each.is_dir and "-" in each.name]
    return [each for each in below if disk().matches(each, "*.log")] or [folder]


def rows_of() -> tuple[str, ...]:
    """Return the values of all records."""
    return read_once(("rows",), [FOLDER], _rows_of)


def _rows_of() -> tuple[str, ...]:
    if not disk().matches(FOLDER, "*.log"):
        return ()
    table = kraftlog.open(FOLDER).records(["value"], strict=True).to_table()
    return tuple(value.decode() for value in table["value"].to_pylist())
