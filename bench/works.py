"""The pieces of work and who contends in each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import aiokafka_peer
import corpus
import floors
import kraftlog
import scanning
import transactional
from material import Material
from rounds import Contender

MEMCPY, C_LOOP = "memcpy", "plain C loop"
STREAMED, IN_ONE, OFFSETS = "kraftlog, streamed", "kraftlog, in one", "kraftlog, offsets only"
CHUNKED = "kraftlog, of many chunks"
AIOKAFKA, AIOKAFKA_ARROW, AIOKAFKA_BUILDER = "aiokafka, iterated", "aiokafka, to pyarrow", "aiokafka, builder"
CRC32C, SCANNER = "kraftlog.crc32c", "kraftlog, Scanner"
VARINT_ENCODE, VARINT_DECODE = "kraftlog.varint.encode", "kraftlog.varint.decode"

VARINT_BYTES_PER_MB = 1_000_000


def decode(m: Material) -> list[Contender]:
    """Log bytes to key, value, offset, timestamp (and headers, where there are any), with checksums compared."""
    return [
        _whole(m, STREAMED, lambda: _count(kraftlog.decode(m.log, columns=m.columns))),
        _whole(m, IN_ONE, lambda: kraftlog.decode(m.log, columns=m.columns).to_table().num_rows),
        _whole(m, OFFSETS, lambda: _count(kraftlog.decode(m.log, columns=["offset"]))),
        _prefix(m, AIOKAFKA, lambda: aiokafka_peer.iterate(m.prefix)),
        _prefix(m, AIOKAFKA_ARROW, lambda: aiokafka_peer.to_arrow(m.prefix).num_rows),
        _memcpy(m),
    ]


def encode(m: Material) -> list[Contender]:
    """Columns to log bytes, in batches as large as the file's; aiokafka gets Python objects, and does not compress."""
    options = {"max_batch_bytes": m.max_batch_bytes, "compression": m.workload.compression}
    assert np.array_equal(np.frombuffer(kraftlog.encode(m.table, **options), np.uint8), m.log)
    chunks = pa.Table.from_batches(m.row_batches)
    assert kraftlog.encode(chunks, **options).size == m.log.nbytes
    assert _encode_streamed(m.row_batches, options) == m.log.nbytes
    contenders = [
        _whole(m, STREAMED, lambda: _nothing(_encode_streamed(m.row_batches, options))),
        _whole(m, IN_ONE, lambda: _nothing(kraftlog.encode(m.table, **options))),
        _whole(m, CHUNKED, lambda: _nothing(kraftlog.encode(chunks, **options))),
        _memcpy(m),
    ]
    if m.workload.compression == "none":
        build = _prefix(m, AIOKAFKA_BUILDER, lambda: aiokafka_peer.build(m.prefix_rows, m.max_batch_bytes))
        contenders.insert(3, build)
    return contenders


def crc32c(m: Material) -> list[Contender]:
    """One sum over the file."""
    return [_whole(m, CRC32C, lambda: _nothing(kraftlog.crc32c(m.plain))), _memcpy(m)]


def scan(m: Material) -> list[Contender]:
    """From batch header to batch header."""
    return [
        _whole(m, SCANNER, lambda: _nothing(scanning.count_batches(m.log))),
        _whole(m, C_LOOP, lambda: floors.scan(m.log)),
    ]


def varint(megabytes: float) -> list[Contender]:
    """Integers of one to five bytes, as lengths and deltas are: short ones are common. One value counts as a record."""
    random = np.random.default_rng(corpus.SEED)
    bits = random.choice([6, 13, 20, 27, 31], int(megabytes * VARINT_BYTES_PER_MB / 4), p=[0.5, 0.3, 0.1, 0.05, 0.05])
    values = (random.integers(0, 2**31, bits.size) >> (31 - bits)).astype(np.int32)
    encoded = kraftlog.varint.encode(values)
    assert np.array_equal(kraftlog.varint.decode(encoded), values)
    source = np.frombuffer(encoded, np.uint8)
    target = np.ones_like(source)

    def contender(name: str, run: Callable[[], object]) -> Contender:
        return Contender(name, lambda: _nothing(run()), values.size, source.nbytes)

    return [
        contender(VARINT_ENCODE, lambda: kraftlog.varint.encode(values)),
        contender(VARINT_DECODE, lambda: kraftlog.varint.decode(encoded)),
        contender(MEMCPY, lambda: floors.memcpy(target, source)),
    ]


BY_NAME: dict[str, Callable[[Material], list[Contender]]] = {
    "decode": decode,
    "encode": encode,
    "crc32c": crc32c,
    "scan": scan,
    "boundaries": transactional.boundaries,
    "pack": transactional.pack,
    "commits": transactional.commits,
    "read_committed": transactional.read_committed,
}
ON_PLAIN_LOGS = {"crc32c", "scan", "boundaries", "pack", "commits", "read_committed"}  # others would say nothing new


def _whole(m: Material, name: str, run: Callable[[], int | None]) -> Contender:
    return Contender(name, run, m.records, m.size)


def _prefix(m: Material, name: str, run: Callable[[], int | None]) -> Contender:
    return Contender(name, run, m.prefix_records, m.prefix_size)


def _memcpy(m: Material) -> Contender:
    return _whole(m, MEMCPY, lambda: _nothing(floors.memcpy(m.target, m.plain)))


def _count(stream: kraftlog.Stream) -> int:
    return sum(batch.num_rows for batch in stream.batches())


def _encode_streamed(batches: list[pa.RecordBatch], options: dict[str, object]) -> int:
    encoder, size = kraftlog.Encoder(**options), 0
    for batch in batches:
        encoder.write(batch)
        size += encoder.take().size
    return size + encoder.finish().size


def _nothing(_: object) -> None:
    """Drop what a contender made: no records to count."""
