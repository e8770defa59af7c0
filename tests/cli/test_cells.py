"""Cells as text, against Python's own json, csv and base64."""

from __future__ import annotations

import base64
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._native import cell_text as native
from kraftlog.cli.cells import csv_lines, json_cells, json_lines, pieces, plain_cells, size_cells
from kraftlog.schema import IS_JSON

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BYTES_AS = {
    "base64": lambda value: base64.b64encode(value).decode(),
    "hex": bytes.hex,
    "utf8": lambda value: value.decode("utf-8", "replace"),
    "text": lambda value: as_text(value),
}


def as_text(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("bytes", pa.binary()),
        ("text", pa.string()),
        ("number", pa.int64()),
        ("small", pa.int8()),
        ("flag", pa.bool_()),
        ("share", pa.float64()),
        ("time", pa.timestamp("us", "UTC")),
        ("texts", pa.list_(pa.string())),
        ("headers", HEADERS),
        pa.field("json", pa.string(), metadata=IS_JSON),
    ]
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
odd_texts = st.text(st.sampled_from('"\\\b\f\n\r\t\0\x1f\x7f,; abcü雪🚀'), max_size=40)
near_utf8 = st.text(st.sampled_from("aéࠀ퟿\ue000雪🚀\U0010ffff"), min_size=1, max_size=4).flatmap(
    lambda text: st.tuples(st.integers(0, len(text.encode()) - 1), st.integers(0, 255)).map(
        lambda change: text.encode()[: change[0]] + bytes([change[1]]) + text.encode()[change[0] + 1 :]
    )
)
marked = st.sampled_from([b"base64:", b"base64:YQ==", b"base64", b"xbase64:"])
any_bytes = st.binary(max_size=40) | near_utf8 | marked
header = st.builds(lambda key, value: {"key": key, "value": value}, texts, st.none() | any_bytes)
rows = st.fixed_dictionaries(
    {
        "bytes": st.none() | any_bytes,
        "text": st.none() | texts | odd_texts,
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "small": st.none() | st.integers(-128, 127),
        "flag": st.none() | st.booleans(),
        "share": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "time": st.none() | st.datetimes(timezones=st.just(UTC)),
        "texts": st.none() | st.lists(st.none() | texts | odd_texts, max_size=3),
        "headers": st.none() | st.lists(header, max_size=3),
        "json": st.none() | st.sampled_from(['{"a":[1,2]}', "[]", "17"]),
    }
)
tables = st.lists(rows, max_size=6)
forms = st.sampled_from(list(BYTES_AS))


