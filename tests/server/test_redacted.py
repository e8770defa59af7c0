"""What a redacting server sends: the batches of the log with other keys, values and headers, and nothing of the old."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from clients import READERS, Row, digest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_connections import Client

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.errors import RecordError
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.log_server import LogServer
from kraftlog.server.served_log import ServedLog, ServedPartition
from kraftlog.tables.redaction import Redaction

GOLDEN = Path(__file__).parents[1] / "golden"
KEY = b"sixteen bytes or more"
SECRET = b"SECRET-4711"
EVERYTHING = ("key=mask", "value=mask", "header.*=mask")
FETCH = 1
OF_RECORDS = [
    *("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"),
    *("producer_id", "producer_epoch", "sequence", "is_transactional", "is_control", "partition_leader_epoch"),
]
OF_BATCHES = [
    "attributes",
    "base_offset",
    "base_sequence",
    "base_timestamp",
    "compression",
    "control_type",
    "delete_horizon",
    "is_control",
    "is_transactional",
    "last_offset",
    "magic",
    "max_timestamp",
    "partition_leader_epoch",
    "producer_epoch",
    "producer_id",
    "records_count",
    "timestamp_type",
]


def everything_of(partition: ServedPartition, max_bytes: int = 2000) -> bytes:
    """Fetch a partition from its start to its end."""
    data, offset = b"", partition.log_start_offset
    while piece := bytes(partition.fetch(offset, max_bytes, "read_uncommitted").records):
        data += piece
        offset = kraftlog.batches(piece).to_table()["last_offset"].to_pylist()[-1] + 1
    return data


@pytest.mark.parametrize("rules", [EVERYTHING, ("value=null", "key=hash"), ("value.id=hash", "header.source=null")])
@pytest.mark.parametrize("folder", ["codecs", "transactions", "compaction", "deleted_records"])
def test_batches_differ_in_what_is_redacted(folder: str, rules: tuple[str, ...]):
    log = kraftlog.open(GOLDEN / folder / "log")
    served = ServedLog(log, redaction=Redaction(rules, KEY))
    for name, topic in served.topics.items():
        for number, partition in topic.partitions.items():
            one = kraftlog.open(GOLDEN / folder / "log", topics=[name], partitions=[number])
            headers = one.batches(OF_BATCHES).to_pylist()
            start = partition.log_start_offset
            headers = [row for row in headers if row["last_offset"] >= start]
            if any(row["magic"] < 2 for row in headers):
                continue
            data = everything_of(partition)
            found = kraftlog.batches(data, check_crc=True).to_table()
            assert found["crc_ok"].to_pylist() == [True] * len(headers)
            assert found.select(OF_BATCHES).to_pylist() == headers
            columns = [column for column in OF_RECORDS if column not in ("topic", "partition")]
            expected = one.records(columns, redact=rules, redact_key=KEY, include_control=True).to_table()
            rows = kraftlog.decode(data, columns=columns, include_control=True).to_table()
            controls = one.records(columns, include_control=True).to_table().to_pylist()
            for row, there, before in zip(
                [row for row in rows.to_pylist() if row["offset"] >= start], expected.to_pylist(), controls, strict=True
            ):
                assert row == (before if row["is_control"] else there)


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka"])
def test_clients_read_what_records_gives(client: str):
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    rules = ("value=hash", "key=mask")
    with LogServer(log, redaction=Redaction(rules, KEY)) as server:
        columns = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"]
        rows = READERS[client](server.bootstrap_servers, "read_committed", [("orders", n) for n in range(3)])
        expected = log.records(columns, isolation_level="read_committed", redact=rules, redact_key=KEY).to_table()
        assert sorted(rows) == [
            Row(
                *(row["topic"], row["partition"], row["offset"], row["timestamp_ms"], row["timestamp_type"]),
                *(digest(row["key"]), digest(row["value"]), len(row["headers"])),
            )
            for row in expected.to_pylist()
        ]
        assert server.faults == []


def secret_batch(count: int = 3, **options: object) -> bytes:
    headers = [{"key": "where", "value": SECRET + b"-header"}]
    rows = pa.table(
        {
            "key": [SECRET + b"-key"] * count,
            "value": [SECRET + b"-%d" % number for number in range(count)],
            "headers": pa.array([headers] * count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )
    return bytes(kraftlog.encode(rows, **options))


def sealed(batch: bytes) -> bytes:
    """Return a batch with the checksum that its bytes have."""
    data = bytearray(batch)
    struct.pack_into(">I", data, 17, kraftlog.crc32c(bytes(data[21:])))
    return bytes(data)


def partition_of(folder: Path, *batches: bytes, leaves_out: bool = False) -> ServedPartition:
    path = folder / "orders-0" / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(batches))
    redaction = Redaction(EVERYTHING)
    return (
        ServedLog(kraftlog.open(folder), leaves_out_damaged=leaves_out, redaction=redaction)
        .topics["orders"]
        .partitions[0]
    )


def base_offsets(data: bytes) -> list[int]:
    return kraftlog.batches(data).to_table()["base_offset"].to_pylist()


def plain(data: bytes) -> bytes:
    """Return batches without their compression."""
    values = kraftlog.decode(data, columns=["key", "value", "headers"], include_control=True).to_table().to_pylist()
    return data + repr(values).encode()


@pytest.mark.parametrize("compression", COMPRESSION_TYPES)
def test_nothing_redacted_leaves(tmp_path: Path, compression: str):
    batches = [secret_batch(base_offset=3 * number, compression=compression) for number in range(4)]
    partition = partition_of(tmp_path, *batches)
    assert SECRET in plain(b"".join(batches))
    for most in (0, 100, 250, 100_000):
        data = everything_of(partition, most)
        assert SECRET not in plain(data)
        assert kraftlog.decode(data).to_table().num_rows == 12


def test_a_fetch_ends_before_it_is_larger_than_asked_for(tmp_path: Path):
    """Hashes are longer than short values."""
    rows = pa.table({"value": [b"v"] * 20})
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(bytes(kraftlog.encode(rows, base_offset=20 * number)) for number in range(5)))
    log = ServedLog(kraftlog.open(tmp_path), redaction=Redaction(["value=hash"], KEY))
    partition = log.topics["orders"].partitions[0]
    first = bytes(partition.fetch(0, 1, "read_uncommitted").records)
    assert len(first) > 20 * 64
    assert bytes(partition.fetch(0, len(first) + 300, "read_uncommitted").records) == first
    assert bytes(partition.fetch(0, 3 * len(first), "read_uncommitted").records)[: len(first)] == first
    assert len(everything_of(partition)) == 5 * len(first)


def control_batch(key: bytes, value: bytes, header: bytes | None) -> bytes:
    """Return a batch with the bit of control records, and a record that no coordinator writes."""
    headers = [] if header is None else [{"key": "where", "value": header}]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = pa.table({"key": [key], "value": [value], "headers": pa.array([headers], kind)})
    data = bytearray(kraftlog.encode(rows))
    data[22] |= 0x20
    return sealed(bytes(data))


def longer_batch() -> bytes:
    """Return a batch with bytes behind its records."""
    data = bytearray(secret_batch(1) + SECRET)
    struct.pack_into(">i", data, 8, len(data) - 12)
    return sealed(bytes(data))


def miscounted_batch(count: int) -> bytes:
    data = bytearray(secret_batch(3))
    struct.pack_into(">i", data, 57, count)
    return sealed(bytes(data))


def undecodable_batch(compression: str) -> bytes:
    data = bytearray(secret_batch(3, compression=compression))
    data[61:] = SECRET * 5
    struct.pack_into(">i", data, 8, len(data) - 12)
    return sealed(bytes(data))


def unknown_compression() -> bytes:
    data = bytearray(secret_batch(3))
    data[22] |= 5
    return sealed(bytes(data))


def message_of_magic(magic: int) -> bytes:
    rows = pa.table({"key": [SECRET], "value": [SECRET]})
    return bytes(kraftlog.encode(rows, magic=magic))


MARKER_KEY, MARKER_VALUE = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 5)
REFUSED = {
    "control key": lambda: control_batch(SECRET, MARKER_VALUE, None),
    "control value": lambda: control_batch(MARKER_KEY, SECRET, None),
    "control header": lambda: control_batch(MARKER_KEY, MARKER_VALUE, SECRET),
    "longer": longer_batch,
    "count of none": lambda: miscounted_batch(0),
    "count of fewer": lambda: miscounted_batch(2),
    "count of more": lambda: miscounted_batch(4),
    "unknown compression": unknown_compression,
    **{f"not {one}": lambda one=one: undecodable_batch(one) for one in COMPRESSION_TYPES},
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_batch_that_is_not_understood_is_refused(tmp_path: Path, what: str):
    refused = REFUSED[what]()
    before, after = secret_batch(1, base_offset=0), secret_batch(1, base_offset=9)
    refused = struct.pack(">q", 4) + refused[8:]
    partition = partition_of(tmp_path, before, refused, after)
    assert kraftlog.batches(partition.fetch(0, 10_000, "read_uncommitted").records).to_table()[
        "base_offset"
    ].to_pylist() == [0]
    with pytest.raises(RecordError, match="not redacted, and therefore not served") as raised:
        partition.fetch(4, 10_000, "read_uncommitted")
    (fault,) = partition.faults
    where = fault.position, fault.size_in_bytes, fault.base_offset
    assert (fault.error, where) == ("not_redacted", (len(before), len(refused), 4))
    assert SECRET.decode() not in repr(raised.value) + repr(fault)
    goes_on = partition_of(tmp_path, before, refused, after, leaves_out=True)
    data = everything_of(goes_on)
    assert SECRET not in plain(data)
    assert base_offsets(data) == [0, 9]
    assert goes_on.faults == [fault]


def test_batches_of_older_formats_are_refused():
    served = ServedLog(kraftlog.open(GOLDEN / "legacy" / "log"), redaction=Redaction(EVERYTHING))
    old = {
        (row["topic"], row["partition"])
        for row in kraftlog.open(GOLDEN / "legacy" / "log").batches(["topic", "partition", "magic"]).to_pylist()
        if row["magic"] < 2
    }
    assert old
    for topic, number in old:
        partition = served.topics[topic].partitions[number]
        with pytest.raises(RecordError, match=r"expected magic 2, found magic [01]|crc"):
            everything_of(partition)


def test_a_client_learns_that_a_batch_is_refused(tmp_path: Path):
    partition_of(tmp_path, REFUSED["control value"]())
    with LogServer(tmp_path, redaction=Redaction(EVERYTHING)) as server, Client(server) as client:
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10_000}]
        values = {"max_bytes": 10_000, "topics": [{"topic": "orders", "partitions": partitions}]}
        client.send(client.frame(FETCH, 12, values))
        (size,) = struct.unpack(">i", client.exactly(4))
        answer = client.exactly(size)
        assert SECRET not in answer
        (one,) = client.ask(FETCH, 12, values)["responses"][0]["partitions"]
        assert one["error_code"] == ErrorCode.CORRUPT_MESSAGE
        assert not one["records"]


@pytest.mark.sweep(300)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_behind_a_matching_checksum_leaks_nothing(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    compression = data.draw(st.sampled_from(COMPRESSION_TYPES))
    batch = bytearray(secret_batch(3, compression=compression))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from([21, 22, 60, *range(61, len(batch))]))
        batch[at] = data.draw(st.integers(0, 255))
    partition = partition_of(tmp_path_factory.mktemp("log"), sealed(bytes(batch)))
    served = b""
    with suppress(RecordError):
        served = everything_of(partition)
    assert SECRET.decode() not in repr(partition.faults)
    rows = kraftlog.decode(served, columns=["key", "value", "headers"], include_control=True).to_table().to_pylist()
    names = {header["key"] for row in rows for header in row["headers"] or ()}  # names are not redacted
    contents = [row["key"] for row in rows] + [row["value"] for row in rows]
    contents += [header["value"] for row in rows for header in row["headers"] or ()]
    assert not any(SECRET in one for one in contents if one is not None)
    assert SECRET not in served or any(SECRET.decode() in str(name) for name in names)


def test_keys_that_are_no_json_are_counted(tmp_path: Path):
    partition_of(tmp_path, secret_batch(3))
    with LogServer(tmp_path, redaction=Redaction(["value.card=mask"])) as server:
        READERS["librdkafka"](server.bootstrap_servers, "read_committed", [("orders", 0)])
        assert server.notes == ["orders-0: 3 keys or values are no JSON, and were redacted as a whole"]
