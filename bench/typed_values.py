"""Values of Avro to columns, beside fastavro's loop over records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kraftlog.values.avro_values import AvroDecoder
from rounds import Contender

KRAFTLOG, FASTAVRO, FASTAVRO_TO_ARROW = "kraftlog", "fastavro, records", "fastavro, to Arrow"
ROWS = 100_000
FLAT = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
    ],
}
NESTED = {
    "type": "record",
    "name": "Basket",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "order", "type": FLAT},
        {"name": "items", "type": {"type": "array", "items": "int"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}


def _order(row: int) -> dict[str, Any]:
    note = "to be left at the door" if row % 2 else None
    return {
        "id": row * 7919,
        "customer": f"customer-{row % 1000}",
        "amount": row * 1.5,
        "quantity": row % 100,
        "paid": row % 3 == 0,
        "note": note,
    }


def _basket(row: int) -> dict[str, Any]:
    return {
        "id": row,
        "order": _order(row),
        "items": list(range(row % 5)),
        "tags": {"shop": "north", "day": str(row % 7)},
    }


def contenders(schema: dict[str, Any], rows: Iterator[dict[str, Any]]) -> list[Contender]:
    """Return the ways to read such rows."""
    import fastavro

    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    contents = []
    for row in rows:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, row)
        contents.append(file.getvalue())
    values, decoder = pa.array(contents, pa.binary()), AvroDecoder(json.dumps(schema))
    size = sum(map(len, contents))

    def read() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(content), parsed, None) for content in contents]

    def check() -> None:
        got, bad = decoder.decode(values)
        assert not bad
        assert got[:100].to_pylist() == pa.array(read()[:100], decoder.arrow_type).to_pylist()

    return [
        Contender(KRAFTLOG, lambda: len(decoder.decode(values)[0]), len(contents), size, check),
        Contender(FASTAVRO, lambda: len(read()), len(contents), size),
        Contender(FASTAVRO_TO_ARROW, lambda: len(pa.array(read(), decoder.arrow_type)), len(contents), size),
    ]


SCHEMAS = {"flat": (FLAT, _order, ROWS), "nested": (NESTED, _basket, ROWS // 2)}


def contenders_of(piece: str) -> list[Contender]:
    """Return the contenders of flat or of nested records."""
    schema, row, count = SCHEMAS[piece]
    return contenders(schema, map(row, range(count)))


def pieces() -> dict[str, list[Contender]]:
    """Return the contenders of flat and of nested records."""
    return {name: contenders_of(name) for name in SCHEMAS}
