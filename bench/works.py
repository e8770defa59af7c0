"""The pieces of work and who contends in each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

import bare_codecs
import corpus
import extracting
import floors
import kraftlog
import scanning
import searching
import spaces
import transactional
from compare import contenders as others
from compare import sums
from compare.processes import Peers
from material import Material
from rounds import Contender

MEMCPY, C_LOOP, BARE = "memcpy", "plain C loop", "bare decompression"
STREAMED, IN_ONE, OFFSETS = "kraftlog, streamed", "kraftlog, to_table", "kraftlog, offsets only"
VIEW, ONE_CHUNK, CHUNKED = "kraftlog, layout='view'", "kraftlog, one chunk", "kraftlog, many chunks"
EACH, TWO_THREADS = "kraftlog, to_table of each", "kraftlog, 2 threads"
MEMCPY_OF_HALVES, MEMCPY_IN_THREADS = "memcpy, each half", "memcpy, 2 threads"
ONE_ENCODER, TWO_ENCODERS = "kraftlog, an Encoder for each half", "kraftlog, each in its thread"
EACH_ITERATED = "kraftlog.records of each"
CRC32C, SCANNER, BATCHES = "kraftlog.crc32c", "kraftlog, Scanner", "kraftlog.batches"
VARINT_ENCODE, VARINT_DECODE = "kraftlog.varint.encode", "kraftlog.varint.decode"

VARINT_BYTES_PER_MB = 1_000_000
THREADS = 2


def decode(m: Material, peers: Peers) -> list[Contender]:
    """Log bytes to key, value, offset, timestamp (and headers, where there are any), with checksums compared."""
    contenders = [
        _reader(m, STREAMED, lambda: kraftlog.decode(m.log, columns=m.columns).batches()),
        _whole(m, IN_ONE, lambda: kraftlog.decode(m.log, columns=m.columns).to_table().num_rows),
        _whole(m, OFFSETS, lambda: _count(kraftlog.decode(m.log, columns=["offset"]).batches())),
    ]
    if "layout" in inspect.signature(kraftlog.decode).parameters:
        view = _reader(m, VIEW, lambda: kraftlog.decode(m.log, columns=m.columns, layout="view").batches())
        contenders.insert(2, view)
    if m.workload.compression in bare_codecs.CODECS:
        run = bare_codecs.decompressor(m.workload.compression, m.log, m.headers, 2 * m.max_batch_bytes)
        assert run() == m.size - m.headers["position"].size * bare_codecs.HEADER_BYTES
        contenders.append(_whole(m, BARE, lambda: _nothing(run())))
    return [*contenders, *others.decoders(m, peers), _memcpy(m)]


def encode(m: Material, peers: Peers) -> list[Contender]:
    """Columns to log bytes, in batches as large as the file's; others get records or objects."""
    options = {"max_batch_bytes": m.max_batch_bytes, "compression": m.workload.compression}
    for table in (m.table, m.chunked):
        assert np.array_equal(np.frombuffer(kraftlog.encode(table, **options), np.uint8), m.log)
    assert _encode_streamed(m.row_batches, options) == m.log.nbytes
    return [
        _whole(m, STREAMED, lambda: _nothing(_encode_streamed(m.row_batches, options))),
        _whole(m, ONE_CHUNK, lambda: _nothing(kraftlog.encode(m.table, **options))),
        _whole(m, CHUNKED, lambda: _nothing(kraftlog.encode(m.chunked, **options))),
        *others.encoders(m, peers),
        _memcpy(m),
    ]


def small(m: Material, peers: Peers) -> list[Contender]:
    """Buffers of one batch of one record each, as a consumer of many partitions gets them."""
    columns = ["key", "value", "offset", "timestamp"]
    each = _whole(m, EACH, lambda: sum(kraftlog.decode(b, columns=columns).to_table().num_rows for b in m.batches))
    iterated = _whole(m, EACH_ITERATED, lambda: sum(_visit(b) for b in m.batches))
    return [each, iterated, *others.small(m, peers)]


