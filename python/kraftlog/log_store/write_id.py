"""What a staged write is called. Its folder and its transactional id follow from that."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from kraftlog.layout.names import STORE_FOLDER

LARGEST_BATCH_ID = 2**63 - 1
ONCE = "kraftlog-once"  # the transactional id of all writes that are tried once: none of them goes on with another


@dataclass(frozen=True)
class WriteId:
    """A write, which happens once.

    Attributes
    ----------
    name : str
        Of its folder.
    transactional_id : str or None
        Of a sequence of micro-batches, each of which is written once however often it is tried; also the group whose
        committed offset says how far the sequence has come.
    batch_id : int or None
        Its number in that sequence.
    query_id : str
        Of the checkpoint that numbers the batches; empty where that is not known.
    """

    name: str
    transactional_id: str | None = None
    batch_id: int | None = None
    query_id: str = ""

    @property
    def spread(self) -> int:
        """A number that differs from that of other writes: at which partition rows without keys begin."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")

    def folder(self, log_directory: Path) -> Path:
        """Return where it is prepared."""
        return log_directory / STORE_FOLDER / self.name


def new_write() -> WriteId:
    """Return the name of a write that is tried once."""
    return WriteId(uuid.uuid4().hex)


def write_of_batch(transactional_id: str, batch_id: int, query_id: str = "") -> WriteId:
    """Return the name of a micro-batch: always the same for one transactional id and batch id.

    Parameters
    ----------
    transactional_id : str
        Of the sequence. Two sequences in one log directory need two of them.
    batch_id : int
        Larger than that of the batch before.
    query_id : str
        As ``WriteId`` has it.

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
        raise ValueError("a transactional_id has at least one character")
    if not 0 <= batch_id <= LARGEST_BATCH_ID:
        raise ValueError(f"batch_id {batch_id} is not between 0 and 2^63 - 1")
    return WriteId(f"{row_name(transactional_id)}-{batch_id}", transactional_id, batch_id, query_id)


def row_name(transactional_id: str) -> str:
    """Return what the names of all writes of a transactional id begin with; it may hold any characters itself."""
    return hashlib.sha256(transactional_id.encode()).hexdigest()[:32]


def is_earlier(name: str, write: WriteId) -> bool:
    """Whether a name is that of an earlier batch of the sequence that a write belongs to.

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
