"""A store that was closed in order is opened by the files beside its logs, with what reading the logs would show."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from faulty_disk import FaultyDisk
from kraftlog import LogStore
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import use_disk
from kraftlog.layout.build_index import IndexBuilder
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.layout.names import COORDINATORS_FILE
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.write.clean_end import clean_log_end
from kraftlog.write.log_end import LogEnd, find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import read_recovery_points

VALUES = st.lists(st.integers(0, 3000), min_size=1, max_size=8)


def described(end: LogEnd) -> dict[str, object]:
    """Return what a writer goes on with."""
    segment = end.checked[-1]
    state = {each.name: getattr(segment.state, each.name) for each in fields(segment.state) if each.name != "epochs"}
    builder = state.pop("index")
    return {
        **state,
        "index": (builder.index(), builder.timeindex(), builder._since_entry, builder._last_indexed_offset),
        "base_offset": segment.base_offset,
        "txnindex": segment.txnindex,
        "segments": [each.name for each in end.segments],
        "epochs": (end.epochs.last, end.epochs._entries),
        "producers": end.producers.states(),
    }


@settings(deadline=None, max_examples=20)
@given(st.lists(VALUES, min_size=1, max_size=6), st.booleans())
def test_the_end_is_that_of_the_log(tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]], aborts: bool):
    path = tmp_path_factory.mktemp("store")
    with use_disk(FaultyDisk()):
        for number, lengths in enumerate(sizes):
            with LogStore(path) as store:
                if not number:
                    store.create_topic("t", 1, {"internal.segment.bytes": 9000})
                producer = store.producer("p")
                producer.begin_transaction()
                for length in lengths:
                    producer.send("t", pa.table({"value": ["x" * length]}))
                producer.abort_transaction() if aborts and number % 2 else producer.commit_transaction()
            point = read_recovery_points(path)["t", 0]
            found = clean_log_end(path / "t-0", point)
            assert found is not None
            assert described(found) == described(find_log_end(path / "t-0", recovery_point=point))
    assert [fault.message for fault in kraftlog.open(path).verify()] == []


def test_an_index_goes_on_where_it_ended():
    segment = Path("tests/golden/codecs/log/codec-lz4-0/00000000000000000341.log")
    data = segment.read_bytes()
    headers = np.concatenate(list(HeaderScan(data).headers()))
    whole = IndexBuilder(341, 2048)
    whole.add(headers)
    for cut in range(1, len(headers)):
        first = IndexBuilder(341, 2048)
        first.add(headers[:cut])
        index = np.frombuffer(first.index(), ENTRY_TYPES["index"])
        timeindex = np.frombuffer(first.timeindex(), ENTRY_TYPES["timeindex"])
        last = int(index["position"][-1]) if len(index) else 0
        resumed = IndexBuilder.resumed(341, 2048, index, timeindex, int(headers["position"][cut]) - last)
        resumed.add(headers[cut:])
        assert (resumed.index(), resumed.timeindex()) == (whole.index(), whole.timeindex())


@pytest.mark.parametrize("kind", ["index", "timeindex", "snapshot", "log"])
@pytest.mark.parametrize("change", ["removed", "cut", "longer"])
def test_files_that_do_not_fit_are_not_taken(tmp_path: Path, kind: str, change: str):
    with LogStore(tmp_path) as store:
        store.create_topic("t", 1)
        for _ in range(3):
            with store.producer("p") as producer, producer.transaction():
                producer.send("t", pa.table({"value": ["x" * 5000] * 3}))
    (path,) = sorted((tmp_path / "t-0").glob(f"*.{kind}"))[-1:]
    data, point = path.read_bytes(), read_recovery_points(tmp_path)["t", 0]
    if kind == "log" and change == "removed":
        path.write_bytes(b"")
    elif change == "removed":
        path.unlink()
    else:
        path.write_bytes(data[:-5] if change == "cut" else data + b"\0" * 5)
    assert clean_log_end(tmp_path / "t-0", point) is None
    path.write_bytes(data)
    assert clean_log_end(tmp_path / "t-0", point) is not None
    assert clean_log_end(tmp_path / "t-0", point - 1) is None
    assert clean_log_end(tmp_path / "t-0", None) is None


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Return the folder of a log that was closed in order: segments at offsets 0 and 4, and an end at 8."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    rows = pa.record_batch({"value": ["x" * 5000] * 8})
    with use_disk(FaultyDisk()), PartitionLog(find_log_end(folder), LogOptions(segment_bytes=21_000)) as log:
        log.append(kraftlog.encode(rows, max_batch_records=1, partition_leader_epoch=0), commit=True)
    assert [path.stem for path in sorted(folder.glob("*.log"))] == [f"{0:020d}", f"{4:020d}"]
    return folder


def test_another_recovery_point_is_not_believed(closed: Path):
    """Also one at which there is a snapshot of producers."""
    assert [point for point in range(12) if clean_log_end(closed, point) is not None] == [8]


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_index_of_another_log_is_not_believed(closed: Path, shift: int):
    """One of the right size, whose last entry is the position of a batch, but of another offset."""
    path = closed / f"{4:020d}.index"
    entries = np.frombuffer(path.read_bytes(), ENTRY_TYPES["index"]).copy()
    assert len(entries) > 1
    entries["offset"][-1] += shift
    path.write_bytes(entries.tobytes())
    assert clean_log_end(closed, 8) is None


def filled(path: Path) -> None:
    with LogStore(path) as store:
        store.create_topic("t", 1)
        for name in ("a", "b"):
            with store.producer(name) as producer, producer.transaction():
                producer.send("t", value=name)
                producer.send_offsets_to_transaction({("t", 0): 7}, f"group of {name}")


def state_of(path: Path) -> object:
    with LogStore(path) as store:
        return store.transactional_ids(), {group: store.committed(group) for group in store.groups()}


def test_coordinators_know_the_same(tmp_path: Path):
    filled(tmp_path)
    known = state_of(tmp_path)
    (tmp_path / COORDINATORS_FILE).unlink()
    assert state_of(tmp_path) == known
    assert (tmp_path / COORDINATORS_FILE).exists()


def test_offsets_of_an_open_transaction_do_not_count_when_their_log_is_read(tmp_path: Path):
    """Of one that no transactional id knows of: a broker has left it, and was closed in order."""
    filled(tmp_path)
    with LogStore(tmp_path) as store:
        known = store.committed("group of a")
        late = Stamp(store.producer().producer_id, 0, is_transactional=True)
        store._parts.groups.commit_in_transaction(GroupMetadata("group of a"), {("t", 0): OffsetAndMetadata(9)}, late)
    (tmp_path / COORDINATORS_FILE).unlink()
    with LogStore(tmp_path) as store:
        assert store.committed("group of a") == known


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"version": 2}', b'{"version": 1, "ends": [], "transactions": [], "offsets": []}']
)
def test_another_file_of_the_coordinators_is_not_taken(tmp_path: Path, content: bytes):
    filled(tmp_path)
    known = state_of(tmp_path)
    (tmp_path / COORDINATORS_FILE).write_bytes(content)
    assert state_of(tmp_path) == known


def test_the_file_of_the_coordinators_is_of_its_logs(tmp_path: Path):
    """What a broker has written meanwhile counts, and what an unclean shutdown left."""
    filled(tmp_path)
    older = (tmp_path / COORDINATORS_FILE).read_bytes()
    with LogStore(tmp_path) as store, store.producer("c") as producer, producer.transaction():
        producer.send_offsets_to_transaction({("t", 0): 9}, "group of a")
    known = state_of(tmp_path)
    (tmp_path / COORDINATORS_FILE).write_bytes(older)
    assert state_of(tmp_path) == known
    rows = json.loads(older)
    rows["ends"] = json.loads((tmp_path / COORDINATORS_FILE).read_bytes())["ends"]
    (tmp_path / COORDINATORS_FILE).write_text(json.dumps(rows))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert state_of(tmp_path) == known
