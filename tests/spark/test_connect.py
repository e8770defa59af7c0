"""The same rows over Spark Connect, whose client has no JVM: source, streams, sink and functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import (
    Counters,
    decode_batches,
    encode_batch,
    pack_transaction,
    pack_transactions,
    read_ranges,
    register,
    transaction_boundaries,
)
from spark_processes import connect_server
from spark_rows import command_line_rows, comparable, plain_rows, rows_of
from streaming_queries import run_to_its_end

LOG = GOLDEN / "transactions" / "log"
COLUMNS = ["partition", "key", "value", "headers", "timestamp"]
NO_OP = bytes.fromhex("01140000")


@pytest.fixture(scope="module")
def remote(no_warnings_of_spark: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a session of a server; this process is a client, also for ``pyspark.sql.functions``."""
    pytest.importorskip("grpc_status", reason="Spark Connect needs the extra connect of pyspark")
    from pyspark.sql.connect.session import SparkSession

    with connect_server(tmp_path_factory.mktemp("connect")) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(url).create()
        register(session)
        yield session
        session.stop()


@pytest.mark.parametrize("table", ["records", "partition_transactions", "errors"])
def test_rows(remote, table: str, tmp_path: Path):
    expected = comparable(command_line_rows(table, [LOG], tmp_path))
    options = {"table": table, "rangeBytes": "1k", "includeHeaders": "true"}
    assert comparable(rows_of(remote.read.format("kraftlog").options(**options).load(str(LOG)))) == expected
    assert comparable(rows_of(read_ranges(remote, str(LOG), **options))) == expected


def committed(path: Path) -> list[str]:
    log = kraftlog.open(path, topics=["orders"])
    return comparable(plain_rows(log.records(COLUMNS, isolation_level="read_committed").to_table()))


def test_writes(remote, tmp_path: Path):
    options = {"subscribe": "orders", "isolationLevel": "read_committed", "includeHeaders": "true"}
    source = remote.read.format("kraftlog").options(**options).load(str(LOG))
    source.write.format("kraftlog").mode("append").save(str(tmp_path / "copy"))
    assert committed(tmp_path / "copy") == committed(LOG)


def test_streams(remote, tmp_path: Path):
    options = {"subscribe": "orders", "isolationLevel": "read_committed", "includeHeaders": "true"}
    stream = remote.readStream.format("kraftlog").options(**options, startingOffsets="earliest").load(str(LOG))
    writer = stream.writeStream.format("kraftlog").option("checkpointLocation", str(tmp_path / "state"))
    run_to_its_end(lambda: writer.trigger(availableNow=True).start(str(tmp_path / "copy")))
    highest = (
        kraftlog.open(LOG, topics=["orders"]).records(COLUMNS, isolation_level="read_committed").to_table().num_rows
    )
    assert len(committed(tmp_path / "copy")) == highest
    assert committed(tmp_path / "copy") == committed(LOG)


def test_counters_are_refused(remote):
    with pytest.raises(ValueError, match="counters need classic Spark"):
        Counters(remote)


def test_functions(remote):
    from pyspark.sql import functions as F  # noqa: N812

    segment = next((LOG / "orders-0").glob("*.log"))
    frame = remote.createDataFrame([(bytearray(segment.read_bytes()),), (None,)], "content binary")
    names = ["offset", "key", "value"]
    decoded = frame.select(F.inline(decode_batches("content", names)))
    assert decoded.toArrow().to_pylist() == kraftlog.open(segment).records(names).to_table().to_pylist()
    encoded = frame.select(decode_batches("content", names[1:]).alias("r")).select(encode_batch("r").alias("content"))
    again = encoded.select(F.inline(decode_batches("content", names[1:])))
    assert again.toArrow().to_pylist() == decoded.select(names[1:]).toArrow().to_pylist()

    lists = remote.createDataFrame([([bytearray(NO_OP)] * 3, "a"), ([], "b")], "records array<binary>, name string")
    packed = lists.select(pack_transactions("records", F.col("name")).alias("content"))
    expected = [
        kraftlog.pack_transaction(pa.array([NO_OP] * count), name).to_pybytes() for count, name in [(3, "a"), (0, "b")]
    ]
    assert [bytes(row.content) for row in packed.collect()] == expected
    rows = packed.select(F.inline(transaction_boundaries("content"))).collect()
    assert [(row.name, row.records_count) for row in rows] == [("a", 3), ("b", 0)]
    groups = lists.select("name", F.explode("records").alias("value")).groupBy("name")
    assert [bytes(row[1]) for row in groups.agg(pack_transaction("value", F.col("name"))).collect()] == expected[:1]
    hashes = remote.sql("SELECT partition_for_key('customer-7', 12), group_partition('billing'), crc32c('123456789')")
    assert tuple(hashes.first()) == (7, 9, 3808858755)
