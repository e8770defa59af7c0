"""Records that are no Arrow columns become the batches of Arrow columns with the same records."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from kraftlog.codec.batch_encoder import BatchEncoder

_BYTES = st.none() | st.binary(max_size=300)


@given(st.lists(st.lists(st.tuples(_BYTES, _BYTES), max_size=12), max_size=4), st.sampled_from(["none", "gzip", "lz4"]))
def test_the_bytes_are_those_of_columns(writes: list[list[tuple[bytes | None, bytes | None]]], compression: str):
    options = {"compression": compression, "max_batch_bytes": 1000, "base_offset": 7, "timestamp_ms": 1000}
    plain, of_columns = BatchEncoder(**options), kraftlog.Encoder(**options)
    for records in writes:
        keys, values = ([record[at] for record in records] for at in (0, 1))
        plain.write_records(values, keys)
        of_columns.write(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
        assert plain.next_offset == of_columns.next_offset
    assert bytes(plain.finish()) == of_columns.finish().to_pybytes()


def test_records_without_keys():
    plain = BatchEncoder()
    plain.write_records([b"a", None, b""])
    rows = kraftlog.decode(plain.finish(), columns=["key", "value"]).to_table()
    assert rows.to_pydict() == {"key": [None] * 3, "value": [b"a", None, b""]}


def test_a_record_that_is_too_large_adds_none():
    plain = BatchEncoder(max_batch_bytes=100)
    with pytest.raises(kraftlog.RecordTooLargeError, match="record 1: a batch of it alone takes"):
        plain.write_records([b"a", bytes(200)])
    assert (plain.next_offset, bytes(plain.finish())) == (0, b"")