def threads(m: Material, _: Peers) -> list[Contender]:
    """Two halves of the log, decoded one after the other and at once; and copied, which is what memory allows."""
    middle = int(m.headers["position"][len(m.headers) // 2])
    halves = [m.log[:middle], m.log[middle:]]
    targets = [m.target[:middle], m.target[middle : m.log.nbytes]]
    pool = ThreadPoolExecutor(THREADS)

    def decoded(part: np.ndarray) -> int:
        return _count(kraftlog.decode(part, columns=m.columns).batches())

    contenders = [
        _whole(m, STREAMED, lambda: sum(map(decoded, halves))),
        _whole(m, TWO_THREADS, lambda: sum(pool.map(decoded, halves))),
    ]
    if m.workload.compression == "none":
        contenders += [
            _whole(m, MEMCPY_OF_HALVES, lambda: _nothing(list(map(floors.memcpy, targets, halves)))),
            _whole(m, MEMCPY_IN_THREADS, lambda: _nothing(list(pool.map(floors.memcpy, targets, halves)))),
        ]
    for contender in contenders:
        contender.cpu_clock = None
    return contenders


def encoders(m: Material, _: Peers) -> list[Contender]:
    """Two halves of the rows, each packed by an Encoder of its own, one after the other and at once."""
    middle = len(m.row_batches) // 2
    halves = [m.row_batches[:middle], m.row_batches[middle:]]
    options = {"max_batch_bytes": m.max_batch_bytes, "compression": m.workload.compression}
    pool = ThreadPoolExecutor(THREADS)

    def encoded(part: list[pa.RecordBatch]) -> None:
        _encode_streamed(part, options)

    both = _whole(m, TWO_ENCODERS, lambda: _nothing(list(pool.map(encoded, halves))))
    both.cpu_clock = None
    alone = _whole(m, ONE_ENCODER, lambda: _nothing(list(map(encoded, halves))))
    alone.cpu_clock = None
    return [alone, both]


def crc32c(m: Material, _: Peers) -> list[Contender]:
    """One sum over the file."""
    return [_whole(m, CRC32C, lambda: _nothing(kraftlog.crc32c(m.plain))), _memcpy(m)]


def scan(m: Material, peers: Peers) -> list[Contender]:
    """From batch header to batch header."""
    return [
        _whole(m, SCANNER, lambda: _nothing(scanning.count_batches(m.log))),
        _whole(m, BATCHES, lambda: _nothing(_count(kraftlog.batches(m.log).batches()))),
        *others.scanners(m, peers),
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


def _alone(work: Callable[[Material], list[Contender]]) -> Callable[[Material, Peers], list[Contender]]:
    return lambda m, _: work(m)


BY_NAME: dict[str, Callable[[Material, Peers], list[Contender]]] = {
    "decode": decode,
    "encode": encode,
    "scan": scan,
    "small": small,
    "threads": threads,
    "encoders": encoders,
    "crc32c": crc32c,
    "boundaries": _alone(transactional.boundaries),
    "pack": _alone(transactional.pack),
    "commits": _alone(transactional.commits),
    "read_committed": _alone(transactional.read_committed),
    "grep": searching.grep,
    "space": spaces.space,
    "extract": extracting.extract,
}
COMPARED = ("decode", "encode", "scan", "small", "threads")
ON_64_KIB = [workload for workload in corpus.WORKLOADS if workload.batch_kib == 64]
LOGS = {
    "decode": corpus.LARGE,
    "encode": [workload for workload in corpus.LARGE if workload.compression in others.ENCODED],
    "small": [corpus.SMALL],
    "threads": ON_64_KIB,
    "encoders": ON_64_KIB,
    "space": [*ON_64_KIB],
    "grep": [*corpus.PLAIN, *corpus.COMPRESSED],
}  # of the others: corpus.PLAIN, on the rest of the logs they would say nothing new


def _whole(m: Material, name: str, run: Callable[[], int | None]) -> Contender:
    return Contender(name, run, m.records, m.size)


def _reader(m: Material, name: str, batches: Callable[[], Iterator[pa.RecordBatch]]) -> Contender:
    def check() -> None:
        assert sums.of_batches(batches()) == m.sums, name

    return Contender(name, lambda: _count(batches()), m.records, m.size, check)


def _memcpy(m: Material) -> Contender:
    return _whole(m, MEMCPY, lambda: _nothing(floors.memcpy(m.target, m.plain)))


def _count(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _visit(log: bytes) -> int:
    """Visit every record, and look at nothing but key and value."""
    count = 0
    for record in kraftlog.records(log):
        record.key  # noqa: B018
        record.value  # noqa: B018
        count += 1
    return count


def _encode_streamed(batches: list[pa.RecordBatch], options: dict[str, object]) -> int:
    encoder, size = kraftlog.Encoder(**options), 0
    for batch in batches:
        encoder.write(batch)
        size += encoder.take().size
    return size + encoder.finish().size


def _nothing(_: object) -> None:
    """Drop what a contender made: no records to count."""
