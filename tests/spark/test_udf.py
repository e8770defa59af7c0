"""Functions for columns, from Python and from SQL, against the library and the files of a real Kafka."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.spark import (
    crc32c,
    decode_batches,
    decode_message,
    encode_batch,
    group_partition,
    pack_transaction,
    pack_transactions,
    partition_for_key,
    transaction_boundaries,
)
from kraftlog.spark.udf_batches import encode_in_sql

SEGMENT = GOLDEN / "codecs" / "log" / "codec-lz4-0" / "00000000000000000000.log"
DAMAGED = GOLDEN / "damaged" / "bit_flip_payload" / "log" / "t-0" / SEGMENT.name
METADATA = GOLDEN / "metadata" / "log"
OFFSETS = GOLDEN / "groups" / "log"
COLUMNS = ["key", "value", "offset", "timestamp", "timestamp_type", "headers"]
NO_OP = bytes.fromhex("01140000")


@pytest.fixture(scope="module")
def segments(spark):
    """Return a segment, null, and no bytes."""
    rows = [(0, bytearray(SEGMENT.read_bytes())), (1, None), (2, bytearray())]
    frame = spark.createDataFrame(rows, "number int, content binary").orderBy("number")
    frame.createOrReplaceTempView("segments")
    return frame


def metadata_pieces() -> dict[str, bytes]:
    """Return the logs with metadata transactions that have markers where they may be."""
    folders = sorted((GOLDEN / "metadata_txn").iterdir())
    files = {folder.name: sorted(folder.glob("log/**/*.log")) for folder in folders}
    return {name: paths[0].read_bytes() for name, paths in files.items() if len(paths) == 1 and "illegal" not in name}


def test_decode(spark, segments):
    from pyspark.sql import functions as F  # noqa: N812

    decoded = segments.select(decode_batches("content").alias("records"))
    assert [None if row.records is None else len(row.records) for row in decoded.collect()] == [341, None, 0]
    rows = decoded.select(F.inline("records")).toArrow().to_pylist()
    assert rows == kraftlog.open(SEGMENT).records(COLUMNS).to_table().to_pylist()
    assert spark.sql("SELECT inline(decode_batches(content)) FROM segments").toArrow().to_pylist() == rows


def test_decode_only_some_columns(segments):
    from pyspark.sql import functions as F  # noqa: N812

    names = ["producer_id", "offset", "value"]
    rows = segments.select(F.inline(decode_batches(F.col("content"), names))).toArrow()
    assert rows.column_names == names
    assert rows.to_pylist() == kraftlog.open(SEGMENT).records(names).to_table().to_pylist()
    with pytest.raises(ValueError, match="no column 'ofset'"):
        decode_batches("content", ["ofset"])
    with pytest.raises(ValueError, match="columns is empty"):
        decode_batches("content", [])


def test_decode_control_records(spark):
    from pyspark.sql import functions as F  # noqa: N812

    log = kraftlog.open(GOLDEN / "transactions" / "log")
    names = ["offset", "control_type"]
    paths = sorted((GOLDEN / "transactions" / "log").glob("**/*.log"))
    frame = spark.createDataFrame([(bytearray(path.read_bytes()),) for path in paths], "content binary")
    shown = frame.select(F.inline(decode_batches("content", names, include_control=True))).toArrow().to_pylist()
    expected = log.records(names, include_control=True).to_table().to_pylist()
    assert any(row["control_type"] for row in expected)
    assert sorted(shown, key=str) == sorted(expected, key=str)


def test_encode(spark, segments):
    from pyspark.sql import functions as F  # noqa: N812

    records = segments.select("number", decode_batches("content").alias("records"))
    records.createOrReplaceTempView("record_lists")
    encoded = records.select(encode_batch("records", compression="zstd", max_batch_bytes=4096).alias("content"))
    blobs = [row.content for row in encoded.collect()]
    assert blobs[1:] == [None, b""]
    names = ["key", "value", "timestamp", "headers"]
    table = kraftlog.decode(bytes(blobs[0]), columns=names).to_table()
    assert table.equals(kraftlog.open(SEGMENT).records(names).to_table().combine_chunks())
    assert encoded.select(F.inline(decode_batches("content"))).count() == 341
    sql = "SELECT encode_batch(records, compression => 'zstd', max_batch_bytes => 4096) FROM record_lists"
    assert [row[0] for row in spark.sql(sql).collect()] == blobs
    composed = "SELECT inline(decode_batches(encode_batch(records, 'zstd', 4096), 'null')) FROM record_lists"
    assert spark.sql(composed).count() == 341
    with pytest.raises(ValueError, match="compression 'brotli' is not one of"):
        encode_batch("records", compression="brotli")


def test_damage(spark):
    frame = spark.createDataFrame([(bytearray(DAMAGED.read_bytes()),)], "content binary")
    with pytest.raises(Exception, match="batch at byte 254: stored crc"):
        frame.select(decode_batches("content")).collect()
    with pytest.raises(Exception, match="batch at byte 254: stored crc"):
        frame.select(transaction_boundaries("content")).collect()
    assert frame.select(decode_batches("content", on_error="null")).first()[0] is None
    assert frame.select(transaction_boundaries("content", on_error="null")).first()[0] is None
    frame.createOrReplaceTempView("damaged")
    assert spark.sql("SELECT decode_batches(content, on_error => 'null') FROM damaged").first()[0] is None
    for function in (decode_batches, transaction_boundaries):
        with pytest.raises(ValueError, match="option on_error is 'skip', not fail or null"):
            function("content", on_error="skip")


def test_transaction_boundaries(spark):
    pieces = metadata_pieces()
    rows = [(name, bytearray(data)) for name, data in pieces.items()]
    frame = spark.createDataFrame([*rows, ("null", None)], "name string, content binary")
    frame.createOrReplaceTempView("pieces")
    found = frame.select("name", transaction_boundaries("content").alias("found")).collect()
    by_name = {row.name: row.found for row in found}
    assert by_name.pop("null") is None
    states = set()
    for name in pieces:
        table = kraftlog.open(GOLDEN / "metadata_txn" / name / "log").metadata_transactions(strict=False, faults=[])
        assert [row.asDict() for row in by_name[name]] == table.to_pylist(), name
        states |= set(table["state"].to_pylist())
    assert states == {"committed", "aborted", "open"}
    from_sql = spark.sql("SELECT name, transaction_boundaries(content) AS found FROM pieces").collect()
    assert from_sql == found


def test_a_piece_may_begin_inside_of_a_transaction(spark):
    data = kraftlog.pack_transaction([NO_OP] * 9, "three batches", max_batch_records=4, base_offset=100)
    (begins, ends) = data.to_pybytes()[:0], data.to_pybytes()
    first = int.from_bytes(ends[8:12], "big") + 12
    begins, ends = ends[:first], ends[first:]
    frame = spark.createDataFrame([(bytearray(begins),), (bytearray(ends),)], "content binary")
    (began,), (ended,) = (row.found for row in frame.select(transaction_boundaries("content").alias("found")).collect())
    assert (began.name, began.state, began.begin_offset, began.end_offset) == ("three batches", "open", 100, None)
    assert (ended.name, ended.state, ended.begin_offset, ended.end_offset) == (None, "committed", None, 110)


def test_misplaced_marker(spark):
    (path,) = (GOLDEN / "metadata_txn" / "nested_begin_illegal" / "log").glob("**/*.log")
    frame = spark.createDataFrame([(bytearray(path.read_bytes()),)], "content binary")
    with pytest.raises(Exception, match=r"batch at byte .*BeginTransactionRecord .* but a transaction is open since"):
        frame.select(transaction_boundaries("content")).collect()


@pytest.fixture(scope="module")
def changes(spark):
    """Return records of a metadata log, in transactions; one with nothing but null."""
    every = kraftlog.open(METADATA).records(["value"], isolation_level="read_committed").to_table()["value"]
    values = every.to_pylist()[-60:]  # without the markers of transactions
    rows = [(f"t{at % 3}", 1000 - at, bytearray(value)) for at, value in enumerate(values)]
    frame = spark.createDataFrame([*rows, ("empty", 1, None)], "transaction string, sequence long, value binary")
    frame.repartition(4).createOrReplaceTempView("changes")
    return frame


def test_pack_transaction(spark, changes):
    from pyspark.sql import functions as F  # noqa: N812

    values = [bytes(row.value) for row in changes.where("value IS NOT NULL").orderBy("sequence").collect()]
    names = [row.transaction for row in changes.where("value IS NOT NULL").orderBy("sequence").collect()]
    expected: dict[str, bytes | None] = {"empty": None}
    for name in sorted(set(names)):
        of_group = [value for value, other in zip(values, names, strict=True) if other == name]
        expected[name] = kraftlog.pack_transaction(of_group, name, max_batch_bytes=400).to_pybytes()
    packed = pack_transaction("value", F.col("transaction"), order_by="sequence", max_batch_bytes=400)
    frame = spark.table("changes").groupBy("transaction").agg(packed.alias("content"))
    assert {row.transaction: row.content and bytes(row.content) for row in frame.collect()} == expected
    sql = """SELECT transaction, pack_transaction(
        value, name => transaction, order_by => sequence, max_batch_bytes => 400) FROM changes GROUP BY transaction"""
    assert {row[0]: row[1] and bytes(row[1]) for row in spark.sql(sql).collect()} == expected
    both = spark.table("changes").groupBy("transaction").agg(transaction_boundaries(packed).alias("found"))
    found = both.select(F.inline("found")).toArrow().to_pylist()
    assert {row["name"]: row["records_count"] for row in found} == {f"t{at}": 20 for at in range(3)}
    assert max(row["batches"] for row in found) > 1


def test_pack_transaction_of_all_rows(spark):
    frame = spark.createDataFrame([(bytearray(NO_OP),)] * 3, "value binary")
    packed = frame.agg(pack_transaction("value", "at once", base_offset=7)).first()[0]
    assert bytes(packed) == kraftlog.pack_transaction([NO_OP] * 3, "at once", base_offset=7).to_pybytes()
    nameless = frame.agg(pack_transaction("value")).first()[0]
    assert bytes(nameless) == kraftlog.pack_transaction([NO_OP] * 3).to_pybytes()


def test_pack_transactions_of_arrays(spark):
    from pyspark.sql import functions as F  # noqa: N812

    rows = [([bytearray(NO_OP)] * 3, "three"), ([], "none"), (None, "null"), ([bytearray(NO_OP)], None)]
    frame = spark.createDataFrame(rows, "records array<binary>, name string")
    frame.createOrReplaceTempView("record_arrays")
    options = {"max_batch_bytes": 100, "base_offset": 7}
    expected = [
        None if records is None else kraftlog.pack_transaction([NO_OP] * len(records), name, **options).to_pybytes()
        for records, name in rows
    ]
    packed = frame.select(pack_transactions("records", F.col("name"), **options).alias("content"))
    assert [row.content and bytes(row.content) for row in packed.collect()] == expected
    sql = "SELECT pack_transactions(records, name, max_batch_bytes => 100, base_offset => 7) FROM record_arrays"
    assert [row[0] and bytes(row[0]) for row in spark.sql(sql).collect()] == expected
    at_once = frame.where("name = 'three'").select(pack_transactions("records", "at once")).first()[0]
    assert bytes(at_once) == kraftlog.pack_transaction([NO_OP] * 3, "at once").to_pybytes()
    nameless = frame.where("name = 'three'").select(pack_transactions("records")).first()[0]
    assert bytes(nameless) == kraftlog.pack_transaction([NO_OP] * 3).to_pybytes()
    with pytest.raises(ValueError, match="max_batch_bytes 10 is not between"):
        pack_transactions("records", max_batch_bytes=10)


def test_what_pack_transaction_refuses(spark):
    from pyspark.sql import functions as F  # noqa: N812

    rows = [(1, bytearray(NO_OP), "a"), (2, None, "b"), (None, bytearray(NO_OP), "b")]
    frame = spark.createDataFrame(rows, "sequence int, value binary, name string")
    whole = frame.where("sequence IS NOT NULL")
    with pytest.raises(Exception, match="record 1 is null; a metadata record has a value"):
        whole.agg(pack_transaction("value", order_by="sequence")).collect()
    with pytest.raises(Exception, match="order_by is null for 1 of 3 records"):
        frame.agg(pack_transaction("value", order_by="sequence")).collect()
    with pytest.raises(Exception, match=r"option name has several values, '.' and '.'; it takes one"):
        frame.where("value IS NOT NULL").agg(pack_transaction("value", F.col("name"))).collect()
    with pytest.raises(Exception, match="max_batch_bytes is 70"):
        frame.where("sequence = 1").agg(pack_transaction("value", "a long name", max_batch_bytes=70)).collect()
    with pytest.raises(ValueError, match="max_batch_bytes 10 is not between"):
        pack_transaction("value", max_batch_bytes=10)


def test_decode_metadata_records(spark):
    records = kraftlog.open(METADATA).records(["value"]).to_table().combine_chunks()
    frame = spark.createDataFrame(pa.table({"number": range(len(records)), "value": records["value"]}))
    frame = frame.unionByName(spark.createDataFrame([(1 << 20, None)], "number long, value binary")).orderBy("number")
    structs = frame.select(decode_message("PartitionRecord", None, "value").alias("record")).toArrow()["record"]
    found = structs.combine_chunks()
    assert found[-1].as_py() is None
    expected = kraftlog.decode_messages("PartitionRecord", records["value"].chunk(0))
    names = expected.schema.names
    assert [{name: row[name] for name in names} for row in found[:-1].to_pylist()] == expected.to_pylist()
    assert {row["value_version"] for row in found[:-1].to_pylist() if row["error"] is None} == {2}


@pytest.fixture(scope="module")
def offsets(spark):
    """Return records of __consumer_offsets, a damaged one and one of nulls at the end."""
    table = kraftlog.open(OFFSETS).records(["key", "value", "topic"]).to_table()
    rows = [row for row in table.to_pylist() if row["topic"] == "__consumer_offsets"]
    pairs = [(row["key"] and bytearray(row["key"]), row["value"] and bytearray(row["value"])) for row in rows]
    pairs += [(bytearray(b"\0\1\0\7gr"), None), (None, None)]
    numbered = [(number, *pair) for number, pair in enumerate(pairs)]
    frame = spark.createDataFrame(numbered, "number int, key binary, value binary").orderBy("number")
    frame.createOrReplaceTempView("offsets")
    return frame


def test_decode_records_of_coordinators(offsets):
    from pyspark.sql import functions as F  # noqa: N812

    arrow = offsets.toArrow().combine_chunks()
    keys, values = (arrow[name].chunk(0).cast(pa.binary()) for name in ("key", "value"))
    expected = kraftlog.decode_messages("OffsetCommit", values, keys=keys)
    decoded = offsets.select(decode_message("OffsetCommit", F.col("key"), F.col("value")).alias("record"))
    found = decoded.toArrow()["record"].to_pylist()
    assert found[-1] is None
    assert [{name: row[name] for name in expected.schema.names} for row in found[:-1]] == expected.to_pylist()[:-1]
    assert "length 7 exceeds 2 bytes left" in found[-2]["error"]
    read = [row for row in found[:-1] if row["error"] is None]
    assert {row["key_version"] for row in read} == {1}
    assert {row["group"] for row in read} >= {"grp-classic", "grp-modern"}


def test_decode_message_as_json(spark, offsets):
    rows = spark.sql("SELECT decode_message('OffsetCommit', key, value) AS text FROM offsets ORDER BY number").collect()
    table = kraftlog.open(OFFSETS, topics=["__consumer_offsets"]).messages().to_table().to_pylist()
    names = ("type", "key_version", "value_version", "key", "value", "is_tombstone", "error")
    expected = [{name: row[name] for name in names} for row in table]
    for row in expected:
        row["key"], row["value"] = (row[name] and json.loads(row[name]) for name in ("key", "value"))
    assert rows[-1].text is None
    assert [json.loads(row.text) for row in rows[:-2]] == expected
    damaged = json.loads(rows[-2].text)
    assert (damaged["type"], damaged["key"], damaged["value"]) == ("OffsetCommit", None, None)
    assert "length 7 exceeds 2 bytes left" in damaged["error"]
    sql = "SELECT get_json_object(decode_message('TopicRecord', NULL, unhex('{}')), '$.value.name')"
    topic = "010200076f7264657273c719ae0c705f496a949233625e5f1d1500"
    assert spark.sql(sql.format(topic)).first()[0] == "orders"
    assert spark.sql("SELECT decode_message(NULL, key, value) FROM offsets LIMIT 1").first()[0] is None


def test_types_that_are_not_there(spark):
    with pytest.raises(ValueError, match="no message 'Partition' is known"):
        decode_message("Partition", None, "value")
    with pytest.raises(ValueError, match="have keys"):
        decode_message("OffsetCommit", None, "value")
    with pytest.raises(Exception, match="no message 'Partition' is known"):
        spark.sql("SELECT decode_message('Partition', NULL, unhex('01'))").collect()


def test_crc32c(spark, segments):
    expected = [kraftlog.crc32c(SEGMENT.read_bytes()), None, 0]
    assert [row[0] for row in segments.select(crc32c("content")).collect()] == expected
    assert [row[0] for row in spark.sql("SELECT crc32c(content) FROM segments ORDER BY number").collect()] == expected
    assert spark.sql("SELECT crc32c('123456789')").first()[0] == 0xE3069283


def test_partition_for_key(spark):
    from pyspark.sql import functions as F  # noqa: N812

    keys = ["21", "foobar", None, "", "ключ", "a-little-bit-longer-string"]
    frame = spark.createDataFrame([(key, 3 + at) for at, key in enumerate(keys)], "key string, partitions int")
    frame.createOrReplaceTempView("keys")
    expected = kraftlog.partition_for_key(pa.array(keys), 12).to_pylist()
    by_row = kraftlog.partition_for_key(pa.array(keys), pa.array(range(3, 9))).to_pylist()
    found = frame.select(
        partition_for_key("key", 12), partition_for_key(F.col("key").cast("binary"), F.col("partitions"))
    )
    assert [tuple(row) for row in found.collect()] == list(zip(expected, by_row, strict=True))
    assert found.dtypes[0][1] == "int"
    sql = "SELECT partition_for_key(key, 12), partition_for_key(key, partitions) FROM keys"
    assert [tuple(row) for row in spark.sql(sql).collect()] == list(zip(expected, by_row, strict=True))
    with pytest.raises(ValueError, match="at least one partition, found 0"):
        partition_for_key("key", 0)
    with pytest.raises(Exception, match="at least one partition, not -1"):
        spark.sql("SELECT partition_for_key(key, -1) FROM keys").collect()


def test_group_partition(spark):
    rows = lines(GOLDEN / "groups" / "expected" / "consumer_offsets.jsonl")
    placed = {}
    for row in rows:
        data = row.get("key", {}).get("data", {})
        placed |= {data[name]: int(row["file"].split("/")[0][-1]) for name in ("group", "groupId") if name in data}
    assert len(placed) > 3
    frame = spark.createDataFrame([*placed.items(), (None, None)], "name string, partition int")
    frame.createOrReplaceTempView("placed")
    assert frame.where(~group_partition("name", 2).eqNullSafe(frame.partition)).count() == 0
    fifty = kraftlog.group_partition(pa.array([*placed, None])).to_pylist()
    assert [row[0] for row in frame.select(group_partition("name")).collect()] == fifty
    assert [row[0] for row in spark.sql("SELECT group_partition(name) FROM placed").collect()] == fifty
    assert spark.sql("SELECT * FROM placed WHERE group_partition(name, 2) <> partition").count() == 0


def test_no_rows(spark, segments, changes, offsets):
    none = segments.where("number > 2")
    assert none.select(decode_batches("content"), transaction_boundaries("content"), crc32c("content")).count() == 0
    assert none.select(decode_batches("content").alias("r")).select(encode_batch("r")).collect() == []
    assert changes.where("sequence < 0").groupBy("transaction").agg(pack_transaction("value")).collect() == []
    assert offsets.where("number < 0").select(decode_message("OffsetCommit", "key", "value")).collect() == []


def test_large_types(spark, segments, changes, offsets):
    """Spark may hand over large_binary and large_string."""
    frames = {
        "decode": segments.select(decode_batches("content")),
        "encode": segments.select(decode_batches("content").alias("r")).select(encode_batch("r")),
        "pack": changes.groupBy("transaction")
        .agg(pack_transaction("value", order_by="sequence"))
        .orderBy("transaction"),
        "boundaries": segments.where("number > 0").select(transaction_boundaries("content")),
        "message": offsets.select(decode_message("OffsetCommit", "key", "value")),
        "json": spark.sql("SELECT decode_message('OffsetCommit', key, value) FROM offsets ORDER BY number"),
        "hashes": offsets.selectExpr("crc32c(value)", "partition_for_key(key, 7)", "group_partition(string(number))"),
    }
    expected = {name: frame.collect() for name, frame in frames.items()}
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        assert {name: frame.collect() for name, frame in frames.items()} == expected
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_a_null_among_records_is_refused():
    records = pa.array([[{"key": b"a", "value": b"1"}, None]])
    with pytest.raises(ValueError, match="record 1 of 2 is null"):
        encode_in_sql(records)
