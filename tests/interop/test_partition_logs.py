"""Random partitions in Kafka's ``LogLoader`` and ``UnifiedLog``, and the same files read and recovered by kraftlog."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crashed_partition import Crash, stop_a_cleaner, write_checkpoints
from jvm import Jvm
from log_views import differences, producers
from partition_logs import INDEX_INTERVAL, PartitionLogs, opening
from random_partition import RandomPartition
from random_rounds import Rounds

import kraftlog
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

EVENTS = ("truncate", "start over", "delete records", "flush", "delete files", "clean", "restart", "crash")
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
OF_A_HOLE = ("bad_producer_epoch", "not_transactional")
"""What verify finds where the batches are missing that ended a transaction; Kafka does not look."""


@pytest.fixture(scope="module")
def kafka(java: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartitionLogs]:
    """Return Kafka's classes in a JVM."""
    with PartitionLogs(java, tmp_path_factory.mktemp("kafka") / "stderr") as logs:
        yield logs


class Case:
    """A random partition, and what becomes of it."""

    def __init__(self, kafka: PartitionLogs, home: Path, seed: int, rounds: Rounds) -> None:
        self.kafka, self.home, self.rounds = kafka, home, rounds
        self.chance = random.Random(seed)
        self.log = RandomPartition(
            kafka,
            home / "kafka" / "t-0",
            self.chance,
            int(time.time() * 1000),
            EVENTS,
            self.chance.choice([20, 60, 150]),
        )
        rounds.drawn(*self.log.done)

    def run(self) -> None:
        """Look at the log while Kafka has it open, stop Kafka in some way, and let both load what is left."""
        directory, state = self.log.folder.parent, self.log.state
        write_checkpoints(directory, state["recovery_point"], state["start"])
        if state["start"]:
            state = state | self._loaded_producers(self.log.folder, state["recovery_point"], is_clean=False)
        self.rounds.found("open", differences(state, directory))
        is_clean = self.chance.random() < 0.25
        self.kafka.do({"do": "close" if is_clean else "leave", "folder": str(self.log.folder)})
        if is_clean:
            self._load("clean", state["end"], is_clean=True)
            return
        points = [0, state["recovery_point"], self.chance.randint(0, state["recovery_point"])]
        self._load("crashed", self.chance.choice(points), is_clean=False)

    def _loaded_producers(self, folder: Path, recovery_point: int, *, is_clean: bool) -> Any:
        """Return the producers of a log of which records were deleted, by a Kafka that loads these files.

        One that runs, or has made snapshots anew that are kept here, knows others of deleted records.
        """
        copied = self.home / "again" / "t-0"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(folder, copied)
        start = self.log.state["start"]
        step = opening(copied, start=start, recovery_point=recovery_point, is_clean=is_clean, config=self.log.config)
        _, loaded = self.kafka.do(step, {"do": "state", "folder": str(copied), "times": []})
        self.kafka.do({"do": "leave", "folder": str(copied)})
        return {"producers": loaded["producers"]}

    def _load(self, where: str, recovery_point: int, *, is_clean: bool) -> None:
        start = self.log.state["start"]
        left = self.log.folder
        if self.chance.random() < 0.3:
            left = self._stopped_cleaner(start, recovery_point) or left
        crash = Crash(left, recovery_point, self.chance)
        crash.damage(is_power_lost=not is_clean)
        self.rounds.drawn(where, *crash.done)
        theirs, ours = self.home / "theirs", self.home / "ours"
        for directory in (theirs, ours):
            shutil.copytree(left, directory / "t-0")
        write_checkpoints(ours, recovery_point, start)
        if is_clean:
            (ours / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":-1}')
        step = opening(
            theirs / "t-0", start=start, recovery_point=recovery_point, is_clean=is_clean, config=self.log.config
        )
        opened, state = self.kafka.attempt(step, self.log.state_step(theirs / "t-0"))
        if opened is not None:
            self.rounds.drawn("refused by Kafka")
            self._recover(ours, None)
            return
        self.kafka.do({"do": "close", "folder": str(theirs / "t-0")})
        about = f"{where} {crash.done}"
        if "error" in state:  # by an offset that it believes it looks for records where there are none
            self.rounds.found("answers of Kafka", [] if crash.is_hidden else [state["error"]], about)
            return
        state["is_cleaned"] = True  # by itself a folder says nothing of that
        if not crash.is_cut:
            self.rounds.found(f"{where}, before recovery", differences(state, ours, is_sound=not crash.is_torn), about)
        elif crash.is_told:
            stream = kraftlog.open(ours).records(["offset"])
            stream.to_table()
            self.rounds.found("cut", [] if stream.faults else ["no fault is told"], about)
        refused = self._recover(ours, theirs)
        if refused:
            self.rounds.found("recovery", [f"refused: {reason}" for reason in refused], about)
            return
        if start:
            state = state | self._loaded_producers(ours / "t-0", recovery_point, is_clean=is_clean)
        self.rounds.found(f"{where}, recovered", differences(state, ours), about)
        if crash.is_hidden:  # Kafka finds nothing, and its index files say what follows from it
            self.rounds.drawn("hidden damage")
            return
        self.rounds.found("files", unlike_files(ours / "t-0", theirs / "t-0", left, is_clean=is_clean), about)
        has_hole = crash.left_a_hole(theirs / "t-0")
        self.rounds.drawn(*["hole"] * has_hole)
        for name, directory in ("theirs", theirs), ("ours", ours):
            faults = [
                fault.message
                for fault in kraftlog.open(directory).verify()
                if not (has_hole and fault.error in OF_A_HOLE)
            ]
            self.rounds.found(f"verify of {name}", faults[:1], about)

    def _stopped_cleaner(self, start: int, recovery_point: int) -> Path | None:
        """Return a folder in which a cleaner was stopped; None when it has nothing to do."""
        cleaned = self.home / "cleaned" / "t-0"
        shutil.copytree(self.log.folder, cleaned)
        step = opening(cleaned, start=start, recovery_point=recovery_point, config=self.log.config)
        opened, state = self.kafka.attempt(step, self.log.state_step(cleaned))
        if opened is not None:
            return None
        folder = None
        before = self.home / "before" / "t-0"
        shutil.copytree(cleaned, before)
        if (end := min(state["stable"], state["bases"][-1])) > max(start, state["bases"][0]):
            (answer,) = self.kafka.attempt(self.log.cleaning_step(cleaned, start, end))
            if isinstance(answer, dict) and "error" in answer:  # it refuses to begin behind all closed segments
                self.rounds.drawn("not cleaned")
            else:
                folder = self.home / "stopped" / "t-0"
                self.rounds.drawn(stop_a_cleaner(before, cleaned, folder, self.chance))
        self.kafka.do({"do": "leave", "folder": str(cleaned)})
        return folder

    def _recover(self, ours: Path, theirs: Path | None) -> list[str]:
        options = RecoverOptions(write=True, cut_damage=True, interval_bytes=INDEX_INTERVAL)
        return [action.reason for _, action in recover([ours / "t-0"], options) if action.is_refusal]


def unlike_files(ours: Path, theirs: Path, before: Path, *, is_clean: bool) -> list[str]:
    """Return the files of which the two have not the same bytes.

    Kafka removes snapshots that are right when it makes the indexes of an earlier segment anew, or writes them again by
    what a cleaner left of the log; here they are kept.
    By its new snapshots a transaction that began before the log start offset begins there; the last stable offsets
    of a ``.txnindex`` say so, too.
    It takes the ``.txnindex.swap`` of a cleaner, which names transactions without data; here it is made anew.
    """
    mine, other, left = _files(ours), _files(theirs), _files(before)
    bases = {path.stem for path in ours.glob("*.log")}
    lacks_index = any(f"{base}.index" not in left for base in bases)

    def may_differ(name: str) -> bool:
        is_kept = name.endswith(".snapshot") and name in mine and mine[name] == left.get(name)
        is_kept &= name not in other or lacks_index
        is_swapped = name.endswith(".txnindex") and f"{name}.swap" in left
        is_told_otherwise = lacks_index and name.endswith(".txnindex") and name in mine and mine[name] == left.get(name)
        is_told_otherwise = is_told_otherwise and _transactions(mine[name]) == _transactions(other.get(name, b""))
        return (is_kept and (is_clean or name[:20] in bases)) or is_swapped or is_told_otherwise

    names = sorted(name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name))
    return [
        f"{_kind(name, mine, other)}: {name} {_size(mine, name)} {_size(other, name)}"
        for name in names
        if not may_differ(name)
    ]


