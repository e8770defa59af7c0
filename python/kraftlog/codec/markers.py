"""Transaction markers of the metadata log, and the levels of metadata.version, found in one walk over its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.cursor import Cursor
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.headers import Headers, copied
from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.records import DecodedRows
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.types import Buffer, InputFile

BYTES_AT_ONCE = 16 << 20
FEATURE_LEVEL = 12  # an api key
_COLUMNS = schema.RECORDS.select(["offset", "value"])


class MarkerBlock(NamedTuple):
    """Batches one behind the other, and their markers.

    Attributes
    ----------
    headers : numpy.ndarray
        Of all batches that can be read; ``rows`` says how many markers each one has.
    offsets, api_keys : numpy.ndarray of int64
    values : tuple of bytes
        Of the markers.
    cut : numpy.ndarray of bool
        The batches of which some records at the end cannot be read.
    position : int
        The byte behind them.
    levels : list of tuple of int
        Offset and level of each record that sets ``metadata.version``.
    """

    headers: Headers
    offsets: npt.NDArray[np.int64]
    api_keys: npt.NDArray[np.int64]
    values: tuple[bytes, ...]
    cut: npt.NDArray[np.bool_]
    position: int
    levels: list[tuple[int, int]]


def scan_markers(
    buffer: Buffer | InputFile, faults: list[Fault], *, start: int = 0, end: int = NO_BOUND, strict: bool = False
) -> Iterator[MarkerBlock]:
    """Find the markers in the batches that start in [start, end) of a buffer, and compare the crc of each batch."""
    options = ReadOptions(strict=strict, batch_bytes=BYTES_AT_ONCE)
    decoder = RecordDecoder(buffer, start, end, DecodePlan(_COLUMNS, options, only_markers=True))
    seen = len(faults)
    for rows in decoder.chunks(faults):
        cut_at = [fault.position or 0 for fault in faults[seen:] if fault.record_index is not None]
        seen = len(faults)
        position = decoder.position if decoder.torn_at < 0 else decoder.torn_at
        headers = rows.headers
        cut = np.isin(headers["position"], cut_at) if cut_at else np.zeros(len(headers), bool)
        yield _block(rows, cut, position)


def _block(rows: DecodedRows, cut: npt.NDArray[np.bool_], position: int) -> MarkerBlock:
    headers, offsets = rows.headers, rows.numbers("offset")
    array = rows.array("value", pa.binary())
    values, keys = tuple(array.to_pylist()), _api_keys(array)
    is_level = keys == FEATURE_LEVEL
    if not is_level.any():
        return MarkerBlock(headers, offsets, keys, values, cut, position, [])
    found = [(int(offsets[at]), metadata_version(values[at])) for at in np.flatnonzero(is_level).tolist()]
    batch_of = np.repeat(np.arange(len(headers)), headers["rows"])[~is_level]
    headers = copied(headers)
    headers["rows"] = np.bincount(batch_of, minlength=len(headers))
    values = tuple(values[at] for at in np.flatnonzero(~is_level).tolist())
    levels = [(offset, level) for offset, level in found if level is not None]
    return MarkerBlock(headers, offsets[~is_level], keys[~is_level], values, cut, position, levels)


def _api_keys(markers: pa.BinaryArray) -> npt.NDArray[np.int64]:
    _, ends, data = markers.buffers()
    starts = np.frombuffer(ends, np.int32, len(markers), 4 * markers.offset)
    cells = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    keys = (cells[starts + 1] & 0x7F).astype(np.int64)
    for at in np.flatnonzero(cells[starts] >= 0x80).tolist():  # a frame version that takes more than one byte
        keys[at] = api_key(markers[at].as_py())
    return keys


def api_key(marker: bytes) -> int:
    """Return the api key of a marker record; its varints may be longer than needed."""
    frame_size = next(at for at, byte in enumerate(marker) if byte < 0x80) + 1
    return marker[frame_size] & 0x7F  # keys of markers fit one group of seven bits


def metadata_version(value: bytes) -> int | None:
    """Return the level of ``metadata.version`` that a FeatureLevelRecord sets; None when it sets another feature.

    Examples
    --------
    >>> metadata_version(bytes.fromhex("010c0011") + b"metadata.version" + bytes.fromhex("000b00"))
    11
    """
    cursor = Cursor(value, "FeatureLevelRecord")
    try:
        for _ in ("frame version", "api key", "version"):
            cursor.uvarint()
        name = cursor.nullable_string()
        return int(cursor.number(">h")) if name == METADATA_VERSION else None
    except InvalidRecordError:
        return None  # reading the message reports it
