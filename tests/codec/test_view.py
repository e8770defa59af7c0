"""Keys and values as views into the buffer: equal to the plain layout, and alive as long as somebody looks."""

from __future__ import annotations

import gc

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from reference import Record, encode_batch

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.local_file import LocalFile

FILES = sorted((GOLDEN / "codecs" / "log").rglob("*.log")) + sorted((GOLDEN / "legacy" / "log").rglob("*.log"))
DATA = (GOLDEN / "codecs" / "log" / "codec-none-0" / "00000000000000000000.log").read_bytes()
PLAIN = kraftlog.decode(DATA).to_table()
LENGTHS = [None, 0, 1, 3, 4, 5, 8, 11, 12, 13, 16, 40, 70, 3000]


def viewed(data: object = DATA, **options: object) -> pa.Table:
    table = kraftlog.decode(data, layout="view", **options).to_table()
    table.validate(full=True)
    assert all(table.schema.field(name).type == pa.binary_view() for name in ("key", "value"))
    return table


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.parent.parent.name}-{path.parent.name}")
@pytest.mark.parametrize("rows", [1, 50, None])
def test_equal_to_plain(path, rows: int | None):
    data = path.read_bytes()
    expected = kraftlog.decode(data, include_control=True).to_table()
    found = viewed(data, include_control=True, batch_rows=rows)
    assert found.cast(expected.schema).equals(expected)


@pytest.mark.parametrize("attributes", [0, 4])
def test_lengths(attributes: int):
    """Around the twelve bytes that a view has in it, padded and at the very end of the buffer; and nulls."""
    values = [None if length is None else bytes(range(97, 122)) * 120 for length in LENGTHS]
    values = [value and value[:length] for value, length in zip(values, LENGTHS, strict=True)]
    records = [Record(at, 5, values[-at], value) for at, value in enumerate(values)]
    compress = {"compress": pa.Codec("zstd").compress} if attributes else {}
    data = encode_batch(records, attributes=attributes, **compress) + encode_batch(records[::-1])
    expected = [*((record.key, record.value) for record in records), *((r.key, r.value) for r in records[::-1])]
    table = viewed(bytes(data))
    assert list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)) == expected


def test_a_damaged_batch_between_sound_ones():
    """Rows that are taken back leave no bytes of theirs behind."""
    good = encode_batch([Record(0, 5, b"k" * 20, b"v" * 30)], attributes=4, compress=pa.Codec("zstd").compress)
    bad = bytearray(encode_batch([Record(0, 5, None, b"x" * 500)] * 3))
    bad[-1] ^= 1
    table = viewed(bytes(good + bad + good))
    assert table["value"].to_pylist() == [b"v" * 30] * 2
    assert [column.chunk(0).buffers()[3].size for column in (table["key"], table["value"])] == [2 * 20, 2 * 30]


def test_nothing_is_copied():
    buffer = pa.py_buffer(DATA)
    value = viewed(buffer)["value"].chunk(0)
    assert value.buffers()[2].address == buffer.address


def test_sliced():
    assert viewed().slice(17, 60).cast(PLAIN.schema).equals(PLAIN.slice(17, 60))


def test_records_before_the_start_offset():
    first = PLAIN["offset"][7].as_py()
    assert viewed(start_offset=first).cast(PLAIN.schema).equals(PLAIN.slice(7))


def test_the_buffer_is_held_by_the_views():
    buffer = bytearray(DATA)
    table = viewed(buffer)
    value = table["value"].slice(5, 3)
    del table
    gc.collect()
    with pytest.raises(BufferError):
        buffer.clear()
    assert value.to_pylist() == PLAIN["value"].slice(5, 3).to_pylist()
    del value
    gc.collect()
    buffer.clear()
    plain = kraftlog.decode(buffer := bytearray(DATA)).to_table()
    buffer.clear()
    assert plain.equals(PLAIN)


def test_of_a_file_bytes_are_copied(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    arrow_schema = kraftlog.decode(DATA, layout="view").schema
    plan = DecodePlan(arrow_schema, ReadOptions(batch_rows=50), layout="view")
    decoder = RecordDecoder(LocalFile(path), 0, NO_BOUND, plan)
    table = pa.Table.from_batches(decoder.batches([]), arrow_schema)
    path.write_bytes(bytes(len(DATA)))
    assert table.cast(PLAIN.schema).equals(PLAIN)


def test_polars_and_duckdb():
    found = viewed(columns=["key", "value", "offset"])
    expected = PLAIN.select(["key", "value", "offset"])
    frame, frame_expected = pl.from_arrow(found), pl.from_arrow(expected)
    assert frame.equals(frame_expected)
    is_odd = pl.col("offset") % 2 == 1
    assert frame.filter(is_odd).equals(frame_expected.filter(is_odd))
    query = 'SELECT sum(octet_length(value)), min(value), count(key) FROM {} WHERE "offset" % 2 = 1'
    assert duckdb.sql(query.format("found")).fetchall() == duckdb.sql(query.format("expected")).fetchall()


def test_other_layouts_are_refused():
    with pytest.raises(ValueError, match="layout 'rows' is not one of plain, view"):
        kraftlog.decode(DATA, layout="rows")
    assert schema.RECORDS.shown["value"] == pa.binary()
