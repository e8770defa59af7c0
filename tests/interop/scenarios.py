"""What producers may do to a partition: each scenario writes a log of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

from producer_log import ProducerLog

A, B, C, IDEMPOTENT, *MORE = range(5_000, 5_012)  # a broker that starts anew gives out smaller ones


def interleaved(log: ProducerLog) -> None:
    """Three producers in turn, one of which changes its mind each time."""
    for turn in range(4):
        for producer in (A, B, C, B):
            log.data(producer)
        log.marker("COMMIT", A)
        log.data(C, 1)
        log.marker("ABORT", B)
        log.marker("ABORT" if turn % 2 else "COMMIT", C)


def long_aborted(log: ProducerLog) -> None:
    """One that is aborted in the end, from before the first of the others to behind the last."""
    log.data(A)
    for _ in range(5):
        log.data(B)
        log.data(A, 1)
        log.marker("COMMIT", B)
        log.data(C)
        log.marker("ABORT", C)
    log.marker("ABORT", A)
    log.data(B)
    log.marker("COMMIT", B)


def empty(log: ProducerLog) -> None:
    """Markers without data: before any, between, twice in a row, and inside another's transaction."""
    log.marker("COMMIT", A)
    log.data(B)
    log.marker("ABORT", A)
    log.marker("COMMIT", B)
    log.marker("ABORT", B)
    log.data(A)
    log.marker("ABORT", C)
    log.marker("ABORT", A)


def compressed(log: ProducerLog) -> None:
    """Each codec, committed and aborted."""
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        log.data(A, 20, compression=codec)
        log.data(B, 20, compression=codec)
        log.data(A, 5)
        log.marker("ABORT", A)
        log.marker("COMMIT", B)


def segments(log: ProducerLog) -> None:
    """Transactions over two and three segments, one of which ends by a marker that is alone in its segment."""
    for producer in (A, B, C):
        log.data(producer)
    log.roll()
    for producer in (A, B):
        log.data(producer)
    log.marker("ABORT", A)
    log.marker("COMMIT", B)
    log.roll()
    log.marker("ABORT", C)


def unfinished(log: ProducerLog) -> None:
    """Open at the end: what follows is not stable, whatever became of it."""
    log.data(B)
    log.data(C)
    log.marker("ABORT", B)
    log.marker("COMMIT", C)
    log.data(A)
    log.plain()
    log.data(B)
    log.marker("COMMIT", B)
    log.data(C)
    log.marker("ABORT", C)
    log.data(A)


def others(log: ProducerLog) -> None:
    """Batches of no transaction, and of no producer, in the middle of transactions."""
    for end in ("ABORT", "COMMIT", "ABORT"):
        log.data(A)
        log.plain()
        log.data(IDEMPOTENT, transactional=False)
        log.data(A)
        log.marker(end, A)
        log.plain()


def shuffled(log: ProducerLog) -> None:
    """Anything in any order, over several segments, with some still open at the end."""
    dice = random.Random("shuffled")
    for step in range(500):
        producer = dice.choice([A, B, C, *MORE])
        match dice.randrange(10):
            case 0:
                log.plain()
            case 1:
                log.data(IDEMPOTENT, dice.randrange(1, 9), transactional=False)
            case 2 | 3:
                log.marker("COMMIT", producer)
            case 4 | 5:
                log.marker("ABORT", producer)
            case _:
                log.data(producer, dice.randrange(1, 9), compression=dice.choice(["none", "none", "lz4", "zstd"]))
        if step % 150 == 149:
            log.roll()


SCENARIOS: list[Callable[[ProducerLog], None]] = [
    interleaved,
    long_aborted,
    empty,
    compressed,
    segments,
    unfinished,
    others,
    shuffled,
]
