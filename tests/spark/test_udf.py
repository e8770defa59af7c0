"""Record batches in a column: decoded to arrays of records, and encoded from them."""

from __future__ import annotations

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import decode_batches, encode_batch

SEGMENT = GOLDEN / "codecs" / "log" / "codec-lz4-0" / "00000000000000000000.log"
COLUMNS = ["key", "value", "offset", "timestamp", "timestamp_type", "headers"]


def test_decode(spark):
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.createDataFrame([(bytearray(SEGMENT.read_bytes()),), (None,), (bytearray(),)], "content binary")
    decoded = frame.select(decode_batches("content").alias("records"))
    assert [None if row.records is None else len(row.records) for row in decoded.collect()] == [341, None, 0]
    rows = decoded.select(F.inline("records")).toArrow().to_pylist()
    assert rows == kraftlog.open(SEGMENT).records(COLUMNS).to_table().to_pylist()


def test_encode(spark):
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.createDataFrame([(bytearray(SEGMENT.read_bytes()),), (None,)], "content binary")
    records = frame.select(decode_batches("content").alias("records"))
    encoded = records.select(encode_batch("records", compression="zstd", max_batch_bytes=4096).alias("content"))
    blobs = [row.content for row in encoded.collect()]
    assert blobs[1] is None
    table = kraftlog.decode(bytes(blobs[0]), columns=["key", "value", "timestamp", "headers"]).to_table()
    assert table.equals(
        kraftlog.open(SEGMENT).records(["key", "value", "timestamp", "headers"]).to_table().combine_chunks()
    )
    again = encoded.select(F.inline(decode_batches("content")))
    assert again.count() == 341


def test_damage_fails_with_its_message(spark):
    data = bytearray((GOLDEN / "damaged" / "bit_flip_payload" / "log" / "t-0" / SEGMENT.name).read_bytes())
    frame = spark.createDataFrame([(data,)], "content binary")
    with pytest.raises(Exception, match="batch at byte 254: stored crc"):
        frame.select(decode_batches("content")).collect()
