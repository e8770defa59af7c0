"""Transactions of the metadata log as bytes: markers, batches, what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog import InvalidRecordError, RecordTooLargeError, pack_transaction, plan_batches
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.metadata_markers import Marker, abort_transaction, begin_transaction, end_transaction, read_marker
from kraftlog.codec.metadata_version import metadata_version_level

BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
TOPIC = b"\x01\x02\x00"
values_lists = st.lists(st.binary(max_size=300).map(lambda rest: TOPIC + rest), max_size=40)


def values(data: object) -> list[bytes]:
    return kraftlog.decode(data, columns=["value"], strict=True).to_table()["value"].to_pylist()


def counts(data: object) -> list[int]:
    return [int(n) for each in HeaderScan(data, check_crc=True).headers() for n in each["records_count"]]


def test_wire_bytes():
    assert begin_transaction() == bytes.fromhex("01170000")
    assert begin_transaction("txn-1") == bytes.fromhex("01170001000606 74786e2d31")
    assert begin_transaction("") == bytes.fromhex("0117000100 0101")
    assert end_transaction() == bytes.fromhex("01180000")
    assert abort_transaction() == bytes.fromhex("01190000")
    assert begin_transaction("ü" * 127 + "n").endswith(b"n")
    with pytest.raises(ValueError, match="a name of 256 bytes; KIP-868 allows 255"):
        begin_transaction("ü" * 128)
    with pytest.raises(ValueError, match="a reason of 300 bytes"):
        abort_transaction("r" * 300)


def golden_values() -> list[bytes]:
    folders = sorted(path for path in (GOLDEN / "metadata_txn").iterdir())
    tables = [kraftlog.open(folder / "log").records(columns=["value"]).to_table() for folder in folders]
    return pa.concat_tables(tables)["value"].to_pylist()


def test_markers_are_those_of_kafka():
    written = {BEGIN: begin_transaction, END: lambda _: end_transaction(), ABORT: abort_transaction}
    seen = set()
    for value in golden_values():
        marker = read_marker(value)
        if marker is None:
            assert value[1] not in (0x17, 0x18, 0x19)
            continue
        seen.add(marker.kind)
        if marker.text is None or len(marker.text.encode()) <= 255:
            assert written[marker.kind](marker.text) == value
    assert seen == {BEGIN, END, ABORT}
    assert max(len(m.text) for v in golden_values() if (m := read_marker(v)) and m.text) > 255  # are read all the same


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("81 00 97 80 00 80 00 01 00 03 02 61", Marker(BEGIN, "a")),  # varints longer than needed
        ("01 17 00 02 00 02 02 61 07 03 78 79 7a", Marker(BEGIN, "a")),  # an unknown tagged field
        ("01 17 00 01 07 00", Marker(BEGIN, None)),
        ("01 17 00 01 00 01 00", Marker(BEGIN, None)),  # a tag that says null
        ("01 18 00 01 00 02 02 61", Marker(END, None)),
        ("01 14 00 00", None),
        ("01 99 01 00 00", None),  # key 153
    ],
)
def test_markers_that_are_read(given: str, expected: Marker | None):
    if given.startswith("01 17 00 01 07") or given.startswith("81"):
        given = given.replace("00 03 02 61", "00 02 02 61")
    assert read_marker(bytes.fromhex(given)) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "metadata record: byte 0: a field of 1 bytes, but 0 bytes left"),
        ("02 17 00 00", "frame version 2 is not 1"),
        ("00 17 00 00", "frame version 0 is not 1"),
        ("01 17 01 00", "BeginTransactionRecord: version 1 is not 0"),
        ("01 17 00", "BeginTransactionRecord: byte 3"),
        ("01 17 00 01 00 06 06 74", "BeginTransactionRecord: byte 6: a field of 6 bytes, but 2 bytes left"),
        ("01 17 00 01 00 02 06 74", "BeginTransactionRecord: byte 1: a field of 5 bytes, but 1 bytes left"),
        ("01 18 00 00 ff", "EndTransactionRecord: byte 4: 1 bytes left behind the record"),
        ("01 97 80 80 80 80 00", "a varint of more than 5 bytes"),
    ],
)
def test_markers_that_are_not(given: str, message: str):
    with pytest.raises(InvalidRecordError, match=message):
        read_marker(bytes.fromhex(given))


@settings(max_examples=80, deadline=None)
@given(values_lists, st.one_of(st.none(), st.text(max_size=40)), st.integers(500, 3000))
def test_a_transaction_is_packed_as_planned(records: list[bytes], name: str | None, cap: int):
    data = pack_transaction(
        pa.array(records, pa.binary()), name, cap, base_offset=7, partition_leader_epoch=3, timestamp_ms=1700000000000
    )
    everything = [begin_transaction(name), *records, end_transaction()]
    assert values(data) == everything
    assert counts(data) == plan_batches([len(value) for value in everything], cap).tolist()
    rows = kraftlog.decode(data, columns=["offset", "timestamp_ms", "partition_leader_epoch", "key"]).to_table()
    assert rows["offset"].to_pylist() == list(range(7, 7 + len(everything)))
    assert set(rows["timestamp_ms"].to_pylist()) == {1700000000000}
    assert set(rows["partition_leader_epoch"].to_pylist()) == {3}
    assert rows["key"].null_count == len(rows)


def test_forms_of_records():
    records = [TOPIC + bytes([i]) for i in range(9)]
    array = pa.array(records, pa.binary())
    expected = pack_transaction(array)
    forms = [
        records,
        pa.chunked_array([array[:4], array[4:4], array[4:]]),
        [array[:2], pa.chunked_array([array[2:]])],
        iter([records[:3], array[3:]]),
        array.cast(pa.large_binary()),
        pa.concat_arrays([array[:1], array])[1:],
    ]
    for form in forms:
        assert pack_transaction(form) == expected
    assert values(pack_transaction([])) == [begin_transaction(), end_transaction()]
    for bad in (b"bytes", 3, [1, 2], "text"):
        with pytest.raises(ValueError, match="not an Arrow array"):
            pack_transaction(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="record 1 is null"):
        pack_transaction(pa.array([b"a", None], pa.binary()))


@pytest.mark.parametrize("place", [0, 1, 5, 63, 64, 199])
@pytest.mark.parametrize(
    "form", ["01170000", "01180000", "0119000100020261", "8100170000", "0197000000", "810098000000", "0117"]
)
def test_markers_among_the_records_are_refused(place: int, form: str):
    records = [TOPIC, b"", b"\x01", b"\x01\x16\x00", b"\x01\x1a\x00", b"\x02\x17\x00"] * 34
    marker = bytes.fromhex(form)
    records[place] = marker
    with pytest.raises(InvalidRecordError, match=f"^record {place}: it begins, ends or aborts a transaction$"):
        pack_transaction(records, max_batch_bytes=300)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.just(b"\x01"), st.binary(max_size=6), st.sampled_from([TOPIC, b"\x01\x14\x00\x00"]))))
def test_no_other_record_is_taken_for_a_marker(records: list[bytes]):
    records = [
        r for r in records if r[:2] not in (b"\x01\x17", b"\x01\x18", b"\x01\x19") and not any(b > 127 for b in r)
    ]
    assert values(pack_transaction(records))[1:-1] == records


def test_records_that_do_not_fit():
    with pytest.raises(
        RecordTooLargeError, match="record 2: a batch of it alone takes 8267 bytes, max_batch_bytes is 8192"
    ):
        pack_transaction([TOPIC, TOPIC, TOPIC + bytes(8192)])
    with pytest.raises(ValueError, match="more than Kafka's 8388608"):
        pack_transaction([TOPIC], max_batch_bytes=(8 << 20) + 1)
    assert counts(pack_transaction([TOPIC + bytes(8 << 10)] * 3, max_batch_bytes=8 << 20)) == [5]
    assert counts(pack_transaction([TOPIC] * 7, max_batch_records=2)) == [2, 2, 2, 2, 1]


def test_versions_without_transactions():
    assert [metadata_version_level(v) for v in (None, 13, "3.6-IV1", "3.6", "3.6.1", "4.3")] == [33, 13, 13, 14, 14, 30]
    records = [TOPIC + bytes(100)] * 20
    data = pack_transaction(records, "not written", metadata_version="3.6-IV0", base_offset=4)
    assert values(data) == records
    assert counts(data) == [20]
    assert pack_transaction([], metadata_version=12).size == 0
    with pytest.raises(RecordTooLargeError, match="record 18: with it the batch of 19 records that is planned takes"):
        pack_transaction(records, metadata_version="3.5", max_batch_bytes=2100)
    for bad in (6, 99, "2.8", "nonsense"):
        with pytest.raises(ValueError, match=r"metadata\.version"):
            pack_transaction([], metadata_version=bad)


def test_values_are_not_copied_on_the_way(monkeypatch: pytest.MonkeyPatch):
    size = 1 << 20
    array = pa.Array.from_buffers(
        pa.binary(),
        64,
        [None, pa.py_buffer(np.arange(0, 65 * size, size, dtype=np.int32)), pa.allocate_buffer(64 * size)],
    )
    before = pa.total_allocated_bytes()
    data = pack_transaction(array, max_batch_bytes=8 << 20)
    assert data.size > 64 * size
    assert pa.total_allocated_bytes() - before < size
