"""Lists of the files of backups in columns: rows of Python objects take ten times as much memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.disk.backup_files import FILES
from kraftlog.topics import TopicPartition

Row = dict[str, Any]
"""A row of ``kraftlog.disk.backup_files.FILES``."""

BESIDE = ("snapshot", "txnindex")  # of the files next to a log file; index files are built again from it
ROWS_AT_ONCE = 1 << 12  # that become columns: a table of each partition would take more memory than its rows
_MOST_TABLES = 1 << 8


class FilesByPartition:
    """A list of files, by partition.

    Parameters
    ----------
    files : pyarrow.Table
    """

    def __init__(self, files: pa.Table) -> None:
        self.files = files
        self._spans: dict[TopicPartition, list[tuple[int, int]]] = {}
        topics = files.column("topic").combine_chunks().dictionary_encode()
        codes = topics.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        partitions = files.column("partition").fill_null(-1).to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-2) | np.diff(partitions, prepend=-2)).tolist()
        names = topics.dictionary.to_pylist()
        for start, end in zip(starts, [*starts, len(codes)][1:], strict=True):
            if codes[start] >= 0:
                of = TopicPartition(names[codes[start]], int(partitions[start]))
                self._spans.setdefault(of, []).append((start, end))

    def spans_of(self, of: TopicPartition) -> list[tuple[int, int]]:
        """Return where the files of a partition are: the first one, and the one after the last."""
        return self._spans.get(of, [])

    def rows_of(self, of: TopicPartition) -> list[Row]:
        """Return the files of a partition."""
        return [row for start, end in self.spans_of(of) for row in self.files.slice(start, end - start).to_pylist()]


def log_files(files: pa.Table) -> Iterator[Row]:
    """Return the log files and snapshots of a list, without their objects."""
    logs = files.filter(files.column("objects").is_valid()).drop_columns(["objects"])
    for batch in logs.to_batches(max_chunksize=ROWS_AT_ONCE):
        yield from batch.to_pylist()


class NewFiles:
    """The files of a new backup: rows, and those that an older backup has as well."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows: list[Row] = []
        self._same: tuple[pa.Table, int, int] | None = None  # the last files of an older list
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, rows: list[Row]) -> None:
        """Add files."""
        self._end_same()
        self._rows += rows
        self._count += len(rows)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._end_rows()

    def add_same(self, older: FilesByPartition, of: TopicPartition) -> None:
        """Add the files of a partition as an older list has them."""
        self._end_rows()
        for start, end in older.spans_of(of):
            self._count += end - start
            if self._same is not None and self._same[0] is older.files and self._same[2] == start:
                self._same = older.files, self._same[1], end
            else:
                self._end_same()
                self._same = older.files, start, end

    def table(self) -> pa.Table:
        """Return all files, in the order in which they were added."""
        self._end_rows()
        self._end_same()
        return pa.concat_tables([FILES.empty_table(), *self._tables])

    def _end_rows(self) -> None:
        if self._rows:
            self._append(pa.Table.from_pylist(self._rows, FILES))
            self._rows = []

    def _end_same(self) -> None:
        if self._same is not None:
            files, start, end = self._same
            self._append(files.slice(start, end - start))
            self._same = None

    def _append(self, table: pa.Table) -> None:
        self._tables.append(table)
        if len(self._tables) >= _MOST_TABLES:  # each takes some kilobytes, whatever its rows
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
