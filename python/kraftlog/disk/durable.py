"""Changes to a log directory that a crash at any moment leaves either done or not done."""

from __future__ import annotations

import os
from pathlib import Path

UNFINISHED = ".unfinished"  # Kafka and readers pass over names that end so
SET_ASIDE = ".deleted"  # Kafka removes these when it starts


def write_file(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, or of none."""
    unfinished = path.with_name(path.name + UNFINISHED)
    with unfinished.open("wb") as file:
        give_to_owner(file.fileno(), path.parent)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(path.parent)


def cut_file(path: Path, size: int) -> None:
    """Cut a file to a size."""
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())


def set_aside(path: Path) -> None:
    """Rename a file as Kafka does with one that it is about to delete."""
    path.replace(path.with_name(path.name + SET_ASIDE))
    sync_folder(path.parent)


def delete_file(path: Path) -> None:
    """Delete a file that nobody will miss."""
    path.unlink()
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Wait until a file is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def give_to_owner(fd: int, folder: Path) -> None:
    """Give a new file to the owner of its folder: a broker could not open for writing what root made."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)
