"""A write that fails leaves the encoder as it was, whatever made it fail, and at any place of the rows."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from reference import decode_batches

import kraftlog
from kraftlog._native import encoder as native
from kraftlog.codec.source import sources

BEFORE = pa.table({"value": [b"before"] * 9})
AFTER = pa.table({"value": [b"after"] * 4})


def fails_like_nothing_happened(fail: Callable[[kraftlog.Encoder], None], **options: object) -> None:
    encoder, untouched = kraftlog.Encoder(**options), kraftlog.Encoder(**options)  # type: ignore[arg-type]
    for each in (encoder, untouched):
        each.write(BEFORE)
    fail(encoder)
    assert encoder.next_offset == untouched.next_offset == 9
    for each in (encoder, untouched):
        each.write(AFTER)
    data = encoder.finish()
    assert data == untouched.finish()
    assert [record.value for record in decode_batches(data.to_pybytes())] == [b"before"] * 9 + [b"after"] * 4


@pytest.mark.parametrize("options", [{}, {"max_batch_records": 2}, {"max_batch_bytes": 100}, {"batch_records": [4, 9]}])
@pytest.mark.parametrize("chunk", [0, 1, 3])
def test_a_chunk_that_is_refused(options: dict, chunk: int):
    good, bad = pa.table({"value": [b"a"]}), pa.table({"value": [b"x" * 70_000]})
    rows = pa.concat_tables([*[good] * chunk, bad])

    def fail(encoder: kraftlog.Encoder) -> None:
        with pytest.raises(kraftlog.RecordTooLargeError, match=f"^record {9 + chunk}: "):
            encoder.write(rows)

    fails_like_nothing_happened(fail, **{"max_batch_bytes": 60_000, **options})


def test_a_chunk_that_cannot_be_converted():
    moments = pa.chunked_array([pa.array([1], pa.timestamp("s")), pa.array([2**62], pa.timestamp("s"))])

    def fail(encoder: kraftlog.Encoder) -> None:
        with pytest.raises(ValueError, match="would result in out of bounds timestamp"):
            encoder.write(pa.table({"timestamp": moments}))

    fails_like_nothing_happened(fail)


def test_an_interrupt_between_two_chunks():
    def interrupted() -> Iterator[native.Source]:
        yield from sources(AFTER)
        raise KeyboardInterrupt

    def fail(encoder: kraftlog.Encoder) -> None:
        with pytest.raises(KeyboardInterrupt), encoder._native:
            encoder._native.write(interrupted(), 1 << 20, 9)

    fails_like_nothing_happened(fail)


OUT_OF_MEMORY = """
import resource
import pyarrow as pa, kraftlog

encoder = kraftlog.Encoder(max_batch_records=1)
encoder.write(pa.record_batch({"value": [b"before"]}))
rows = pa.record_batch({"value": pa.array([b"v"]).take(pa.array([0] * 3_000_000, pa.int32()))})
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), before[1]))
try:
    encoder.write(rows)
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, before)
encoder.write(pa.record_batch({"value": [b"after"]}))
print(encoder.next_offset, kraftlog.decode(encoder.finish(), columns=["value"]).to_table()["value"].to_pylist())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space by what /proc says")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="its shadow memory is part of the space")
def test_memory_that_runs_out():
    answer = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], check=True, stdout=subprocess.PIPE, text=True)
    assert answer.stdout.splitlines()[0].startswith("no memory for ")
    assert answer.stdout.splitlines()[1] == "2 [b'before', b'after']"


def test_a_busy_encoder_refuses_other_threads():
    """Every call but the one that is under way raises; the rows of that one are there, and no others."""
    encoder = kraftlog.Encoder()
    entered, release = threading.Event(), threading.Event()
    refused: list[str] = []

    def slow() -> Iterator[native.Source]:
        yield from sources(BEFORE)
        entered.set()
        release.wait()

    def hold() -> None:
        with encoder._native:
            encoder._native.write(slow(), 0, 0)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    calls = (
        lambda: encoder.write(AFTER),
        lambda: encoder.write_marker(bytes.fromhex("01180000")),
        encoder.take,
        encoder.finish,
    )
    for call in calls:
        with pytest.raises(RuntimeError) as raised:
            call()
        refused.append(str(raised.value))
    release.set()
    thread.join()
    assert refused == ["Encoder is in use by another thread"] * len(calls)
    encoder.write(AFTER)
    found = [record.value for record in decode_batches(encoder.finish().to_pybytes())]
    assert found == [b"before"] * 9 + [b"after"] * 4


def test_threads_in_one_encoder_lose_nothing():
    """Rows of the writes that did not raise, each of them whole; the order is that of the calls."""
    rows = pa.record_batch({"value": [b"v" * 200] * 20_000})
    encoder = kraftlog.Encoder(max_batch_bytes=65536)
    outcomes: list[str] = []

    def work() -> None:
        for _ in range(8):
            try:
                encoder.write(rows)
                outcomes.append("written")
            except RuntimeError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = outcomes.count("written") * rows.num_rows
    assert len(outcomes) == 32
    assert set(outcomes) <= {"written", "Encoder is in use by another thread"}
    assert encoder.next_offset == written > 0
    stream = kraftlog.decode(encoder.finish(), columns=["offset"], strict=True)
    assert stream.to_table()["offset"].to_pylist() == list(range(written))


TAKEN_WITHOUT_MEMORY = """
import resource
import pyarrow as pa, kraftlog

big = b"x" * (60 << 20)
encoder = kraftlog.Encoder(max_batch_bytes=1 << 29, batch_records=[2, 3])
encoder.write(pa.table({"value": [big] * 5}))
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), before[1]))
try:
    print(encoder.take().size)
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, before)
print([len(row) >> 20 for row in kraftlog.decode(encoder.finish(), columns=["value"]).to_table()["value"].to_pylist()])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space by what /proc says")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="its shadow memory is part of the space")
def test_memory_that_runs_out_when_batches_are_taken():
    answer = subprocess.run([sys.executable, "-c", TAKEN_WITHOUT_MEMORY], check=True, stdout=subprocess.PIPE, text=True)
    assert answer.stdout.splitlines()[0].startswith("no memory for ")
    assert answer.stdout.splitlines()[1] == "[60, 60, 60, 60, 60]"


@pytest.mark.parametrize("method", ["take", "finish"])
def test_batches_that_cannot_be_compressed_are_kept(method: str, monkeypatch: pytest.MonkeyPatch):
    from kraftlog.codec import batch_encoder as module

    def fail(*_: object) -> bytes:
        raise MemoryError("no memory")

    encoder = kraftlog.Encoder(compression="gzip", max_batch_records=2)
    encoder.write(BEFORE)
    with monkeypatch.context() as broken:
        broken.setattr(module, "compress_batches", fail)
        for _ in range(2):
            with pytest.raises(MemoryError):
                getattr(encoder, method)()
    encoder.write(AFTER)
    found = kraftlog.decode(encoder.finish(), columns=["value"], strict=True).to_table()["value"].to_pylist()
    assert found == [b"before"] * 9 + [b"after"] * 4
