"""A column of values decoded in one pass, against one call a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import RecordError
from kraftlog.spark.udf_batches import DECODE_COLUMNS, decode_in_sql, decoded_type

NULL = pa.array(["null"])


def encoded(rows: int, text: bytes, **options) -> bytes:
    table = pa.table({"key": [None, text] * rows, "value": [text * row for row in range(2 * rows)]})
    return kraftlog.encode(table, **options).to_pybytes()


def values() -> list[bytes | None]:
    """Return sound, damaged, torn, empty and missing values, where each meets several others."""
    one, many = encoded(1, b"a"), encoded(40, b"bc", compression="zstd", max_batch_bytes=400)
    flipped = one[:-1] + bytes([one[-1] ^ 1])
    segment = next((GOLDEN / "transactions" / "log").glob("**/*.log")).read_bytes()
    bad_payload = bytearray(kraftlog.encode(pa.table({"value": [b"x" * 99]}), compression="gzip").to_pybytes())
    bad_payload[70:80] = bytes(10)
    kinds = [
        one,
        flipped,
        many,
        one + many[:-5],
        b"",
        None,
        many + flipped + one,
        segment,
        one[:30],
        bytes(bad_payload),
    ]
    picks = np.random.default_rng(7).integers(0, len(kinds), 120).tolist()
    return [*kinds, *(kinds[pick] for pick in picks), one]


def twin(value: bytes | None) -> list[dict] | None:
    """Decode by a call for this value alone."""
    try:
        return (
            None
            if value is None
            else kraftlog.decode(value, columns=DECODE_COLUMNS, strict=True).to_table().to_pylist()
        )
    except RecordError:
        return None


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_values_are_decoded_alone(kind):
    every = values()
    expected = [twin(value) for value in every]
    assert {None if rows is None else len(rows) > 0 for rows in expected} == {None, False, True}
    column = pa.array(every, pa.binary()).cast(kind)
    found = decode_in_sql(column, NULL)
    found.validate(full=True)
    assert found.type == decoded_type()
    assert found.to_pylist() == expected
    assert decode_in_sql(column.slice(3, 90), NULL).to_pylist() == expected[3:93]
    assert decode_in_sql(column.slice(5, 0), NULL).to_pylist() == []


def test_bytes_of_a_null_do_not_count():
    one = encoded(1, b"a")
    ends = pa.py_buffer(np.array([0, len(one), 2 * len(one)], np.int32))
    column = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\2"), ends, pa.py_buffer(one * 2)])
    assert decode_in_sql(column).to_pylist() == [None, twin(one)]


def test_the_first_fault_is_named_as_in_a_value_alone():
    one = encoded(1, b"a")
    bad = one + one[:-1] + bytes([one[-1] ^ 1])
    with pytest.raises(RecordError) as alone:
        kraftlog.decode(bad, strict=True).to_table()
    with pytest.raises(RecordError, match=f"batch at byte {len(one)}: ") as among:
        decode_in_sql(pa.array([one, one[:9], bad, one[1:]]))
    assert str(among.value) == str(alone.value)
