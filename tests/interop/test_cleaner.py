"""Random logs through Kafka's own Cleaner on one copy and through ours on another: both leave the same."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from jvm import Jvm

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.tables.producer_tables import producer_states
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.replaced_segments import replace_segments, write_cleaned

sys.path.append(str(Path(__file__).parent.parent))

from random_log import RandomLog, latest

SEED = int(os.environ.get("KRAFTLOG_CLEANER_SEED", "0"))
SECONDS = float(os.environ.get("KRAFTLOG_CLEANER_SECONDS", "60"))
COUNTS = os.environ.get("KRAFTLOG_CLEANER_COUNTS")  # a file to which each round adds a line
LOGS_AT_ONCE = 10
TWO_HOURS, HALF_A_DAY = 7_200_000, 43_200_000
RECORDS = ["offset", "timestamp_ms", "key", "value"]
BATCHES = ["base_offset", "last_offset", "records_count", "producer_id", "is_control", "delete_horizon_ms"]


class Case:
    """A log, with a copy for each cleaner."""

    def __init__(self, home: Path, seed: int) -> None:
        self.seed, chance = seed, random.Random(seed)
        self.now = int(time.time() * 1000)
        steps = chance.choice([20, 60, 150])
        self.log = RandomLog(home / f"kafka-{seed}" / "t-0", seed, steps, self.now - TWO_HOURS)
        self.ours = home / f"ours-{seed}" / "t-0"
        shutil.copytree(self.log.folder, self.ours)
        self.retention = chance.choice([0, HALF_A_DAY])
        ends = [end for end in self.log.base_offsets[1:] if end <= self.log.last_stable_offset]
        # each is behind the one before: a broker cleans no log in which nothing is dirty
        self.ends = sorted({*chance.choices(ends, k=2), ends[-1]}) if ends else []
        self.dirty = 0

    def line(self, turn: int) -> dict[str, object]:
        """Return what Kafka's cleaner is to do."""
        return {
            "folder": str(self.log.folder),
            "dirty": self.dirty,
            "end": self.ends[turn],
            "now": self.now + turn * HALF_A_DAY,
            "retention": self.retention,
        }

    def clean(self, turn: int) -> None:
        """Do the same with ours."""
        log, end = PartitionFolder.of(self.ours).segments, self.ends[turn]
        count = sum((segment.base_offset or 0) < end for segment in log)
        options = CleanOptions(self.now + turn * HALF_A_DAY, self.retention, 1 << 20, self.dirty)
        cleaner = LogCleaner(log, count, producer_states(log, ReadOptions(), []), options)
        for group in cleaner.groups():
            cleaned = write_cleaned(self.ours, group[0].base_offset or 0, cleaner.cleaned(group))
            replace_segments(self.ours, cleaned, group)
        self.dirty = end

    def differences(self) -> list[str]:
        """Return in what the two copies are not the same, or not what the log was written as."""
        kafka, ours = kraftlog.open(self.log.folder), kraftlog.open(self.ours)
        found, values = [], []
        for log in (kafka, ours):
            table = log.records(RECORDS, isolation_level="read_committed", strict=True).to_table()
            values.append(table)
            rows = zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True)
            if latest(list(rows)) != self.log.latest():
                found.append(f"{'Kafka' if log is kafka else 'ours'} has other last values")
        if not values[0].equals(values[1]):
            found.append("committed records")
        if not kafka.records(RECORDS).to_table().equals(ours.records(RECORDS).to_table()):
            found.append("records")
        if not kafka.batches(BATCHES).equals(ours.batches(BATCHES)):
            found.append("batches")
        return found


def test_what_two_cleaners_leave(java: Jvm, tmp_path: Path):
    """Up to three cleanings of each log; ``KRAFTLOG_CLEANER_SECONDS`` makes it hours."""
    until, seed = time.monotonic() + SECONDS, SEED
    kinds: Counter[str] = Counter()
    examples: dict[str, str] = {}
    logs = cleanings = 0
    while time.monotonic() < until:
        cases = [Case(tmp_path, number) for number in range(seed, seed + LOGS_AT_ONCE)]
        seed += LOGS_AT_ONCE
        for turn in range(3):
            due = [case for case in cases if turn < len(case.ends)]
            java.run("Clean", lines=[case.line(turn) for case in due], limit=600)
            for case in due:
                case.clean(turn)
                for kind in case.differences():
                    kinds[kind] += 1
                    examples.setdefault(kind, f"seed {case.seed}, cleaning {turn}")
            cleanings += len(due)
        logs += len(cases)
        for case in cases:
            shutil.rmtree(case.log.folder.parent)
            shutil.rmtree(case.ours.parent)
        if COUNTS:
            with Path(COUNTS).open("a") as file:
                file.write(
                    f"seeds {SEED} to {seed - 1}: {logs} logs, {cleanings} cleanings, {dict(kinds)} {examples}\n"
                )
    assert cleanings > 0
    assert not kinds, f"{logs} logs, {cleanings} cleanings: {dict(kinds)}; first of each: {examples}"
