"""A compacted topic that is cleaned again and again, with segments replaced and removed."""

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
from kraftlog import LogStore
from kraftlog.disk.disk import disk
from kraftlog.log_store.errors import StoreError

LOGS = Path("/sim/logs")
TOPIC, KEYS = "c", 4
CONFIGS = {"cleanup.policy": "compact", "internal.segment.bytes": 1024, "delete.retention.ms": 0}


class CompactWorkload(Workload):
    """Writes values of a few keys, some in transactions, and cleans.

    Judged is that the last value of each key is there, whatever a crash has left of a cleaning.
    """

    failures = (OSError, StoreError)

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(LOGS.parent)

    def open(self, process: Process) -> LogStore:
        return LogStore(LOGS, clock=process.clock, new_uuid=lambda: process.uuid4().bytes, sync_threads=0)

    def run(self, process: Process) -> None:
        dice, number = process.random, 0
        store = self.open(process)
        store.create_topic(TOPIC, configs=CONFIGS)
        producer = store.producer("own")
        for _ in range(dice.randrange(2, 4)):
            for _ in range(dice.randrange(2, 5)):
                number += 1
                rows = {f"k{dice.randrange(KEYS)}": f"{number} ".ljust(dice.choice((5, 300)), ".") for _ in range(2)}
                is_commit = dice.random() < 0.7
                process.note("begin", tuple(rows.items()) if is_commit else ())
                producer.begin_transaction()
                producer.send(TOPIC, pa.table({"key": list(rows), "value": list(rows.values())}))
                producer.commit_transaction() if is_commit else producer.abort_transaction()
                process.note("done")
                if dice.random() < 0.5:  # small segments, several of which become one
                    store._open_partition((TOPIC, 0)).roll()
            store.clean([TOPIC], roll=dice.random() < 0.7)
        store.close()

    def recover(self, process: Process) -> Any:
        with self.open(process) as store:
            if TOPIC not in store.topics:
                return {"shown": {}, "rows": {}, "faults": []}
            shown = values()
            process.note("shown", tuple(shown.items()))
            store.clean([TOPIC], roll=True)
        left = [name for name in process.disk.files() if name.endswith((".cleaned", ".swap"))]
        return {"shown": shown, "rows": values(), "faults": verified(LOGS) + left}

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["faults"] == [], seen["faults"]
        assert seen["shown"] == seen["rows"], "cleaning has changed values"
        expected: dict[str, str] = {}
        pending: dict[str, str] = {}
        for kind, *what in notes:
            if kind == "begin":
                pending = dict(what[0])
            elif kind == "shown":
                assert dict(what[0]) in (expected, expected | pending), "a recovery has shown something else"
                expected, pending = dict(what[0]), {}
            else:
                expected, pending = expected | pending, {}
        assert seen["rows"] in (expected, expected | pending), "a key lacks its last value"


def values() -> dict[str, str]:
    """Return the last committed value of each key."""
    folder = LOGS / f"{TOPIC}-0"
    return dict(read_once(("values",), [folder], partial(_values, folder)))


def _values(folder: Path) -> dict[str, str]:
    if not disk().matches(folder, "*.log"):
        return {}
    log = kraftlog.open(folder).records(["key", "value"], isolation_level="read_committed", strict=True).to_table()
    return {row["key"].decode(): row["value"].decode() for row in log.to_pylist()}
