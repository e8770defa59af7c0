"""Columns of many kinds, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import kraftlog


def rows(table: object, columns: list[str], **options: object) -> list[dict]:
    return kraftlog.decode(kraftlog.encode(table, **options), columns=columns, strict=True).to_table().to_pylist()  # type: ignore[arg-type]


def test_types_of_keys_and_values():
    expected = [{"key": key} for key in (b"a", None, b"", b"long enough to be out of line of a view")]
    values = [row["key"] for row in expected]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert rows(pa.table({"key": pa.array(values, kind)}), ["key"]) == expected
    texts = [None if value is None else value.decode() for value in values]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert rows(pa.table({"key": pa.array(texts, kind)}), ["key"]) == expected
    assert rows(pa.table({"value": pa.nulls(2), "key": pa.array([b"a", b"b"])}), ["value"]) == [{"value": None}] * 2


def test_slices_and_chunks():
    whole = pa.table({"key": [b"%d" % i if i % 3 else None for i in range(100)], "timestamp_ms": list(range(100))})
    expected = whole.to_pylist()
    columns = ["key", "timestamp_ms"]
    assert rows(whole.slice(13, 70), columns) == expected[13:83]
    chunked = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7, 50), whole.slice(57)])
    assert rows(chunked, columns) == expected
    assert rows(whole.to_batches(max_chunksize=9), columns) == expected
    assert rows(whole.to_reader(), columns) == expected
    one = kraftlog.encode(whole, max_batch_bytes=300)
    assert kraftlog.encode(chunked, max_batch_bytes=300) == one


def test_headers():
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    values = [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, [], [{"key": "ключ", "value": b""}]]
    table = pa.table({"headers": pa.array(values, kind)})
    assert [row["headers"] for row in rows(table, ["headers"])] == [values[0], [], [], values[3]]
    assert [row["headers"] for row in rows(table.slice(3), ["headers"])] == [values[3]]
    large = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    wide = rows(table.cast(pa.schema([("headers", large)])), ["headers"])
    assert wide[0]["headers"] == values[0]
    with pytest.raises(ValueError, match="a header, or its key, is null"):
        kraftlog.encode(pa.table({"headers": pa.array([[{"key": None, "value": b""}]], kind)}))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps(unit: str, zone: str | None):
    moments = [datetime(2026, 11, 21, 8, tzinfo=UTC), None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)]
    column = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))
    got = [row["timestamp_ms"] for row in rows(pa.table({"timestamp": column}), ["timestamp_ms"])]
    assert got == [1795248000000, -1, -1000]


def test_finer_timestamps_are_rounded_down():
    column = pa.array([-1500, 1500], pa.timestamp("us", "UTC"))
    assert [r["timestamp_ms"] for r in rows(pa.table({"timestamp": column}), ["timestamp_ms"])] == [-2, 1]


def test_null_and_overflowing_timestamps():
    table = pa.table({"timestamp_ms": [-1, 2**63 - 1, -(2**63), 0]})
    got = kraftlog.decode(kraftlog.encode(table), columns=["timestamp", "timestamp_ms"]).to_table()
    assert got["timestamp_ms"].to_pylist() == [-1, 2**63 - 1, -(2**63), 0]
    assert got["timestamp"].is_valid().to_pylist() == [False, False, False, True]


def test_record_too_large():
    table = pa.table({"value": [b"x" * 10, b"x" * 500, b"x"]})
    with pytest.raises(kraftlog.RecordTooLargeError) as raised:
        kraftlog.encode(table, max_batch_bytes=300)
    assert str(raised.value) == "record 1: a batch of it alone takes 570 bytes, max_batch_bytes is 300"
    assert kraftlog.encode(table, max_batch_bytes=570).size > 0
    with pytest.raises(kraftlog.RecordTooLargeError):
        kraftlog.encode(table, max_batch_bytes=569)


def test_no_rows():
    assert kraftlog.encode(pa.table({"value": pa.array([], pa.binary())})).size == 0
    assert kraftlog.encode([]).size == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compression": "brotli"}, "compression 'brotli' is not one of none, gzip, snappy, lz4, zstd"),
        ({"max_batch_bytes": 61}, "max_batch_bytes 61 is not between 62 and"),
        ({"max_batch_records": 0}, "max_batch_records 0 is not between 1 and"),
        ({"is_transactional": True}, "a transactional batch needs a producer_id"),
    ],
)
def test_bad_options(options: dict, text: str):
    with pytest.raises(ValueError, match=text):
        kraftlog.encode(pa.table({"value": [b"a"]}), **options)


def test_headers_of_another_kind_are_refused():
    kind = pa.list_(pa.struct([("name", pa.string()), ("content", pa.binary())]))
    with pytest.raises(ValueError, match="neither a list of struct<key, value> nor a map"):
        kraftlog.encode(pa.table({"headers": pa.array([[{"name": "a", "content": b"1"}]], kind)}))
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    with pytest.raises(ValueError, match="a header, or its key, is null"):
        kraftlog.encode(pa.table({"headers": pa.array([[{"key": "a", "value": b"1"}, None]], kind)}))
    outside = pa.table({"headers": pa.array([[{"key": None, "value": b""}], [{"key": "a", "value": b"1"}]], kind)})
    assert rows(outside.slice(1), ["headers"]) == [{"headers": [{"key": "a", "value": b"1"}]}]


def test_a_stream_is_encoded_as_it_is():
    data = kraftlog.encode(pa.table({"key": [b"a", b"b"], "timestamp_ms": [1, 2]}))
    assert kraftlog.encode(kraftlog.decode(data)).equals(data)
