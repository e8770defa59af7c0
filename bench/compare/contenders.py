"""The other implementations as contenders, in each piece of work that they can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compare import aiokafka_peer, kafka_python_peer, pyarrow_peer, sums
from compare.processes import GO, JAVA, RECORDS, RUST, Peers
from rounds import Contender

if TYPE_CHECKING:
    from material import Material, Prefix

JAVA_DECODE, JAVA_FILE = "Kafka's Java, in memory", "Kafka's Java, from a file"
JAVA_ENCODE = "Kafka's Java, MemoryRecordsBuilder"
RUST_RECORDS, GO_RECORDS = "Rust kafka-protocol", "Go franz-go kmsg"
AIOKAFKA, AIOKAFKA_ARROW, AIOKAFKA_BUILDER = "aiokafka, iterated", "aiokafka, to pyarrow", "aiokafka, builder"
KAFKA_PYTHON = "kafka-python, iterated"
PARQUET, IPC = "pyarrow, from Parquet", "pyarrow, from IPC"

PREFIX = 10  # aiokafka is so slow that it gets this part of the file only
SHORT_PREFIX = 100  # and kafka-python this
SCANS = 10  # of the headers in a run
ENCODED = ("none", "lz4", "zstd")  # gzip takes seconds; of others than Java the levels are not comparable


def decoders(m: Material, peers: Peers) -> list[Contender]:
    """Visit all records with checksums compared, or collect them into columns."""
    part = m.prefix(PREFIX)
    contenders = [
        of_part(AIOKAFKA, part, aiokafka_peer.iterate),
        _checked(of_part(AIOKAFKA_ARROW, part, lambda log: aiokafka_peer.to_arrow(log).num_rows), part),
        _program(m, peers, JAVA_DECODE, JAVA, "decode", m.sums),
        _program(m, peers, JAVA_FILE, JAVA, "decode-file", m.sums),
        _program(m, peers, RUST_RECORDS, RUST, "decode", m.sums),
        _program(m, peers, GO_RECORDS, GO, "decode", m.sums),
    ]
    if "kafka-python" in peers and m.workload.compression == "none":
        contenders.append(of_part(KAFKA_PYTHON, m.prefix(SHORT_PREFIX), kafka_python_peer.iterate))
    if "pyarrow" in peers and m.workload.compression in pyarrow_peer.COMPRESSION:
        contenders.append(_columnar(m, PARQUET, pyarrow_peer.parquet(m)))
        if m.workload.compression in pyarrow_peer.IPC_COMPRESSION:
            contenders.append(_columnar(m, IPC, pyarrow_peer.ipc(m)))
    return [contender for contender in contenders if contender]


def small(m: Material, peers: Peers) -> list[Contender]:
    """Visit the records of many buffers of one batch each."""
    contenders = [
        Contender(AIOKAFKA, lambda: sum(map(aiokafka_peer.iterate, m.batches)), m.records, m.size),
        Contender(
            AIOKAFKA_ARROW, lambda: sum(aiokafka_peer.to_arrow(b).num_rows for b in m.batches), m.records, m.size
        ),
        _program(m, peers, JAVA_DECODE, JAVA, "decode-each", m.sums),
        _program(m, peers, RUST_RECORDS, RUST, "decode", m.sums),
        _program(m, peers, GO_RECORDS, GO, "decode", m.sums),
    ]
    return [contender for contender in contenders if contender]


def scanners(m: Material, peers: Peers) -> list[Contender]:
    """Visit all batch headers."""
    last_offsets = int((m.headers["base_offset"] + m.headers["last_offset_delta"]).sum())
    contenders = [
        _program(m, peers, JAVA_DECODE, JAVA, "scan", (m.records, last_offsets)),
        _program(m, peers, JAVA_FILE, JAVA, "scan-file", (m.records, last_offsets)),
        _program(m, peers, RUST_RECORDS, RUST, "scan", (m.records, last_offsets)),
    ]
    return [contender for contender in contenders if contender]


def encoders(m: Material, peers: Peers) -> list[Contender]:
    """Build the batches of the file again; without compression they must be the same, byte for byte."""
    if m.workload.compression != "none":
        java = _program(m, peers, JAVA_ENCODE, JAVA, "encode", None)
        return [java] if java else []
    part = m.prefix(PREFIX)
    rows = aiokafka_peer.to_rows(part.log)
    contenders = [
        of_part(AIOKAFKA_BUILDER, part, lambda _: aiokafka_peer.build(rows, m.max_batch_bytes)),
        _program(m, peers, JAVA_ENCODE, JAVA, "encode", sums.of_written(m.headers)),
        _program(m, peers, RUST_RECORDS, RUST, "encode", sums.of_written(m.headers)),
    ]
    return [contender for contender in contenders if contender]


def of_part(name: str, part: Prefix, run: Callable[[bytes], int]) -> Contender:
    """Return a contender that works on the first part of a log."""
    return Contender(name, lambda: run(part.log), part.records, part.size)


def _program(
    m: Material, peers: Peers, name: str, peer: str, work: str, expected: tuple[int, ...] | None
) -> Contender | None:
    if peer not in peers:
        return None
    times = SCANS if work.startswith("scan") else 1
    return peers.contender(name, RECORDS[peer], work, m.path, m.records, m.size, expected, times)


def _checked(contender: Contender, part: Prefix) -> Contender:
    def check() -> None:
        assert sums.of_table(aiokafka_peer.to_arrow(part.log)) == (*part.sums[:3], 0, *part.sums[4:])

    contender.check = check
    return contender


def _columnar(m: Material, name: str, read: Callable[[], object]) -> Contender:
    def check() -> None:
        assert sums.of_table(read()) == m.sums, name

    return Contender(name, lambda: read().num_rows, m.records, m.size, check)
