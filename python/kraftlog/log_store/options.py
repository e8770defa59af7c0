"""How a store is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from kraftlog.write.log_options import FSYNC, Fsync


def milliseconds_now() -> int:
    """Return the time, as Kafka counts it."""
    return time.time_ns() // 1_000_000


def random_uuid() -> bytes:
    """Return a random uuid of version 4, as Kafka makes them."""
    made = bytearray(os.urandom(16))
    made[6], made[8] = made[6] & 0x0F | 0x40, made[8] & 0x3F | 0x80
    return bytes(made)


@dataclass(frozen=True)
class StoreOptions:
    """How a store is kept.

    Attributes
    ----------
    fsync : {"commit", "batch", "close"}
        When to wait for the disk: before a commit, a flush or a committed offset counts; behind each batch as well; or
        when a segment is closed, so that a loss of power may lose what was acknowledged.
    transaction_log_partitions, offsets_partitions : int
        How many partitions ``__transaction_state`` and ``__consumer_offsets`` get when they are made. Kafka's default
        of 50 spreads them over brokers; a store is one.
    sync_threads : int
        Threads that wait for files together; 0: each caller waits for one behind the other.
    open_files : int
        How many partitions keep their log file open for writing; those that were written least recently close it.
    node_id : int
        Of a new store.
    adopts_partitions : bool
        Whether a folder that has partitions, and no metadata log, becomes a store of their topics; else it is refused.
    clock : callable
        Returns the time in milliseconds.
    new_uuid : callable
        Returns 16 bytes.
    """

    fsync: Fsync = "commit"
    transaction_log_partitions: int = 1
    offsets_partitions: int = 1
    sync_threads: int = 4
    open_files: int = 256
    node_id: int = 1
    adopts_partitions: bool = False
    clock: Callable[[], int] = milliseconds_now
    new_uuid: Callable[[], bytes] = random_uuid

    def __post_init__(self) -> None:
        if self.fsync not in FSYNC:
            raise ValueError(f"fsync {self.fsync!r} is not one of {', '.join(FSYNC)}")
        for name in ("transaction_log_partitions", "offsets_partitions", "open_files"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} is less than 1")
        if self.sync_threads < 0:
            raise ValueError(f"sync_threads {self.sync_threads} is less than 0")


class StoreArguments(TypedDict, total=False):
    """``StoreOptions`` as arguments of ``LogStore``, for type checkers."""

    fsync: Fsync
    transaction_log_partitions: int
    offsets_partitions: int
    sync_threads: int
    open_files: int
    node_id: int
    adopts_partitions: bool
    clock: Callable[[], int]
    new_uuid: Callable[[], bytes]