def _transactions(txnindex: bytes) -> list[bytes]:
    """Return the entries of a ``.txnindex`` without their last stable offsets, the last 8 bytes of 34."""
    return [txnindex[at : at + 26] for at in range(0, len(txnindex), 34)]


def _files(folder: Path) -> dict[str, bytes]:
    left_out = (".deleted", ".cleaned", ".metadata")  # the first two are deleted when a broker starts
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix not in left_out}


def _kind(name: str, mine: dict[str, bytes], other: dict[str, bytes]) -> str:
    kind = name.rsplit(".", 1)[-1]
    if name not in mine:
        return f"{kind}, which kraftlog lacks"
    return f"{kind} of other bytes" if name in other else f"{kind}, which Kafka lacks"


def _size(files: dict[str, bytes], name: str) -> int | None:
    return len(files[name]) if name in files else None


def producers_behind_a_log_start(kafka: PartitionLogs, home: Path, seed: int, rounds: Rounds) -> None:
    """Move the log start offset of a random log, lose some files, and compare the producers that are loaded."""
    chance = random.Random(seed)
    log = RandomPartition(kafka, home / "log" / "t-0", chance, int(time.time() * 1000), (), chance.choice([20, 60]))
    end, segments = log.state["end"], log.state["bases"]
    is_clean = chance.random() < 0.5
    kafka.do({"do": "close" if is_clean else "leave", "folder": str(log.folder)})
    borders = [*segments, end]
    for number in range(8):
        left = home / str(number) / "left" / "t-0"
        shutil.copytree(log.folder, left)
        start = min(end, max(0, chance.choice([*borders, chance.randint(0, end)]) + chance.choice([-1, 0, 1])))
        point = end if is_clean else chance.choice([*borders, chance.randint(0, end)])
        if not is_clean and chance.random() < 0.2:
            (left / f"{segments[-1]:020d}.log").write_bytes(b"")
            start, point = min(start, segments[-1]), min(point, segments[-1])
            rounds.drawn("empty last segment")
        if chance.random() < 0.4:
            (left / f"{chance.choice(segments):020d}.index").unlink(missing_ok=True)
        if chance.random() < 0.4 and (snapshots := sorted(left.glob("*.snapshot"))[1:]):
            chance.choice(snapshots).unlink()
        ours, theirs = (home / str(number) / name for name in ("ours", "theirs"))
        for directory in (ours, theirs):
            shutil.copytree(left, directory / "t-0")
        write_checkpoints(ours, point, start)
        if is_clean:
            (ours / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":-1}')
        folder = theirs / "t-0"
        step = opening(folder, start=start, recovery_point=point, is_clean=is_clean, config=log.config)
        _, state = kafka.do(step, log.state_step(folder))
        kafka.do({"do": "leave", "folder": str(folder)})
        expected, found = sorted(state["producers"]), producers(ours, is_sound=True)
        what = "closed" if is_clean else "crashed"
        unlike = [f"producers: Kafka {expected}, kraftlog {found}"] if found != expected else []
        rounds.found(what, unlike, f"start {start} of {end}, point {point}, segments {segments}")
        rounds.drawn(
            "no producers" if not expected else "fewer" if expected != sorted(log.state["producers"]) else "all"
        )


def test_producers_behind_a_log_start(kafka: PartitionLogs, tmp_path: Path, rounds: Rounds) -> None:
    """Which producers of deleted records a broker knows, by the snapshots and index files that are left."""
    for seed in rounds:
        home = tmp_path / str(seed)
        producers_behind_a_log_start(kafka, home, seed, rounds)
        shutil.rmtree(home)
    rounds.check(
        at_least={
            "compared: closed": 1,
            "compared: crashed": 1,
            "empty last segment": 1,
            "no producers": 1,
            "fewer": 1,
            "all": 1,
        }
    )


def test_what_kafka_loads(kafka: PartitionLogs, tmp_path: Path, rounds: Rounds) -> None:
    """Logs that are open, closed or left by a crash: the same records, offsets and producers, and the same files."""
    for seed in rounds:
        home = tmp_path / str(seed)
        Case(kafka, home, seed, rounds).run()
        shutil.rmtree(home)
    rounds.check(at_least={"compared: clean, recovered": 1, "compared: crashed, recovered": 1, "torn last segment": 1})
