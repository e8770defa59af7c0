"""The metadata writer: what it acknowledged is there, transactions are whole, and what a recovery showed stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partition_state import state_faults
from partition_workload import verified
from process import Process
from runner import Notes, Workload
from units import assert_closed, assert_possible

from kraftlog import MetadataLogWriter
from kraftlog.disk.disk import disk
from kraftlog.errors import InvalidTransactionStateError
from kraftlog.write.leadership import PARTITION_METADATA
from metadata_oracle import visible
from topic_record import topic_record

LOGS = Path("/sim/kraft")
FOLDER = LOGS / "__cluster_metadata-0"
FIRST_EPOCH = 9  # of all recoveries: a second one begins no epoch
LAST = topic_record("last")  # what a recovery appends, unless one before it did
OPTIONS: dict[str, Any] = {"max_batch_bytes": 700, "segment_bytes": 1500}


def record(number: int, size: int) -> bytes:
    """Return a record whose name has so many bytes."""
    return topic_record(f"{number:x}".zfill(size))


class MetadataWorkload(Workload):
    """Two controllers, one after the other."""

    def __init__(self, fsync: str = "commit") -> None:
        self.fsync = fsync

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.fsync})"

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(LOGS.parent)

    def open(self, process: Process, epoch: int) -> MetadataLogWriter:
        return MetadataLogWriter(FOLDER, epoch, clock=process.clock, fsync=self.fsync, **OPTIONS)

    def run(self, process: Process) -> None:
        number = 0
        for epoch in (1, 2):
            process.note("opened")
            with self.open(process, epoch) as writer:
                for _ in range(process.random.randrange(2, 5)):
                    rows = [
                        record(number + n, process.random.choice((20, 400)))
                        for n in range(process.random.randrange(1, 6))
                    ]
                    number += len(rows)
                    if process.random.random() < 0.5:
                        process.note("begin", tuple(rows[:1]))
                        writer.append(rows[:1])
                        process.note("done")
                    elif process.random.random() < 0.7:
                        process.note("begin", tuple(rows))
                        with writer.transaction("whole") as transaction:
                            for row in rows:
                                transaction.append([row])
                        process.note("done")
                    else:
                        writer_abort(writer, rows)
                path = writer.write_snapshot([record(0, 20)])
                process.note("file", str(path), disk().read_bytes(path))
            process.note("closed")

    def recover(self, process: Process) -> Any:
        found = state_faults(FOLDER, is_closed=False)
        process.note("found", tuple(state_faults(FOLDER, is_closed=True)))
        process.note("opened")
        self.lead(process)
        rows = visible(FOLDER)
        process.note("file", str(FOLDER / "partition.metadata"), PARTITION_METADATA)
        messages = verified(FOLDER)
        return {
            "files": process.disk.files(),
            "before": found,
            "rows": rows,
            "faults": messages + state_faults(FOLDER, is_closed=True),
        }

    def lead(self, process: Process) -> None:
        """Take over as controllers do: with a larger epoch when the last one ended before it had aborted."""
        for epoch in range(FIRST_EPOCH, FIRST_EPOCH + 4):
            try:
                with self.open(process, epoch) as writer:
                    rows = visible(FOLDER)
                    process.note("shown", tuple(rows))
                    if rows[-1:] != [LAST]:
                        process.note("begin", (LAST,))
                        writer.append([LAST])
                        process.note("done")
                    return
            except (InvalidTransactionStateError, ValueError):
                if epoch == FIRST_EPOCH + 3:
                    raise

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["faults"] == [], seen["faults"]
        assert seen["before"] == [], seen["before"]
        assert_possible(seen["rows"], notes)
        assert_closed(notes)
        for kind, *what in notes:
            if kind == "file":
                assert seen["files"].get(what[0]) == what[1], f"{what[0]} is not as it was written"


def writer_abort(writer: MetadataLogWriter, rows: list[bytes]) -> None:
    transaction = writer.transaction("aborted")
    transaction.append(rows[:1])
    transaction.abort("not wanted")
