"""The last committed micro-batch of each transactional id, which a file in the log directory keeps."""

from __future__ import annotations

import json
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.names import COMMITTED_BATCHES_FILE
from kraftlog.store.write_id import WriteId


def last_batch_id(log_directory: Path, transactional_id: str) -> int | None:
    """Return the batch of a transactional id that was committed last; None when there was none.

    Raises
    ------
    ValueError
        When the file is damaged.
    """
    return _read(log_directory / COMMITTED_BATCHES_FILE).get(transactional_id)


def is_repetition(log_directory: Path, write: WriteId) -> bool:
    """Whether a write is a batch that was committed before."""
    if write.transactional_id is None or write.batch_id is None:
        return False
    last = last_batch_id(log_directory, write.transactional_id)
    return last is not None and write.batch_id <= last


def keep_batch_id(log_directory: Path, transactional_id: str, batch_id: int) -> None:
    """Remember a batch as committed."""
    path = log_directory / COMMITTED_BATCHES_FILE
    batches = _read(path)
    if batches.get(transactional_id) != batch_id:
        write_file(path, json.dumps({**batches, transactional_id: batch_id}, indent=1, sort_keys=True).encode())


def _read(path: Path) -> dict[str, int]:
    if disk().entry(path) is None:
        return {}
    try:
        batches = json.loads(disk().read_bytes(path))
    except ValueError:
        batches = None
    if not isinstance(batches, dict) or not all(isinstance(batch_id, int) for batch_id in batches.values()):
        raise ValueError(f"{path}: not JSON with a batch id for each transactional id")
    return batches
