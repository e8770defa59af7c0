"""The gate for Arrow's columns: every layout gives the bytes of plain binary columns, and bad ends give errors."""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from kraftlog._native.text_column import TextColumn
from kraftlog.codec import source

TEXTS = st.one_of(st.none(), st.text(max_size=20).map(str.encode))
PAIRS = st.lists(st.tuples(st.text(max_size=14), TEXTS), max_size=3)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = [
    pa.binary(),
    pa.string(),
    pa.large_binary(),
    pa.large_string(),
    pa.binary_view(),
    pa.string_view(),
    *(
        pa.dictionary(index, of)
        for index in (pa.int8(), pa.uint16(), pa.int64())
        for of in (pa.binary(), pa.large_string(), pa.string_view())
    ),
]


def in_layout(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return values in a layout, behind others that are skipped."""
    values = [b"skipped, and long enough for a view", None, *values]
    if pa.types.is_dictionary(kind):
        distinct = list(dict.fromkeys(values))
        made = pa.DictionaryArray.from_arrays(
            pa.array([distinct.index(value) for value in values], kind.index_type), in_layout(distinct, kind.value_type)
        )
        return made.slice(2)
    return pa.array(values, pa.binary()).cast(kind).slice(2)


def in_lists(
    rows: list[list[tuple[str, bytes | None]] | None], key: pa.DataType, value: pa.DataType, form: str
) -> pa.Array:
    """Return headers in a layout; a list that is null has headers beneath it, which do not count."""
    rows = [[("skipped", b"")], *rows]
    below = [[("beneath", b"a null")] if row is None else row for row in rows]
    keys = in_layout([pair[0].encode() for row in below for pair in row], key)
    values = in_layout([pair[1] for row in below for pair in row], value)
    ends = np.cumsum([0, *map(len, below)])
    mask = pa.array([row is None for row in rows])
    if form == "map":
        made = pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, values)
        return pa.chunked_array([made.slice(1)]).combine_chunks() if None not in rows else None
    names = ["value", "key"] if form == "swapped" else ["key", "value"]
    items = pa.StructArray.from_arrays([values, keys] if form == "swapped" else [keys, values], names)
    kind = pa.LargeListArray if form == "large" else pa.ListArray
    made = kind.from_arrays(pa.array(ends, pa.int64() if form == "large" else pa.int32()), items, mask=mask)
    return made.slice(1)


@settings(max_examples=150)
@given(
    rows=st.lists(st.tuples(TEXTS, TEXTS, st.one_of(st.none(), PAIRS)), min_size=1, max_size=30),
    kinds=st.tuples(*[st.sampled_from(KINDS)] * 4),
    form=st.sampled_from(["list", "large", "swapped", "map"]),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    compression=st.sampled_from(["none", "snappy"]),
)
def test_every_layout_gives_the_bytes_of_plain_columns(
    rows: list, kinds: list[pa.DataType], form: str, cuts: list[int], compression: str
):
    keys, values, headers = map(list, zip(*rows, strict=True))
    lists = in_lists(headers, kinds[2], kinds[3], form)
    plain = pa.table({
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array([[{"key": k, "value": v} for k, v in row or []] for row in headers], HEADERS),
    })  # fmt: skip
    if lists is None:
        lists = plain["headers"].combine_chunks()
    given_rows = pa.table({"key": in_layout(keys, kinds[0]), "value": in_layout(values, kinds[1]), "headers": lists})
    options = {"max_batch_bytes": 4096, "compression": compression}
    expected = kraftlog.encode(plain, **options)
    assert kraftlog.encode(given_rows, **options) == expected
    bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    chunks = [given_rows.slice(first, last - first) for first, last in itertools.pairwise(bounds)]
    assert kraftlog.encode(chunks, **options) == expected
    assert kraftlog.encode(pa.concat_tables(chunks), **options) == expected
    built, first = kraftlog.RecordBatchBuilder(batch_size=1 << 20, compression=compression), 0
    for chunk in chunks:
        first += built.write(chunk)
    assert first == len(rows)
    assert built.close() == kraftlog.encode(plain, max_batch_bytes=1 << 20, compression=compression)


@given(values=st.lists(st.one_of(st.none(), st.binary(min_size=5, max_size=5)), min_size=1, max_size=20))
def test_values_of_a_fixed_size(values: list[bytes | None]):
    expected = kraftlog.encode(pa.table({"value": pa.array(values, pa.binary())}))
    assert kraftlog.encode(pa.table({"value": pa.array([b"first", *values], pa.binary(5)).slice(1)})) == expected


def ends(kind: pa.DataType, numbers: list[int], data: bytes = b"0123456789") -> pa.Array:
    width = np.int64 if kind in (pa.large_binary(), pa.large_string()) else np.int32
    return pa.Array.from_buffers(
        kind, len(numbers) - 1, [None, pa.py_buffer(np.array(numbers, width)), pa.py_buffer(data)]
    )


def views(*each: bytes) -> pa.Array:
    return pa.Array.from_buffers(
        pa.binary_view(), len(each), [None, pa.py_buffer(b"".join(each)), pa.py_buffer(b"x" * 40)]
    )


def view(length: int, buffer: int, begin: int) -> bytes:
    return struct.pack("<i4sii", length, b"xxxx", buffer, begin)


GOOD = view(20, 0, 3)
BAD = {
    "falling ends": lambda: ends(pa.binary(), [0, 4, 2, 10]),
    "ends behind the data": lambda: ends(pa.binary(), [0, 2, 99, 10]),
    "negative ends": lambda: ends(pa.string(), [0, 2, -5, 10]),
    "falling large ends": lambda: ends(pa.large_binary(), [0, 4, 2, 10]),
    "large ends behind the data": lambda: ends(pa.large_string(), [0, 2, 2**40, 10]),
    "view of no buffer": lambda: views(GOOD, view(20, 1, 0), GOOD),
    "view of a negative buffer": lambda: views(GOOD, view(20, -1, 0), GOOD),
    "view behind its buffer": lambda: views(GOOD, view(20, 0, 21), GOOD),
    "view before its buffer": lambda: views(GOOD, view(20, 0, -1), GOOD),
    "view of a negative length": lambda: views(GOOD, view(-1, 0, 0), GOOD),
    "index behind the dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 2, 1]), ["a", "b"], safe=False),
    "negative index": lambda: pa.DictionaryArray.from_arrays(pa.array([0, -1, 1]), ["a", "b"], safe=False),
    "bad value of a dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0]), ends(pa.binary(), [0, 4, 2, 10]), safe=False
    ),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
@pytest.mark.parametrize("column", ["key", "value"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_bad_places_are_named(make: Callable[[], pa.Array], column: str, compression: str):
    good = pa.table({column: [b"good"]})
    bad = pa.table({column: make()})
    with pytest.raises(ValueError, match=f"^column {column}, row [12]: "):
        kraftlog.encode(bad, compression=compression)
    encoder = kraftlog.Encoder()
    encoder.write(good)
    with pytest.raises(ValueError, match=f"^column {column}, row [23]: "):
        encoder.write(bad)
    builder = kraftlog.RecordBatchBuilder()
    with pytest.raises(ValueError, match=f"^column {column}, row [12]: "):
        builder.write(bad)
    assert encoder.finish() == kraftlog.encode(good)
    assert builder.records_count == 0


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
@pytest.mark.parametrize("field", ["key", "value"])
def test_bad_places_of_headers_are_named(make: Callable[[], pa.Array], field: str):
    bad = make()
    fields = {"key": pa.array(["k"] * 3), "value": pa.array([b"v"] * 3), field: bad}
    items = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), items)
    with pytest.raises(ValueError, match=rf"^column headers\.{field}, row [12]: "):
        kraftlog.encode(pa.table({"headers": lists}))


@pytest.mark.parametrize("numbers", [[0, 2, 1, 3], [0, 1, 9, 3], [0, -1, 2, 3]])
def test_bad_ends_of_lists_are_named(numbers: list[int]):
    items = pa.array([{"key": "k", "value": b"v"}] * 3, HEADERS.value_type)
    lists = pa.Array.from_buffers(HEADERS, 3, [None, pa.py_buffer(np.array(numbers, np.int32))], children=[items])
    with pytest.raises(ValueError, match=r"^column headers, row [01]: "):
        kraftlog.encode(pa.table({"headers": lists}))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_each_index_of_a_dictionary(name: str):
    """Also those that would be negative in a signed type of the same width."""
    count = min(np.iinfo(name).max + 1, 1 << 16)
    values = [b"%d" % number for number in range(count)]
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(count)[::-1].astype(name)), pa.array(values))
    data = kraftlog.encode(pa.table({"value": column}))
    assert kraftlog.decode(data, columns=["value"]).to_table()["value"].to_pylist() == values[::-1]


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("kind", ["views", "dictionary", "headers"])
def test_rows_that_become_more_than_an_end_can_count(compression: str, kind: str):
    """Rows that share one value: what they become is 64 times what they take, far beyond what a piece may hold."""
    rows, value = 640, bytes(range(256)) * 256
    if kind == "views":
        each = struct.pack("<i4sii", len(value), value[:4], 0, 0)
        column = pa.Array.from_buffers(pa.binary_view(), rows, [None, pa.py_buffer(each * rows), pa.py_buffer(value)])
    else:
        column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int16()), pa.array([value]))
    if kind == "headers":
        items = pa.StructArray.from_arrays([pa.array(["k"] * rows), column], ["key", "value"])
        table = pa.table({"headers": pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), items)})
        expected = [[{"key": "k", "value": value}]] * rows
    else:
        table = pa.table({"value": column})
        expected = [value] * rows
    data = kraftlog.encode(table, compression=compression)
    name = table.column_names[0]
    stream = kraftlog.decode(data, columns=[name], strict=True)
    assert stream.to_table()[name].to_pylist() == expected


def test_a_builder_that_takes_the_rest_of_a_table():
    values = [b"%07d" % i + b"x" * 93 for i in range(3000)]
    for kind in (pa.binary_view(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())):
        table = pa.table({"value": in_layout(values, kind)})
        first, batches = 0, []
        while first < table.num_rows:
            builder = kraftlog.RecordBatchBuilder()
            first += builder.write(table.slice(first))
            batches.append(builder.close())
        found = kraftlog.decode(b"".join(batch.to_pybytes() for batch in batches), columns=["value"]).to_table()
        assert found["value"].to_pylist() == values


class Counted(Sequence[pa.Buffer]):
    """Buffers, and which of them were asked for."""

    def __init__(self, buffers: Sequence[pa.Buffer], asked: list[int]) -> None:
        self._buffers, self._asked = buffers, asked

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, at: int) -> pa.Buffer:  # type: ignore[override]
        self._asked.append(at)
        return self._buffers[at]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.binary_view())])
def test_a_slice_of_views_asks_for_the_buffers_that_its_rows_are_in(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch):
    """However many the whole column has: those of as many bytes as a batch has room for, each once."""
    asked: list[int] = []

    def counted(layout: int, *given: object) -> TextColumn:
        *before, data, width, indexes = given
        return TextColumn(layout, *before, Counted(data, asked), width, indexes)

    monkeypatch.setattr(source, "TextColumn", counted)
    values, rows_of_a_buffer = [b"%07d" % i + b"x" * 40 for i in range(600)], 2
    batch_size = 1000
    bounds = range(0, len(values), rows_of_a_buffer)
    views = [pa.array(values[first : first + rows_of_a_buffer], pa.binary_view()) for first in bounds]
    whole = pa.concat_arrays(views)
    if kind == pa.string_view():
        column = whole.cast(pa.string_view())
        buffers = len(column.buffers()) - 2
    else:
        buffers = len(whole.buffers()) - 2
        column = pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int32()), whole)
    assert buffers == len(values) // rows_of_a_buffer
    table, first, found = pa.table({"value": column}), 0, []
    while first < table.num_rows:
        del asked[:]
        builder = kraftlog.RecordBatchBuilder(batch_size=batch_size)
        taken = builder.write(table.slice(first))
        assert asked == list(range(first // rows_of_a_buffer, first // rows_of_a_buffer + len(asked)))
        assert len(asked) * rows_of_a_buffer <= batch_size // len(values[0]) + 2 * rows_of_a_buffer
        found += kraftlog.decode(builder.close(), columns=["value"]).to_table()["value"].to_pylist()
        first += taken
    assert found == values


def test_a_buffer_that_lends_nothing(monkeypatch: pytest.MonkeyPatch):
    """What it raises comes out, and the builder goes on."""

    class Broken(Counted):
        def __getitem__(self, at: int) -> pa.Buffer:  # type: ignore[override]
            raise MemoryError(f"buffer {at}")

    def broken(layout: int, *given: object) -> TextColumn:
        *before, data, width, indexes = given
        return TextColumn(layout, *before, Broken(data, []), width, indexes)

    builder = kraftlog.RecordBatchBuilder()
    views = pa.table({"value": pa.array([b"short", b"longer than a view has room for"], pa.binary_view())})
    with monkeypatch.context() as patched:
        patched.setattr(source, "TextColumn", broken)
        with pytest.raises(MemoryError, match="buffer 0"):
            builder.write(views)
    assert builder.write(views) == 2
    assert kraftlog.decode(builder.close(), columns=["value"]).to_table()["value"].to_pylist() == [
        b"short",
        b"longer than a view has room for",
    ]


def test_a_slice_of_a_table_makes_batches_of_the_chunks_that_are_taken():
    """A builder may take a few rows of thousands of chunks: no object is made for each of them."""
    chunks = 5000
    table = pa.concat_tables([pa.table({"value": [b"%07d" % i]}) for i in range(chunks)])
    next(source.sources(table.slice(3)))
    pieces = source.sources(table.slice(3))
    before = sys.getallocatedblocks()
    assert next(pieces).rows == 1
    assert sys.getallocatedblocks() - before < chunks // 10
    assert 1 + sum(piece.rows for piece in pieces) == chunks - 3
