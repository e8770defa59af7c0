"""Rows that batch headers tell, against the same rows of decompressed batches."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN, damaged_cases, name_of, scenarios
from kraftlog._native.checksum import crc32c
from kraftlog.codec.compression import decompressor
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.filtered_batch import filtered_batch
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.schema import RECORDS

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OF_HEADERS = ("partition", "offset", "base_offset", "timestamp_type", "producer_id", "sequence", "control_type")
OF_RECORDS = ("timestamp", "timestamp_ms", "key", "headers")
BASE_TIMESTAMP, LOG_APPEND_TIME, CONTROL = 1_700_000_000_000, 8, 32
# the bytes of these compressed records are damaged, and their checksum was computed after that
UNNOTICED = {"bit_flip_gzip_crc_recomputed", "bit_flip_lz4_crc_recomputed", "says_gzip_but_is_not"}


def batch_of(offset: int, count: int, codec: str, step: int, stamped_by_broker: bool) -> bytes:
    """Return a batch; of ``step`` 2 and more a cleaner has left each second or third record."""
    stamps = [BASE_TIMESTAMP + (7 * i) % 5 for i in range(count)]
    keys = [b"key %d" % (i % 3) for i in range(count)]
    rows = pa.table({"key": keys, "value": [b"value"] * count, "timestamp_ms": pa.array(stamps, pa.int64())})
    data = bytes(kraftlog.encode(rows, base_offset=offset, compression=codec))
    if stamped_by_broker:
        data = resealed(data, attributes=data[22] | LOG_APPEND_TIME)
    return data if step == 1 else filtered_batch(data, np.arange(count) % step == 0, None, decompressor(1 << 20))


def resealed(data: bytes, attributes: int | None = None, records_count: int | None = None) -> bytes:
    """Return one batch with other fields and the checksum of them."""
    changed = bytearray(data)
    if attributes is not None:
        struct.pack_into(">h", changed, 21, attributes)
    if records_count is not None:
        struct.pack_into(">i", changed, 57, records_count)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def rows_of(
    data: bytes, columns: tuple[str, ...], **options: object
) -> tuple[int, list[dict[str, object]], list[Fault]]:
    """Return the number of rows, the rows and the faults."""
    faults: list[Fault] = []
    plan = DecodePlan(RECORDS.select(columns), ReadOptions(**options))  # type: ignore[arg-type]
    batches = list(RecordDecoder(data, 0, len(data), plan).batches(faults))
    return sum(one.num_rows for one in batches), [row for one in batches for row in one.to_pylist()], faults


BATCHES = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from(CODECS),
        st.sampled_from((1, 1, 1, 2, 3)),
        st.booleans(),
        st.one_of(st.none(), st.none(), st.integers(12, 90)),
    ),
    min_size=1,
    max_size=6,
)
BOUND = st.one_of(st.none(), st.integers(0, 130))


@settings(max_examples=300)
@given(
    batches=BATCHES,
    columns=st.lists(st.sampled_from((*OF_HEADERS, *OF_HEADERS, *OF_RECORDS)), unique=True, max_size=4),
    start=BOUND,
    end=BOUND,
    since=st.one_of(st.none(), st.integers(0, 5)),
    batch_rows=st.sampled_from((1, 7, 1 << 16)),
)
def test_rows_and_faults_are_those_of_decompressed_batches(
    batches: list[tuple[int, str, int, bool, int | None]],
    columns: list[str],
    start: int | None,
    end: int | None,
    since: int | None,
    batch_rows: int,
) -> None:
    data, offset = b"", 0
    for count, codec, step, stamped_by_broker, damaged_at in batches:
        batch = batch_of(offset, count, codec, step, stamped_by_broker)
        if damaged_at is not None:
            at = damaged_at % len(batch)
            batch = batch[:at] + bytes([batch[at] ^ 4]) + batch[at + 1 :]
        data, offset = data + batch, offset + count
    options: dict[str, object] = {"batch_rows": batch_rows}
    options |= {} if start is None else {"start_offset": start}
    options |= {} if end is None else {"end_offset": end}
    options |= {} if since is None else {"start_timestamp": BASE_TIMESTAMP + since}
    wanted = tuple(columns)
    assert rows_of(data, wanted, from_headers=True, **options) == rows_of(data, wanted, **options)


def decompresses(data: bytes, columns: tuple[str, ...]) -> bool:
    """Whether a reader of columns decompresses: its limit is too small for any batch."""
    faults = rows_of(data, columns, from_headers=True, max_decompressed_bytes=1)[2]
    assert {fault.error for fault in faults} <= {"decompression_limit"}
    return bool(faults)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_what_is_decompressed(codec: str) -> None:
    whole, compacted = batch_of(7, 30, codec, 1, False), batch_of(7, 30, codec, 2, False)
    of_broker = batch_of(7, 30, codec, 1, True)
    for columns in ((), *((name,) for name in OF_HEADERS), OF_HEADERS):
        assert not decompresses(whole, columns)
        assert decompresses(compacted, columns)
    for name in OF_RECORDS:
        assert decompresses(whole, (name,))
    assert not decompresses(of_broker, ("timestamp", "timestamp_ms", "offset"))
    assert rows_of(of_broker, ("timestamp_ms",), from_headers=True)[1] == [{"timestamp_ms": BASE_TIMESTAMP + 4}] * 30


def test_types_of_control_records_are_in_their_keys() -> None:
    rows = pa.table({"key": [b"\0\0\0\1"], "value": [b"\0\0\0\0\0\1"]})
    data = bytes(kraftlog.encode(rows, compression="gzip"))
    control = resealed(data, attributes=data[22] | CONTROL)
    found = rows_of(control, ("control_type",), from_headers=True, include_control=True)
    assert found == (1, [{"control_type": "COMMIT"}], [])


def test_a_header_that_claims_too_many_records_is_not_believed() -> None:
    data = batch_of(0, 40, "zstd", 1, False)
    claimed = bytearray(data)
    struct.pack_into(">i", claimed, 23, 2**31 - 2)  # the last offset
    claims = resealed(bytes(claimed), records_count=2**31 - 1)
    rows, _, (fault,) = rows_of(claims, ("offset",), from_headers=True)
    assert (rows, fault.error) == (40, "missing_records")


@pytest.mark.parametrize("folder", damaged_cases(), ids=name_of)
def test_damaged_files(folder: Path) -> None:
    for file in folder.glob("log/**/*.log"):
        data = file.read_bytes()
        for columns in ((), ("offset",), ("timestamp",)):
            told, decoded = rows_of(data, columns, from_headers=True), rows_of(data, columns)
            if folder.name in UNNOTICED and columns != ("timestamp",):
                assert told[0] > decoded[0]
                assert not told[2]
                assert decoded[2]
            else:
                assert told == decoded


@pytest.mark.parametrize("folder", scenarios(), ids=name_of)
def test_logs_of_kafka(folder: Path) -> None:
    log = kraftlog.open(folder / "log")
    for level in ("read_uncommitted", "read_committed"):
        for columns in ((), ("topic", "partition", "offset", "transaction_state"), ("timestamp",)):
            found = []
            for from_headers in (True, False):
                options = ReadOptions(isolation_level=level, from_headers=from_headers)
                stream = log.scan("records", columns, options)
                table = stream.to_table()
                found.append((table.num_rows, table, stream.faults))
            assert found[0] == found[1]


def test_no_scenario_is_unnoticed_by_mistake() -> None:
    assert {folder.name for folder in damaged_cases()} >= UNNOTICED
    assert GOLDEN / "codecs" in scenarios()
