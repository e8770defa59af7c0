"""The one thing that makes a write count: a file that says where everything of it goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.store.staging import StagedFile
from kraftlog.store.topics import partition_folders
from kraftlog.store.write_id import WriteId
from kraftlog.transactions.producer_state import SEQUENCES
from kraftlog.write.log_end import LogEnd, find_log_end
from kraftlog.write.recovery_points import read_recovery_points

DECISION_FILE = "decision.json"


@dataclass(frozen=True)
class PlacedFile:
    """A staged file and its place."""

    path: str
    base_offset: int
    base_sequence: int


@dataclass(frozen=True)
class PartitionDecision:
    """What a partition gets.

    Attributes
    ----------
    base_offset : int
        Where its log ended; there the new part begins.
    next_offset : int
        Behind the new records: that of the commit marker, where there are records.
    """

    topic: str
    partition: int
    base_offset: int
    next_offset: int
    leader_epoch: int
    interval_bytes: int
    files: tuple[PlacedFile, ...]

    @property
    def log_end(self) -> int:
        """The offset behind the marker, where there are records."""
        return self.next_offset + 1 if self.files else self.next_offset

    def folder(self, log_directory: Path) -> Path:
        """Return the partition's folder."""
        return log_directory / f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class Decision:
    """A write that is to be finished.

    Attributes
    ----------
    overwrite : bool
        Whether the segments before ``base_offset`` go.
    timestamp_ms : int
        Of the markers.
    """

    write: WriteId
    overwrite: bool
    timestamp_ms: int
    partitions: tuple[PartitionDecision, ...]


def decide(
    log_directory: Path,
    write: WriteId,
    staged: Iterable[StagedFile],
    *,
    overwrite: bool,
    topics: Mapping[str, int],
    timestamp_ms: int,
) -> Decision:
    """Find a place for every staged file, and write that down for good.

    Parameters
    ----------
    log_directory : Path
        Which the caller has locked.
    write : WriteId
    staged : iterable of StagedFile
        Of one attempt at each task.
    overwrite : bool
        Whether the topics lose what they had.
    topics : mapping of str to int
        Topics that are written even if they have no rows, and how many partitions they get when they are new.
    timestamp_ms : int
        The time, for the markers.

    Raises
    ------
    CorruptRecordError
        When a log that is appended to is damaged.
    """
    files: dict[str, dict[int, list[StagedFile]]] = {topic: {} for topic in topics if overwrite}
    for file in sorted(staged, key=lambda each: (each.task, each.number)):
        files.setdefault(file.topic, {}).setdefault(file.partition, []).append(file)
    existing = partition_folders(log_directory)
    recovery_points = read_recovery_points(log_directory)
    partitions = []
    for topic, written in sorted(files.items()):
        concerned = set(written)
        if overwrite:
            concerned |= set(existing.get(topic, ()))
        if topic not in existing:
            concerned |= set(range(topics.get(topic, 0)))
        for partition in sorted(concerned):
            end = find_log_end(
                log_directory / f"{topic}-{partition}", recovery_point=recovery_points.get((topic, partition))
            )
            partitions.append(_place(end, topic, partition, written.get(partition, [])))
    decision = Decision(write, overwrite, timestamp_ms, tuple(partitions))
    folder = write.folder(log_directory)
    disk().sync_folder(folder)  # in which tasks have made theirs; the names above it are on disk since it was begun
    write_file(folder / DECISION_FILE, json.dumps(asdict(decision), indent=1).encode())
    return decision


def _place(end: LogEnd, topic: str, partition: int, staged: list[StagedFile]) -> PartitionDecision:
    offset = end.next_offset
    placed = []
    for file in staged:
        placed.append(PlacedFile(file.path, offset, (offset - end.next_offset) % SEQUENCES))
        offset += file.records_count
    return PartitionDecision(
        topic,
        partition,
        base_offset=end.next_offset,
        next_offset=offset,
        leader_epoch=max(end.epochs.last, 0),
        interval_bytes=end.index_interval_bytes,
        files=tuple(placed),
    )


def is_decided(folder: Path) -> bool:
    """Whether the write of a folder is to be finished."""
    return disk().entry(folder / DECISION_FILE) is not None


def read_decision(folder: Path) -> Decision:
    """Return what was decided of the write of a folder."""
    known = json.loads(disk().read_bytes(folder / DECISION_FILE))
    partitions = tuple(
        PartitionDecision(**{**each, "files": tuple(PlacedFile(**file) for file in each["files"])})
        for each in known["partitions"]
    )
    return Decision(WriteId(**known["write"]), known["overwrite"], known["timestamp_ms"], partitions)
