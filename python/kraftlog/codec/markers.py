"""Transaction markers of the metadata log, and the levels of metadata.version, found in one walk over its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog._native.visibility import marker_rows, marker_texts, outline
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.cursor import Cursor
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.headers import Headers
from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.records import DecodedRows
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.types import Buffer, InputFile

BYTES_AT_ONCE = 16 << 20
FEATURE_LEVEL = 12  # an api key
_COLUMNS = schema.RECORDS.select(["offset", "value"])
_OFFSET, _API_KEY = 0, 3  # columns of the markers of an outline

Ints = npt.NDArray[np.int64]
RawOutline = tuple[Ints, tuple[int, int, int], int, int, bool, bool]


class MarkerBlock(NamedTuple):
    """Consecutive batches, with their markers.

    Attributes
    ----------
    headers : numpy.ndarray
        Headers of all readable batches.
    batch_of, offsets, api_keys : numpy.ndarray of int64
        For each marker: the index of its batch, its offset, and its type.
    values : tuple of bytes or None
        Values of the markers; None if not requested.
    cut : numpy.ndarray of bool
        Batches whose last records cannot be read.
    position : int
        The end of the batches, in bytes.
    levels : list of tuple of int
        Offset and level of each record that sets ``metadata.version``.
    outline : tuple
        Result of ``kraftlog._native.visibility.outline`` for these batches and markers.
    """

    headers: Headers
    batch_of: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    api_keys: npt.NDArray[np.int64]
    values: tuple[bytes | None, ...]
    cut: npt.NDArray[np.bool_]
    position: int
    levels: list[tuple[int, int]]
    outline: RawOutline

    @property
    def control_batches(self) -> int:
        """Number of control batches."""
        return len(self.headers) - self.outline[1][1]


class ValueBlock(NamedTuple):
    """Consecutive batches, with their markers.

    Attributes
    ----------
    markers : MarkerBlock
        Markers of the same batches, without values.
    rows : DecodedRows
        Rows with values and offsets.
    values : pyarrow.BinaryArray
    is_rising : bool
        Whether offsets are strictly increasing.
    """

    markers: MarkerBlock
    rows: DecodedRows
    values: pa.BinaryArray
    is_rising: bool


def scan_markers(
    buffer: Buffer | InputFile, faults: list[Fault], *, start: int = 0, end: int = NO_BOUND, strict: bool = False
) -> Iterator[MarkerBlock]:
    """Find the markers in the batches that start in [start, end) of a buffer, and verify the crc of each batch."""
    options = ReadOptions(strict=strict, batch_bytes=BYTES_AT_ONCE)
    decoder = RecordDecoder(buffer, start, end, DecodePlan(_COLUMNS, options, every_batch=True, only_markers=True))
    for rows, cut, position in _cut(decoder, faults):
        block, at, _ = _block(rows, cut, position, -NO_BOUND - 1)
        yield block._replace(values=tuple(rows.array("value", pa.binary()).take(array_of(at)).to_pylist()))


class ColumnMarkers(NamedTuple):
    """The batches of a column of values, and their markers. Positions count from the start of each value.

    Attributes
    ----------
    markers : MarkerBlock
        Without values of markers, and without levels.
    texts : pyarrow.StringArray
        The name or reason of each marker, null for none.
    is_odd : numpy.ndarray of bool
        Markers in a form that no writer uses; their texts are unknown.
    batch_ends : numpy.ndarray of int64
        The number of batches up to the end of each value.
    is_bad : numpy.ndarray of bool
        Values with a fault; the batches after it are left out.
    """

    markers: MarkerBlock
    texts: pa.Array
    is_odd: npt.NDArray[np.bool_]
    batch_ends: npt.NDArray[np.int64]
    is_bad: npt.NDArray[np.bool_]


def column_markers(data: Buffer, bounds: npt.NDArray[np.int64]) -> ColumnMarkers:
    """Find the markers in each value of a binary column, in one pass, as ``scan_markers`` does with ``strict``.

    Parameters
    ----------
    data : buffer
    bounds : numpy.ndarray of int64
        Start and end of each value.
    """
    plan = DecodePlan(_COLUMNS, ReadOptions(strict=True), every_batch=True, only_markers=True)
    decoder = RecordDecoder(data, 0, NO_BOUND, plan, whole=True, pieces=bounds)
    blocks: list[MarkerBlock] = []
    texts: list[pa.Array] = []
    is_odd: list[npt.NDArray[np.bool_]] = []
    for rows in decoder.chunks([]):
        block, at, _ = _block(rows, np.zeros(len(rows.headers), bool), 0, -NO_BOUND - 1)
        blocks.append(block)
        text_ends, text, has_text, odd = marker_texts(rows.chunk, at)
        bits = pa.py_buffer(np.packbits(has_text, bitorder="little"))
        buffers = [bits, pa.py_buffer(text_ends), pa.py_buffer(text)]
        texts.append(pa.Array.from_buffers(pa.string(), len(at), buffers))
        is_odd.append(odd)
    ends, faults = decoder.piece_ends()
    is_bad = np.zeros(len(bounds), bool)
    is_bad[[piece for piece, _ in faults]] = True
    every = pa.concat_arrays([pa.array([], pa.string()), *texts])
    odd = np.concatenate([np.empty(0, bool), *is_odd])
    return ColumnMarkers(_joined(blocks), every, odd, ends[:, 1], is_bad)


def _joined(blocks: list[MarkerBlock]) -> MarkerBlock:
    """Return consecutive blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    headers = np.concatenate([np.empty(0, np.uint8), *(np.ascontiguousarray(b.headers).view(np.uint8) for b in blocks)])
    before = np.cumsum([0, *(len(block.headers) for block in blocks)])
    numbered = [block.batch_of + first for block, first in zip(blocks, before, strict=False)]
    columns = numbered, [block.offsets for block in blocks], [block.api_keys for block in blocks]
    batch_of, offsets, api_keys = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in columns)
    found = outline(headers, batch_of, offsets, api_keys)
    whole = np.zeros(before[-1], bool)
    return MarkerBlock(headers.view(HEADER_DTYPE), batch_of, offsets, api_keys, (), whole, 0, [], found)


