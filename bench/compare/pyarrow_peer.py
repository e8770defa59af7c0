"""pyarrow reading the same columns from Parquet and IPC files, with the same compression."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from material import Material

COMPRESSION = {"none": "NONE", "snappy": "SNAPPY", "lz4": "LZ4", "zstd": "ZSTD", "gzip": "GZIP"}
IPC_COMPRESSION = {"none": None, "lz4": "lz4", "zstd": "zstd"}
GROUP_ROWS, BATCH_ROWS = 1 << 20, 1 << 16


def parquet(m: Material) -> Callable[[], pa.Table]:
    """Return a reader of a Parquet file, plainly encoded, on one thread."""

    def write(file: Path) -> None:
        compression = COMPRESSION[m.workload.compression]
        pq.write_table(m.table, file, GROUP_ROWS, use_dictionary=False, compression=compression)

    file = _made(m, ".parquet", write)
    return lambda: pq.read_table(file, use_threads=False, memory_map=False)


def ipc(m: Material) -> Callable[[], pa.Table]:
    """Return a reader of an IPC file into memory, on one thread."""

    def write(file: Path) -> None:
        options = pa.ipc.IpcWriteOptions(compression=IPC_COMPRESSION[m.workload.compression])
        with pa.ipc.new_file(file, m.table.schema, options=options) as writer:
            writer.write_table(m.table, BATCH_ROWS)

    def read() -> pa.Table:
        with pa.OSFile(str(file)) as source:
            return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()

    file = _made(m, ".arrow", write)
    return read


def _made(m: Material, suffix: str, write: Callable[[Path], None]) -> Path:
    file = m.path.with_suffix(suffix)
    if not file.exists():
        unfinished = file.with_suffix(".part")
        write(unfinished)
        unfinished.rename(file)
    return file
