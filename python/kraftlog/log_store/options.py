"""Options of a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from kraftlog.write.log_options import FSYNC, Fsync


def milliseconds_now() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def random_uuid() -> bytes:
    """Return a random UUID of version 4, under Kafka's restrictions."""
    made = bytearray(os.urandom(16))
    made[6], made[8] = made[6] & 0x0F | 0x40, made[8] & 0x3F | 0x80
    return bytes(made)


@dataclass(frozen=True)
class StoreOptions:
    """Options of a store.

    Attributes
    ----------
    fsync : {"commit", "batch", "close"}
        When to wait for the disk: before a commit, a flush or a committed offset returns; after each batch as well; or
        only when a segment is closed, so that a power failure may lose acknowledged records.
    transaction_log_partitions, offsets_partitions : int
        Number of partitions of new ``__transaction_state`` and ``__consumer_offsets`` topics. Kafka's default
        of 50 spreads them over brokers; a store is one.
    sync_threads : int
        Threads that sync files in parallel; 0: each caller syncs one after the other.
    open_files : int
        Maximum number of partitions with an open log file; the least recently written ones close it.
    node_id : int
        Node id of a new store.
    adopts_partitions : bool
        Whether a folder with partitions but no metadata log becomes a store of their topics; otherwise it is an error.
    continues_transactions : bool
        Whether transactions that are open when the store is closed continue when it is opened again, until their
        producers end them or they time out. Producers of a process end with it, so by default such transactions are
        aborted; a broker has producers that outlive it.
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
    continues_transactions: bool = False
    clock: Callable[[], int] = milliseconds_now
    new_uuid: Callable[[], bytes] = random_uuid

    def __post_init__(self) -> None:
        if self.fsync not in FSYNC:
            raise ValueError(f"fsync {self.fsync!r} is not one of {', '.join(FSYNC)}")
        for name in ("transaction_log_partitions", "offsets_partitions", "open_files"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} is not positive")
        if self.sync_threads < 0:
            raise ValueError(f"sync_threads {self.sync_threads} is negative")


class StoreArguments(TypedDict, total=False):
    """``StoreOptions`` as arguments of ``LogStore``, for type checkers."""

    fsync: Fsync
    transaction_log_partitions: int
    offsets_partitions: int
    sync_threads: int
    open_files: int
    node_id: int
    adopts_partitions: bool
    continues_transactions: bool
    clock: Callable[[], int]
    new_uuid: Callable[[], bytes]
