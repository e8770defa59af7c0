"""Logs in a remote tier, alone and below a log directory: the rows are those of the whole log."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog import schema
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.table import Replicas
from kraftlog.tables.user_options import read_options
from tier_writer import Aiven, KeyPair, Source, last_only, sources, to_folder, write_local

TOPIC_ID = "911PgdAUTfK0_8FSda0bUA"  # as partition.metadata has it
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
LAYOUTS = ["local", "plain", "zstd", "aes", "zstd-aes"]
COLUMNS = [name for name in schema.RECORDS.select().names if name != "visible_at"]


@pytest.fixture(scope="module")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return KeyPair("k1", tmp_path_factory.mktemp("keys"))


def write(layout: str, root: Path, segments: list[Any], key_pair: KeyPair, chunk_size: int = 1000) -> dict[str, Any]:
    """Write a tier in a layout, and return what opens it."""
    if layout == "local":
        write_local(to_folder(root), segments, TOPIC_ID)
        return {"remote_tier": root}
    keys = key_pair if "aes" in layout else None
    Aiven(chunk_size, "zstd" in layout, keys).write(to_folder(root), segments, TOPIC_ID)
    return {"remote_tier": root} | ({"tier_keys": {"k1": key_pair.private}} if keys else {})


def rows(log: Log, table: str = "records", **options: Any) -> list[dict[str, Any]]:
    stream = log.scan(table, None, read_options(**options))
    found = stream.to_table().to_pylist()
    assert not stream.faults
    return found


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_broker_and_its_tier(isolation_level: str):
    """A broker of Kafka 4.3 with LocalTieredStorage, and what its consumers got."""
    folder = GOLDEN / "remote_tier"
    log = kraftlog.open(folder / "logs", remote_tier=folder / "tier", topics=["orders"])
    expected = [
        (line["offset"], line["timestamp"], bytes.fromhex(line["key"]), bytes.fromhex(line["value"]))
        for line in lines(folder / "consumed" / f"{isolation_level}.jsonl")
    ]
    found = log.records(["offset", "timestamp_ms", "key", "value"], isolation_level=isolation_level).to_table()
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    assert [one["base_offset"] for one in rows(log, "segments")] == [0, 40, 124, 164]
    assert not list(log.verify())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_tier_alone(tmp_path: Path, key_pair: KeyPair, layout: str, isolation_level: str):
    log = kraftlog.open(**write(layout, tmp_path / "tier", sources(ORDERS), key_pair))
    shutil.copytree(ORDERS, tmp_path / "orders-0")
    for path in (tmp_path / "orders-0").glob(f"{102:020d}.*[gxt]"):
        path.unlink()
    expected = rows(kraftlog.open(tmp_path / "orders-0"), isolation_level=isolation_level)
    assert expected
    assert rows(log, isolation_level=isolation_level) == expected
    assert not list(log.verify())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_tier_below_a_log_directory(tmp_path: Path, key_pair: KeyPair, layout: str, keep: int):
    """Segments that both have are read once; tables that look for coordinators beside the partition are left out."""
    directory = last_only(ORDERS, tmp_path / "logs", keep)
    log = kraftlog.open(directory, **write(layout, tmp_path / "tier", sources(ORDERS), key_pair))
    whole = kraftlog.open(ORDERS)
    for name, table in TABLES.items():
        if table.replicas is Replicas.LINE:
            assert rows(log, name) == rows(whole, name), name
    assert rows(log, isolation_level="read_committed") == rows(whole, isolation_level="read_committed")
    assert [one["base_offset"] for one in rows(log, "segments")] == [0, 32, 67, 102]
    assert not list(log.verify())
    assert [(one.start_offset, one.end_offset) for one in log.partitions] == [(0, 130)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bounds(tmp_path: Path, key_pair: KeyPair, layout: str):
    given = write(layout, tmp_path / "tier", sources(ORDERS), key_pair)
    log, whole = kraftlog.open(last_only(ORDERS, tmp_path / "logs"), **given), kraftlog.open(ORDERS)
    for start in range(0, 130, 17):
        for level in ("read_uncommitted", "read_committed"):
            bounds = {"start_offset": start, "end_offset": start + 40, "isolation_level": level}
            assert rows(log, **bounds) == rows(whole, **bounds)


@pytest.mark.parametrize("chunk_size", [61, 4096, 0, 1 << 20])
@pytest.mark.parametrize("layout", ["zstd", "aes", "zstd-aes"])
def test_sizes_of_chunks(tmp_path: Path, key_pair: KeyPair, layout: str, chunk_size: int):
    """0 stands for a log of one chunk that is full."""
    segments = sources(ORDERS)[:1]
    log = kraftlog.open(**write(layout, tmp_path, segments, key_pair, chunk_size or len(segments[0].log)))
    assert rows(log) == rows(kraftlog.open(ORDERS), end_offset=32)


def test_an_empty_segment(tmp_path: Path, key_pair: KeyPair):
    segments = sources(ORDERS)[:1]
    segments[0].made = {"log": b"", "index": b"", "timeindex": b""}
    assert rows(kraftlog.open(**write("zstd-aes", tmp_path, segments, key_pair))) == []


def test_topics_and_partitions(tmp_path: Path, key_pair: KeyPair):
    given = write("zstd", tmp_path, [*sources(ORDERS), *sources(GOLDEN / "codecs/log/codec-none-0")], key_pair)
    assert kraftlog.open(**given).topics == ["codec-none", "orders"]
    assert kraftlog.open(topics=["orders"], **given).topics == ["orders"]
    with pytest.raises(ValueError, match="no topic 'order'; did you mean orders"):
        kraftlog.open(topics=["order"], **given)


def batches_of(folder: Path) -> list[tuple[int, int, bytes]]:
    """Return first offset, last offset and bytes of each batch of a log."""
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    found = []
    while data:
        base, length = struct.unpack_from(">qi", data)
        (delta,) = struct.unpack_from(">i", data, 23)
        found.append((base, base + delta, data[: 12 + length]))
        data = data[12 + length :]
    return found


def aborted_within(base_offset: int, end_offset: int) -> bytes:
    """Return the entries of .txnindex for markers among some offsets: version, producer, first, last, stable."""
    entry = struct.Struct(">hqqqq")
    found = b"".join(path.read_bytes() for path in sorted(ORDERS.glob("*.txnindex")))
    return b"".join(entry.pack(*each) for each in entry.iter_unpack(found) if base_offset <= each[3] <= end_offset)


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_leader_changes(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair, data: st.DataObject):
    """Leaders roll at other offsets than those before them, so what they copy overlaps; each offset is read once."""
    root = tmp_path_factory.mktemp("leaders")
    batches = batches_of(ORDERS)
    starts = [base for base, _, _ in batches]
    epoch_starts = sorted(data.draw(st.sets(st.sampled_from(starts), max_size=3), "epochs") | {0})
    epochs = [(2 * number, start) for number, start in enumerate(epoch_starts)]
    segments, end = [], -1
    while end < batches[-1][1]:
        last = data.draw(st.sampled_from([last for _, last, _ in batches if last > end]), "end")
        base = data.draw(st.sampled_from([start for start in starts if start <= end + 1]), "start")
        log = b"".join(raw for first, final, raw in batches if first >= base and final <= last)
        made = {"log": log, "txnindex": aborted_within(base, last)}
        segments.append(
            Source(root, base, last, epochs, "orders", 0, last + 1, str(len(segments)).zfill(22), made=made)
        )
        segments[-1].event_timestamp_ms = len(segments)
        end = last
    options = write(data.draw(st.sampled_from(["plain", "zstd"]), "layout"), root / "tier", segments, key_pair)
    whole, log = kraftlog.open(ORDERS), kraftlog.open(**options)
    for level in ("read_uncommitted", "read_committed"):
        assert rows(log, isolation_level=level) == rows(whole, isolation_level=level)
    assert {fault.error for fault in log.verify()} <= {"tier_duplicate"}
    for keep in (1, 2, 3):
        directory = last_only(ORDERS, root / str(keep), keep)
        lines = [0, len(epochs), *(f"{epoch} {first}" for epoch, first in epochs)]
        (directory / "orders-0" / "leader-epoch-checkpoint").write_text("".join(f"{line}\n" for line in lines))
        joined = kraftlog.open(directory, **options)
        for level in ("read_uncommitted", "read_committed"):
            assert rows(joined, isolation_level=level) == rows(whole, isolation_level=level)


def test_a_leader_that_was_not_elected_cleanly(tmp_path: Path, key_pair: KeyPair):
    """What is not of the log's leader epochs is not read, and verify reports it."""
    first, second, third = sources(ORDERS, [(0, 0), (3, 67)])
    other = sources(ORDERS, [(0, 0), (1, 67)])[-1]
    other.made["log"] = batches_of(GOLDEN / "codecs" / "log" / "codec-none-0")[0][2]
    given = write("zstd", tmp_path / "tier", [first, second, third, other], key_pair)
    log = kraftlog.open(**given)
    assert rows(log) == rows(kraftlog.open(ORDERS), end_offset=102)
    assert [(fault.error, fault.segment_base_offset) for fault in log.verify()] == [("tier_orphan", 67)]
    (row,) = rows(log, "errors")
    assert row["error"] == "tier_orphan"
    assert "its leader epochs are 1 from offset 67" in row["message"]


def test_a_segment_that_was_copied_twice(tmp_path: Path, key_pair: KeyPair):
    again = sources(ORDERS)[1]
    again.event_timestamp_ms = 5000
    log = kraftlog.open(**write("plain", tmp_path, [*sources(ORDERS), again], key_pair))
    assert rows(log) == rows(kraftlog.open(ORDERS), end_offset=102)
    (fault,) = log.verify()
    assert (fault.error, fault.segment_base_offset) == ("tier_duplicate", 32)
    assert f"offsets 32 to 66 are read from {32:020d}-{again.segment_id}.log" in fault.message


def test_offsets_that_are_nowhere(tmp_path: Path, key_pair: KeyPair):
    first, _, third = sources(ORDERS)
    log = kraftlog.open(**write("plain", tmp_path, [first, third], key_pair))
    stream = log.scan("records")
    assert stream.to_table().num_rows
    (fault,) = stream.faults
    assert fault.error == "tier_gap"
    assert "expected offsets 32 to 66, found no segment that has them" in fault.message
