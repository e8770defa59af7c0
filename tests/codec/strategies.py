"""Random rows for hypothesis."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st
from reference import Record

from kraftlog import schema

BYTES = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=120, max_size=300))
HEADERS = st.lists(st.tuples(st.text(max_size=6), st.one_of(st.none(), st.binary(max_size=9))), max_size=3)
TIMESTAMPS = st.one_of(
    st.integers(1_700_000_000_000, 1_700_000_100_000),
    st.integers(-(2**62), 2**62),
    st.just(-1),
)
ROW = st.tuples(BYTES, BYTES, TIMESTAMPS, st.one_of(st.just([]), HEADERS))
ROWS = st.lists(ROW, min_size=1, max_size=30)
BASE_OFFSETS = st.one_of(st.integers(0, 1000), st.integers(2**31, 2**62))


def records_of(rows: list[tuple], base_offset: int) -> list[Record]:
    """Return rows as records of the reference."""
    return [Record(base_offset + i, ts, key, value, list(headers)) for i, (key, value, ts, headers) in enumerate(rows)]


def table_of(rows: list[tuple]) -> pa.Table:
    """Return rows as a table to encode."""
    keys, values, stamps, headers = zip(*rows, strict=True)
    pairs = [[{"key": key, "value": value} for key, value in row] for row in headers]
    return pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp_ms": pa.array(stamps, pa.int64()),
            "headers": pa.array(pairs, schema.HEADERS),
        }
    )


def decoded_records(rows: list[dict]) -> list[Record]:
    """Return decoded rows as records of the reference."""
    return [
        Record(
            row["offset"],
            row["timestamp_ms"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row in rows
    ]


COLUMNS = ["offset", "timestamp_ms", "key", "value", "headers"]
