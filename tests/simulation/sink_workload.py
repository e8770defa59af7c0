"""The sink: rows of a write are there once or not at all, and what was committed is there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from known_reads import read_once
from partition_state import state_faults
from partition_workload import partitions_in, verified
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog.disk.disk import disk
from kraftlog.errors import RecordError
from kraftlog.layout.checkpoints import LOG_START_OFFSETS
from kraftlog.layout.names import STORE_FOLDER
from kraftlog.log_store import placing
from kraftlog.log_store.directory import partition_folders
from kraftlog.log_store.errors import StoreError
from kraftlog.log_store.staged_write import CommitUnfinishedError, abort, abort_unfinished, begin, commit, recover
from kraftlog.log_store.staging import StagedFile, Stager, StagingOptions, WriteEndedError
from kraftlog.log_store.write_id import WriteId, write_of_batch

LOGS = Path("/sim/data/logs")
SMALL = StagingOptions(max_batch_bytes=300, segment_bytes=700)
OTHER = write_of_batch("other", 0)
LARGE_BYTES = 400  # of a file that is renamed
TOPICS = {"t": 2, "new": 2}
Values = dict[tuple[str, int], list[str]]


class SinkWorkload(Workload):
    """Batches of one query, and one of another, which was staged before them.

    Parameters
    ----------
    overwrites : bool
        Whether that one does.
    """

    failures = (OSError, StoreError, RecordError, CommitUnfinishedError, WriteEndedError)
    actors = ("a zombie driver",)

    def __init__(self, overwrites: bool = False) -> None:
        self.overwrites = overwrites

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({'overwrite' if self.overwrites else 'append'})"

    def prepare(self, process: Process) -> None:
        disk().make_folder(LOGS.parent.parent)

    def batches(self, process: Process) -> list[Values]:
        dice, made = process.random, []
        for number in range(3):
            places = dice.sample([("t", 0), ("t", 1), ("new", 1)], dice.randrange(1, 3))
            made.append(
                {
                    at: [f"{number}/{n}".ljust(dice.choice((5, 150)), ".") for n in range(dice.randrange(1, 7))]
                    for at in places
                }
            )
        return made

    def run(self, process: Process) -> None:
        with mock.patch.object(placing, "LARGE_BYTES", LARGE_BYTES):
            self.writes(process)

    def writes(self, process: Process) -> None:
        first, second, third = self.batches(process)
        if process.random.random() < 0.3:
            self.stage(write_of_batch("query", 0), first)
            abort(LOGS, write_of_batch("query", 0))
        other = self.stage(OTHER, third)  # a write of somebody else, which is committed last
        staged: list[StagedFile] = []
        for number, values in enumerate((first, second)):
            process.note("begin", frozen(values), False)
            write = write_of_batch("query", number)
            files = self.stage(write, values)
            if number:
                self.zombie(process, first, staged)
            commit(LOGS, write, files, topics=TOPICS)
            staged = files
            process.note("done")
        process.note("begin", frozen(third), self.overwrites)
        commit(LOGS, OTHER, other, overwrite=self.overwrites, topics=TOPICS)
        process.note("done")
        self.stage(write_of_batch("other", 1), first)
        abort(LOGS, write_of_batch("other", 1))
        process.note("ended")

    def zombie(self, process: Process, values: Values, staged: list[StagedFile]) -> None:
        """Commit what another driver has committed, and what it has aborted, while that one is at the next batch."""
        process.plays("a zombie driver")
        assert commit(LOGS, write_of_batch("query", 0), staged, topics=TOPICS) is None, "committed twice"
        late = write_of_batch("query", 5)
        staged = self.stage(late, values)
        abort(LOGS, late)
        try:
            commit(LOGS, late, staged, topics=TOPICS)
        except WriteEndedError:
            return
        raise AssertionError("a write that was aborted is committed")

    def stage(self, write: WriteId, values: Values) -> list[StagedFile]:
        stager = Stager(begin(LOGS, write), SMALL, task=0)
        for (topic, partition), rows in values.items():
            stager.write(topic, partition, pa.record_batch({"value": rows}))
        return stager.finish()

    def write(self, number: int, values: Values) -> None:
        write = write_of_batch("query", number)
        commit(LOGS, write, self.stage(write, values), topics=TOPICS)

    def recover(self, process: Process) -> Any:
        with mock.patch.object(placing, "LARGE_BYTES", LARGE_BYTES):
            return self.recovered(process)

    def recovered(self, process: Process) -> Any:
        process.note("found", disk().entry(LOGS / STORE_FOLDER) is not None)
        recover(LOGS)
        shown = visible()
        process.note("shown", shown)
        self.write(7, {("t", 0): ["last"]})  # a repetition is dropped
        process.note("last")
        abort_unfinished(LOGS)
        messages = verified(LOGS)
        left = [name for name in process.disk.files() if ".kraftlog" in name]
        states = states_of_transactions()
        return {"rows": visible(), "faults": messages + left + closed_faults(), "states": states}

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["faults"] == [], seen["faults"]
        assert seen["states"] <= {"committed", "aborted"}, seen["states"]
        allowed, ended = [frozen({})], False
        for kind, *what in notes:
            if kind == "begin":
                allowed.append(after(allowed[-1], dict(what[0]), overwrite=what[1]))
            elif kind == "done":
                allowed = [allowed[-1]]
            elif kind == "shown":
                assert what[0] in allowed, "rows that were committed are not there, or some of a write"
                allowed = [what[0]]
                if ("t", 0) not in dict(what[0]) or dict(what[0])[("t", 0)][-1] != "last":
                    allowed.append(after(what[0], {("t", 0): ("last",)}, overwrite=False))
            elif kind == "last":
                allowed = [allowed[-1]]
            elif kind == "found" and ended:
                assert not what[0], "a broker would find the folder of a write that is done"
            ended = kind == "ended"
        assert seen["rows"] in allowed, "rows that were committed are not there, or some of a write"


def frozen(values: Any) -> Any:
    return tuple(sorted((at, tuple(rows)) for at, rows in values.items()))


def after(before: Any, values: dict[tuple[str, int], tuple[str, ...]], *, overwrite: bool) -> Any:
    """Return the rows that are visible behind a write."""
    lost = set(TOPICS) if overwrite else set()
    result = {at: rows for at, rows in before if at[0] not in lost}
    for at, rows in values.items():
        result[at] = (*result.get(at, ()), *rows)
    return frozen(result)


def closed_faults() -> list[str]:
    """Return what is wrong with the files beside the segments."""
    found = []
    for topic, partitions in partition_folders(LOGS).items():
        for partition in partitions:
            found += state_faults(LOGS / f"{topic}-{partition}", is_closed=False)
    return found


def states_of_transactions() -> set[str]:
    """Return the states of the transactions of the topics, partition by partition."""
    found: set[str] = set()
    for folder in partitions_in(LOGS):
        if not folder.name.startswith("__"):
            read = partial(_states_in, folder)
            found |= read_once(("states",), [folder, LOGS / LOG_START_OFFSETS], read)
    return found


def _states_in(folder: Path) -> set[str]:
    return set(kraftlog.open(folder).partition_transactions()["state"].to_pylist())


def visible() -> Any:
    """Return the rows that a reader at read_committed sees, by partition."""
    return read_once(("visible",), [LOGS], _visible)


def _visible() -> Any:
    shown: dict[tuple[str, int], list[str]] = {}
    if not topics():
        return ()
    log = kraftlog.open(LOGS, topics=topics())
    records = log.records(["topic", "partition", "offset", "value"], isolation_level="read_committed")
    for row in records.to_table().sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        shown.setdefault((row["topic"], row["partition"]), []).append(row["value"].decode())
    return frozen(shown)


def topics() -> list[str]:
    """Return the topics that have segments, but for those of Kafka itself."""
    found = [topic for topic in partition_folders(LOGS) if not topic.startswith("__")]
    return [
        topic for topic in found if any(disk().matches(each, "*.log") for each in disk().matches(LOGS, f"{topic}-*"))
    ]
