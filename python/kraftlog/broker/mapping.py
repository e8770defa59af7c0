"""The mapping of a replay: which offsets of the log became which offsets of the broker, as a CSV file."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file

MAPPING = pa.schema(
    [
        ("source_topic", pa.string()),
        ("partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("target_topic", pa.string()),
        ("target_offset", pa.int64()),
        ("records_count", pa.int64()),
    ]
)
_NAMES = ",".join(MAPPING.names).encode() + b"\n"

Offsets = npt.NDArray[np.int64]
Place = tuple[str, int]


class Run(NamedTuple):
    """Consecutive records, in the log and at the target; a count of 0 marks the end of the replay."""

    source_topic: str
    partition: int
    source_offset: int
    target_topic: str
    target_offset: int
    records_count: int


def runs_of(source_topic: str, partition: int, source: Offsets, target_topic: str, target: Offsets) -> list[Run]:
    """Return the fewest runs that map the offsets of some records.

    Examples
    --------
    >>> import numpy as np
    >>> runs = runs_of("orders", 0, np.array([3, 4, 7]), "orders", np.array([10, 11, 12]))
    >>> [(run.source_offset, run.target_offset, run.records_count) for run in runs]
    [(3, 10, 2), (7, 12, 1)]
    """
    breaks = np.flatnonzero((np.diff(source) != 1) | (np.diff(target) != 1)) + 1
    starts = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((starts, [len(source)])))
    rows = zip(source[starts].tolist(), target[starts].tolist(), counts.tolist(), strict=True)
    return [Run(source_topic, partition, old, target_topic, new, count) for old, new, count in rows]


def lines_of(runs: Iterable[Run]) -> bytes:
    """Return the lines of runs; topic names need no quotes."""
    return "".join(",".join(map(str, run)) + "\n" for run in runs).encode()


def read_mapping(path: Path, *, is_whole: bool = True) -> pa.Table:
    """Return the runs of a file, in their order.

    Parameters
    ----------
    path : Path
    is_whole : bool
        Whether an incomplete last line is an error. A killed process may leave part of a line, and a power failure
        zeros.

    Raises
    ------
    ValueError
        When the file is not a mapping.
    """
    data = disk().read_bytes(path)
    if not data.startswith(_NAMES):
        raise ValueError(f"{path}: expected a first line {_NAMES.decode().strip()}, found {data[:80]!r}")
    zeros = data.find(b"\0")
    end = data.rfind(b"\n", 0, zeros if zeros >= 0 else len(data)) + 1
    if is_whole and end < len(data):
        raise ValueError(f"{path}: the last line is truncated: {data[end : end + 80]!r}")
    # a copy that is Arrow's own: its threads release what they read after the call has returned, and an object of
    # Python that is released while the process ends aborts it (apache/arrow#34314)
    copied = pa.BufferOutputStream()
    copied.write(memoryview(data)[:end])
    try:
        return csv.read_csv(
            pa.BufferReader(copied.getvalue()),
            convert_options=csv.ConvertOptions(column_types=MAPPING, strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from None


def runs_in(table: pa.Table) -> Iterator[Run]:
    """Return the rows of a mapping."""
    return map(Run._make, zip(*(column.to_pylist() for column in table.columns), strict=True))


class MappingFile:
    """The mapping that a replay writes, open for appending.

    A transaction's runs are on disk before its commit, so the file never lacks one. Runs of a transaction that was not
    committed are truncated: by ``take_back``, or at the next start by ``settle``.

    Attributes
    ----------
    ends : dict
        The offset after the last record, by topic and partition of the target.
    """

    def __init__(self, path: Path, ends: Mapping[Place, int] | None = None) -> None:
        self.ends = dict(ends or {})
        self._path = path
        self._file = disk().open_append(path)
        there = disk().entry(path)
        self._size = (there.size or 0) if there is not None else 0
        self._last: int = self._size

    @classmethod
    def make(cls, path: Path) -> Self:
        """Begin a new file."""
        write_file(path, _NAMES)
        return cls(path)

    @classmethod
    def settle(
        cls, path: Path, starts: Mapping[Place, int], reached: Mapping[Place, int], again: Container[Place]
    ) -> Self:
        """Reopen a file, without runs of uncommitted transactions and without the ends of partitions that continue.

        Parameters
        ----------
        path : Path
        starts : mapping of (str, int) to int
            The offset of the log at which the replay began, by topic and partition of the target.
        reached : mapping of (str, int) to int
            Offsets at which it continues; a partition without records has none.
        again : container of (str, int)
            Partitions that are replayed now; the others keep their end.

        Raises
        ------
        ValueError
            When runs of committed transactions are missing.
        """
        kept, ends, sources, targets = list[Run](), list[Run](), dict(starts), dict[Place, int]()
        for run in runs_in(read_mapping(path, is_whole=False)):
            place = run.target_topic, run.partition
            if place not in reached:
                raise ValueError(
                    f"{path}: the target has no committed offset for {place[0]}-{place[1]}; its group was deleted or"
                    " has expired: existing records would be written twice"
                )
            if not run.records_count and place not in again:
                ends.append(run)
            elif run.records_count and run.source_offset < reached[place]:
                kept.append(run)
                sources[place] = run.source_offset + run.records_count
                targets[place] = run.target_offset + run.records_count
        for (topic, partition), offset in reached.items():
            if (known := sources.get((topic, partition))) != offset:
                raise ValueError(
                    f"{path}: of {topic}-{partition} the target has what lies before offset {offset} of the log, and "
                    f"the file what lies before {known}: it is not the file that the last replay wrote"
                )
        data = _NAMES + lines_of(kept + ends)
        if data != disk().read_bytes(path):
            write_file(path, data)
        return cls(path, targets)

    def append(self, runs: Iterable[Run]) -> None:
        """Write runs, and sync."""
        lines = lines_of(runs)
        self._last = self._size
        self._file.append(lines)
        self._file.sync()
        self._size += len(lines)

    def take_back(self) -> None:
        """Truncate the runs of the last ``append``."""
        with disk().open_update(self._path) as file:
            file.truncate(self._last)
            file.sync()
        self._size = self._last

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class OffsetMapping:
    """Translates offsets of the log to offsets of the target.

    Parameters
    ----------
    path : Path
        The mapping of a finished replay.

    Raises
    ------
    ValueError
        When the file is not a mapping, or the replay was not finished.
    """

    def __init__(self, path: Path) -> None:
        parts: dict[tuple[str, int], list[Run]] = {}
        for run in runs_in(read_mapping(path)):
            parts.setdefault((run.source_topic, run.partition), []).append(run)
        self._parts: dict[tuple[str, int], tuple[Offsets, list[Run]]] = {}
        for (topic, partition), runs in parts.items():
            old = np.array([run.source_offset for run in runs], np.int64)
            if runs[-1].records_count:
                raise ValueError(
                    f"{path}: the replay of {topic}-{partition} ended at offset {runs[-1].source_offset} and was not "
                    "finished; run it again, it goes on there"
                )
            if (np.diff(old) < 0).any() or any(run.records_count < 0 for run in runs):
                raise ValueError(f"{path}: {topic}-{partition}: expected increasing offsets of the log")
            self._parts[topic, partition] = old, runs

    def target(self, topic: str, partition: int, offset: int) -> tuple[str, int] | None:
        """Return the target topic, and the offset there of the first record at or after ``offset``.

        Without such a record it is the offset at which the replay ended. None for a partition that was not replayed.
        """
        if (topic, partition) not in self._parts:
            return None
        old, runs = self._parts[topic, partition]
        at = int(np.searchsorted(old, offset, "right")) - 1
        if at >= 0 and offset < old[at] + runs[at].records_count:
            return runs[at].target_topic, runs[at].target_offset + offset - runs[at].source_offset
        following = runs[min(at + 1, len(runs) - 1)]
        return following.target_topic, following.target_offset
