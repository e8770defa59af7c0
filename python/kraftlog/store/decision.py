"""The one thing that makes a write count: a file that says where everything of it goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kraftlog.disk.durable import sync_folder, write_file
from kraftlog.store.log_end import close_log, partition_folders
from kraftlog.store.staging import StagedFile
from kraftlog.store.write_id import WriteId
from kraftlog.transactions.producer_state import SEQUENCES

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
    marker_position : int
        Of the marker in the last file, in bytes.
    """

    topic: str
    partition: int
    base_offset: int
    next_offset: int
    marker_position: int
    leader_epoch: int
    interval_bytes: int
    files: tuple[PlacedFile, ...]

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
    partitions = []
    for topic, written in sorted(files.items()):
        concerned = set(written)
        if overwrite:
            concerned |= set(existing.get(topic, ()))
        if topic not in existing:
            concerned |= set(range(topics.get(topic, 0)))
        for partition in sorted(concerned):
            partitions.append(_place(log_directory, topic, partition, written.get(partition, [])))
    decision = Decision(write, overwrite, timestamp_ms, tuple(partitions))
    folder = write.folder(log_directory)
    sync_folder(folder.parent)
    sync_folder(log_directory)
    write_file(folder / DECISION_FILE, json.dumps(asdict(decision), indent=1).encode())
    return decision


def _place(log_directory: Path, topic: str, partition: int, staged: list[StagedFile]) -> PartitionDecision:
    end = close_log(log_directory / f"{topic}-{partition}")
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
        marker_position=staged[-1].size_in_bytes if staged else 0,
        leader_epoch=end.leader_epoch,
        interval_bytes=end.interval_bytes,
        files=tuple(placed),
    )


def is_decided(folder: Path) -> bool:
    """Whether the write of a folder is to be finished."""
    return (folder / DECISION_FILE).exists()


def read_decision(folder: Path) -> Decision:
    """Return what was decided of the write of a folder."""
    known = json.loads((folder / DECISION_FILE).read_text())
    partitions = tuple(
        PartitionDecision(**{**each, "files": tuple(PlacedFile(**file) for file in each["files"])})
        for each in known["partitions"]
    )
    return Decision(WriteId(**known["write"]), known["overwrite"], known["timestamp_ms"], partitions)
