"""What a file says of itself does not decide how much memory is asked for."""

from __future__ import annotations

import cramjam
import pytest
from reference import Record, encode_batch

from kraftlog._native import decoder as native

PLAIN = 64 << 20


@pytest.mark.parametrize("records", [1, 2**31 - 1])
def test_a_large_batch_takes_a_few_times_its_size(records: int):
    """Room for the value, for keys and for headers that may grow; not for a header of a batch per record."""
    batch = bytearray(encode_batch([Record(0, 0, None, b"")], attributes=4, compress=cramjam.zstd.compress))
    batch[57:61] = records.to_bytes(4, "big")
    record = encode_batch([Record(0, 0, None, bytes(PLAIN))])[61:]
    decoder = native.Decoder(
        bytes(batch),
        0,
        len(batch),
        sum(native.WANT.values()),
        check_crc=False,
        include_control=False,
        start_offset=0,
        end_offset=10,
        start_timestamp=0,
        chunk_rows=100,
        chunk_bytes=1000,
    )
    assert decoder.run() == native.NEEDS_DECOMPRESSION
    assert decoder.decompressed(record + bytes(native.DECOMPRESSION_PADDING), len(record))
    chunk = decoder.take_chunk()
    assert chunk.rows == 1
    arena = memoryview(chunk.batches.obj)
    assert arena.nbytes // PLAIN <= (11 if records == 1 else 20)
