"""Functions over whole columns, against one call for each value: encoding, packing, and transactions of pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from kraftlog import schema
from kraftlog.codec.metadata_markers import abort_transaction, begin_transaction, begin_transactions, end_transaction
from kraftlog.errors import RecordError, RecordTooLargeError
from kraftlog.spark.udf_batches import decode_in_sql, encode_in_sql
from kraftlog.spark.udf_transactions import boundaries_in_sql, pack_lists_in_sql
from kraftlog.tables.transaction_lists import TRANSACTION, piece_transactions

NO_OP = bytes.fromhex("01140000")
LEVEL = bytes.fromhex("010c0011") + b"metadata.version" + bytes.fromhex("001900")
ODD_BEGIN = bytes.fromhex("81001700010002026f")  # named "o"; its first varint is longer than needed
RAW_BEGIN = bytes.fromhex("01170001000202ff")  # its name is not UTF-8
BAD_BEGIN = bytes.fromhex("0117000100030961")  # its name is longer than the record

TEXTS = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=70))
HEADERS = st.lists(st.fixed_dictionaries({"key": st.text(max_size=3), "value": TEXTS}), max_size=2)
RECORD = st.fixed_dictionaries(
    {"key": TEXTS, "value": TEXTS, "timestamp_ms": st.integers(-1, 2**41), "headers": HEADERS}
)
LISTS = st.lists(st.one_of(st.none(), st.lists(RECORD, max_size=6)), max_size=9)
RECORDS = pa.struct(
    {"key": pa.binary(), "value": pa.binary(), "timestamp_ms": pa.int64(), "headers": schema.HEADERS}.items()
)
EVERY_OPTION = [
    {},
    {"max_batch_bytes": 300},
    {"max_batch_records": 2, "base_offset": 2**40},
    {"producer_id": 7, "producer_epoch": 1, "base_sequence": 2**31 - 2, "max_batch_records": 3},
    {"batch_records": [2, 1, 3], "partition_leader_epoch": 5},
    {"compression": "lz4", "max_batch_records": 1},
    {"compression": "zstd"},
    {"compression": "snappy", "max_batch_bytes": 200},
    {"compression": "gzip"},
]
OPTIONS = st.sampled_from(EVERY_OPTION)
KINDS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int16(), pa.binary())]


def alone(value: pa.ListScalar, **options) -> bytes | None:
    """Encode a list by a call of its own."""
    if not value.is_valid:
        return None
    return (
        kraftlog.encode(pa.RecordBatch.from_struct_array(value.values), **options).to_pybytes() if len(value) else b""
    )


def outcome(work) -> object:
    """Return what a function returns, or its error and message."""
    try:
        return work()
    except ValueError as error:
        return type(error), str(error)


def encoded(column: pa.Array, **options) -> list[bytes | None]:
    found = encode_in_sql(column, **{name: pa.array([one]) for name, one in options.items() if name != "batch_records"})
    found.validate(full=True)
    assert found.type == pa.binary()
    return found.to_pylist()


@given(LISTS, OPTIONS, st.sampled_from([pa.list_, pa.large_list]), st.integers(0, 3))
def test_each_list_is_encoded_alone(lists, options, kind, start):
    from kraftlog.codec.encode_column import encode_column

    column = pa.array(lists, kind(RECORDS)).slice(min(start, len(lists)))
    found = outcome(lambda: encode_column(column, **options).to_pylist())
    assert found == outcome(lambda: [alone(value, **options) for value in column])


@pytest.mark.parametrize("options", EVERY_OPTION)
def test_each_list_begins_anew(options):
    """Offsets, sequences and a plan of batches begin again, whatever the list before left behind."""
    from kraftlog.codec.encode_column import encode_column

    column = pa.array([[{"value": b"%d" % at} for at in range(count)] for count in (1, 5, 0, 6, 2, 2)])
    assert encode_column(column, **options).to_pylist() == [alone(value, **options) for value in column]


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_of_values(kind):
    texts = [None, b"", b"a", b"longer than a view has room for", b"x" * 300] * 30
    values = pa.array(texts, pa.binary())
    values = values.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else values.cast(kind)
    items = pa.StructArray.from_arrays([values, pa.array(range(150))], ["value", "timestamp_ms"])
    ends = [0, 1, 1, 40, 90, 149, 150]
    column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)
    expected = [alone(value) for value in column]
    assert encoded(column) == expected
    assert encoded(column.slice(2, 3)) == expected[2:5]
    assert encode_in_sql(pa.chunked_array([column.slice(0, 4), column.slice(4)])).to_pylist() == expected
    nested = pa.StructArray.from_arrays([column], ["records"])
    assert encoded(nested.slice(1).field(0)) == expected[1:]


def test_fixed_size_lists_and_items_under_a_null():
    items = pa.StructArray.from_arrays([pa.array([b"1", b"2", b"3", b"4"])], ["value"])
    fixed = pa.FixedSizeListArray.from_arrays(items, 2)
    assert encoded(fixed) == [alone(value) for value in fixed]
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), items, mask=pa.array([False, True, False]))
    assert encoded(hidden) == [alone(value) for value in hidden]


def test_rows_that_are_copied_in_pieces_are_cut_at_lists():
    """Values that are not lent come in pieces of 65,536 rows; lists lie across these, and are longer."""
    values = pa.array([b"%d" % at for at in range(200_000)]).cast(pa.large_binary())
    ends = [0, 1, 65_535, 65_536, 65_537, 199_999, 200_000]
    items = pa.StructArray.from_arrays([values], ["value"])
    column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)
    assert encoded(column) == [alone(value) for value in column]


def test_the_first_bad_list_is_named_as_alone():
    good, large = [{"value": b"a"}], [{"value": b"b"}, {"value": b"x" * 500}]
    column = pa.array([good, None, large, [{"value": b"y" * 900}]])
    with pytest.raises(RecordTooLargeError, match="record 1: a batch of it alone takes") as found:
        encode_in_sql(column, max_batch_bytes=pa.array([200]))
    assert str(found.value) == outcome(lambda: alone(column[2], max_batch_bytes=200))[1]
    with pytest.raises(ValueError, match="record 1 of 2 is null"):
        encode_in_sql(pa.array([good, [{"value": b"1"}, None]]))
    with pytest.raises(ValueError, match="column 'valeu' is not one of"):
        encode_in_sql(pa.array([[], [{"valeu": b"1"}]]))
    with pytest.raises(ValueError, match="values are binary, not lists of records"):
        encode_in_sql(pa.array([b"1"]))
    planned = {"batch_records": [1]}
    from kraftlog.codec.encode_column import encode_column

    with pytest.raises(ValueError, match="batch_records plans 1 records, but there are more"):
        encode_column(pa.array([good, good * 2]), **planned)
    assert encode_column(pa.array([good, good]), **planned).null_count == 0


NAMES = st.one_of(st.none(), st.text(max_size=5), st.sampled_from(["", "n" * 126, "n" * 127, "ü" * 127, "n" * 255]))
PACKED = st.lists(st.one_of(st.none(), st.lists(st.sampled_from([NO_OP, NO_OP * 30, LEVEL]), max_size=5)), max_size=8)
PACK_OPTIONS = st.sampled_from(
    [{}, {"max_batch_records": 2, "base_offset": 90}, {"max_batch_bytes": 400}, {"max_batch_bytes": 150}]
)


def packed(value: pa.ListScalar, name: str | None, **options) -> bytes | None:
    """Pack a list by a call of its own."""
    return kraftlog.pack_transaction(value.values, name, **options).to_pybytes() if value.is_valid else None


@given(PACKED, st.lists(NAMES, min_size=8, max_size=8), PACK_OPTIONS, st.booleans())
def test_each_transaction_is_packed_alone(lists, names, options, has_versions):
    options = options | ({"metadata_version": 12} if has_versions else {})
    column = pa.array(lists, pa.list_(pa.binary()))
    names = names[: len(lists)]
    columns = {name: pa.array([value]) for name, value in options.items()}
    found = outcome(lambda: pack_lists_in_sql(column, pa.array(names, pa.string()), **columns).to_pylist())
    each = zip(column, names, strict=True)
    assert found == outcome(lambda: [packed(value, name, **options) for value, name in each])


def test_packing_refuses_as_alone():
    column = pa.array([[NO_OP], None, [NO_OP, end_transaction()], [NO_OP, None]], pa.list_(pa.binary()))
    names = pa.array(["a", "x" * 256, "b", "c"])
    with pytest.raises(RecordError, match="record 1: "):
        pack_lists_in_sql(column, names)
    with pytest.raises(RecordError, match="record 1: "):
        pack_lists_in_sql(column.slice(2, 1), names.slice(2, 1))
    with pytest.raises(ValueError, match="record 1 is null; a metadata record has a value"):
        pack_lists_in_sql(column.slice(3), names.slice(3))
    with pytest.raises(ValueError, match="a name of 256 bytes; KIP-868 allows 255"):
        pack_lists_in_sql(column.slice(0, 1), names.slice(1, 1))
    assert pack_lists_in_sql(column.slice(1, 1), names.slice(1, 1)).to_pylist() == [None]
    chunks = pa.chunked_array([column.slice(0, 1), column.slice(1, 1), column.slice(0, 1)])
    expected = [packed(column[0], "a"), None, packed(column[0], None)]
    assert pack_lists_in_sql(chunks, pa.array(["a", "b", None])).to_pylist() == expected
    assert pack_lists_in_sql(column.slice(0, 1)).to_pylist() == [packed(column[0], None)]


@given(st.lists(NAMES, max_size=9))
def test_markers_of_names(names):
    assert begin_transactions(pa.array(names, pa.string())).to_pylist() == [begin_transaction(name) for name in names]


MARKERS = [
    begin_transaction(),
    begin_transaction("täg"),
    end_transaction(),
    abort_transaction(),
    abort_transaction("why"),
]
VALUES = [NO_OP, LEVEL, *MARKERS, begin_transaction("n" * 200), ODD_BEGIN, RAW_BEGIN, BAD_BEGIN]
BATCH = st.tuples(st.lists(st.sampled_from(VALUES), min_size=1, max_size=5), st.sampled_from([0, 0, 0, 0, 3]))


@st.composite
def transactions(draw) -> list[bytes]:
    """Return values of whole transactions."""
    name, end = draw(st.sampled_from([None, "one"])), draw(st.sampled_from(MARKERS[2:]))
    return [begin_transaction(name), *[NO_OP] * draw(st.integers(0, 3)), end]


@st.composite
def pieces(draw) -> bytes:
    """Return batches of a metadata log that may lack offsets, have misplaced markers, or be damaged."""
    offset, made = draw(st.sampled_from([0, 0, 100])), []
    some = st.one_of(BATCH, st.tuples(transactions(), st.just(0)), st.tuples(transactions(), st.just(0)))
    for values, gap in draw(st.lists(some, max_size=4)):
        offset += gap
        rows = pa.table({"value": pa.array(values, pa.binary())})
        made.append(kraftlog.encode(rows, base_offset=offset, partition_leader_epoch=draw(st.integers(0, 2))))
        offset += len(values)
    data = bytearray(b"".join(one.to_pybytes() for one in made))
    if data and draw(st.integers(0, 9)) == 0:
        data[draw(st.integers(0, len(data) - 1))] ^= 1
    return bytes(data[: len(data) - draw(st.sampled_from([0, 0, 0, 1, 40]))] if data else data)


def listed(value: bytes | None) -> list[dict] | None:
    """List the transactions of a piece by a pass of its own, null for a fault."""
    try:
        return None if value is None else piece_transactions(value).to_pylist()
    except RecordError:
        return None


@given(st.lists(st.one_of(st.none(), pieces()), max_size=8), st.sampled_from(KINDS), st.integers(0, 2))
def test_transactions_of_each_piece(values, kind, start):
    column = pa.array(values, pa.binary())
    column = column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
    column, values = column.slice(start), values[start:]
    found = boundaries_in_sql(column, pa.array(["null"]))
    found.validate(full=True)
    assert found.type == pa.list_(TRANSACTION)
    expected = [listed(value) for value in values]
    assert found.to_pylist() == expected
    strict = outcome(lambda: boundaries_in_sql(column).to_pylist())
    bad = [value for value, rows in zip(values, expected, strict=True) if value is not None and rows is None]
    assert strict == (outcome(lambda: piece_transactions(bad[0])) if bad else expected)


def test_pieces_of_many_kinds_in_one_column():
    """The cases that the matching of markers tells apart, each next to the others."""
    whole = kraftlog.pack_transaction([NO_OP] * 9, "three batches", max_batch_records=4, base_offset=100).to_pybytes()
    first = int.from_bytes(whole[8:12], "big") + 12
    plain = kraftlog.encode(pa.table({"value": [NO_OP] * 5})).to_pybytes()
    many = [whole, whole[first:], plain, whole[:first], b"", None, whole[first:] + whole[:first], plain[:-1], whole]
    every = [many[at] for at in np.random.default_rng(3).integers(0, len(many), 300).tolist()]
    found = boundaries_in_sql(pa.array(every, pa.binary())).to_pylist()
    assert found == [listed(value) for value in every]
    assert {row["state"] for rows in found if rows for row in rows} == {"committed", "open"}


def piece(*batches: list[bytes], base_offset: int = 0, gap: int = 0) -> bytes:
    """Return batches of a metadata log, with missing offsets between them."""
    made, offset = [], base_offset
    for values in batches:
        rows = pa.table({"value": pa.array(values, pa.binary())})
        made.append(kraftlog.encode(rows, base_offset=offset).to_pybytes())
        offset += len(values) + gap
    return b"".join(made)


BEGIN, END = begin_transaction("one"), end_transaction()
STATES = {
    "a transaction with a gap": (piece([BEGIN, NO_OP], [NO_OP, END], gap=2), ["unknown"]),
    "a gap outside of transactions": (piece([BEGIN, END], [NO_OP, BEGIN, END], gap=1), ["committed", "committed"]),
    "a piece that begins inside": (piece([NO_OP, END, BEGIN], base_offset=9), ["committed", "open"]),
    "a log that begins with an End": (piece([NO_OP, END]), "EndTransactionRecord at offset 1, but no transaction"),
    "a Begin inside of another": (
        piece([BEGIN, BEGIN]),
        "BeginTransactionRecord at offset 1, but a transaction is open",
    ),
    "a long varint in a marker": (piece([ODD_BEGIN, END]), ["committed"]),
    "a name that is not UTF-8": (piece([RAW_BEGIN, END]), ["committed"]),
    "a name longer than its record": (piece([BAD_BEGIN, END]), "BeginTransactionRecord"),
    "a level between the markers": (piece([BEGIN, LEVEL, END]), ["committed"]),
    "an abort with a reason": (piece([BEGIN, abort_transaction("why")]), ["aborted"]),
}


@pytest.mark.parametrize("name", STATES)
def test_pieces_that_are_matched_otherwise(name):
    value, expected = STATES[name]
    whole = kraftlog.pack_transaction([NO_OP] * 3, "other").to_pybytes()
    column = pa.array([whole, value, whole, piece([NO_OP], base_offset=3), value, whole], pa.binary())
    found = boundaries_in_sql(column, pa.array(["null"])).to_pylist()
    assert found == [listed(each) for each in column.to_pylist()]
    assert [row["name"] for row in found[0]] == ["other"]
    if isinstance(expected, str):
        assert found[1] is found[4] is None
        with pytest.raises(RecordError, match=expected):
            boundaries_in_sql(column)
    else:
        assert [row["state"] for row in found[1]] == expected
        assert boundaries_in_sql(column).to_pylist() == found
    odd_names = {"a long varint in a marker": ["o"], "a name that is not UTF-8": ["\ufffd"]}
    if name in odd_names:
        assert [row["name"] for row in found[1]] == odd_names[name]


def test_columns_larger_than_a_chunk_of_the_decoder(monkeypatch):
    """A column that takes several chunks gives the same as one chunk."""
    from kraftlog.codec import decode as decoding

    value = kraftlog.pack_transaction([NO_OP] * 50, "a name").to_pybytes()
    tail = kraftlog.encode(pa.table({"value": [NO_OP, begin_transaction("open")]}), base_offset=52).to_pybytes()
    column = pa.array([value, value + tail, None, tail] * 40, pa.binary())
    expected = [boundaries_in_sql(column).to_pylist(), decode_in_sql(column).to_pylist()]
    monkeypatch.setattr(decoding, "BYTES_OF_A_TABLE", 3000)
    assert [boundaries_in_sql(column).to_pylist(), decode_in_sql(column).to_pylist()] == expected
    assert expected[0] == [listed(value) for value in column.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_takes_chunks_and_dictionaries(kind):
    one = kraftlog.encode(pa.table({"value": [b"a", b"b"]})).to_pybytes()
    column = pa.array([one, None, b"", one], pa.binary())
    column = column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
    rows = kraftlog.decode(one).to_table().to_pylist()
    assert decode_in_sql(column).to_pylist() == [rows, None, [], rows]
    chunks = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert decode_in_sql(chunks).to_pylist() == [rows, None, [], rows]
    assert decode_in_sql(pa.chunked_array([], kind)).to_pylist() == []
