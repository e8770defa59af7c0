"""Redaction of columns, beside a step of Python for each record."""

from __future__ import annotations

import json

import pyarrow as pa

from kraftlog.tables.redaction import Redaction
from rounds import Contender

COLUMNS, RECORDS = "kraftlog, columns", "kraftlog, record by record"
ROWS = 20_000
KEY = b"0123456789abcdef"
PLACES = {
    "place masked": "value.customer.email=mask",
    "place hashed": "value.customer.email=hash",
    "place not there": "value.customer.phone=mask",
    "header hashed": "header.user=hash",
    "key hashed": "key=hash",
}
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _value(row: int) -> bytes:
    document = {
        "id": row,
        "customer": {"name": f"Anna {row % 1000}", "email": f"a{row % 5000}@example.com"},
        "items": [{"sku": "x1", "card": "4000 1234"}, {"sku": "x2", "card": "4000 1235"}],
        "total": 12.5,
    }
    return json.dumps(document).encode()


def contenders(rule: str, count: int = ROWS) -> list[Contender]:
    """Return the ways to redact so many records by a rule."""
    headers = [[(b"user", b"u%d" % (row % 3)), (b"other", b"x")] for row in range(count)]
    records = [(b"k%d" % (row % 5000), _value(row), headers[row]) for row in range(count)]
    as_rows = [[{"key": name, "value": content} for name, content in each] for each in headers]
    columns = [pa.array([record[at] for record in records], pa.binary()) for at in (0, 1)]
    rows = pa.RecordBatch.from_arrays([*columns, pa.array(as_rows, _HEADERS)], ["key", "value", "headers"])
    redaction = Redaction([rule], KEY)

    def one_by_one() -> int:
        return len([redaction.record(record) for record in records])

    def check() -> None:
        for row, record in zip(redaction.rows(rows).to_pylist(), map(redaction.record, records), strict=True):
            left = [(each["key"].encode(), each["value"]) for each in row["headers"]]
            assert (row["key"], row["value"], left) == record

    return [
        Contender(COLUMNS, lambda: redaction.rows(rows).num_rows, count, rows.nbytes, check),
        Contender(RECORDS, one_by_one, count, rows.nbytes),
    ]


def pieces() -> dict[str, list[Contender]]:
    """Return the contenders for each kind of place."""
    return {name: contenders(rule) for name, rule in PLACES.items()}
