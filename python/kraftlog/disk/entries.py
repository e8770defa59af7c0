"""What a folder holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """What a folder has under a name; ``size`` in bytes, 0 of what is no file."""

    name: str
    is_dir: bool
    is_file: bool
    size: int = 0


def local_entries(folder: Path) -> list[Entry]:
    """Return what is in a folder, by name."""
    with os.scandir(folder) as found:
        entries = [_entry(entry) for entry in found]
    return sorted(entries, key=lambda entry: entry.name)


def _entry(entry: os.DirEntry[str]) -> Entry:
    is_file = entry.is_file()
    return Entry(entry.name, entry.is_dir(), is_file, entry.stat().st_size if is_file else 0)
