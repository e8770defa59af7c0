"""The topics of a log directory, as its folders show them."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.layout.names import parse_partition_folder, transition_of


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
