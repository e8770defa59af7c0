"""A staged file becomes part of a log: its headers get offsets, producer, sequences and epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.log_store.crc_shift import changed_crcs
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.transactions.producer_state import SEQUENCES

_WORD_BYTES = 4

# The fields of a header up to its base sequence, behind which nothing changes: see native/c/batch/batch.h.
_PRODUCER = [("producer_id", ">i8"), ("producer_epoch", ">i2"), ("base_sequence", ">i4")]
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        *_PRODUCER,
    ]
)
_PRODUCER_AT = _HEADER.itemsize - np.dtype(_PRODUCER).itemsize


_WORDS = 4  # of four bytes, from the producer id on: producer id, epoch and sequence


LARGE_BYTES = 4 << 20  # a file of this size is renamed; batches of a smaller one are copied to the last segment


def is_large(headers: Headers) -> bool:
    """Whether the file of these batches becomes a segment of its own."""
    return bool(ends(headers)[-1] >= LARGE_BYTES)


def placed_headers(staged: Headers, *, base_offset: int, stamp: Stamp, partition_leader_epoch: int) -> Headers:
    """Return the final headers of a staged file.

    The CRC does not cover the offset and the leader epoch; for the producer and its sequence it is derived from the old
    CRC.

    Parameters
    ----------
    staged : structured array of HEADER_DTYPE
        As ``read_headers`` returns them.
    base_offset : int
        Of the first batch.
    stamp : Stamp
        Of the first batch.
    partition_leader_epoch : int
    """
    headers = staged.copy()
    headers["base_offset"] += base_offset - int(staged["base_offset"][0])
    headers["partition_leader_epoch"] = partition_leader_epoch
    headers["producer_id"] = stamp.producer_id
    headers["producer_epoch"] = stamp.producer_epoch
    headers["base_sequence"] = (headers["base_offset"] - base_offset + stamp.sequence) % SEQUENCES
    changes = _words(staged) ^ _words(headers)
    behind = staged["batch_length"].astype(np.int64) + LOG_OVERHEAD - _PRODUCER_AT
    for at in range(_WORDS):
        if changes[:, at].any():
            headers["crc"] = changed_crcs(headers["crc"], changes[:, at], behind - (at + 1) * _WORD_BYTES)
    return headers


def _words(headers: Headers) -> npt.NDArray[np.uint32]:
    """Return the fields of the producer as words, in the byte order of the file."""
    rows = _rows(headers)
    covered = np.zeros((len(rows), _WORDS * _WORD_BYTES), np.uint8)
    bytes_of_rows = rows.view(np.uint8).reshape(len(rows), _HEADER.itemsize)
    covered[:, : _HEADER.itemsize - _PRODUCER_AT] = bytes_of_rows[:, _PRODUCER_AT:]
    return covered.view("<u4").astype(np.uint32)


def _rows(headers: Headers) -> npt.NDArray[np.void]:
    rows = np.empty(len(headers), _HEADER)
    for name in _HEADER.names or ():
        rows[name] = headers[name]
    return rows


def placed_bytes(data: bytes, headers: Headers) -> memoryview:
    """Return the bytes of a staged file with other headers.

    Parameters
    ----------
    data : bytes
        Of the file.
    headers : structured array of HEADER_DTYPE
        As ``placed_headers`` returns them.
    """
    placed = np.frombuffer(data, np.uint8).copy()
    cells = headers["position"][:, None] + np.arange(_HEADER.itemsize)
    placed[cells] = _rows(headers).view(np.uint8).reshape(len(headers), _HEADER.itemsize)
    return placed.data


def write_headers(path: Path, headers: Headers) -> None:
    """Overwrite the headers of a file; the log that takes it as a segment syncs it.

    Parameters
    ----------
    path : Path
        A staged file.
    headers : structured array of HEADER_DTYPE
        As ``placed_headers`` returns them.
    """
    data = memoryview(_rows(headers).tobytes())
    with disk().open_update(path) as file:
        for at, position in enumerate(headers["position"].tolist()):
            file.pwrite(data[at * _HEADER.itemsize : (at + 1) * _HEADER.itemsize], position)
