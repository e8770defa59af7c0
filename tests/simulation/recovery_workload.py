"""``kraftlog recover --write``: sound batches stay, and what it has repaired needs no second repair."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from known_reads import read_once
from partition_workload import verified
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog.disk.disk import disk
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

LOGS = Path("/sim/logs")
FOLDERS = [LOGS / "t-0", LOGS / "t-1"]


class RecoveryWorkload(Workload):
    """Two partitions of a broker that was killed: torn tails, index files and snapshots that are old or missing.

    Parameters
    ----------
    cuts_damage : bool
        Whether there is damage with sound segments behind it, which are removed on request.
    """

    def __init__(self, cuts_damage: bool = False) -> None:
        self.cuts_damage = cuts_damage

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({'cut' if self.cuts_damage else 'torn'})"

    def options(self, *, write: bool) -> RecoverOptions:
        return RecoverOptions(write=write, cut_damage=self.cuts_damage)

    def prepare(self, process: Process) -> None:
        dice = process.random
        for folder in FOLDERS:
            disk().make_folder(folder)
            with PartitionLog(find_log_end(folder), LogOptions(segment_bytes=900)) as log:
                for number in range(dice.randrange(4, 9)):
                    rows = pa.record_batch({"value": [f"{number}".ljust(dice.choice((9, 300)), ".")]})
                    ids = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}
                    log.append(
                        kraftlog.encode(rows, base_offset=number, timestamp_ms=process.clock(), **ids), commit=True
                    )
            logs = disk().matches(folder, "*.log")
            for path in disk().matches(folder, "*.*"):
                if path.suffix != ".log" and dice.random() < 0.5:
                    disk().unlink(path)
                elif path.suffix in (".index", ".timeindex") and dice.random() < 0.5:
                    with disk().create(path) as file:
                        file.append(bytes(24))
            if self.cuts_damage and len(logs) > 1:
                with disk().open_update(logs[-2]) as file:
                    file.truncate(file.size - 5)
            with disk().open_append(logs[-1]) as file:
                file.append(b"torn".ljust(dice.choice((30, 700)), b"\0"))
            with disk().create(folder / "left.unfinished") as file:
                file.append(b"some")
            # a broker cuts a segment without .index, and keeps those behind it
            cut_alone = self.cuts_damage and len(logs) > 1 and disk().entry(logs[-2].with_suffix(".index")) is None
            process.note("sound", folder.name, sound(folder, cut_alone=logs[-2] if cut_alone else None))

    def run(self, process: Process) -> None:
        if not sum(action.is_refusal for _, action in recover(FOLDERS, self.options(write=True))):
            process.note("recovered")

    def recover(self, process: Process) -> Any:
        process.note("left", self.to_do())
        done = [action.reason for _, action in recover(FOLDERS, self.options(write=True)) if action.is_refusal]
        process.note("recovered")
        rows = {folder.name: sound(folder) for folder in FOLDERS}
        faults = [message for folder in FOLDERS for message in verified(folder)]
        return {"refused": done, "rows": rows, "faults": faults, "to_do": self.to_do()}

    def to_do(self) -> int:
        def read() -> int:
            return sum(action.action != "keep" for _, action in recover(FOLDERS, self.options(write=False)))

        return read_once(("to do", self.cuts_damage), [FOLDERS[0].parent], read)

    def judge(self, notes: Notes, seen: Any) -> None:
        is_recovered = False
        for kind, *what in notes:
            if kind == "left" and is_recovered:
                assert what[0] == 0, f"{what[0]} repairs were lost"
            is_recovered |= kind == "recovered"
        assert seen["refused"] == [], seen["refused"]
        assert seen["faults"] == [], seen["faults"]
        assert seen["to_do"] == 0
        expected = {name: rows for kind, name, rows in (note for note in notes if note[0] == "sound")}
        assert seen["rows"] == expected


def sound(folder: Path, cut_alone: Path | None = None) -> tuple[str, ...]:
    """Return the rows of the sound batches, up to the first that is not; those behind a file that is cut alone, too."""
    return read_once(("sound", cut_alone), [folder], partial(_sound, folder, cut_alone))


def _sound(folder: Path, cut_alone: Path | None) -> tuple[str, ...]:
    found: list[str] = []
    for path in sorted(disk().matches(folder, "*.log")):
        log = kraftlog.open(path)
        found += [value.decode() for value in log.records(["value"]).to_table()["value"].to_pylist()]
        is_odd = log.errors().num_rows or log.segments()["torn_bytes"].to_pylist()[0]
        if is_odd and path != cut_alone:
            break
    return tuple(found)
