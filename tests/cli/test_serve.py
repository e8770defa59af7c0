"""``kraftlog serve`` as a user starts and stops it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import confluent_kafka
import pytest

LOG = Path(__file__).parents[1] / "golden" / "transactions" / "log"
LIMIT = 60


@contextmanager
def serving(ready_file: Path, *words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "kraftlog", "serve", *map(str, words), "--ready-file", str(ready_file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = monotonic() + LIMIT
        while not ready_file.exists():
            assert process.poll() is None
            assert monotonic() < until
            sleep(0.02)
        yield process, ready_file.read_text().strip()
    finally:
        process.kill()
        process.wait()


def values(bootstrap_servers: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    messages = consumer.consume(count, LIMIT)
    consumer.close()
    return [message.value() for message in messages if message.error() is None]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(tmp_path: Path, number: signal.Signals):
    with serving(tmp_path / "ready", LOG, "--port", 0) as (process, address):
        assert len(values(address, 5)) == 5
        process.send_signal(number)
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    assert (output, errors) == (f"{address}\n", "topics: 3, partitions: 6\n")


def test_damage_that_clients_met_is_reported(tmp_path: Path):
    folder = tmp_path / "log"
    shutil.copytree(LOG, folder)
    path = folder / "orders-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[80] ^= 1  # of the first batch
    path.write_bytes(data)
    with serving(tmp_path / "ready", folder, "-t", "orders", "--port", 0, "--leave-out-damaged") as (process, address):
        assert len(values(address, 5)) == 5
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert output == f"{address}\n"
    assert "orders-0/00000000000000000000.log" in errors
    assert "crc" in errors
