"""``kraftlog restore``: a target is whole or not there, and a second restore says what an interrupted one has left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from known_reads import read_once
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog import LogStore
from kraftlog.backup.quorum import with_records, write_controller
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import UNFINISHED
from kraftlog.layout.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_properties,
)
from kraftlog.write.offset_checkpoint import set_offsets

STORE, CONTROLLER = Path("/sim/store"), Path("/sim/controller")
TARGET = Path("/sim/new/cluster")
LEFT = TARGET.with_name(TARGET.name + UNFINISHED)
NODES = ["1@127.0.0.1:9092:9093", "2@127.0.0.1:9094"]  # the second one is no controller
CHECKPOINTS = (CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS)
Row = tuple[str, int, int, bytes]


class RestoreWorkload(Workload):
    """A store with a transaction and a group, restored to two nodes with a replica of each partition on both."""

    def prepare(self, process: Process) -> None:
        disk().make_folder(STORE)
        with LogStore(STORE, clock=process.clock, sync_threads=0) as store, store.producer("p") as producer:
            store.create_topic("t", 2)
            for _ in range(process.random.randrange(2, 5)):
                with producer.transaction():
                    for partition in range(2):
                        producer.send("t", value="x" * process.random.choice((9, 700)), partition=partition)
                    producer.send_offsets_to_transaction({("source", 0): 1}, group="g")
        set_offsets(STORE / LOG_START_OFFSETS, {("t", 1): 2})
        log = kraftlog.open(STORE)
        at = log.image(cache=False)
        table = at.image.tables()["PartitionRecord"]
        ids = [[*range(1, len(NODES) + 1)], [bytes(16)] * len(NODES)]
        rows = [{**row, "replicas": ids[0], "directories": ids[1]} for row in table.to_pylist()]
        image = with_records(at.image, {"PartitionRecord": pa.Table.from_pylist(rows, table.schema)})
        cluster_id = read_properties(STORE / "meta.properties")["cluster.id"]
        write_controller(CONTROLLER, replace(at, image=image), cluster_id, 100, bytes(16))
        process.note("rows", rows_of(STORE))

    def restore(self) -> None:
        folders = [path for path in disk().matches(STORE, "*-[0-9]") if path.name != "__cluster_metadata-0"]
        kraftlog.restore([*folders, CONTROLLER / "__cluster_metadata-0"], TARGET, nodes=NODES, cut="end", workers=1)

    def run(self, process: Process) -> None:
        self.restore()
        process.note("restored")

    def recover(self, process: Process) -> Any:
        """Look at the target; where there is none, do as a second restore says, and look again."""
        was_there, refusal = disk().entry(TARGET) is not None, ""
        if not was_there:
            is_left = disk().entry(LEFT) is not None
            try:
                self.restore()
            except ValueError as error:
                refusal = str(error)
                assert is_left, refusal
                disk().remove_tree(LEFT)
                self.restore()
            else:
                assert not is_left, "the rest of an interrupted restore was taken over"
        process.note("restored")
        whole = read_once(("whole",), [TARGET], what_is_there)
        return {"was there": was_there, "refusal": refusal, **whole}

    def judge(self, notes: Notes, seen: Any) -> None:
        (rows,) = (note[1] for note in notes if note[0] == "rows")
        restored = [at for at, note in enumerate(notes) if note == ("restored",)]
        assert seen["was there"] or len(restored) < 2, "what was restored is gone"
        assert seen["faults"] == [], seen["faults"]
        assert seen["rows"] == [rows] * len(NODES)
        assert "remove it" in seen["refusal"] or not seen["refusal"]


def what_is_there() -> dict[str, Any]:
    """Return the rows of each node, and what is missing or wrong."""
    faults: list[str] = []
    report = json.loads(disk().read_bytes(TARGET / "restored.json"))
    expected = {(one["topic"], one["partition"]): one["end_offset"] for one in report["partitions"]}
    rows = []
    for number in range(1, len(NODES) + 1):
        node = TARGET / f"node-{number}"
        directory = node / "logs-0"
        if f"node.id={number}\n" not in disk().read_bytes(node / "server.properties").decode():
            faults.append(f"{node}: server.properties")
        faults += [f"{directory / name} is missing" for name in CHECKPOINTS if disk().entry(directory / name) is None]
        log = kraftlog.open(directory)
        faults += [str(row) for row in log.errors().to_pylist()]
        faults += [str(row) for row in log.findings().to_pylist() if row["severity"] != "note"]
        ends = {(one.topic, one.partition): one.end_offset for one in log.partitions}
        if {of: end for of, end in ends.items() if of in expected} != expected:
            faults.append(f"{directory}: {ends}, and not {expected}")
        if number == 1:
            names = {row["name"] for row in log.image(cache=False).image.tables()["TopicRecord"].to_pylist()}
            if names != {topic for topic, _ in expected}:
                faults.append(f"{directory}: topics {names}")
        rows.append(rows_of(directory))
    return {"faults": faults, "rows": rows}


def rows_of(directory: Path) -> tuple[Row, ...]:
    log = kraftlog.open(directory, topics=["t"])
    columns = ["topic", "partition", "offset", "value"]
    return tuple(tuple(row.values()) for row in log.records(columns).to_table().to_pylist())
