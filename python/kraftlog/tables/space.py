"""The use of bytes in partitions, and the effects of compaction and retention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog._native.scanner import COMPRESSION_MASK, CONTROL_BIT, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kraftlog.codec.compression import DecompressionError, Decompressor, decompressor
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.segment import Segment
from kraftlog.read.log_ends import GrowingLogEnd, LogBounds
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.read.segment_reader import located, scanned, segment_file
from kraftlog.tables.producer_tables import producer_states
from kraftlog.tables.stats import codec_names
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner, largest_timestamp
from kraftlog.write.retention import doomed_segments

PRODUCER_EXPIRATION_MS = 86_400_000
DELETE_RETENTION_MS = 86_400_000
_FIELDS = ["key", "value", "headers"]
_NOT_CLEANED = "not_cleaned"


@dataclass(frozen=True)
class Housekeeping:
    """Topic settings for estimates of compaction and retention.

    Attributes
    ----------
    now : int
        Current time in milliseconds.
    compacts : bool
        Whether to estimate compaction.
    rolls : bool
        Whether to treat the last segment of a partition as closed; a broker does not clean it.
    delete_retention_ms, min_compaction_lag_ms : int
    retention_ms, retention_bytes : int or None
        None means no limit; without both there is no estimate of retention.
    """

    now: int
    compacts: bool = False
    rolls: bool = False
    delete_retention_ms: int = DELETE_RETENTION_MS
    min_compaction_lag_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("delete_retention_ms", "min_compaction_lag_ms", "retention_ms", "retention_bytes"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} {getattr(self, name)} is negative")

    @property
    def retains(self) -> bool:
        """Whether to estimate retention."""
        return self.retention_ms is not None or self.retention_bytes is not None

    @property
    def columns(self) -> list[str]:
        """Columns of the table ``space`` that are filled in."""
        compaction = ["compacted_records", "compacted_bytes"] if self.compacts else []
        return [*compaction, *(["retained_offset", "retained_bytes"] if self.retains else [])]


@dataclass
class _Bytes:
    """Sums over a partition."""

    records: int = 0
    size: int = 0
    sound: int = 0  # of the size, in batches that can be read
    plain: int = 0  # of these, when they are decompressed
    key: int = 0
    value: int = 0
    header: int = 0
    index: int = 0
    allocated: int | None = 0
    codecs: int = 0
    is_plain_known: bool = True
    left: dict[str, int | None] = field(default_factory=dict)

    def row(self, segment: Segment) -> dict[str, object]:
        """Return the row of the table."""
        fields = self.key + self.value + self.header
        return {
            "topic": segment.topic,
            "partition": segment.partition,
            "records": self.records,
            "size_in_bytes": self.size,
            "key_bytes": self.key,
            "value_bytes": self.value,
            "header_bytes": self.header,
            "overhead_bytes": self.plain - fields if self.is_plain_known else None,
            "saved_bytes": self.plain - self.sound if self.is_plain_known else None,
            "unread_bytes": self.size - self.sound,
            "index_bytes": self.index,
            "allocated_bytes": self.allocated,
            "compression": codec_names(self.codecs),
            **self.left,
        }


def space(segments: Sequence[Segment], read: Pass, housekeeping: Housekeeping | None = None) -> pa.Table:
    """Add up the bytes of each partition, by kind.

    Batches count as they are on disk; ``saved_bytes`` is what compression saves of them. ``overhead_bytes`` are headers
    of batches, lengths and deltas of records, and control batches. ``unread_bytes`` are torn tails and batches that
    cannot be read. ``index_bytes`` are the sizes of the files beside the log; ``allocated_bytes`` are the blocks that
    all these files have on disk, fewer where index files are sparse. Overhead and savings are null where compressed
    messages of magic 0 or 1 are among them.

    Parameters
    ----------
    segments : sequence of Segment
    read : Pass
        Receives faults, and partitions that compaction refuses.
    housekeeping : Housekeeping, optional
        By default there are no estimates of compaction and retention.

    Returns
    -------
    pyarrow.Table
        A row for each folder of a partition, with the default columns of ``schema.SPACE``, and those on request that
        ``housekeeping`` requires.
    """
    rows = []
    live = [segment for segment in segments if not segment.state]
    for group in by_partition(live):
        beside = [path for segment in group for path in segment.beside.values()]
        each = [disk().allocated_bytes(path) for path in (*(segment.path for segment in group), *beside)]
        known = [size for size in each if size is not None]
        allocated = sum(known) if len(known) == len(each) else None
        total = _Bytes(index=sum(map(_size, beside)), allocated=allocated)
        for segment in group:
            _add_batches(segment, total, read.faults)
        _add_fields(group, total, read)
        if housekeeping is not None:
            total.left = _left(group, housekeeping, read.faults)
        rows.append(total.row(group[0]))
    columns = [*schema.SPACE.shown, *(housekeeping.columns if housekeeping is not None else [])]
    return pa.Table.from_pylist(rows, schema=schema.SPACE.select(columns))


def _size(path: LogPath) -> int:
    entry = disk().entry(path)
    return 0 if entry is None else entry.size or 0


def _add_batches(segment: Segment, total: _Bytes, faults: list[Fault]) -> None:
    """Add the batches of a segment, as they are on disk and decompressed."""
    total.size += segment.size
    into = decompressor()
    with segment_file(segment, faults, strict=False) as file:
        for headers in scanned(segment, HeaderScan(file, check_crc=True), []):  # the records' pass names the faults
            for header in headers[headers["crc_ok"] == 1]:
                _add_batch(file, header, total, into)


def _add_batch(file: ReadableFile, header: Headers, total: _Bytes, into: Decompressor) -> None:
    size = int(header["batch_length"]) + LOG_OVERHEAD
    codec = int(header["attributes"]) & COMPRESSION_MASK
    total.codecs |= 1 << codec
    plain = size
    if codec and header["magic"] < 2:
        total.is_plain_known = False
    elif codec:
        position = int(header["position"])
        data = file.read(position + RECORD_BATCH_OVERHEAD, position + size)
        try:
            plain = RECORD_BATCH_OVERHEAD + into.decompress(data, codec, 2)
        except DecompressionError:
            return
    total.sound += size
    total.plain += plain


def _add_fields(group: list[Segment], total: _Bytes, read: Pass) -> None:
    options = ReadOptions(include_deleted=True)
    arrow_schema = schema.RECORDS.select(_FIELDS)
    for batch in read_ranges(plan(group, options, None), arrow_schema, read.with_options(options)):
        total.records += batch.num_rows
        total.key += _lengths(batch["key"])
        total.value += _lengths(batch["value"])
        headers = batch["headers"].flatten()
        total.header += _lengths(headers.field("key")) + _lengths(headers.field("value"))


def _lengths(column: pa.Array) -> int:
    found: int | None = pc.sum(pc.binary_length(column)).as_py()
    return found or 0


def _left(group: list[Segment], settings: Housekeeping, faults: list[Fault]) -> dict[str, int | None]:
    """Return the bytes of a partition after compaction and retention; null if unknown."""
    if group[0].base_offset is None or isinstance(group[0].path, RemotePath):
        message = f"{group[0].name}: compaction and retention are known of local folders of partitions alone"
        faults.append(located(group[0], Fault(_NOT_CLEANED, message)))
        return {}
    bounds = GrowingLogEnd(ReadOptions(isolation_level=READ_COMMITTED)).bounds(group)
    left: dict[str, int | None] = {}
    if settings.retains:
        size = sum(segment.size for segment in group)
        doomed = doomed_segments(
            _stable(group, bounds, rolls=False),
            size,
            settings.now,
            log_start_offset=bounds.log_start_offset,
            retention_ms=settings.retention_ms,
            retention_bytes=settings.retention_bytes,
        )
        left["retained_bytes"] = size - sum(segment.size for segment in doomed)
        left["retained_offset"] = max(group[len(doomed)].base_offset or 0, bounds.log_start_offset)
    if settings.compacts:
        try:
            left |= _compacted(group, bounds, settings)
        except (RecordError, ValueError) as error:
            fault = error.fault if isinstance(error, RecordError) and error.fault is not None else None
            message = f"{group[0].folder.name} cannot be cleaned: {error}"
            position = None if fault is None else fault.position
            faults.append(located(group[0], Fault(_NOT_CLEANED, message, position)))
    return left


def _stable(group: list[Segment], bounds: LogBounds, *, rolls: bool) -> list[tuple[Segment, int]]:
    """Return the closed segments without open transactions, each with its end offset."""
    ends = [segment.base_offset or 0 for segment in group[1:]]
    if rolls:
        ends.append(bounds.log_end_offset)
    return [(segment, end) for segment, end in zip(group, ends, strict=False) if end <= bounds.last_stable_offset]


def _compacted(group: list[Segment], bounds: LogBounds, settings: Housekeeping) -> dict[str, int | None]:
    """Run the log cleaner without writing."""
    closed = [segment for segment, _ in _stable(group, bounds, rolls=settings.rolls)]
    for number, segment in enumerate(closed):
        if largest_timestamp(segment) > settings.now - settings.min_compaction_lag_ms:
            closed = closed[:number]
            break
    states = producer_states(group, Pass())
    active = [one for one in states if one.last_timestamp > settings.now - PRODUCER_EXPIRATION_MS]
    options = CleanOptions(settings.now, settings.delete_retention_ms, max(1, sum(one.size for one in group)))
    rest = group[len(closed) :]
    cleaner = LogCleaner(closed, rest, active, options)
    records = size = 0
    for each in cleaner.groups():
        for piece in cleaner.cleaned(each):
            size += len(piece)
            records += _records_in(HeaderScan(piece))
    for segment in rest:
        with segment_file(segment, [], strict=False) as file:
            records += _records_in(HeaderScan(file))
    return {"compacted_records": records, "compacted_bytes": size + sum(segment.size for segment in rest)}


def _records_in(scan: HeaderScan) -> int:
    every = 0
    for headers in scan.headers():
        data = headers[headers["attributes"] & CONTROL_BIT == 0]
        every += int(data["records_count"].clip(min=0).sum())
    return every
