"""The simulated process: its disk, its clock, its ids."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from known_reads import read_once
from sim_disk import SimDisk
from sim_executor import SimExecutor

from kraftlog.disk.disk import use_disk
from kraftlog.log_store.cluster_records import ClusterRecords, read_cluster

_START_MS = 1_700_000_000_000


class Process:
    """What a workload is given; its clock and ids follow from the seed.

    Parameters
    ----------
    disk : SimDisk
    seed : int or str
        Of the ids, and of what the workload draws.

    Attributes
    ----------
    random : Random
    """

    def __init__(self, disk: SimDisk, seed: int | str = 0) -> None:
        self.disk = disk
        self.random = Random(seed)
        self._ids = Random(f"ids of {seed}")
        self._threads = Random(f"threads of {seed}")
        self._executors: list[SimExecutor] = []
        self._now_ms = _START_MS

    def clock(self) -> int:
        """Return the time in milliseconds, one later each time."""
        self._now_ms += 1
        return self._now_ms

    def time_ns(self) -> int:
        """Return the time in nanoseconds."""
        return self.clock() * 1_000_000

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.clock() / 1000

    def uuid4(self) -> uuid.UUID:
        """Return the next id."""
        return uuid.UUID(int=self._ids.getrandbits(128), version=4)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ms += int(seconds * 1000)

    def plays(self, actor: str) -> None:
        """Say who takes part."""
        self.disk.actors.add(actor)

    @contextmanager
    def child(self) -> Iterator[None]:
        """Let the code of a ``with`` block run in a child that has inherited all by ``fork``; it may change nothing."""
        changes = len(self.disk.moments)
        with mock.patch("kraftlog.log_store.owner._here", -1):
            yield
        assert len(self.disk.moments) == changes, "a child process has changed what its parent has open"

    def let_threads_run(self) -> None:
        """Let threads do some of what waits for them."""
        for executor in self._executors:
            executor.run_some()

    def _executor(self, *_: object) -> SimExecutor:
        self._executors.append(SimExecutor(self.disk, self._threads))
        return self._executors[-1]

    def note(self, *what: Hashable) -> None:
        """Say what the process knows from now on, such as that something is acknowledged."""
        self.disk.notes.append(what)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the code of a ``with`` block run in this process."""
        with (
            use_disk(self.disk),
            mock.patch("uuid.uuid4", _here(self.uuid4, uuid.uuid4)),
            mock.patch("time.time_ns", _here(self.time_ns, time.time_ns)),
            mock.patch("time.monotonic", _here(self.monotonic, time.monotonic)),
            mock.patch("time.sleep", _here(self.sleep, time.sleep)),
            mock.patch("kraftlog.log_store.cluster_records.read_cluster", _read_cluster),
            mock.patch("kraftlog.log_store.store.Threads", self._executor),
            mock.patch("kraftlog.log_store.transaction_coordinator.Threads", self._executor),
        ):
            yield


def _read_cluster(folder: Path, node_id: int) -> ClusterRecords:
    """Read a metadata log, in a recovery once: it is read at each opening of a store, and seldom another one."""
    return read_once(("cluster", node_id), [folder], partial(read_cluster, folder, node_id))


def _here(own: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for this thread, and the real one for all others: they are no part of the process."""
    thread = threading.get_ident()

    def called(*arguments: Any) -> Any:
        return (own if threading.get_ident() == thread else real)(*arguments)

    return called
