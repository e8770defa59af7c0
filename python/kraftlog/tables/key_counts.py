"""Number of records per key: exact while the keys fit into memory, then estimated by sketches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.stream import optional_package
from kraftlog.tables.deleted_records import notes_of_deleted

MOST_BYTES = 512 << 20
LEAST_ROWS = 1 << 16
DISTINCT_BITS = 14  # of a HyperLogLog sketch: an error of about 0.8 %
FREQUENT_BITS = 16  # of a sketch of frequent items: what has more than 1 in 19,000 records is among them
_SUMS = ["records", "size_in_bytes", "tombstones"]


class KeyCounts:
    """Counts the records of each key of one partition.

    Parameters
    ----------
    most_bytes : int
        Memory for keys and counts; beyond it, sketches are used and all results are estimates.

    Attributes
    ----------
    records, null_keys, tombstones : int
        Always exact.

    Examples
    --------
    >>> counts = KeyCounts()
    >>> counts.add(pa.record_batch({"key": [b"a", b"b", b"a", None], "value": [b"1", None, b"22", b"3"]}))
    >>> counts.distinct_keys, counts.null_keys, counts.tombstones, counts.top(1).to_pylist()
    (2, 1, 1, [{'key': b'a', 'records': 2, 'size_in_bytes': 5, 'tombstones': 0}])
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.records = self.null_keys = self.tombstones = 0
        self._most_bytes = most_bytes
        self._kept: pa.Table | None = None
        self._new: list[pa.Table] = []
        self._news = self._bytes = 0
        self._sketches: _Sketches | None = None

    @property
    def is_estimate(self) -> bool:
        """Whether results are estimates."""
        return self._sketches is not None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records, with key and value."""
        is_tombstone = pc.is_null(rows["value"])
        size = pc.add(pc.binary_length(rows["key"]), pc.fill_null(pc.binary_length(rows["value"]), 0))
        table = pa.table(
            {
                "key": rows["key"],
                "records": pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows),
                "size_in_bytes": size.cast(pa.int64()),
                "tombstones": is_tombstone.cast(pa.int64()),
            }
        )
        self.records += rows.num_rows
        self.null_keys += rows["key"].null_count
        self.tombstones += pc.sum(pc.and_(is_tombstone, pc.is_valid(rows["key"]))).as_py() or 0
        with_key = table.filter(pc.is_valid(table["key"])) if rows["key"].null_count else table
        if self._sketches is not None:
            self._sketches.add(_summed(with_key))
            return
        self._new.append(with_key)
        self._news += with_key.num_rows
        self._bytes += with_key.nbytes
        kept_rows, kept_bytes = (0, 0) if self._kept is None else (self._kept.num_rows, self._kept.nbytes)
        if self._news >= max(LEAST_ROWS, kept_rows) or self._bytes > max(self._most_bytes - kept_bytes, 1):
            self._join()

    def _join(self) -> None:
        tables = [table for table in (self._kept, *self._new) if table is not None]
        if tables:
            self._kept = _summed(pa.concat_tables(tables))
        self._new, self._news, self._bytes = [], 0, 0
        if self._kept is not None and self._kept.nbytes > self._most_bytes:
            self._sketches = _Sketches()
            self._sketches.add(self._kept)
            self._kept = None

    @property
    def distinct_keys(self) -> int:
        """The number of keys."""
        self._join()
        if self._sketches is not None:
            return self._sketches.distinct_keys
        return 0 if self._kept is None else self._kept.num_rows

    def top(self, count: int) -> pa.Table:
        """Return the keys with the most records; equal counts are ordered by the bytes of the key."""
        self._join()
        if self._sketches is not None:
            return self._sketches.top(count)
        arrow_schema = schema.TOP_KEYS.select(["key", *_SUMS])
        if self._kept is None:
            return arrow_schema.empty_table()
        order = [("records", "descending"), ("key", "ascending")]
        return self._kept.sort_by(order).slice(0, count).select(arrow_schema.names).cast(arrow_schema)


def _summed(table: pa.Table) -> pa.Table:
    summed = table.group_by("key").aggregate([(name, "sum") for name in _SUMS])
    return summed.select(["key", *(f"{name}_sum" for name in _SUMS)]).rename_columns(["key", *_SUMS]).combine_chunks()


class _Sketches:
    """Estimates by the sketches of Apache DataSketches."""

    def __init__(self) -> None:
        self._package: Any = optional_package(
            "datasketches", "counting more keys than memory is given for", "'kraftlog[sketches]'"
        )
        self._distinct = self._package.hll_sketch(DISTINCT_BITS)
        self._frequent = self._package.frequent_strings_sketch(FREQUENT_BITS)

    def add(self, summed: pa.Table) -> None:
        """Add keys and their numbers of records."""
        for key, records in zip(summed["key"].to_pylist(), summed["records"].to_pylist(), strict=True):
            text = key.decode("latin-1")
            self._distinct.update(text or "\0empty")  # an empty text would not count
            self._frequent.update(text, records)

    @property
    def distinct_keys(self) -> int:
        estimate: float = self._distinct.get_estimate()
        return round(estimate)

    def top(self, count: int) -> pa.Table:
        kind = self._package.frequent_items_error_type.NO_FALSE_NEGATIVES
        found = sorted(self._frequent.get_frequent_items(kind), key=lambda item: (-item[1], item[0]))[:count]
        columns = {
            "key": [item[0].encode("latin-1") for item in found],
            "records": [item[1] for item in found],
            **{name: [None] * len(found) for name in _SUMS[1:]},
        }
        return pa.table(columns, schema=schema.TOP_KEYS.select(["key", *_SUMS]))


def count_keys(files: Discovery, read: Pass, *, most_bytes: int = MOST_BYTES) -> list[tuple[Segment, KeyCounts]]:
    """Count the keys of each partition's records, as visible to consumers.

    Parameters
    ----------
    files : Discovery
    read : Pass
        Notes are about records before the log start offset, which are not counted.
    most_bytes : int
        Memory for keys and counts of one partition.
    """
    counted = []
    arrow_schema = schema.RECORDS.select(["key", "value"])
    read.notes.extend(notes_of_deleted(files.segments, read.options))
    for group in by_partition(files.segments):
        counts = KeyCounts(most_bytes)
        for rows in read_ranges(plan(group, read.options, None), arrow_schema, read):
            counts.add(rows)
        counted.append((group[0], counts))
    return counted


def key_stats(counted: list[tuple[Segment, KeyCounts]]) -> pa.Table:
    """Return a row for each partition."""
    rows = []
    for segment, counts in counted:
        distinct, with_key = counts.distinct_keys, counts.records - counts.null_keys
        distinct = min(distinct, with_key)
        rows.append(
            {
                "topic": segment.topic,
                "partition": segment.partition,
                "records": counts.records,
                "null_keys": counts.null_keys,
                "tombstones": counts.tombstones,
                "distinct_keys": distinct,
                "duplicates": with_key - distinct,
                "is_estimate": counts.is_estimate,
            }
        )
    return pa.Table.from_pylist(rows, schema=schema.KEY_STATS.select())


def top_keys(counted: list[tuple[Segment, KeyCounts]], count: int) -> pa.Table:
    """Return the keys with the most records of all partitions."""
    tables = []
    for segment, counts in counted:
        top = counts.top(count)
        same = {"topic": segment.topic, "partition": segment.partition, "is_estimate": counts.is_estimate}
        columns = {
            name: top[name] if name in top.schema.names else pa.repeat(pa.scalar(same[name], kind), top.num_rows)
            for name, kind in schema.TOP_KEYS.shown.items()
        }
        tables.append(pa.table(columns, schema=schema.TOP_KEYS.select()))
    if not tables:
        return schema.TOP_KEYS.select().empty_table()
    order = [("records", "descending"), ("topic", "ascending"), ("partition", "ascending"), ("key", "ascending")]
    return pa.concat_tables(tables).sort_by(order).slice(0, count)
