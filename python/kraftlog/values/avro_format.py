"""Avro behind the framing of a registry."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlog.values.avro_schema import AvroType, parse_schema
from kraftlog.values.avro_values import AvroDecoder
from kraftlog.values.bad_value import BadValue
from kraftlog.values.framing import NO_SCHEMA, SchemaKey, Side, unframed
from kraftlog.values.schema_store import AVRO, Schema, SchemaStore, unknown_schema


class AvroFormat:
    """Avro values, each read by the schema that wrote it, resolved to one reader's schema.

    Parameters
    ----------
    reader : Schema
    store : SchemaStore
        Has the schemas that values name.
    framing, side : str
        As ``unframed`` has them.
    """

    reads_headers = True

    def __init__(self, reader: Schema, store: SchemaStore, framing: str, side: Side) -> None:
        self._store, self._framing, self._side = store, framing, side
        self._reader = reader
        try:
            self._decoder = AvroDecoder(self._parsed(reader))
        except ValueError as error:
            raise ValueError(f"{reader}: {error}") from None
        self.arrow_type = self._decoder.arrow_type
        self._programs: dict[SchemaKey, int | str] = {}

    def convert(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, list[BadValue]]:
        """Return the values as structs."""
        framed = unframed(values, headers, self._framing, self._side)
        found = [self._program(key) for key in framed.schemas]
        roots = np.array([*(one if isinstance(one, int) else NO_SCHEMA for one in found), NO_SCHEMA], np.int64)
        bad = list(framed.bad)
        for number, one in enumerate(found):
            if isinstance(one, str):
                bad += [BadValue(int(row), one) for row in np.flatnonzero(framed.numbers == number)]
        made, misfits = self._decoder.decode_places(framed.data, framed.starts, framed.ends, roots[framed.numbers])
        for misfit in misfits:
            key = framed.schemas[int(framed.numbers[misfit.row])]
            writer = self._reader if key is None else self._found(key)
            bad.append(BadValue(misfit.row, f"{writer}: {misfit.reason}"))
        return made, bad

    def _found(self, key: SchemaKey) -> Schema | None:
        return self._store.by_guid(key) if isinstance(key, bytes) else self._store.by_id(key or 0, self._reader.subject)

    def _program(self, key: SchemaKey) -> int | str:
        """Return the program for what a schema wrote, or why there is none."""
        if key not in self._programs:
            writer = self._reader if key is None else self._found(key)
            self._programs[key] = self._compiled(writer) if writer else unknown_schema(key, self._store)
        return self._programs[key]

    def _compiled(self, writer: Schema) -> int | str:
        if writer.type != AVRO:
            return f"{writer} is of type {writer.type}, expected {AVRO}"
        try:
            return self._decoder.program(self._parsed(writer))
        except ValueError as error:
            return f"{writer}: {error}"

    def _parsed(self, schema: Schema) -> AvroType:
        return parse_schema(schema.schema, [used.schema for _, used in self._store.references_of(schema)])
