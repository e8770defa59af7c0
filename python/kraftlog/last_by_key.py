"""The last row of each key, as Kafka keeps it when it loads a compacted log: by columns, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LEAST_ROWS = 1 << 16
LEAST_BYTES = 1 << 22
FEW_ROWS = 1 << 10  # tables with fewer rows are joined
NOWHERE = -1

Rows = npt.NDArray[np.int64]
Column: TypeAlias = pa.ChunkedArray | pa.Array


class Codes(NamedTuple):
    """A number for each row, the same for rows with the same key.

    Attributes
    ----------
    rows : int64[rows]
    end : int
        All numbers are below it; there may be gaps.
    """

    rows: Rows
    end: int

    def with_column(self, column: Column) -> Codes:
        """Return the codes of a key that has one more column."""
        others = _codes(column)
        # two numbers below 2^31 fit one of 63 bits
        both = Codes(self.rows * others.end + others.rows, self.end * others.end)
        return both if both.end <= _spare(len(both.rows)) else _dense(pa.array(both.rows))


def codes_of(key: Sequence[Column], count: int) -> Codes:
    """Return the codes of rows.

    Parameters
    ----------
    key : sequence of pyarrow.ChunkedArray or pyarrow.Array
        The columns of a key; null is a value of its own. Without columns, all rows have the same key.
    count : int
        How many rows there are.

    Examples
    --------
    >>> codes_of([pa.array(["a", "b", "a"]), pa.array([1, 1, 1])], 3).rows.tolist()
    [0, 1, 0]
    """
    codes = _codes(key[0]) if key else Codes(np.zeros(count, np.int64), 1)
    for column in key[1:]:
        codes = codes.with_column(column)
    return codes


def last_of(codes: Codes) -> Rows:
    """Return the last row that has each code, ``NOWHERE`` for a code that no row has.

    Examples
    --------
    >>> last_of(Codes(np.array([0, 3, 0]), 4)).tolist()
    [2, -1, -1, 1]
    """
    last = np.full(codes.end, NOWHERE, np.int64)
    last[codes.rows] = np.arange(len(codes.rows))  # of several values for one place NumPy keeps the last
    return last


def numbers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a column without nulls as a NumPy array."""
    return np.asarray(table.column(name).to_numpy())


def _spare(rows: int) -> int:
    """Return the largest count of codes for this many rows: more of them are numbered anew."""
    return max(LEAST_ROWS, 4 * rows)


def _codes(column: Column) -> Codes:
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        values = column.to_numpy().astype(np.int64)
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < _spare(len(values)):
            return Codes(values - least, greatest - least + 1)
    return _dense(column)


def _dense(column: Column) -> Codes:
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Codes(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(len(encoded.dictionary), 1))


class LastByKey:
    """The last row of each key; a row that removes its key leaves none.

    New rows are kept as they come until they outnumber the rows that were left before, and only then compared. So each
    row is compared about twice, whatever the number of keys, and memory follows the number of keys.

    Parameters
    ----------
    keys : sequence of str
        The columns of the key.
    columns : sequence of str
        Which other columns to keep.
    removes : str
        The column that says whether a row removes its key.
    """

    def __init__(self, keys: Sequence[str], columns: Sequence[str], removes: str = "is_tombstone") -> None:
        self._keys = list(keys)
        self._removes = removes
        self._columns = [*keys, *columns, removes]
        self._kept: pa.Table | None = None
        self._kept_bytes = 0
        self._new: tuple[pa.Table, ...] = ()
        self._news = 0
        self._new_bytes = 0

    def copy(self) -> Self:
        """Return the same rows; rows that are added to one of the two are not in the other."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)  # tables and tuples do not change
        return copied

    def add(self, rows: pa.RecordBatch | None) -> None:
        """Take the next rows, in the order of the log."""
        if rows is not None and rows.num_rows:
            table = pa.Table.from_batches([rows.select(self._columns)])
            self._new = (*self._new, table)
            while len(self._new) > 1 and self._new[-2].num_rows < 2 * self._new[-1].num_rows < FEW_ROWS:
                joined = pa.concat_tables(self._new[-2:]).combine_chunks()
                self._new = (*self._new[:-2], joined)
            self._grown(table.num_rows, table.nbytes)

    @property
    def held(self) -> int:
        """How many rows are in memory."""
        return sum(int(table.num_rows) for table in self._tables())

    def rows(self) -> pa.Table | None:
        """Return what is left; None when no row was ever added."""
        self._compact()
        return self._kept

    def _tables(self) -> tuple[pa.Table, ...]:
        return self._new if self._kept is None else (self._kept, *self._new)

    def _grown(self, news: int, size: int) -> None:
        """Note that there is something new, and compare rows when that is more than what was kept."""
        self._news += news
        self._new_bytes += size
        kept_rows = 0 if self._kept is None else self._kept.num_rows
        if self._news >= max(LEAST_ROWS, kept_rows) or self._new_bytes >= max(LEAST_BYTES, self._kept_bytes):
            self._compact()

    def _compact(self) -> None:
        tables = self._tables()
        if tables and self._news:
            self._kept = self._remaining(pa.concat_tables(tables)).combine_chunks()
            self._kept_bytes = self._kept.nbytes
        self._new, self._news, self._new_bytes = (), 0, 0

    def _remaining(self, table: pa.Table) -> pa.Table:
        stays = np.zeros(table.num_rows, bool)
        stays[self._last(table)] = True
        stays &= ~numbers(table, self._removes)
        return table.filter(pa.array(stays))

    def _last(self, table: pa.Table) -> Rows:
        """Return the last row of each key."""
        last = last_of(codes_of([table.column(key) for key in self._keys], table.num_rows))
        return np.asarray(last[last != NOWHERE])
