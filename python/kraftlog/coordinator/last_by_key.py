"""The last row of each key, as a coordinator that loads a compacted topic keeps it; by columns, in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LEAST_ROWS = 1 << 16
LEAST_BYTES = 1 << 24
NOWHERE = -1

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def key_codes(columns: Sequence[pa.ChunkedArray]) -> tuple[Codes, int]:
    """Return a number below a count for each row, the same for rows that are equal in all of these columns."""
    codes, count = _codes(columns[0])
    for column in columns[1:]:
        others, other_count = _codes(column)
        codes, count = codes * other_count + others, count * other_count  # two numbers below 2^31 fit one of 63 bits
        if count > _spare(len(codes)):
            codes, count = _dense(pa.chunked_array([pa.array(codes)]))
    return codes, count


def _spare(rows: int) -> int:
    """Return how many numbers may be in use for this many rows, most of them for none."""
    return max(LEAST_ROWS, 4 * rows)


def _codes(column: pa.ChunkedArray) -> tuple[Codes, int]:
    if pa.types.is_integer(column.type) and len(column):
        values = column.to_numpy().astype(np.int64)
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < _spare(len(values)):
            return values - least, greatest - least + 1
    return _dense(column)


def _dense(column: pa.ChunkedArray) -> tuple[Codes, int]:
    encoded = column.dictionary_encode(null_encoding="encode").combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def numbers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a column without nulls as a NumPy array."""
    return np.asarray(table.column(name).to_numpy())


def last_of(codes: Codes, count: int) -> npt.NDArray[np.int64]:
    """Return the last row that has each code, ``NOWHERE`` for one that no row has."""
    last = np.full(count, NOWHERE, np.int64)
    last[codes] = np.arange(len(codes))  # the last one of those assigned to a place stays
    return last


class Fold(ABC):
    """Rows that are dropped when later ones take their place.

    Rows are kept as they come until they are more than those that stayed, and only then compared: each row is looked at
    about twice, however many keys there are, and memory follows the number of keys.

    Parameters
    ----------
    columns : sequence of str
        Which columns of the rows to keep.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._kept: pa.Table | None = None
        self._kept_bytes = 0
        self._new: list[pa.Table] = []
        self._news = 0
        self._new_bytes = 0

    def add(self, rows: pa.RecordBatch | None) -> None:
        """Take the next rows, in the order of the log."""
        if rows is not None and rows.num_rows:
            table = pa.Table.from_batches([rows.select(self._columns)])
            self._new.append(table)
            self._grown(table.num_rows, table.nbytes)

    @property
    def held(self) -> int:
        """How many rows are in memory."""
        tables = self._new if self._kept is None else [self._kept, *self._new]
        return sum(int(table.num_rows) for table in tables)

    def rows(self) -> pa.Table | None:
        """Return what is left; None when no row was ever added."""
        self._compact()
        return self._kept

    def _grown(self, news: int, size: int) -> None:
        """Note that there is something new, and compare rows when that is more than what was kept."""
        self._news += news
        self._new_bytes += size
        kept_rows = 0 if self._kept is None else self._kept.num_rows
        if self._news >= max(LEAST_ROWS, kept_rows) or self._new_bytes >= max(LEAST_BYTES, self._kept_bytes):
            self._compact()

    def _compact(self) -> None:
        tables = self._new if self._kept is None else [self._kept, *self._new]
        if tables and self._news:
            self._kept = self._remaining(pa.concat_tables(tables)).combine_chunks()
            self._kept_bytes = self._kept.nbytes
        self._new, self._news, self._new_bytes = [], 0, 0

    @abstractmethod
    def _remaining(self, table: pa.Table) -> pa.Table:
        """Return the rows that stay, in whichever order."""


class LastByKey(Fold):
    """The last row of each key; a tombstone takes its key away.

    Parameters
    ----------
    keys : sequence of str
        The columns of the key.
    columns : sequence of str
        What else to keep. Rows have a column ``is_tombstone`` as well.
    """

    def __init__(self, keys: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__([*keys, *columns, "is_tombstone"])
        self._keys = list(keys)

    def _remaining(self, table: pa.Table) -> pa.Table:
        stays = np.zeros(table.num_rows, bool)
        stays[last_of(*key_codes([table.column(key) for key in self._keys]))] = True
        stays &= ~numbers(table, "is_tombstone")
        return table.filter(pa.array(stays))
