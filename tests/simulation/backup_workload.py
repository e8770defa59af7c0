"""``Repository.backup`` and ``prune``: a backup that is listed is whole, and one that was acknowledged is listed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from known_reads import read_once
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog.disk.disk import disk
from kraftlog.layout.backups import backup_names

LOGS, REPOSITORY = Path("/sim/logs"), Path("/sim/backups/nightly")
FOLDERS = [LOGS / "t-0", LOGS / "t-1"]


class BackupWorkload(Workload):
    """Backups of two partitions that grow, of which older ones are removed."""

    failures = (OSError, kraftlog.CorruptRecordError)

    def prepare(self, process: Process) -> None:
        self.next_offsets = [0, 0]
        for number, folder in enumerate(FOLDERS):
            disk().make_folder(folder)
            self.grow(process, number)

    def grow(self, process: Process, number: int) -> None:
        """Append to a partition, in a new segment or in its last one."""
        offset, folder = self.next_offsets[number], FOLDERS[number]
        count = process.random.randrange(1, 4)
        rows = pa.record_batch(
            {"value": [f"{offset + at}".ljust(process.random.choice((9, 600)), ".") for at in range(count)]}
        )
        logs = disk().matches(folder, "*.log")
        path = logs[-1] if logs and process.random.random() < 0.6 else folder / f"{offset:020d}.log"
        with disk().open_append(path) as file:
            file.append(kraftlog.encode(rows, base_offset=offset, timestamp_ms=process.clock()))
            file.sync()
        disk().sync_folder(folder)
        self.next_offsets[number] += count

    def run(self, process: Process) -> None:
        self.next_offsets = [kraftlog.open(folder).partitions[0].end_offset for folder in FOLDERS]
        repository = kraftlog.Repository(REPOSITORY)
        for _ in range(3):
            for number in range(2):
                if process.random.random() < 0.7:
                    self.grow(process, number)
            keep = process.random.choice((None, 1, 2))
            there = backup_names(REPOSITORY)
            if keep is not None:
                process.note("removes", *there[: max(len(there) + 1 - keep, 0)])
            manifest = repository.backup(LOGS, keep=keep, workers=1)
            process.note("listed", manifest.name, rows_of(manifest.name, strict=True))
        if process.random.random() < 0.5:
            process.note("removes", first := backup_names(REPOSITORY)[0])
            repository.prune(names=[first])

    def recover(self, process: Process) -> Any:
        process.note("opens")
        repository = kraftlog.Repository(REPOSITORY)
        seen: dict[str, Any] = {"names": backup_names(REPOSITORY)}
        seen["faults"] = repository.verify(data=True) if seen["names"] else []
        seen["rows"] = {name: rows_of(name) for name in seen["names"]}
        there = ended(kraftlog.open(FOLDERS))
        if not seen["names"] or ended(kraftlog.open(REPOSITORY)) != there:
            last = repository.backup(LOGS, workers=1)
            process.note("listed", last.name, rows_of(last.name))
        process.note("removes", *backup_names(REPOSITORY)[:-2])
        repository.prune(keep=2)
        seen["later"] = repository.verify(data=True)
        seen["is_whole"] = ended(kraftlog.open(REPOSITORY)) == there
        folders = [REPOSITORY / "partitions" / one.name for one in disk().entries(REPOSITORY / "partitions")]
        objects = [path.name for folder in folders for path in disk().matches(folder, "*")]
        seen["left"] = [name for name in objects if not name.endswith(".log")]
        return seen

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["faults"] == [], seen["faults"]
        assert seen["later"] == [], seen["later"]
        assert seen["left"] == [], seen["left"]
        assert seen["is_whole"]
        before = notes[: len(notes) - 1 - notes[::-1].index(("opens",))]
        removed = {name for kind, *names in before if kind == "removes" for name in names}
        listed = {note[1]: note[2] for note in before if note[0] == "listed" and note[1] not in removed}
        assert {name: seen["rows"].get(name) for name in listed} == listed


def ended(log: kraftlog.Log) -> dict[int | None, int]:
    """Return where partitions end."""
    return {one.partition: one.end_offset for one in log.partitions}


def rows_of(name: str, *, strict: bool = False) -> tuple[tuple[int, str], ...]:
    """Return partitions and values of all records of a backup."""
    return read_once(("rows of a backup", name), [REPOSITORY], partial(_rows_of, name, strict=strict))


def _rows_of(name: str, *, strict: bool) -> tuple[tuple[int, str], ...]:
    batches = kraftlog.open(f"{REPOSITORY}@{name}").records(["partition", "value"], strict=strict).batches()
    return tuple((row["partition"], row["value"].decode()) for batch in batches for row in batch.to_pylist())