class ValueReader:
    """Decodes offsets and values of all records of the batches that start in [start, end), and finds the markers.

    Parameters
    ----------
    buffer : buffer or file
    start, end : int
        Bytes.
    options : ReadOptions
        Only the size of chunks is used.

    Attributes
    ----------
    decoder : RecordDecoder
    """

    def __init__(self, buffer: Buffer | InputFile, start: int, end: int, options: ReadOptions) -> None:
        sizes = ReadOptions(batch_rows=options.batch_rows, batch_bytes=options.batch_bytes)
        self.decoder = RecordDecoder(buffer, start, end, DecodePlan(_COLUMNS, sizes, every_batch=True))

    def blocks(self, faults: list[Fault]) -> Iterator[ValueBlock]:
        """Return chunks; ``faults`` receives faults, and may be cleared between chunks."""
        last = -NO_BOUND - 1
        for rows, cut, position in _cut(self.decoder, faults):
            markers, _, is_rising = _block(rows, cut, position, last)
            offsets = rows.numbers("offset")
            last = int(offsets[-1]) if len(offsets) else last
            yield ValueBlock(markers, rows, rows.array("value", pa.binary()), is_rising)


def _cut(decoder: RecordDecoder, faults: list[Fault]) -> Iterator[tuple[DecodedRows, npt.NDArray[np.bool_], int]]:
    """Return chunks, their batches with missing records at the end, and the end position in bytes."""
    found: list[Fault] = []
    for rows in decoder.chunks(found):
        cut_at = [fault.position or 0 for fault in found if fault.record_index is not None]
        faults += found
        found.clear()
        cut = np.isin(rows.headers["position"], cut_at) if cut_at else np.zeros(len(rows.headers), bool)
        yield rows, cut, decoder.position if decoder.torn_at < 0 else decoder.torn_at
    faults += found


def _block(rows: DecodedRows, cut: npt.NDArray[np.bool_], position: int, last: int) -> tuple[MarkerBlock, Ints, bool]:
    """Return the markers of a chunk, their rows, and whether its offsets increase and start after ``last``."""
    at, batch_of, found, is_rising = marker_rows(rows.chunk, last)
    levels: list[tuple[int, int]] = []
    is_level = found[0][:, _API_KEY] == FEATURE_LEVEL
    if is_level.any():
        array, offsets = rows.array("value", pa.binary()).take(array_of(at[is_level])), found[0][is_level, _OFFSET]
        pairs = zip(offsets.tolist(), array.to_pylist(), strict=True)
        levels = [(offset, level) for offset, value in pairs if (level := metadata_version(value)) is not None]
        at, batch_of, found = at[~is_level], batch_of[~is_level], (found[0][~is_level], *found[1:])
    offsets, api_keys = np.ascontiguousarray(found[0][:, [_OFFSET, _API_KEY]].T)
    values = (None,) * len(at)
    return MarkerBlock(rows.headers, batch_of, offsets, api_keys, values, cut, position, levels, found), at, is_rising


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
