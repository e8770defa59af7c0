"""Writes checkpoints of a log directory that have an offset for each partition, such as the cleaner's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.checkpoints import read_offset_checkpoint


def set_offsets(path: Path, offsets: Mapping[tuple[str, int], int | None]) -> None:
    """Set the offsets of partitions, or remove them with None; other partitions keep theirs."""
    before = read_offset_checkpoint(path) if disk().entry(path) is not None else {}
    merged = {key: offset for key, offset in {**before, **offsets}.items() if offset is not None}
    if merged != before:
        rows = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in merged.items())
        write_file(path, f"0\n{len(merged)}\n{rows}".encode())
