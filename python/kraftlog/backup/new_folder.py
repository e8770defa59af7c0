"""A new folder that gets its name when everything in it is on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import UNFINISHED
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.log_directory import refuse_inside


def check_new_folder(target: Path, sources: Iterable[LogPath]) -> None:
    """Refuse a target that is not a new or empty folder, is inside a folder that is read, or was begun before.

    Raises
    ------
    ValueError
    """
    there = disk().entry(target)
    if there is not None and not there.is_dir:
        raise ValueError(f"{target} is not a folder; choose a new or empty one")
    held = sorted(entry.name for entry in disk().entries(target)) if there is not None else []
    if held:
        raise ValueError(f"{target} holds {held[0]}; choose a new or empty folder")
    refuse_inside(target, sources)
    _temporary(target)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Make a folder that is renamed to the target at the end of a ``with`` block, and removed when the block raises.

    Raises
    ------
    ValueError
        When another process is writing the folder.
    OSError
        When a step fails.
    """
    temporary = _temporary(target)
    disk().make_folder(temporary)
    try:
        yield temporary
        disk().sync_folder(temporary)
        disk().rename(temporary, target)
        disk().sync_folder(target.absolute().parent)
    except BaseException:
        disk().remove_tree(temporary)
        raise


def _temporary(target: Path) -> Path:
    """Return the path of the folder until it gets its name; ValueError if it exists."""
    temporary = target.with_name(target.name + UNFINISHED)
    if disk().entry(temporary) is not None:
        raise ValueError(f"{temporary} exists: another process is writing it, or was interrupted; then remove it")
    return temporary
