"""Sums per partition and producer, from batch headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.scanner import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
)
from kraftlog.codec.compression import DecompressionError, Decompressor, decompressor
from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import COMPRESSION_NAMES, NO_TIMESTAMP, Headers
from kraftlog.disk.disk import ReadableFile
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Progress
from kraftlog.read.segment_reader import located, scanned, segment_file
from kraftlog.schema import STATS

Key = tuple[str | None, int | None, int | None]


@dataclass
class Totals:
    """Sums over batches; timestamps are milliseconds."""

    batches: int = 0
    records: int | None = 0  # None: compressed messages of old formats do not say how many they hold
    size: int = 0
    packed: int = 0
    plain: int = 0
    codecs: int = 0
    first_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP

    def add(self, headers: Headers) -> None:
        """Add batches."""
        self.join(_sums(headers, np.zeros(1, np.intp))[0])

    def join(self, other: Totals) -> None:
        """Add the sums of other batches."""
        is_known = self.records is not None and other.records is not None
        self.records = (self.records or 0) + (other.records or 0) if is_known else None
        for name in ("batches", "size", "packed", "plain"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codecs |= other.codecs
        stamps = [one.first_timestamp for one in (self, other) if one.first_timestamp != NO_TIMESTAMP]
        self.first_timestamp = min(stamps, default=NO_TIMESTAMP)
        self.max_timestamp = max(self.max_timestamp, other.max_timestamp)


def _sums(headers: Headers, starts: npt.NDArray[np.intp]) -> list[Totals]:
    """Return the sums of consecutive ranges of batches; none is empty."""
    counts, timestamps_of = headers["records_count"], headers["max_timestamp"]
    begun = np.where(
        headers["attributes"] & (TIMESTAMP_TYPE_BIT | DELETE_HORIZON_BIT) != 0,
        timestamps_of,
        headers["base_timestamp"],
    )
    has_begun = begun != NO_TIMESTAMP
    columns = (
        np.diff(starts, append=len(headers)),
        np.add.reduceat(counts.clip(min=0).astype(np.int64), starts),
        np.logical_or.reduceat((headers["magic"] < 2) & (counts < 0), starts),
        np.add.reduceat(headers["batch_length"].astype(np.int64) + LOG_OVERHEAD, starts),
        np.bitwise_or.reduceat(1 << (headers["attributes"] & COMPRESSION_MASK).astype(np.int64), starts),
        np.logical_or.reduceat(has_begun, starts),
        np.minimum.reduceat(np.where(has_begun, begun, np.iinfo(np.int64).max), starts),
        np.maximum.reduceat(timestamps_of, starts),
    )
    return [
        Totals(
            batches,
            None if is_uncounted else records,
            size,
            codecs=codecs,
            first_timestamp=first if is_stamped else NO_TIMESTAMP,
            max_timestamp=max(last, NO_TIMESTAMP),
        )
        for batches, records, is_uncounted, size, codecs, is_stamped, first, last in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def collect(
    segments: list[Segment], faults: list[Fault], *, by_producer: bool, decompress: bool, on_progress: Progress | None
) -> pa.Table:
    """Add up the batches of each partition, or of each producer in it.

    Parameters
    ----------
    segments : list of Segment
    faults : list of Fault
        Receives faults.
    by_producer : bool
        A row for each producer id of a partition; otherwise producer_id is null.
    decompress : bool
        Decompress the batches for ``compression_ratio``; otherwise it is null.
    """
    totals: dict[Key, Totals] = {}
    plain = decompressor()
    for segment in segments:
        with segment_file(segment, faults, strict=False) as file:
            for headers in scanned(segment, HeaderScan(file), faults):
                for producer_id, sums, part in _groups(headers, by_producer=by_producer):
                    total = totals.setdefault((segment.topic, segment.partition, producer_id), Totals())
                    total.join(sums)
                    if decompress:
                        _decompress(file, segment, part, total, plain, faults)
        if on_progress:
            on_progress(segment.size)
    return _table(totals, decompress=decompress)


def _groups(headers: Headers, *, by_producer: bool) -> Iterator[tuple[int | None, Totals, Headers]]:
    """Return producer ids as groups of batches, with the sums of their batches."""
    if not by_producer:
        yield None, _sums(headers, np.zeros(1, np.intp))[0], headers
        return
    ordered = headers[np.argsort(headers["producer_id"], kind="stable")]
    ids = ordered["producer_id"]
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    ends = [*starts[1:].tolist(), len(ordered)]
    for producer_id, sums, start, end in zip(
        ids[starts].tolist(), _sums(ordered, starts), starts.tolist(), ends, strict=True
    ):
        yield producer_id, sums, ordered[start:end]


def _decompress(
    file: ReadableFile,
    segment: Segment,
    headers: Headers,
    total: Totals,
    into: Decompressor,
    faults: list[Fault],
) -> None:
    """Measure decompressed batches of magic 2; for messages of older formats the stored size is used."""
    for header in headers:
        position, size = int(header["position"]), int(header["batch_length"]) + LOG_OVERHEAD
        codec = int(header["attributes"]) & COMPRESSION_MASK
        packed = size - RECORD_BATCH_OVERHEAD
        if header["magic"] < 2 or not codec:
            total.packed += size
            total.plain += size
            continue
        data = file.read(position + RECORD_BATCH_OVERHEAD, position + size)
        try:
            plain = into.decompress(data, codec, 2)
        except DecompressionError as error:
            fault = Fault("decompression_failed", f"batch at byte {position}: {error}", position, size)
            faults.append(located(segment, fault))
            continue
        total.packed += packed
        total.plain += plain


def _table(totals: dict[Key, Totals], *, decompress: bool) -> pa.Table:
    order = sorted(totals, key=lambda key: (key[0] or "", key[1] or 0, -1 if key[2] is None else key[2]))
    rows = [totals[key] for key in order]
    columns = {
        "topic": [key[0] for key in order],
        "partition": [key[1] for key in order],
        "producer_id": [key[2] for key in order],
        "batches": [row.batches for row in rows],
        "records": [row.records for row in rows],
        "size_in_bytes": [row.size for row in rows],
        "mean_batch_bytes": [round(row.size / row.batches, 1) for row in rows],
        "compression": [codec_names(row.codecs) for row in rows],
        "compression_ratio": [round(row.plain / row.packed, 3) if decompress and row.packed else None for row in rows],
        "first_timestamp": timestamps(np.array([row.first_timestamp for row in rows], np.int64)),
        "max_timestamp": timestamps(np.array([row.max_timestamp for row in rows], np.int64)),
    }
    return pa.table(columns, schema=STATS.select())


def codec_names(codecs: int) -> str:
    """Return the names of the codecs whose bits are set, as in the column ``compression``."""
    return "+".join(name for code, name in enumerate(COMPRESSION_NAMES) if codecs >> code & 1)
