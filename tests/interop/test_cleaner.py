"""Random logs through Kafka's own ``Cleaner`` on one copy and through ours on another: both leave the same."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

from jvm import Jvm
from log_views import RECORDS
from partition_logs import PartitionLogs, cleaning, opening
from random_partition import RandomPartition, rows
from random_rounds import Rounds

import kraftlog
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.read.log_pass import Pass
from kraftlog.tables.producer_tables import producer_states
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.replaced_segments import replace_segments, write_cleaned

HALF_A_DAY = 43_200_000
BATCHES = [
    "base_offset",
    "last_offset",
    "records_count",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_control",
]
BATCHES += ["is_transactional", "delete_horizon_ms", "partition_leader_epoch", "compression"]
MAPS = (0, 2_000, 128 << 20)
"""Bytes of our map of last offsets: full after one key, after some, and never. Kafka's never is."""
EVENTS = ("delete files", "flush", "restart")


class Case:
    """A log, with a copy for each cleaner."""

    def __init__(self, kafka: PartitionLogs, home: Path, seed: int, rounds: Rounds) -> None:
        self.kafka, self.rounds = kafka, rounds
        self.chance = random.Random(seed)
        self.now = int(time.time() * 1000)
        steps = self.chance.choice([20, 60, 150])
        log = RandomPartition(kafka, home / "kafka" / "t-0", self.chance, self.now, EVENTS, steps)
        self.log, self.theirs, self.ours = log, log.folder, home / "ours" / "t-0"
        self.retention = int(log.config["delete.retention.ms"])
        kafka.do({"do": "close", "folder": str(self.theirs)})
        shutil.copytree(self.theirs, self.ours)
        self.latest = latest(rows(log.state["committed"]))
        kafka.do(opening(self.theirs, is_clean=True, recovery_point=log.state["end"], config=log.config))

    def run(self) -> None:
        """Clean the log up to three times, up to different segments."""
        state, dirty = self.log.state, 0
        ends = [base for base in state["bases"][1:] if base <= state["stable"]]
        for turn, end in enumerate(sorted({*self.chance.sample(ends, min(2, len(ends))), *ends[-1:]})):
            now = self.now + turn * HALF_A_DAY
            self.kafka.do(cleaning(self.theirs, now, dirty=dirty, end=end))
            self.clean(now, dirty, end)
            dirty = end
            self.rounds.found("cleaned", self.differences(), f"cleaning {turn} up to {end}")
        self.kafka.do({"do": "close", "folder": str(self.theirs)})

    def clean(self, now: int, dirty: int, end: int) -> None:
        """Do with our copy what Kafka does with its own."""
        log = PartitionFolder.of(self.ours).segments
        count = sum((segment.base_offset or 0) < end for segment in log)
        options = CleanOptions(now, self.retention, 1 << 20, dirty, self.chance.choice(MAPS))
        cleaner = LogCleaner(log[:count], log[count:], producer_states(log, Pass()), options)
        for group in cleaner.groups():
            cleaned = write_cleaned(self.ours, group[0].base_offset or 0, cleaner.cleaned(group))
            replace_segments(self.ours, cleaned, group)

    def differences(self) -> list[str]:
        """Return in what the two copies are not the same, or not what was written."""
        found = []
        for level in ("read_committed", "read_uncommitted"):
            options: Any = {"isolation_level": level, "strict": True}
            theirs, ours = (
                list(map(tuple, _columns(kraftlog.open(folder).records(RECORDS, **options).to_table())))
                for folder in (self.theirs, self.ours)
            )
            if theirs != ours:
                found.append(f"{level}: only Kafka {_without(theirs, ours)}, only kraftlog {_without(ours, theirs)}")
            if level == "read_committed":
                lost = [name for name, one in (("Kafka", theirs), ("kraftlog", ours)) if latest(one) != self.latest]
                found += [f"{name} has other last values: {name}" for name in lost]
        theirs, ours = (
            list(map(tuple, _columns(kraftlog.open(folder).batches(BATCHES)))) for folder in (self.theirs, self.ours)
        )
        if theirs != ours:
            found.append(f"batches: only Kafka {_without(theirs, ours)}, only kraftlog {_without(ours, theirs)}")
        found += [f"verify: {fault.message}" for fault in kraftlog.open(self.ours.parent).verify()]
        return found


def latest(found: Any) -> dict[bytes, bytes]:
    """Return the last value of each key, without those that ended in a tombstone."""
    values = {key: value for _, _, key, value in found if key is not None}
    return {key: value for key, value in values.items() if value is not None}


def _columns(table: Any) -> Any:
    return zip(*(table[name].to_pylist() for name in table.column_names), strict=True)


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    return [one for one in some if one not in others][:3]


def test_what_two_cleaners_leave(java: Jvm, tmp_path: Path, rounds: Rounds) -> None:
    """Records at both levels, the last value of each key, and the headers of all batches."""
    with PartitionLogs(java, tmp_path / "stderr") as kafka:
        for seed in rounds:
            home = tmp_path / str(seed)
            Case(kafka, home, seed, rounds).run()
            shutil.rmtree(home)
    rounds.check(at_least={"compared: cleaned": 1})
