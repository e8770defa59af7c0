"""Numbers that make no sense are refused before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kraftlog

ONE = pa.table({"value": [b"a"]})
DATA = kraftlog.encode(ONE)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("batch_rows", 1, 2**31 - 2),
        ("batch_bytes", 1, 2**29),
        ("max_decompressed_bytes", 1, 2**31 - 1),
    ],
)
def test_decode_options(name: str, least: int, most: int):
    for number in (-(2**64), -(2**40), -100, -1, least - 1, most + 1, 2**40, 2**62, 2**63 - 1, 2**64):
        with pytest.raises(ValueError, match=f"{name} {number} is not between {least} and {most}"):
            kraftlog.decode(DATA, **{name: number})
    assert kraftlog.decode(DATA, **{name: least}).to_table().num_rows == 1


@pytest.mark.parametrize("read", [kraftlog.decode, kraftlog.records])
@pytest.mark.parametrize(
    ("name", "least", "most"), [("max_decompressed_bytes", 1, 2**31 - 1), ("start_offset", -(2**63), 2**63 - 1)]
)
def test_options_of_both_readers(read: Callable[..., object], name: str, least: int, most: int):
    """They are refused by the call, whether a row is read or not."""
    for number in (least - 1, most + 1, 2**64, -(2**70)):
        with pytest.raises(ValueError, match=f"{name} {number} (is not between|does not fit)"):
            read(DATA, **{name: number})
    for value in ("5", 1.0, b"5"):
        with pytest.raises(TypeError, match=f"{name} .* is not an integer"):
            read(DATA, **{name: value})
    for number in (least, most, np.int64(1)):
        read(DATA, **{name: number})


def test_unknown_column():
    with pytest.raises(ValueError, match="table records has no column 'payload'; it has key, value,"):
        kraftlog.decode(DATA, columns=["offset", "payload"])


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("base_offset", 64),
        ("producer_id", 64),
        ("base_sequence", 32),
        ("partition_leader_epoch", 32),
        ("producer_epoch", 16),
    ],
)
def test_header_fields_are_not_cut_to_their_width(name: str, bits: int):
    for number in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
        with pytest.raises(ValueError, match=rf"^{name} {number} is not between"):
            kraftlog.encode(ONE, **{name: number})


def closed(**header: Any) -> pa.Buffer:
    builder = kraftlog.RecordBatchBuilder()
    builder.append(value=b"a")
    return builder.close(**header)


def encoded(**header: Any) -> pa.Buffer:
    return kraftlog.encode(ONE, **header)


def rewritten(**header: Any) -> int:
    return kraftlog.rewrite_batches(bytearray(DATA), **header)


@pytest.mark.parametrize(
    ("encode", "names"),
    [
        (closed, ["base_offset", "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"]),
        (encoded, ["base_offset", "producer_epoch", "timestamp_ms", "max_batch_bytes", "max_batch_records"]),
        (rewritten, ["base_offset", "partition_leader_epoch", "max_timestamp_ms"]),
    ],
)
def test_header_fields_are_integers(encode: Callable[..., Any], names: list[str]):
    for name in names:
        for value in (1.5, "1", b"1"):
            with pytest.raises(TypeError, match=f"^{name} {value!r} is not an integer$"):
                encode(**{name: value})
        producer = {"producer_epoch": 0, "base_sequence": 0} if name == "producer_id" else {}
        encode(**{name: np.int16(100)}, **producer)


@pytest.mark.parametrize("encode", [closed, encoded])
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"producer_id": 5, "base_sequence": 0}, "producer_id is 5, but producer_epoch is -1"),
        ({"producer_id": 5, "producer_epoch": 0}, "producer_id is 5, but base_sequence is -1"),
        (
            {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0},
            "a transactional batch needs a producer_id",
        ),
    ],
)
def test_a_producer_has_all_of_its_state(encode: Callable[..., Any], header: dict[str, int], expected: str):
    """As MemoryRecordsBuilder has it."""
    with pytest.raises(ValueError, match=f"^{expected}$"):
        encode(**header)


def test_control_batches_have_no_sequence():
    rows = pa.table({"key": [b"\0\0\0\1"], "value": [bytes(6)]})
    data = kraftlog.encode(rows, is_control=True, is_transactional=True, producer_id=5, producer_epoch=0)
    assert kraftlog.batches(data).to_table()["base_sequence"].to_pylist() == [-1]


def timestamp_of_append(timestamp_ms: Any) -> pa.Buffer:
    builder = kraftlog.RecordBatchBuilder()
    builder.append(value=b"a", timestamp_ms=timestamp_ms)
    return builder.close()


def timestamp_of_a_builder(timestamp_ms: Any) -> pa.Buffer:
    builder = kraftlog.RecordBatchBuilder(timestamp_ms=timestamp_ms)
    builder.append(value=b"a")
    return builder.close()


def timestamp_set_later(timestamp_ms: Any) -> pa.Buffer:
    encoder = kraftlog.Encoder()
    encoder.timestamp_ms = timestamp_ms
    encoder.write(ONE)
    return encoder.finish()


@pytest.mark.parametrize(
    "encode",
    [timestamp_of_append, timestamp_of_a_builder, timestamp_set_later, lambda stamp: encoded(timestamp_ms=stamp)],
)
def test_timestamps_that_are_given(encode: Callable[[Any], pa.Buffer]):
    for stamp in (-(2**63) - 1, -(2**63), -7, -2, 2**63, 2**70):
        with pytest.raises(ValueError, match=f"^timestamp_ms {stamp} is not between -1 and 9223372036854775807$"):
            encode(stamp)
    for value in (1.5, "7", b"7"):
        with pytest.raises(TypeError, match=f"^timestamp_ms {value!r} is not an integer$"):
            encode(value)
    for stamp in (-1, 0, 1, 2**63 - 1, np.int64(5)):
        read = kraftlog.decode(encode(stamp), columns=["timestamp_ms"], strict=True).to_table()
        assert read["timestamp_ms"].to_pylist() == [stamp]


def test_what_is_no_table_of_arrow():
    for rows in ([ONE], {"value": [b"a"]}, None, "value"):
        for write in (kraftlog.Encoder().write, kraftlog.RecordBatchBuilder().write):
            with pytest.raises(
                TypeError, match=f"^rows are a {type(rows).__name__}, not a pyarrow Table or RecordBatch"
            ):
                write(rows)


@pytest.mark.parametrize("ratio", [0, -1.0, float("inf"), float("nan"), 5e-324])
def test_ratios_of_compression(ratio: float):
    if ratio == 5e-324:  # a number, if a small one: the batch takes what 31 bits can count
        builder = kraftlog.RecordBatchBuilder(compression="zstd", compression_ratio=ratio)
        assert builder.append(value=bytes(1 << 20))
        return
    with pytest.raises(ValueError, match=r"compression_ratio .* is not a finite number more than 0"):
        kraftlog.RecordBatchBuilder(compression="zstd", compression_ratio=ratio)


def test_offsets_do_not_wrap():
    """The offset behind the last record must be one as well."""
    rows = pa.table({"value": [b"a", b"b"]})
    last = kraftlog.decode(kraftlog.encode(rows, base_offset=2**63 - 3), columns=["offset"]).to_table()
    assert last["offset"].to_pylist() == [2**63 - 3, 2**63 - 2]
    for base_offset in (2**63 - 2, 2**63 - 1):
        with pytest.raises(ValueError, match="base_offset"):
            kraftlog.encode(rows, base_offset=base_offset)


def test_offsets_do_not_wrap_from_batch_to_batch():
    rows = pa.table({"value": [b"a"] * 9})
    with pytest.raises(ValueError, match="base_offset"):
        kraftlog.encode(rows, base_offset=2**63 - 5, max_batch_records=2)
