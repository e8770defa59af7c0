"""Records with typed keys and values: columns of bytes are converted as they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.arrow_arrays import array_of, texts_of
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.stream import rows_of
from kraftlog.values.bad_value import BadValue
from kraftlog.values.format import Format
from kraftlog.values.framing import Side

BAD_VALUE = {"key": "bad_key", "value": "bad_value"}
_PLACE = ("topic", "partition", "offset")


class TypedRecords:
    """Adds types to a stream of records.

    A key or value that does not fit is null, or of JSON lacks its unknown fields; ``key_error`` and ``value_error`` say
    why, ``key_raw`` and ``value_raw`` have its bytes. For each partition there is one fault, which counts them.

    Parameters
    ----------
    formats : mapping of "key" and "value" to Format
    columns : sequence of str or None
        Of the table ``records``, with those of ``added_columns``; by default those that the table shows, and these.
    strict : bool
        Whether the first value that does not fit is raised.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the typed rows.
    reads : list of str
        Columns of the records that they are made of.
    """

    def __init__(
        self,
        formats: dict[Side, Format],
        columns: Sequence[str] | None,
        *,
        strict: bool = False,
    ) -> None:
        self._formats = formats
        self._strict = strict
        added = added_columns(formats)
        names = [*schema.RECORDS.shown, *added] if columns is None else list(columns)
        own = [name for name in names if name not in added]
        plain = schema.RECORDS.select(own)
        types: dict[str, pa.DataType] = {side: form.arrow_type for side, form in formats.items()}
        types |= {name: pa.string() if name.endswith("_error") else pa.binary() for name in added}
        self.schema = pa.schema([pa.field(name, types.get(name) or plain.field(name).type) for name in names])
        self._raw = [side for side in formats if f"{side}_raw" in names]
        wanted = {side for side in formats if {side, *added_columns([side])} & set(names)}
        self._converted = {side: form for side, form in formats.items() if side in wanted}
        needed = [*self._converted, *(_PLACE if self._converted else ())]
        if any(form.reads_headers for form in self._converted.values()):
            needed.append("headers")
        self.reads = [*plain.names, *(name for name in needed if name not in own)]

    def rows(self, records: Iterable[pa.RecordBatch], faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Return records that have the columns ``reads`` with their types; what does not fit is noted at the end."""
        bad = _Counted()
        for batch in records:
            yield self._typed(batch, bad)
        faults.extend(bad.faults())

    def _typed(self, batch: pa.RecordBatch, counted: _Counted) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        for side, form in self._converted.items():
            headers = batch.column("headers") if form.reads_headers else None
            made[side], bad = form.convert(batch.column(side), headers)
            made[f"{side}_error"] = _reasons(bad, batch.num_rows)
            if side in self._raw:
                made[f"{side}_raw"] = _bytes_of(bad, batch.column(side))
            if bad:
                counted.add(batch, side, bad, strict=self._strict)
        columns = [made[name] if name in made else batch.column(name) for name in self.schema.names]
        return rows_of(columns, self.schema, batch.num_rows)


def added_columns(sides: Iterable[Side]) -> list[str]:
    """Return the columns that say what does not fit its format: the bytes of it, then why.

    Examples
    --------
    >>> added_columns(["key", "value"])
    ['key_raw', 'value_raw', 'key_error', 'value_error']
    """
    each = list(sides)
    return [*(f"{side}_raw" for side in each), *(f"{side}_error" for side in each)]


def _bytes_of(bad: list[BadValue], values: pa.Array) -> pa.Array:
    """Return the values that do not fit, and null for others."""
    at = np.full(len(values), -1, np.int64)
    rows = [one.row for one in bad]
    at[rows] = rows
    return values.take(array_of(at, mask=at < 0)).cast(pa.binary())


def _reasons(bad: list[BadValue], rows: int) -> pa.Array:
    if not bad:
        return pa.nulls(rows, pa.string())
    texts: list[str | None] = [None] * rows
    for one in bad:
        texts[one.row] = one.reason
    return texts_of(texts)


class _Counted:
    """Values that do not fit, of each partition how many and the first one."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str | None, int | None, str]]()
        self._first: dict[tuple[str | None, int | None, str], tuple[int, str]] = {}

    def add(self, batch: pa.RecordBatch, side: Side, bad: list[BadValue], *, strict: bool) -> None:
        bad = sorted(bad, key=lambda one: one.row)
        rows = batch.select(_PLACE).take(pa.array([one.row for one in bad], pa.int64())).to_pylist()
        for one, row in zip(bad, rows, strict=True):
            key = (row["topic"], row["partition"], BAD_VALUE[side])
            self._counts[key] += 1
            self._first.setdefault(key, (row["offset"], one.reason))
            if strict:
                fault = self.faults()[0]
                raise InvalidRecordError(fault.message, fault)

    def faults(self) -> list[Fault]:
        """Return a fault for each partition."""
        return [self._fault(*key) for key in self._counts]

    def _fault(self, topic: str | None, partition: int | None, error: str) -> Fault:
        count, (offset, reason) = self._counts[topic, partition, error], self._first[topic, partition, error]
        what = f"{count} {error.removeprefix('bad_')}{'s' if count > 1 else ''}"
        message = f"{topic}-{partition}: {what} could not be read, the first at offset {offset}: {reason}"
        return Fault(error, message, base_offset=offset, topic=topic, partition=partition)
