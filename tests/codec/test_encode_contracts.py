"""What the encoder takes, with the rows that come out of it, and what it refuses, in which words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from reference import decode_batches

import kraftlog
from kraftlog import schema
from kraftlog.codec.compressed_pieces import PIECE_BYTES

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def values(rows: Any, **options: Any) -> list[bytes | None]:
    """Encode, and read with the plain-Python reference."""
    return [record.value for record in decode_batches(kraftlog.encode(rows, **options).to_pybytes())]


def headers(column: pa.Array) -> list[list[tuple[str, bytes | None]]]:
    return [record.headers for record in decode_batches(kraftlog.encode(pa.table({"headers": column})).to_pybytes())]


def one(**columns: Any) -> pa.Table:
    return pa.table({"value": [b"a"], **columns})


@pytest.mark.parametrize("make", [list, iter, tuple, lambda tables: pa.concat_tables(tables).to_reader()])
def test_tables_and_batches_of_any_nesting(make: Any):
    tables = [pa.table({"value": [b"a", b"b"]}), pa.table({"value": pa.array([], pa.binary())}), one()]
    assert values(make(tables)) == [b"a", b"b", b"a"]
    assert values(make([table.combine_chunks() for table in tables])) == [b"a", b"b", b"a"]


def test_batches_beside_tables():
    assert values([one(), one().to_batches(), one().to_reader(), one().to_batches()[0]]) == [b"a"] * 4
    assert values([one(), pa.table({"key": [b"k"]}), one()]) == [b"a", None, b"a"]


@pytest.mark.parametrize("chunks", [1, 2, 7, 100])
def test_chunks_change_nothing(chunks: int):
    """The batches are those of the table in one piece, from a table, from its batches, and from one write or many."""
    piece = pa.table(
        {
            "key": [b"k", None, b"key"],
            "value": pa.array(["a" * 40, "", None]).dictionary_encode(),
            "timestamp": pa.array([1, None, -7], pa.timestamp("s")),
            "headers": pa.array([[("h", b"1")], None, []], pa.map_(pa.string(), pa.binary())),
        }
    )
    table = pa.concat_tables([piece] * chunks)
    one_chunk = table.unify_dictionaries().combine_chunks()
    expected = kraftlog.encode(one_chunk, max_batch_bytes=300)
    assert len(decode_batches(expected.to_pybytes())) == 3 * chunks
    assert kraftlog.encode(table, max_batch_bytes=300) == expected
    assert kraftlog.encode(iter(table.to_batches()), max_batch_bytes=300) == expected
    encoder = kraftlog.Encoder(max_batch_bytes=300)
    for part in (table.slice(0, 4), table.slice(4, 0), table.slice(4)):
        encoder.write(part)
    assert encoder.finish() == expected


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_pieces_that_are_compressed_are_those_of_one_write(compression: str):
    values = [bytes([i % 251]) * (i % 300) for i in range(2 * PIECE_BYTES // 100)]
    table = pa.table({"value": values, "offset": range(len(values))})
    assert table.select(["value"]).nbytes > 2 * PIECE_BYTES
    encoder = kraftlog.Encoder(compression=compression, max_batch_bytes=1 << 16)
    encoder.write(table)
    data = kraftlog.encode(table, compression=compression, max_batch_bytes=1 << 16)
    assert data.equals(encoder.finish())
    assert kraftlog.decode(data, columns=["value", "offset"]).to_table().equals(table)


def test_compressed_rows_are_counted_over_pieces():
    values = [b"a" * 1000] * (2 * PIECE_BYTES // 1000) + [b"b" * 70000]
    with pytest.raises(kraftlog.RecordTooLargeError, match=f"^record {len(values) - 1}: "):
        kraftlog.encode(pa.table({"value": values}), compression="lz4", max_batch_bytes=1 << 16)


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.binary()),
        pa.dictionary(pa.int32(), pa.large_binary()),
    ],
)
def test_types_of_values(kind: pa.DataType):
    texts = ["a", None, "", "long enough to be out of line of a view"]
    expected = [None if text is None else text.encode() for text in texts]
    as_text = pa.types.is_dictionary(kind) and kind.value_type == pa.string()
    as_text = as_text or pa.types.is_string(kind) or kind in (pa.large_string(), pa.string_view())
    column = pa.array(texts if as_text else expected, kind)
    assert values(pa.table({"value": column})) == expected
    assert values(pa.table({"value": column}).slice(1)) == expected[1:]


def test_values_of_one_size_and_none_at_all():
    assert values(pa.table({"value": pa.array([b"abc", None], pa.binary(3))})) == [b"abc", None]
    assert values(pa.table({"value": pa.nulls(2)})) == [None, None]
    assert values(pa.table({"key": [b"k"]})) == [None]


def test_headers_of_every_form():
    pairs = [[("h", b"1")], [("g", None), ("g", b"")], [], [("\u043a\u043b\u044e\u0447", b"v")]]
    structs = [[{"key": key, "value": value} for key, value in row] for row in pairs]
    swapped = pa.struct([("value", pa.binary()), ("key", pa.string())])
    wide = pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])
    for kind in (pa.list_(HEADER), pa.list_(swapped), pa.large_list(wide), pa.large_list(swapped)):
        column = pa.array(structs, kind)
        assert headers(column) == pairs
        assert headers(column.slice(1, 2)) == pairs[1:3]
    for kind in (pa.map_(pa.string(), pa.binary()), pa.map_(pa.large_string(), pa.large_binary())):
        assert headers(pa.array(pairs, kind)) == pairs
        assert headers(pa.array(pairs, kind).slice(1)) == pairs[1:]


def test_no_headers():
    for kind in (pa.list_(HEADER), pa.map_(pa.string(), pa.binary())):
        assert headers(pa.array([None, [("h", b"1")], None, []], kind)) == [[], [("h", b"1")], [], []]
    assert headers(pa.nulls(2)) == [[], []]


def test_headers_behind_a_null_list_that_hides_some():
    """What a null list spans is not written."""
    pairs = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], HEADER)
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pairs, mask=pa.array([True, False]))
    assert headers(column) == [[], [("b", b"2")]]


@pytest.mark.parametrize(
    ("column", "milliseconds"),
    [
        (pa.array([1, None], pa.timestamp("s")), [1000, -1]),
        (pa.array([-1, None], pa.timestamp("ms", "UTC")), [-1, -1]),
        (pa.array([-1500, 1500], pa.timestamp("us", "Asia/Tokyo")), [-2, 1]),
        (pa.array([-1, 999_999], pa.timestamp("ns")), [-1, 0]),
    ],
)
def test_timestamps_of_every_unit(column: pa.Array, milliseconds: list[int]):
    data = kraftlog.encode(pa.table({"timestamp": column})).to_pybytes()
    assert [record.timestamp for record in decode_batches(data)] == milliseconds


def test_milliseconds_of_every_width():
    for kind in (pa.int16(), pa.uint8(), pa.int64(), pa.uint64()):
        data = kraftlog.encode(pa.table({"timestamp_ms": pa.array([7, None], kind)})).to_pybytes()
        assert [record.timestamp for record in decode_batches(data)] == [7, -1]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (one(vale=[b"a"]), "^column 'vale' is not one of key, value, timestamp, timestamp_ms, headers$"),
        (
            pa.table({"offset": [1]}),
            "^none of the columns offset is one of key, value, timestamp, timestamp_ms, headers$",
        ),
        (
            pa.Table.from_arrays([pa.array([b"a"]), pa.array([b"b"])], names=["value", "value"]),
            "^column value is there 2 times$",
        ),
        (pa.table({"value": [1]}), "^column value is int64, neither binary nor string$"),
        (
            pa.table({"key": pa.array([1]).dictionary_encode()}),
            "^column key is dictionary<.*>, neither binary nor string$",
        ),
        (pa.table({"timestamp_ms": ["12"]}), "^column timestamp_ms is string, not int64$"),
        (pa.table({"timestamp_ms": [1.5]}), "^column timestamp_ms is double, not int64$"),
        (
            pa.table({"timestamp": [12]}),
            "^column timestamp is int64, not a timestamp; milliseconds belong in timestamp_ms$",
        ),
        (
            pa.table({"timestamp_ms": pa.array([2**63], pa.uint64())}),
            "9223372036854775808 not in range",
        ),
        (
            pa.table({"headers": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}),
            r"^column headers is map<string, int64>, neither a list of struct<key, value> nor a map$",
        ),
        (
            pa.table({"headers": [["a"]]}),
            "^column headers is list<item: string>, neither a list of struct<key, value> nor",
        ),
    ],
)
def test_refused_columns(rows: pa.Table, text: str):
    with pytest.raises(ValueError, match=text):
        kraftlog.encode(rows)
    encoder = kraftlog.Encoder()
    encoder.write(one())
    with pytest.raises(ValueError, match=text):
        encoder.write(rows)
    assert encoder.next_offset == 1
    assert len(decode_batches(encoder.finish().to_pybytes())) == 1


def test_other_columns_of_records_are_not_encoded():
    every = schema.RECORDS.shown | schema.RECORDS.on_request
    rows = {name: pa.nulls(1, kind) for name, kind in every.items()} | {"value": pa.array([b"a"])}
    assert values(pa.table(rows)) == [b"a"]


@pytest.mark.parametrize("rows", [{"value": [b"a"]}, "value", b"value", 7, None, [{"value": b"a"}]])
def test_rows_that_are_not_arrows(rows: Any):
    name = type(rows[0] if isinstance(rows, list) else rows).__name__
    with pytest.raises(
        TypeError, match=f"^rows are a {name}, not a pyarrow Table, a RecordBatch or an iterable of these$"
    ):
        kraftlog.encode(rows)


def test_nothing_to_write():
    encoder = kraftlog.Encoder()
    encoder.write(pa.record_batch({"value": pa.array([], pa.binary())}))
    encoder.write(pa.table({"value": pa.chunked_array([], pa.binary())}))
    assert (encoder.next_offset, encoder.finish().size) == (0, 0)


def test_markers_are_markers():
    encoder = kraftlog.Encoder()
    for value, text in (
        (b"", "metadata record: byte 0: a field of 1 bytes, but 0 bytes left"),
        (b"\x01", "metadata record: byte 1: a field of 1 bytes, but 0 bytes left"),
        (bytes.fromhex("01140000"), "a metadata record that does not begin, end or abort a transaction"),
    ):
        with pytest.raises(kraftlog.InvalidRecordError, match=text):
            encoder.write_marker(value)
    assert encoder.next_offset == 0
    encoder.write_marker(bytes.fromhex("01180000"))
    assert [record.value for record in decode_batches(encoder.finish().to_pybytes())] == [bytes.fromhex("01180000")]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("base_offset", 0, 2**63 - 1),
        ("partition_leader_epoch", -1, 2**31 - 1),
        ("producer_id", -1, 2**63 - 1),
        ("producer_epoch", -1, 2**15 - 1),
        ("base_sequence", -1, 2**31 - 1),
        ("timestamp_ms", -1, 2**63 - 1),
    ],
)
def test_bounds_of_header_fields(name: str, least: int, most: int):
    for number in (least - 1, most + 1):
        with pytest.raises(ValueError, match=rf"^{name} {number} is not between {least} and {most}$"):
            kraftlog.encode(one(), **{name: number})
    producer = {"producer_epoch": 0, "base_sequence": 0} if name == "producer_id" else {}
    for number in (least, most - 1 if name == "base_offset" else most):
        batches = kraftlog.encode(one(), **{name: number}, **producer)
        [record] = decode_batches(batches.to_pybytes())
        if name in ("base_offset", "timestamp_ms"):
            assert number == (record.offset if name == "base_offset" else record.timestamp)


def test_offsets_end_before_the_largest_number():
    with pytest.raises(ValueError, match=r"^base_offset 9223372036854775807 and 1 rows do not fit 64 bits$"):
        kraftlog.encode(one(), base_offset=2**63 - 1)
