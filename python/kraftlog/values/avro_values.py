"""Avro values to an Arrow array, whatever schemas they were written by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlog._native import avro
from kraftlog.types import Buffer
from kraftlog.values.avro_columns import array_of
from kraftlog.values.avro_program import Programs
from kraftlog.values.avro_schema import AvroType, parse_schema
from kraftlog.values.bad_value import BadValue
from kraftlog.values.places import Numbers, places_of

MOST_BYTES = 1 << 30  # of the columns of one call


class AvroDecoder:
    """Decodes Avro values into the columns of one reader's schema.

    Parameters
    ----------
    reader : AvroType or str

    Examples
    --------
    >>> import pyarrow as pa
    >>> decoder = AvroDecoder('{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')
    >>> values, bad = decoder.decode(pa.array([bytes([2]), bytes([4])]))
    >>> values.to_pylist(), bad
    ([{'id': 1}, {'id': 2}], [])
    """

    def __init__(self, reader: AvroType | str) -> None:
        self.reader = parse_schema(reader) if isinstance(reader, str) else reader
        self._programs = Programs(self.reader)
        self.arrow_type = self._programs.columns[0].arrow
        self._columns = np.array([column.numbers for column in self._programs.columns], np.int64)
        self._own: int | None = None

    def program(self, writer: AvroType) -> int:
        """Return the number of the program for what a writer's schema wrote."""
        return self._programs.add(writer)

    def decode(self, values: pa.Array, writer: AvroType | str | None = None) -> tuple[pa.Array, list[BadValue]]:
        """Return values that one schema wrote, the reader's by default; null stays null."""
        if isinstance(writer, str):
            writer = parse_schema(writer)
        if writer is None and self._own is None:
            self._own = self.program(self.reader)
        root = self._own if writer is None else self.program(writer)
        data, starts, ends = places_of(values)
        roots = np.full(len(values), root, np.int64)
        roots[np.asarray(values.is_null())] = -1
        return self.decode_places(data, starts, ends, roots)

    def decode_places(
        self, data: Buffer, starts: Numbers, ends: Numbers, programs: Numbers
    ) -> tuple[pa.Array, list[BadValue]]:
        """Return values that lie in a buffer, each by its program; without one (-1) it is null."""
        made, faults = avro.decode_rows(
            self._columns,
            self._programs.nodes,
            bytes(self._programs.constants),
            data,
            starts,
            ends,
            programs,
            MOST_BYTES,
        )
        bad = [BadValue(row, f"byte {position}: {avro.SENTENCES[status]}") for row, status, position in faults]
        return array_of(self._programs.columns[0], made), bad
