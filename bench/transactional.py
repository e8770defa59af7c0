"""Work on transactions: packing them, finding their boundaries, and reading only what is visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpus
import kraftlog
from kraftlog.codec.markers import scan_markers
from material import Material
from rounds import Contender

PLAIN_LOG, COMMITTED_LOG, ABORTED_LOG = "no transactions", "committed", "a fifth aborted"
BOUNDARIES, WALK = "boundary scan", "headers and records walked"
PACKED, ENCODED = "pack_transaction", "encode"
PER_COMMIT, WITHOUT = "a marker every 10 MB", "no transactions"
PLAN = "plan_batches"

ABORTED_EVERY = 5
MB_PER_COMMIT = 10  # what a producer of 100 MB/s writes in 100 ms
METADATA_BATCH_BYTES = 8 << 10
MB_PER_TRANSACTION = 8


def uncommitted(log: str) -> str:
    """Return the name of the contender that reads all of a log."""
    return f"read_uncommitted, {log}"


def committed(log: str) -> str:
    """Return the name of the contender that reads what is visible of a log."""
    return f"read_committed, {log}"


def read_committed(m: Material) -> list[Contender]:
    """Log files to columns at both isolation levels; records and bytes are those of the whole file."""
    contenders = []
    for kind, aborted_every in ((PLAIN_LOG, None), (COMMITTED_LOG, 0), (ABORTED_LOG, ABORTED_EVERY)):
        path = corpus.path(m.workload, m.megabytes) if aborted_every is None else _transactional(m, aborted_every)
        log, size = kraftlog.open(path), path.stat().st_size
        records = sum(batch.num_rows for batch in log.records(["offset"]).batches())
        for name, level in ((uncommitted(kind), "read_uncommitted"), (committed(kind), "read_committed")):
            contenders.append(Contender(name, _reader(log, m.columns, level), records, size))
    return contenders


def _reader(log: kraftlog.Log, columns: list[str], level: str) -> Callable[[], None]:
    def read() -> None:
        for _ in log.records(columns, isolation_level=level).batches():
            pass

    return read


def _transactional(m: Material, aborted_every: int) -> Path:
    """Return a log of the same records in transactions of 1 MB, of two producers in turn; it is made if need be."""
    name = f"{m.workload.name}-{m.megabytes:g}MB-aborted{aborted_every}-{corpus.VERSION}"
    file = corpus.CACHE / name / f"{0:020d}.log"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            out.writelines(_transactions(m, aborted_every))
        unfinished.rename(file)
    return file


def _transactions(m: Material, aborted_every: int) -> Iterator[pa.Buffer]:
    offset = written = 0
    sequences = [0, 0]
    for number, stretch in enumerate(corpus.rows(m.workload)):
        producer_id = number % 2
        data = kraftlog.encode(
            stretch,
            max_batch_bytes=m.max_batch_bytes,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            is_transactional=True,
        )
        yield data
        sequences[producer_id] += stretch.num_rows
        offset += stretch.num_rows
        written += data.size
        if producer_id == 1:
            for ended in (0, 1):
                is_aborted = aborted_every and (number + ended) % aborted_every == 0
                marker = "ABORT" if is_aborted else "COMMIT"
                yield kraftlog.encode_marker(marker, producer_id=ended, producer_epoch=0, base_offset=offset)
                offset += 1
        if written >= m.megabytes * corpus.MB and producer_id == 1:
            return


def boundaries(m: Material) -> list[Contender]:
    """Bytes of a metadata log to the transaction markers among the records, with checksums compared."""
    rows = pa.record_batch({"value": _metadata_values(m)})
    log = kraftlog.encode(rows, max_batch_bytes=m.max_batch_bytes, timestamp_ms=corpus.FIRST_TIMESTAMP)
    return [
        Contender(BOUNDARIES, lambda: _drain(scan_markers(log, [])), m.records, log.size),
        Contender(WALK, lambda: _drain(kraftlog.decode(log, columns=[]).batches()), m.records, log.size),
    ]


def pack(m: Material) -> list[Contender]:
    """Values to batches of 8 KiB, as metadata transactions of 8 MB and plain."""
    values = _metadata_values(m)
    rows = MB_PER_TRANSACTION * corpus.MB // m.workload.value_bytes
    parts = [values.slice(at, rows) for at in range(0, m.records, rows)]

    def packed() -> None:
        for part in parts:
            kraftlog.pack_transaction(part, "bench")

    def encoded() -> None:
        for part in parts:
            kraftlog.encode(pa.record_batch({"value": part}), max_batch_bytes=METADATA_BATCH_BYTES)

    return [Contender(PACKED, packed, m.records, m.size), Contender(ENCODED, encoded, m.records, m.size)]


def _metadata_values(m: Material) -> pa.Array:
    """Return the values of a log with the head of a TopicRecord: frame version 1, api key 2, version 0."""
    column = m.table.column("value").combine_chunks()
    values = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    _, ends, data = values.buffers()
    cells = np.frombuffer(data, np.uint8, len(values) * m.workload.value_bytes).reshape(len(values), -1).copy()
    cells[:, :3] = (1, 2, 0)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, ends, pa.py_buffer(cells)])


def commits(m: Material) -> list[Contender]:
    """Columns to log bytes of one producer, as transactions and plain."""
    rows_per_commit = m.records * MB_PER_COMMIT * corpus.MB // m.size
    parts = [m.table.slice(at, rows_per_commit) for at in range(0, m.records, rows_per_commit)]

    def encoded(*, transactional: bool) -> None:
        offset = 0
        for part in parts:
            kraftlog.encode(
                part,
                max_batch_bytes=m.max_batch_bytes,
                base_offset=offset,
                producer_id=7,
                producer_epoch=0,
                base_sequence=offset,
                is_transactional=transactional,
            )
            offset += part.num_rows
            if transactional:
                kraftlog.encode_marker("COMMIT", producer_id=7, producer_epoch=0, base_offset=offset)
                offset += 1

    return [
        Contender(PER_COMMIT, lambda: encoded(transactional=True), m.records, m.size),
        Contender(WITHOUT, lambda: encoded(transactional=False), m.records, m.size),
    ]


def plan(megabytes: float) -> list[Contender]:
    """Sizes of records to a packing plan; one size counts as a record, of the bytes that it stands for."""
    random = np.random.default_rng(corpus.SEED)
    sizes = random.integers(20, 300, int(megabytes * corpus.MB / 10)).astype(np.int32)
    return [Contender(PLAN, lambda: _nothing(kraftlog.plan_batches(sizes)), sizes.size, int(sizes.sum(dtype=np.int64)))]


def _drain(items: Iterator[object]) -> None:
    for _ in items:
        pass


def _nothing(_: object) -> None:
    """Drop what a contender made: no records to count."""
