"""``validate`` by hand; tests/interop/test_validate.py asks a broker."""

from __future__ import annotations

import gzip
import struct

import pyarrow as pa
import pytest
from reference import crc32c, encode_batch, encode_message
from strategies import records_of

import kraftlog

NOW = 1_700_000_000_000
RECORDS = records_of([(b"k", b"v", NOW, []), (None, b"w", NOW + 1, [])], 0)
SOUND = encode_batch(RECORDS)


def changed(at: int, layout: str, value: int, batch: bytes = SOUND) -> bytes:
    data = bytearray(batch)
    struct.pack_into(f">{layout}", data, at, value)
    if at > 20:
        struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


CASES = [
    (SOUND, "NONE", None),
    (changed(0, "q", 5), "INVALID_RECORD", "base_offset 5 is not 0"),
    (changed(17, "I", 7), "CORRUPT_MESSAGE", f"stored crc 7, computed crc {crc32c(SOUND[21:])}"),
    (changed(16, "b", 3), "CORRUPT_MESSAGE", "magic 3 is not 0, 1 or 2"),
    (changed(8, "i", 13), "CORRUPT_MESSAGE", "batch_length 13 is less than 14"),
    (changed(8, "i", 20), "CORRUPT_MESSAGE", "32 bytes, less than a header of 61 bytes"),
    (changed(22, "b", 5), "UNKNOWN_SERVER_ERROR", "compression type 5 is not between 0 and 4"),
    (changed(22, "b", 0x20), "INVALID_RECORD", "a control batch, which clients may not write"),
    (changed(23, "i", -1), "INVALID_RECORD", "last_offset_delta -1 is negative"),
    (changed(23, "i", 4), "INVALID_RECORD", "last_offset_delta 4 and records_count 2 do not match"),
    (changed(57, "i", 0), "INVALID_RECORD", "records_count 0 is not positive"),
    (changed(43, "q", 9), "INVALID_RECORD", "base_sequence -1 is negative, and producer_id 9 is not"),
    (changed(22, "b", 0x08, changed(35, "q", -1)), "INVALID_TIMESTAMP", "record 0: timestamp_type LogAppendTime"),
    (changed(27, "q", NOW + 10**8), "INVALID_TIMESTAMP", f"record 0: timestamp {NOW + 10**8} is not within"),
    (changed(61, "b", 2), "INVALID_RECORD", "record 0: "),
    (encode_message(RECORDS[0], 1), "INVALID_RECORD", "magic 1 is not 2"),
]


def of_gzip(records: bytes, trailer: bytes = bytes(8), compression: int = 1) -> bytes:
    """Return a batch of these bytes, compressed; its trailer has a checksum that does not match."""
    payload = gzip.compress(records, mtime=0)[:-8] + trailer if records else b""
    return changed(22, "b", compression, changed(8, "i", 49 + len(payload), SOUND[:61] + payload))


CASES_OF_PAYLOADS = [
    (of_gzip(SOUND[61:]), "UNKNOWN_SERVER_ERROR", "gzip: the stream is damaged or ends early"),
    (of_gzip(b"\x02" + SOUND[62:]), "INVALID_RECORD", "record 0: "),
    (of_gzip(b"\x02" + SOUND[62:], b""), "INVALID_RECORD", "record 0: "),
    (of_gzip(b""), "UNKNOWN_SERVER_ERROR", "nothing to decompress"),
    (of_gzip(b"", compression=2), "UNKNOWN_SERVER_ERROR", "nothing to decompress"),
    (of_gzip(b"", compression=4), "INVALID_RECORD", "nothing to decompress"),
]


@pytest.mark.parametrize(("data", "error", "message"), CASES + CASES_OF_PAYLOADS)
def test_verdicts(data: bytes, error: str, message: str | None):
    row = kraftlog.validate(data, now_ms=NOW).to_pylist()[0]
    assert (row["position"], row["error"]) == (0, error)
    if message is None:
        assert row["message"] is None
    else:
        assert row["message"].startswith(f"batch at byte 0: {message}")


def test_options_of_topics():
    (row,) = kraftlog.validate(SOUND, now_ms=NOW, compacted=True).to_pylist()
    assert (row["error_code"], row["error"], row["record_index"]) == (87, "INVALID_RECORD", 1)
    (row,) = kraftlog.validate(SOUND, now_ms=NOW, max_message_bytes=len(SOUND) - 1).to_pylist()
    assert (row["error_code"], row["error"]) == (10, "MESSAGE_TOO_LARGE")
    assert row["message"] == f"batch at byte 0: {len(SOUND)} bytes, more than max_message_bytes {len(SOUND) - 1}"
    (row,) = kraftlog.validate(SOUND, now_ms=NOW + 100, timestamp_before_max_ms=99).to_pylist()
    assert (row["error_code"], row["error"], row["record_index"]) == (32, "INVALID_TIMESTAMP", 0)
    (row,) = kraftlog.validate(SOUND, now_ms=NOW + 100, timestamp_before_max_ms=100).to_pylist()
    assert row["error"] == "NONE"
    (row,) = kraftlog.validate(SOUND, now_ms=0, timestamp_type="LogAppendTime").to_pylist()
    assert row["error"] == "NONE"
    with pytest.raises(ValueError, match="timestamp_type 'AppendTime' is not one of"):
        kraftlog.validate(SOUND, timestamp_type="AppendTime")


def test_many_batches():
    data = SOUND + changed(17, "I", 7) + SOUND + SOUND[:40]
    table = kraftlog.validate(data, now_ms=NOW, one_batch=False)
    assert table.column("error").to_pylist() == ["NONE", "CORRUPT_MESSAGE", "NONE"]
    assert table.column("position").to_pylist() == [0, len(SOUND), 2 * len(SOUND)]
    assert kraftlog.validate(data, now_ms=NOW).column("error").to_pylist() == ["NONE", *["INVALID_RECORD"] * 2]
    assert kraftlog.validate(b"").schema == table.schema


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_the_encoder_makes(compression: str):
    rows = pa.table({"value": [b"x" * 100] * 500, "timestamp_ms": [NOW] * 500})
    data = kraftlog.encode(rows, compression=compression, producer_id=4, producer_epoch=0, base_sequence=0)
    assert kraftlog.validate(data, now_ms=NOW).column("error").to_pylist() == ["NONE"]
