"""The identity of a staged write. Its folder and its transactional id follow from it."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from kraftlog.layout.names import STORE_FOLDER

LARGEST_BATCH_ID = 2**63 - 1
ONCE = "kraftlog-once"  # the shared transactional id of writes that are tried once: none of them continues another


@dataclass(frozen=True)
class WriteId:
    """A write that happens once.

    Attributes
    ----------
    name : str
        Name of its folder.
    transactional_id : str or None
        Id of a sequence of micro-batches, each of which is written once however often it is tried; also the group whose
        committed offset is the progress of the sequence.
    batch_id : int or None
        Number of the batch in that sequence.
    query_id : str
        Query id of the checkpoint that numbers the batches; empty if unknown.
    """

    name: str
    transactional_id: str | None = None
    batch_id: int | None = None
    query_id: str = ""

    @property
    def spread(self) -> int:
        """A number that differs between writes: the partition at which rows without keys begin."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")

    def folder(self, log_directory: Path) -> Path:
        """Return its staging folder."""
        return log_directory / STORE_FOLDER / self.name


def new_write() -> WriteId:
    """Return a new write that is tried once."""
    return WriteId(uuid.uuid4().hex)


def write_of_batch(transactional_id: str, batch_id: int, query_id: str = "") -> WriteId:
    """Return the write of a micro-batch: always the same for one transactional id and batch id.

    Parameters
    ----------
    transactional_id : str
        Id of the sequence. Two sequences in one log directory need two ids.
    batch_id : int
        Greater than the id of the batch before.
    query_id : str
        As in ``WriteId``.

    Raises
    ------
    ValueError
        When the transactional id is empty, or the batch id is not between 0 and 2^63 - 1.

    Examples
    --------
    >>> write_of_batch("orders", 7) == write_of_batch("orders", 7)
    True
    """
    if not transactional_id:
        raise ValueError("expected a nonempty transactional_id")
    if not 0 <= batch_id <= LARGEST_BATCH_ID:
        raise ValueError(f"batch_id {batch_id} is not between 0 and 2^63 - 1")
    return WriteId(f"{row_name(transactional_id)}-{batch_id}", transactional_id, batch_id, query_id)


def row_name(transactional_id: str) -> str:
    """Return the common prefix of the names of all writes of a transactional id, which may have any characters."""
    return hashlib.sha256(transactional_id.encode()).hexdigest()[:32]


def is_earlier(name: str, write: WriteId) -> bool:
    """Whether a name is that of an earlier batch in the sequence of a write.

    Examples
    --------
    >>> is_earlier(write_of_batch("orders", 7).name, write_of_batch("orders", 8))
    True
    >>> is_earlier(write_of_batch("orders", 9).name, write_of_batch("orders", 8))
    False
    """
    if write.transactional_id is None or write.batch_id is None:
        return False
    row, _, batch_id = name.rpartition("-")
    return row == row_name(write.transactional_id) and batch_id.isdecimal() and int(batch_id) < write.batch_id