def rfc3339(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat(
        timespec="microseconds" if moment.microsecond % 1000 else "milliseconds"
    )
    return text + "Z"


def plain(value: Any, form: str) -> Any:
    """Return what a JSON parser should find."""
    if isinstance(value, bytes):
        return BYTES_AS[form](value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, list):
        return [plain(item, form) for item in value]
    return {name: plain(inner, form) for name, inner in value.items()} if isinstance(value, dict) else value


@given(tables, forms, st.integers(0, 2))
def test_json_lines(made: list[dict[str, Any]], form: str, start: int):
    batch = pa.RecordBatch.from_pylist(made, SCHEMA).slice(min(start, len(made)))
    expected = []
    for row in made[start:]:
        known = {name: plain(row[name], form) for name in SCHEMA.names}
        known["json"] = None if row["json"] is None else json.loads(row["json"])
        expected.append(json.dumps(known, ensure_ascii=False, separators=(",", ":")) + "\n")
    assert bytes(json_lines(batch, form)).decode() == "".join(expected)


@given(tables, forms)
def test_csv_lines(made: list[dict[str, Any]], form: str):
    batch = pa.RecordBatch.from_pylist(made, SCHEMA)
    text = bytes(csv_lines(batch, form)).decode()
    read = list(csv.reader(io.StringIO(text, newline=""), lineterminator="\n"))
    assert len(read) == len(made)
    for cells, row in zip(read, made, strict=True):
        found = dict(zip(SCHEMA.names, cells, strict=True))
        for name in ("texts", "headers"):
            value = plain(row[name], form)
            assert (json.loads(found[name]) if found[name] else None) == value
        for name in ("bytes", "text", "time"):
            expected = plain(row[name], form)
            if name == "bytes" and form == "text" and row[name] is not None:
                is_plain = isinstance(expected, str) and not expected.startswith("base64:")
                expected = expected if is_plain else f"base64:{base64.b64encode(row[name]).decode()}"
            assert found[name] == (expected or "")
        for name in ("number", "small"):
            assert found[name] == ("" if row[name] is None else str(row[name]))
        assert found["flag"] == {None: "", True: "true", False: "false"}[row["flag"]]
        assert found["json"] == (row["json"] or "")


@pytest.mark.parametrize("form", BYTES_AS)
def test_null_and_empty_are_told_apart_in_csv(form: str):
    batch = pa.record_batch({"a": pa.array([None, b""], pa.binary()), "b": pa.array(["", None], pa.string())})
    assert bytes(csv_lines(batch, form)) == b',""\n"",\n'


@given(st.integers(-62167219200000000, 2**63 - 1))  # from the year 0 on: NumPy pads earlier ones in a way of its own
def test_timestamps(microseconds: int):
    ends, data = native.timestamp_texts(np.array([microseconds], np.int64))
    text = bytes(data[: ends[1]]).decode()
    stamp = np.datetime64(microseconds, "us")
    shown = np.datetime_as_string(stamp if microseconds % 1000 else stamp.astype("datetime64[ms]"))
    assert text == f"{shown}Z"


def test_known_timestamps():
    for moment in (EPOCH, EPOCH - timedelta(microseconds=1), datetime(2024, 2, 29, 23, 59, 59, 999000, tzinfo=UTC)):
        (text,) = plain_cells(pa.array([moment], pa.timestamp("us", "UTC")), "hex").to_pylist()
        assert text == rfc3339(moment)


@given(st.lists(st.integers(0, 300), max_size=5))
def test_each_control_character_and_length(lengths: list[int]):
    """Words of eight bytes are looked at together: a special byte at each place of one."""
    values = [("x" * (length % 23)) + chr(length % 128) + ("y" * (length // 13)) for length in lengths]
    batch = pa.record_batch({"t": pa.array(values, pa.string())})
    made = bytes(json_lines(batch, "utf8")).decode()
    assert made == "".join(
        json.dumps({"t": value}, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values
    )


def test_pieces_are_the_batch():
    batch = pa.record_batch({"value": pa.array([b"x" * (9 << 20)] * 9)})
    parts = pieces(batch)
    assert len(parts) > 1
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(batch)
    empty = batch.slice(0, 0)
    assert [part.num_rows for part in pieces(empty)] == [0]
    assert bytes(json_lines(empty, "hex")) == bytes(csv_lines(empty, "hex")) == b""


def for_people(value: bytes | None) -> str | None:
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        text = None
    is_text = text is not None and not any((ord(one) < 32 and one not in "\t\n\r") or one == "\x7f" for one in text)
    return text if is_text or value is None else f"{len(value)} bytes: 0x{value.hex()}"


@given(st.lists(st.none() | any_bytes | odd_texts.map(str.encode), max_size=12), st.integers(0, 3))
def test_bytes_for_people(values: list[bytes | None], start: int):
    column = pa.array(values, pa.binary()).slice(start)
    assert plain_cells(column, "text").to_pylist() == [for_people(value) for value in values[start:]]


def size_text(size: int) -> str:
    """Return what ``size_cells`` makes of one number."""
    if size < 1024:
        return f"{size} B"
    power, tenths = 1, round(Fraction(size * 10, 1024))
    while tenths >= 10240:
        power += 1
        tenths = round(Fraction(size * 10, 1024**power))
    return f"{tenths // 10}.{tenths % 10} {'KMGTPE'[power - 1]}iB"


def test_sizes_have_units():
    shown = {0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1_258_291: "1.2 MiB", 1 << 30: "1.0 GiB", 2**63 - 1: "8.0 EiB"}
    shown[1024**2 - 1] = "1.0 MiB"
    assert size_cells(pa.array([*shown, None])).to_pylist() == [*shown.values(), None]
    assert size_cells(pa.array([1536.4, None])).to_pylist() == ["1.5 KiB", None]


@given(st.lists(st.integers(0, 2**49) | st.integers(0, 2**22)))
def test_sizes_are_those_of_a_twin(sizes: list[int]):
    assert size_cells(pa.array(sizes, pa.int64())).to_pylist() == list(map(size_text, sizes))


def test_what_is_utf8_is_what_python_takes_for_it():
    """First and second bytes of all kinds, before up to two more of a character."""
    leads, seconds = range(0x7F, 0x100), (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    values = [bytes([lead, second]) + b"\x80" * more for lead in leads for second in seconds for more in range(3)]
    (column,) = pa.record_batch({"a": pa.array(values, pa.binary())}).columns
    shown = json_cells(column, pa.field("a", pa.binary()), "text").to_pylist()
    assert [json.loads(text) for text in shown] == [as_text(value) for value in values]
