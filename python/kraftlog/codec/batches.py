"""Batch headers of a buffer, as the ``batches`` table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.buffer_stream import NO_OFFSET, BufferStream, Progress
from kraftlog.codec.header_columns import header_column
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import last_offsets
from kraftlog.errors import Fault
from kraftlog.stream import rows_of
from kraftlog.types import Buffer

_OF_FILES = ("topic", "partition", "segment_base_offset", "file")
BATCH_COLUMNS = tuple(name for name in schema.BATCHES.shown if name not in _OF_FILES)


class HeaderRows:
    """One pass over the headers of a buffer.

    Parameters
    ----------
    buffer : buffer
    arrow_schema : pyarrow.Schema
        Columns of the ``batches`` table.
    check_crc, strict : bool
        As in ``batches``.
    """

    def __init__(self, buffer: Buffer, arrow_schema: pa.Schema, *, check_crc: bool, strict: bool) -> None:
        self._scan = HeaderScan(buffer, check_crc=check_crc)
        self._schema = arrow_schema
        self._strict = strict
        self._next_offset = NO_OFFSET

    @property
    def reached(self) -> tuple[int, int]:
        """End of the last complete batch, in bytes, and the next offset."""
        return self._scan.consumed, self._next_offset

    def batches(self, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Return the headers; faults are appended to ``faults``, or raised if ``strict``."""
        self._scan.faults = faults
        for headers in self._scan.headers(strict=self._strict):
            believed = headers[headers["crc_ok"] != 0]
            if len(believed):
                self._next_offset = int(last_offsets(believed[-1:])[0]) + 1
            columns = [header_column(name, headers) for name in self._schema.names]
            yield rows_of(columns, self._schema, len(headers))


def batches(
    buffer: Buffer,
    *,
    columns: Sequence[str] | None = None,
    check_crc: bool = False,
    strict: bool = False,
) -> BufferStream:
    """Return the headers of record batches, and of messages of older formats; records are not decoded.

    Parameters
    ----------
    buffer : buffer
        Any contiguous buffer with consecutive record batches, such as a log file or a fetch response.
    columns : sequence of str, optional
        Columns of the ``batches`` table; by default all that apply to a buffer.
    check_crc : bool
        Whether to verify the checksum of each batch. A batch with a wrong checksum is a fault, and also a row with
        ``crc_ok`` false.
    strict : bool
        Raise at the first fault instead of adding it to ``errors``.

    Returns
    -------
    BufferStream
        A row for each batch, and the number of consumed bytes. ``buffer`` is referenced during an iteration.

    Raises
    ------
    ValueError
        When a column is unknown, or applies only to files.
    RecordError
        While rows are read, with ``strict``.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> data = kraftlog.encode(pa.table({"value": [b"a", b"b"]}), base_offset=7)
    >>> headers = kraftlog.batches(data, columns=["position", "base_offset", "last_offset", "records_count"])
    >>> headers.to_table().to_pylist()
    [{'position': 0, 'base_offset': 7, 'last_offset': 8, 'records_count': 2}]
    >>> headers.next_offset, headers.consumed == len(data)
    (9, True)
    """
    arrow_schema = schema.BATCHES.select(BATCH_COLUMNS if columns is None else columns)
    of_files = [name for name in arrow_schema.names if name in _OF_FILES]
    if of_files:
        raise ValueError(f"{', '.join(of_files)}: only known of a log; use kraftlog.open")
    progress = Progress()

    def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        return progress.follow(HeaderRows(buffer, arrow_schema, check_crc=check_crc, strict=strict), faults)

    return BufferStream(arrow_schema, produce, progress)
