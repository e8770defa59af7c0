"""pyarrow writing Parquet from memory in two processes: what is left of an export when reading costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


class Writer:
    """Processes that stay alive between the rounds, one for each Arrow file."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = sources
        self._processes = ProcessPoolExecutor(len(sources), get_context("spawn"))

    def write(self) -> int:
        """Write a Parquet file beside each Arrow file; return the rows."""
        return sum(self._processes.map(_write, self._sources))

    def close(self) -> None:
        """End the processes."""
        self._processes.shutdown()


def _write(source: Path) -> int:
    pa.set_cpu_count(1)
    rows = 0
    with pa.memory_map(str(source)) as mapped:
        file = pa.ipc.open_file(mapped)
        with pq.ParquetWriter(source.with_suffix(".parquet"), file.schema, compression="zstd") as out:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                out.write_batch(batch, row_group_size=1 << 20)
                rows += batch.num_rows
    return rows
