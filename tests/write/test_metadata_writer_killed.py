"""A writer that dies at any moment leaves no partial transaction visible, and loses none that was finished."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kraftlog import MetadataLogWriter
from kraftlog.codec.metadata_markers import begin_transaction, end_transaction
from metadata_oracle import BEGIN, records, visible

RECORDS_OF_A_TRANSACTION = 4
ROUNDS = 5


def record(transaction: int, number: int, pad: int = 0) -> bytes:
    return b"\x01\x02\x00" + transaction.to_bytes(4, "big") + number.to_bytes(2, "big") + bytes(pad)


def write_log(folder: Path) -> None:
    """Write committed, aborted and plain records in several small segments; both writers leave a transaction open."""
    options = {"max_batch_bytes": 110, "segment_bytes": 500, "fsync": "close"}
    with MetadataLogWriter(folder, 1, **options) as writer:
        for transaction in range(9):
            try:
                with writer.transaction(f"t{transaction}") as opened:
                    for number in range(RECORDS_OF_A_TRANSACTION):
                        opened.append([record(transaction, number)])
                    if transaction % 3 == 1:
                        raise RuntimeError("no more")
            except RuntimeError:
                pass
            if transaction % 3 == 2:
                writer.append([record(100 + transaction, 0)])
        leave_open(writer)
    with MetadataLogWriter(folder, 2, **options | {"segment_bytes": 1 << 20}) as writer:
        for transaction in (20,):
            with writer.transaction() as opened:
                opened.append([record(transaction, number) for number in range(RECORDS_OF_A_TRANSACTION)])
            writer.append([record(100 + transaction, 0)])
        leave_open(writer)


def leave_open(writer: MetadataLogWriter) -> None:
    """Write a part of a transaction, as far as batches are full, and forget it."""
    writer.transaction("left open").append([record(22, number) for number in range(RECORDS_OF_A_TRANSACTION)])
    writer._transaction = None


def finished(values: list[bytes]) -> list[bytes]:
    """Return what must be visible of whole records: the same as the oracle, but without the help of batches."""
    shown: list[bytes] = []
    held: list[bytes] | None = None
    for value in values:
        if value[1] == BEGIN:
            held = []
        elif value[1] in (0x18, 0x19):
            shown += held if value[1] == 0x18 and held else []
            held = None
        else:
            (shown if held is None else held).append(value)
    return shown


def test_cut_at_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    source = tmp_path / "source" / "__cluster_metadata-0"
    write_log(source)
    assert len(list(source.glob("*.log"))) > 4
    last = max(source.glob("*.log"))
    whole = last.read_bytes()
    ends = [0, *batch_ends(whole)]
    before = len(records(source)) - sum(count for _, count in batches_of(whole))
    every = [value for _, value in records(source)]
    counts = dict([(0, 0), *batches_of(whole)])
    folder = tmp_path / "cut" / "__cluster_metadata-0"
    shutil.copytree(source, folder)
    assert b"Controller failover" in whole
    for size in range(len(whole) + 1):
        (folder / last.name).write_bytes(whole[:size])
        kept = before + sum(counts[end] for end in ends if end <= size)
        expected = finished(every[:kept])
        with MetadataLogWriter(folder, 3, fsync="close", segment_bytes=1 << 20) as writer:
            assert writer.append([record(9999, 1)]) == writer.next_offset - 1
        assert visible(folder) == [*expected, record(9999, 1)], size
        for transaction in (0, 2, 3, 5, 6):  # these lie in segments before
            assert sum(value[3:7] == record(transaction, 0)[3:7] for value in expected) == RECORDS_OF_A_TRANSACTION
        (folder / "leader-epoch-checkpoint").write_bytes((source / "leader-epoch-checkpoint").read_bytes())


def batches_of(data: bytes) -> list[tuple[int, int]]:
    """Return the end of each batch, and how many data records it has."""
    found, at = [], 0
    while at < len(data):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        start = found[-1][0] if found else 0
        is_control = data[start + 22] & 32
        found.append((at, 0 if is_control else int.from_bytes(data[start + 57 : start + 61], "big")))
    return found


def batch_ends(data: bytes) -> list[int]:
    return [end for end, _ in batches_of(data)]


WRITER = """
import sys
from pathlib import Path
from kraftlog import MetadataLogWriter
folder, epoch, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def record(transaction, number):
    return b"\\x01\\x02\\x00" + transaction.to_bytes(4, "big") + number.to_bytes(2, "big") + bytes(200)
with MetadataLogWriter(folder, epoch, max_batch_bytes=700, segment_bytes=30_000, fsync="commit") as writer:
    print("ready", flush=True)
    while True:
        with writer.transaction(str(first)) as transaction:
            for number in range(4):
                transaction.append([record(first, number)])
        print(first, flush=True)
        first += 1
"""


def test_killed_at_random_moments(tmp_path: Path):
    folder = tmp_path / "logs" / "__cluster_metadata-0"
    moments = random.Random(868)
    committed: set[int] = set()
    next_one = 0
    for epoch in range(1, ROUNDS + 1):
        command = [sys.executable, "-c", WRITER, str(folder), str(epoch), str(next_one)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(moments.randint(2, 6)):  # so that something is committed, however slow the disk is
                committed.add(int(process.stdout.readline()))
            time.sleep(moments.uniform(0.0, 0.02))
            process.send_signal(signal.SIGKILL)
            committed |= {int(line) for line in process.stdout.read().split("\n")[:-1]}
        next_one = max(committed | {next_one}) + 2
    with MetadataLogWriter(folder, ROUNDS + 1) as writer:
        writer.append([record(9999, 0)])
    shown: dict[int, list[int]] = {}
    for value in visible(folder)[:-1]:
        shown.setdefault(int.from_bytes(value[3:7], "big"), []).append(int.from_bytes(value[7:9], "big"))
    assert committed <= shown.keys()
    assert all(numbers == list(range(RECORDS_OF_A_TRANSACTION)) for numbers in shown.values())
    assert len(committed) >= 2 * ROUNDS
    assert len(shown) <= len(committed) + ROUNDS  # one that was committed, but not yet said to be, for each kill
    values = [value for _, value in records(folder)]
    begins, ends = (sum(v[:2] == m[:2] for v in values) for m in (begin_transaction(), end_transaction()))
    assert begins >= ends == len(shown)
