"""A log replayed into a broker, beside the client alone, which is given the same records as Python objects.

    python bench/replaying.py HOST:PORT [--megabytes 300]

It needs a broker, so it is not part of ``make bench``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

import corpus
import kraftlog
from kraftlog.broker.client import _PRODUCER, BATCH_BYTES, Client
from material import Material

GOAL = 0.8
ROUNDS = 3


def log_of(workload: corpus.Workload, megabytes: float, folder: Path) -> tuple[Path, list[tuple[object, ...]]]:
    """Return a log of one partition, and its records as the client takes them."""
    m = Material(workload, megabytes)
    partition = folder / workload.name / "replayed-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").symlink_to(m.path)
    rows = kraftlog.open(m.path).records(["key", "value", "timestamp_ms", "headers"]).to_table()
    keys, values, times = (rows[name].to_pylist() for name in ("key", "value", "timestamp_ms"))
    headers = [[(one["key"], one["value"]) for one in each] or None for each in rows["headers"].to_pylist()]
    return partition.parent, list(zip(keys, values, times, headers, strict=True))


def alone(to: str, topic: str, rows: list[tuple[object, ...]]) -> None:
    """Produce records in one transaction, as fast as the client takes them."""
    producer = Producer({**_PRODUCER, "bootstrap.servers": to, "transactional.id": topic, "batch.size": BATCH_BYTES})
    producer.init_transactions(60)
    producer.begin_transaction()
    for key, value, timestamp, headers in rows:
        while True:
            try:
                producer.produce(topic, value, key, 0, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    producer.commit_transaction()


def replayed(to: str, topic: str, log: Path, folder: Path) -> None:
    """Replay a log."""
    kraftlog.replay(log, to, folder / f"{topic}.csv", rename={"replayed": topic})


def seconds(run: Callable[[], object]) -> float:
    """Return how long something takes."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    """Print the speeds of both, of some logs, and what one is of the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to")
    parser.add_argument("--megabytes", type=float, default=300)
    given = parser.parse_args()
    client = Client(given.to, "bench", {}, 60)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for workload in (corpus.Workload(100, 64), corpus.Workload(1000, 64)):
            log, rows = log_of(workload, given.megabytes, folder)
            times: dict[str, list[float]] = {"client": [], "replay": []}
            runs = {
                "client": partial(alone, given.to, rows=rows),
                "replay": partial(replayed, given.to, log=log, folder=folder),
            }
            for _ in range(ROUNDS):
                for name, run in runs.items():
                    topic = f"{name}-{uuid.uuid4()}"
                    client.create_topics({topic: 1})
                    times[name].append(seconds(partial(run, topic)))
            best = {name: len(rows) / median(found) for name, found in times.items()}
            ratio = best["replay"] / best["client"]
            print(
                f"{workload.name}: client alone {best['client']:,.0f} records/s, replay {best['replay']:,.0f}: "
                f"{ratio:.2f}, goal {GOAL}: {'reached' if ratio >= GOAL else 'missed'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
