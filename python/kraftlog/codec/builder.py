"""A single batch, built as in a producer: record by record until it is full, then with the producer's state."""

from __future__ import annotations

import math

import pyarrow as pa

from kraftlog._native import builder as native
from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD, TRANSACTIONAL_BIT
from kraftlog.codec.batch_encoder import LARGEST_OFFSET, MOST_BYTES, check_producer, checked_header, compression_type
from kraftlog.codec.compression import checked_level, compress_batches
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.options import checked_integer
from kraftlog.codec.source import check_rows, sources

DEFAULT_BATCH_SIZE = 16384  # of Kafka's producer
ESTIMATION_FACTOR = 1.05  # by which Kafka takes a compressed batch to be larger than its ratio says


class RecordBatchBuilder(native.Builder):
    """Builds one record batch of magic 2 from single records and Arrow rows.

    Parameters
    ----------
    batch_size : int
        Size in bytes, including the header, at which the batch is full, like ``batch.size`` of Kafka's producer. Only a
        batch of a single record can be larger.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}
    compression_level : int, optional
        Level for gzip, lz4 or zstd.
    compression_ratio : float
        Expected ratio of compressed to uncompressed size: ``compression_ratio`` of the previous batch. With 0.5, about
        twice as many uncompressed bytes fit as ``batch_size``. Without compression it is 1.
    timestamp_ms : int
        Timestamp of records that are added without one; -1 means none.

    Attributes
    ----------
    records_count : int
        Records added so far.
    size_in_bytes : int
        Uncompressed size of the batch in bytes, including the header.

    Examples
    --------
    >>> import kraftlog
    >>> builder = kraftlog.RecordBatchBuilder(batch_size=90)
    >>> [builder.append(b"key", value, timestamp_ms=7) for value in (b"one", b"two", b"three")]
    [True, True, False]
    >>> data = builder.close(producer_id=9, producer_epoch=0, base_sequence=40)
    >>> kraftlog.decode(data, columns=["offset", "value", "sequence"]).to_table().to_pylist()
    [{'offset': 0, 'value': b'one', 'sequence': 40}, {'offset': 1, 'value': b'two', 'sequence': 41}]
    """

    def __init__(
        self,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        compression: str = "none",
        compression_level: int | None = None,
        compression_ratio: float = 1.0,
        timestamp_ms: int = NO_TIMESTAMP,
    ) -> None:
        batch_size = checked_integer("batch_size", batch_size, RECORD_BATCH_OVERHEAD + 1, MOST_BYTES)
        if not 0 < compression_ratio < math.inf:
            raise ValueError(f"compression_ratio {compression_ratio} is not a finite number more than 0")
        header = checked_header(timestamp_ms=timestamp_ms)
        self._compression = compression_type(compression)
        self._level = checked_level(self._compression, compression_level)
        self._estimate = compression_ratio * ESTIMATION_FACTOR if self._compression else 1.0
        self.compression_ratio = compression_ratio if self._compression else 1.0
        records = (batch_size - RECORD_BATCH_OVERHEAD) / self._estimate
        self._most = RECORD_BATCH_OVERHEAD + int(min(records, MOST_BYTES - RECORD_BATCH_OVERHEAD))
        super().__init__(self._most, self._compression, **header)

    @property
    def estimated_size_in_bytes(self) -> int:
        """Estimated size of the batch in bytes, including the header, by the given ratio."""
        return RECORD_BATCH_OVERHEAD + int((self.size_in_bytes - RECORD_BATCH_OVERHEAD) * self._estimate)

    def write(self, rows: pa.RecordBatch | pa.Table) -> int:
        """Add as many of the first rows as fit.

        Parameters
        ----------
        rows : pyarrow.RecordBatch or pyarrow.Table
            Columns as in ``Encoder.write``.

        Returns
        -------
        int
            Number of added rows; the remaining rows belong to the next batch.

        Raises
        ------
        ValueError
            When the batch is closed, or a column is invalid; no row is added then.
        TypeError
            When the rows are neither a table nor a record batch.
        RuntimeError
            When another thread is using the builder.

        Examples
        --------
        >>> import pyarrow as pa, kraftlog
        >>> builder = kraftlog.RecordBatchBuilder(batch_size=90)
        >>> builder.append(b"key", b"one"), builder.write(pa.table({"value": [b"two", b"three", b"four"]}))
        (True, 1)
        """
        check_rows(rows)
        return self._write(sources(rows, most_bytes=self._most))

    def close(
        self,
        *,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> pa.Buffer:
        """Close the batch; ``compression_ratio`` is then the actual ratio.

        Parameters
        ----------
        base_offset, partition_leader_epoch : int
            A broker sets its own values.
        producer_id, producer_epoch, base_sequence : int
            State of the producer, as in the batch header; set all of them or none. -1 means none.
        is_transactional : bool
            A bit of the batch attributes.

        Returns
        -------
        pyarrow.Buffer
            The batch; empty without records.

        Raises
        ------
        ValueError
            When a field is invalid, or the batch is already closed.
        RuntimeError
            When another thread is using the builder.
        """
        header = checked_header(
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        check_producer(header, is_transactional=is_transactional)
        if header["base_offset"] + self.records_count > LARGEST_OFFSET:
            raise ValueError(f"base_offset {base_offset} and {self.records_count} records do not fit 64 bits")
        batch = self._close(**header, attributes=TRANSACTIONAL_BIT * is_transactional, finish=self._finished)
        if self._compression and batch.size:
            records = self.size_in_bytes - RECORD_BATCH_OVERHEAD
            self.compression_ratio = (batch.size - RECORD_BATCH_OVERHEAD) / records
        return batch

    def _finished(self, plain: memoryview) -> pa.Buffer:
        return pa.py_buffer(compress_batches(plain, self._compression, self._level) if self._compression else plain)
