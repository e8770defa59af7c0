"""The topics of a log directory, as its folders show them, and whether it is one."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.layout.names import KNOWN_FILES, KNOWN_FOLDERS, parse_partition_folder, transition_of

OF_FILE_SYSTEMS = frozenset({"lost+found"})  # what the root of an empty file system holds


def partition_folders(log_directory: Path) -> dict[str, list[int]]:
    """Return the partitions of each topic that have a folder; none when there is no log directory."""
    found: dict[str, list[int]] = {}
    for entry in disk().entries(log_directory) if disk().entry(log_directory) else ():
        parsed = parse_partition_folder(entry.name)
        if parsed is not None and transition_of(entry.name) is None and entry.is_dir:
            found.setdefault(parsed[0], []).append(parsed[1])
    return {topic: sorted(partitions) for topic, partitions in sorted(found.items())}


def existing_topics(log_directory: Path) -> dict[str, int]:
    """Return how many partitions the topics of a log directory have."""
    return {topic: partitions[-1] + 1 for topic, partitions in partition_folders(log_directory).items()}


def check_log_directory(folder: Path) -> None:
    """Refuse to make a log directory of a folder that holds other things only.

    Raises
    ------
    FileExistsError
        When something is in the folder, and nothing of it belongs to a log directory.
    """
    if disk().entry(folder) is None:
        return
    entries = [entry for entry in disk().entries(folder) if entry.name not in OF_FILE_SYSTEMS]
    known = KNOWN_FILES | KNOWN_FOLDERS
    if entries and not any(entry.name in known or parse_partition_folder(entry.name) for entry in entries):
        found = f"{entries[0].name} and nothing of a log directory"
        raise FileExistsError(f"{folder}: expected a log directory or an empty folder, found {found}")
