"""What was read of a ``SimDisk`` in a recovery, by the bytes that were there: many crashes leave equal files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from nodes import File
from sim_disk import SimDisk

from kraftlog.disk.disk import disk

T = TypeVar("T")
_MOST = 50_000  # results that are kept
_known: dict[tuple[Any, ...], Any] = {}


def read_once(what: tuple[Any, ...], below: Iterable[Path], read: Callable[[], T]) -> T:
    """Return what a function reads, from memory where it has read the same bytes before.

    Only in recoveries: the steps of a run are what faults are chosen of, and each run has to take the same ones.

    Parameters
    ----------
    what : tuple
        Names what is read.
    below : iterable of Path
        Files, and folders with all that is in them, of which the result is a function.
    read : callable
    """
    current = disk()
    if not isinstance(current, SimDisk) or not current.is_recovery:
        return read()
    digest = hashlib.blake2b(digest_size=16)
    for path in below:
        _add(current, str(path), current._find(path), digest.update)
    key = *what, digest.digest()
    if key not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = read()
    return _known[key]


def _add(current: SimDisk, name: str, number: int | None, update: Callable[[bytes], None]) -> None:
    if number is None:
        update(f"\0-{name}\0".encode())
        return
    node = current.nodes[number]
    if isinstance(node, File):
        update(f"\0f{name}\0{len(node.view)}\0".encode())
        update(node.view)
        return
    update(f"\0d{name}\0{len(node.view)}\0".encode())
    for each in sorted(node.view):
        _add(current, each, node.view[each], update)
