"""A workload in all the forms that contenders want it in."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import aiokafka_peer
import corpus
import kraftlog
import scanning

PREFIX = 10  # aiokafka is so slow that it gets this part of the file only
ENCODER_ROWS = 1 << 16


class Material:
    """One workload, its file mapped into memory.

    Attributes
    ----------
    log : numpy.ndarray, uint8
        The file.
    prefix : bytes
        Its first batches.
    records, prefix_records, size, prefix_size : int
        Records, and bytes before compression, of both.
    """

    def __init__(self, workload: corpus.Workload, megabytes: float) -> None:
        self.workload = workload
        self.megabytes = megabytes
        self.max_batch_bytes = workload.batch_kib << 10
        self.log = np.memmap(corpus.path(workload, megabytes), np.uint8, "r")
        headers = scanning.headers(self.log)
        batches = -(-len(headers) // PREFIX)
        end = int(headers["position"][batches]) if batches < len(headers) else self.log.nbytes
        self.prefix = self.log[:end].tobytes()
        self.records = int(headers["records_count"].sum())
        self.prefix_records = int(headers["records_count"][:batches].sum())
        self.size = self.plain.nbytes
        self.prefix_size = end * self.size // self.log.nbytes

    @cached_property
    def columns(self) -> list[str]:
        """What is decoded and encoded."""
        return ["key", "value", "offset", "timestamp", *["headers"] * bool(self.workload.headers)]

    @cached_property
    def table(self) -> pa.Table:
        """All rows, each column in one piece."""
        return kraftlog.decode(self.log, columns=self.columns).to_table().combine_chunks()

    @cached_property
    def row_batches(self) -> list[pa.RecordBatch]:
        """All rows in pieces."""
        return self.table.to_batches(max_chunksize=ENCODER_ROWS)

    @cached_property
    def plain(self) -> npt.NDArray[np.uint8]:
        """The file without compression."""
        if self.workload.compression == "none":
            return self.log
        return np.frombuffer(kraftlog.encode(self.table, max_batch_bytes=self.max_batch_bytes), np.uint8)

    @cached_property
    def target(self) -> npt.NDArray[np.uint8]:
        """Memory for a copy of ``plain``, written to before."""
        return np.ones(self.plain.nbytes, np.uint8)

    @cached_property
    def prefix_rows(self) -> list[list[aiokafka_peer.Row]]:
        """The records of ``prefix`` as Python objects."""
        return aiokafka_peer.to_rows(self.prefix)
