"""A workload in all the forms that contenders want it in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import corpus
import kraftlog
import scanning
from compare import sums

CHUNK_ROWS = 1 << 16


@dataclass(frozen=True)
class Prefix:
    """The first batches of a log; ``size`` is their bytes before compression."""

    log: bytes
    records: int
    size: int
    sums: sums.Sums


class Material:
    """One workload, its file mapped into memory.

    Attributes
    ----------
    log : numpy.ndarray, uint8
        The file at ``path``.
    headers : numpy.ndarray
        Headers of its batches.
    records, size : int
        Records, and bytes before compression.
    """

    def __init__(self, workload: corpus.Workload, megabytes: float) -> None:
        self.workload = workload
        self.megabytes = megabytes
        self.max_batch_bytes = workload.max_batch_bytes
        self.path: Path = corpus.path(workload, megabytes)
        self.log = np.memmap(self.path, np.uint8, "r")
        self.headers = scanning.headers(self.log)
        self.records = int(self.headers["records_count"].sum())
        self.size = self.plain.nbytes

    def prefix(self, parts: int) -> Prefix:
        """Return the first of so many parts, in whole batches."""
        batches = -(-len(self.headers) // parts)
        end = int(self.headers["position"][batches]) if batches < len(self.headers) else self.log.nbytes
        records = int(self.headers["records_count"][:batches].sum())
        size = end * self.size // self.log.nbytes
        return Prefix(self.log[:end].tobytes(), records, size, sums.of_table(self.table.slice(0, records)))

    @cached_property
    def sums(self) -> sums.Sums:
        """What every reader must find."""
        return sums.of_table(self.table)

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
        return self.table.to_batches(max_chunksize=CHUNK_ROWS)

    @cached_property
    def chunked(self) -> pa.Table:
        """All rows as one table of many chunks, each with buffers of its own."""
        return pa.Table.from_batches(kraftlog.decode(self.log, columns=self.columns).batches())

    @cached_property
    def batches(self) -> list[bytes]:
        """Each record batch as a buffer of its own."""
        starts = [*self.headers["position"].tolist(), self.log.nbytes]
        return [self.log[a:b].tobytes() for a, b in pairwise(starts)]

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
