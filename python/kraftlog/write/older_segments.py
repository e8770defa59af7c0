"""Removes segments before an offset of a log, and producers without writes after it."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_files
from kraftlog.layout.names import parse_segment_file
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot


def forget_producers(folder: Path, offset: int, oldest: int) -> None:
    """Keep only one producer in the ``.snapshot`` files from an offset on: the records of the others are deleted."""
    snapshots = PartitionFolder.of(folder).producer_snapshots
    write_files(
        {
            folder / path.name: producer_snapshot_bytes(
                state for state in read_producer_snapshot(path) if state.producer_id == oldest
            )
            for at, path in snapshots.items()
            if at >= offset
        }
    )


def delete_segments_before(folder: Path, offset: int) -> None:
    """Delete the segments that begin before an offset, from the oldest on, each with its index files."""
    for entry in disk().entries(folder):
        name = parse_segment_file(entry.name)
        if name is not None and not name.state and name.base_offset < offset:
            disk().unlink(folder / entry.name)
    disk().sync_folder(folder)
