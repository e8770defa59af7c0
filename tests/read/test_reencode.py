"""What Kafka's own builder wrote is written again, byte for byte."""

from __future__ import annotations

import numpy as np

import kraftlog
from golden_files import log_files, scenarios
from kraftlog._native.scanner import HEADER_DTYPE, LOG_OVERHEAD
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.codec.header_scan import HeaderScan

COLUMNS = ["offset", "key", "value", "timestamp_ms", "headers"]
BY_A_BUILDER = 0x10 | 0x20  # attributes that encode() sets: transactional, control


def encoded_again(batch: bytes, header: np.void) -> bytes | None:
    """Return the batch as ``encode`` makes it from its records; None where the log cleaner has changed it."""
    attributes = int(header["attributes"])
    rows = kraftlog.decode(batch, columns=COLUMNS, include_control=True, strict=True).to_table()
    offsets = rows["offset"].to_pylist()
    whole = offsets == list(range(int(header["base_offset"]), int(header["base_offset"]) + len(offsets)))
    if not whole or header["last_offset_delta"] != len(offsets) - 1 or not offsets:
        return None
    return kraftlog.encode(
        rows.drop_columns("offset"),
        compression=COMPRESSION_TYPES[attributes & 7],
        max_batch_bytes=2**31 - 1,
        base_offset=int(header["base_offset"]),
        partition_leader_epoch=int(header["partition_leader_epoch"]),
        producer_id=int(header["producer_id"]),
        producer_epoch=int(header["producer_epoch"]),
        base_sequence=int(header["base_sequence"]),
        is_transactional=bool(attributes & 0x10),
        is_control=bool(attributes & 0x20),
    ).to_pybytes()


def test_batches_without_compression():
    equal = 0
    for scenario in scenarios():
        if scenario.name == "schema_all":
            continue
        for path in log_files(scenario):
            data = path.read_bytes()
            for headers in HeaderScan(data).headers():
                assert headers.dtype == HEADER_DTYPE
                for header in headers:
                    if header["magic"] != 2 or int(header["attributes"]) & ~BY_A_BUILDER:
                        continue
                    begin = int(header["position"])
                    batch = data[begin : begin + int(header["batch_length"]) + LOG_OVERHEAD]
                    again = encoded_again(batch, header)
                    if again is not None:
                        assert again == batch, (path, begin)
                        equal += 1
    assert equal > 1200


def test_rows_of_compressed_batches_survive():
    for scenario in scenarios():
        if scenario.name == "codecs":
            for path in log_files(scenario):
                rows = kraftlog.open(path).records(COLUMNS).to_table()
                for compression in COMPRESSION_TYPES:
                    data = kraftlog.encode(
                        rows.drop_columns("offset"),
                        compression=compression,
                        max_batch_bytes=8192,
                        base_offset=rows["offset"][0].as_py(),
                    )
                    assert kraftlog.decode(data, columns=COLUMNS, strict=True).to_table().equals(rows)
