"""Spark's functions for columns, without Spark: over record batches, lists of records, and transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import kraftlog
from kraftlog.spark.udf_batches import decode_in_sql, encode_in_sql
from kraftlog.spark.udf_transactions import boundaries_in_sql, pack_lists_in_sql

from . import common

RECORDS_PER_VALUE = [1, 10, 100, 600]
ONE_SIZE = 100  # for memory, which depends on the records of a column
RECORDS = 600_000  # of a column
VALUE_BYTES = 20


def records() -> pa.StructArray:
    """Return records with a key, a value and a timestamp."""
    numbers = np.arange(RECORDS, dtype=np.int64)
    ends = pa.py_buffer(np.arange(0, (RECORDS + 1) * VALUE_BYTES, VALUE_BYTES, dtype=np.int32))
    data = pa.py_buffer(np.random.default_rng(5).bytes(RECORDS * VALUE_BYTES))
    values = pa.Array.from_buffers(pa.binary(), RECORDS, [None, ends, data])
    keys = pa.array(numbers % 9973).cast(pa.string()).cast(pa.binary())
    stamps = pa.array(1_700_000_000_000_000 + 1000 * (numbers // 7)).cast(pa.timestamp("us", "UTC"))
    return pa.StructArray.from_arrays([keys, values, stamps], ["key", "value", "timestamp"])


def lists_of(items: pa.Array, count: int) -> pa.ListArray:
    """Return lists of so many items each."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(items) + 1, count, dtype=np.int32)), items)


def metadata_values() -> pa.Array:
    """Return records of a metadata log that are no markers."""
    head = np.frombuffer(bytes.fromhex("01020000"), np.uint8)
    cells = np.random.default_rng(6).integers(0, 256, (RECORDS, VALUE_BYTES), np.uint8)
    cells[:, : len(head)] = head
    ends = pa.py_buffer(np.arange(0, (RECORDS + 1) * VALUE_BYTES, VALUE_BYTES, dtype=np.int32))
    return pa.Array.from_buffers(pa.binary(), RECORDS, [None, ends, pa.py_buffer(cells)])


class _Function:
    """A function over a column, next to one call over all of its records at once."""

    params = (RECORDS_PER_VALUE,)
    param_names = ("records_per_value",)
    work: Callable[[], Any]
    bare: Callable[[], Any]

    def time_column(self, *_: object) -> None:
        """Apply the function to a column of 600,000 records."""
        self.work()

    def peakmem_column(self, *_: object) -> None:
        """Memory of the process that does, the column included."""
        self.work()

    peakmem_column.params = ([ONE_SIZE],)

    def track_column(self, *_: object) -> float:
        """Count the records that it handles per second."""
        return common.speed(self.work, RECORDS)

    track_column.unit = "records/s"

    def track_ratio(self, *_: object) -> float:
        """Divide its time by the time of one call over the same records."""
        return common.speed(self.bare, RECORDS) / common.speed(self.work, RECORDS)

    track_ratio.unit = "times"


class Decode(_Function):
    def setup(self, count: int) -> None:
        column = encode_in_sql(lists_of(records(), count))
        data = column.buffers()[2]
        self.work = lambda: decode_in_sql(column)
        self.bare = lambda: kraftlog.decode(data, strict=True).to_table()


class Encode(_Function):
    def setup(self, count: int) -> None:
        items = records()
        column, rows = lists_of(items, count), pa.RecordBatch.from_struct_array(items)
        self.work = lambda: encode_in_sql(column)
        self.bare = lambda: kraftlog.encode(rows, max_batch_records=count)


class Pack(_Function):
    def setup(self, count: int) -> None:
        values = metadata_values()
        column = lists_of(values, count)
        names = pa.array([f"transaction {at}" for at in range(len(column))])
        self.work = lambda: pack_lists_in_sql(column, names)
        self.bare = lambda: kraftlog.encode(pa.table({"value": values}), max_batch_records=count + 2)


class Boundaries(_Function):
    def setup(self, count: int) -> None:
        column = pack_lists_in_sql(lists_of(metadata_values(), count), pa.array(["a name"] * (RECORDS // count)))
        data = column.buffers()[2]
        self.work = lambda: boundaries_in_sql(column)
        self.bare = lambda: kraftlog.decode(data, columns=["offset", "value"], strict=True).to_table()
