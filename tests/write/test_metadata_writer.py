"""MetadataLogWriter: what it writes, and what it refuses; test_metadata_writer_golden.py compares its bytes."""

from __future__ import annotations

import itertools
import os
import resource
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import InvalidRecordError, InvalidTransactionStateError, MetadataLogWriter, RecordTooLargeError
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.disk.lock import LogDirectoryLockedError
from metadata_oracle import records, visible
from topic_record import topic_record

RECORD = b"\x01\x02\x00"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "__cluster_metadata-0"


@pytest.fixture(autouse=True)
def without_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk; whether the writer would is tested apart."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def batches(folder: Path) -> list[dict]:
    columns = ["base_offset", "records_count", "partition_leader_epoch", "is_control", "size_in_bytes"]
    return kraftlog.open(folder).batches(columns).to_pylist()


def numbered(*numbers: int) -> list[bytes]:
    return [RECORD + bytes([number]) for number in numbers]


def transact(writer: MetadataLogWriter, *appended: list[bytes], error: Exception | None = None) -> None:
    with writer.transaction() as transaction:
        for values in appended:
            transaction.append(values)
        if error:
            raise error


def log_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_transactions_and_plain_appends(folder: Path):
    with MetadataLogWriter(folder, 3, max_batch_bytes=150, fsync="close") as writer:
        assert writer.next_offset == 1
        assert writer.append(numbered(1, 2)) == 2
        with writer.transaction("long") as transaction:
            for number in range(10, 60):
                transaction.append(numbered(number))
        assert writer.append(pa.array(numbered(3), pa.binary())) == 55
        with pytest.raises(ZeroDivisionError):
            transact(writer, numbered(60, 61), error=ZeroDivisionError("1 / 0"))
        with writer.transaction():
            pass
        assert writer.append([]) == writer.next_offset - 1 == 61
    assert visible(folder) == numbered(1, 2, *range(10, 60), 3)
    values = [value for _, value in records(folder)]
    assert read_marker(values[-3]) == ("AbortTransactionRecord", "ZeroDivisionError: 1 / 0")
    assert [read_marker(value).kind for value in values[-2:]] == ["BeginTransactionRecord", "EndTransactionRecord"]
    assert all(batch["size_in_bytes"] <= 150 for batch in batches(folder))
    assert {batch["partition_leader_epoch"] for batch in batches(folder)} == {3}


def test_batches_leave_when_they_are_full(folder: Path):
    with MetadataLogWriter(folder, 1) as writer, writer.transaction("large") as transaction:
        for _ in range(50):
            transaction.append([RECORD + bytes(1000)] * 20)
            assert transaction._packed.encoder.next_offset - writer.next_offset < 9  # of the open batch
    counts = [batch["records_count"] for batch in batches(folder)]
    assert counts == [1, *kraftlog.plan_batches([10, *[1003] * 1000, 4]).tolist()]


def test_records_of_a_batch_have_its_append_time(folder: Path):
    times = itertools.count(1_700_000_000_000, 1000)
    with MetadataLogWriter(folder, 1, clock=lambda: next(times), max_batch_bytes=200) as writer:
        writer.append(numbered(1, 2, 3))
        with writer.transaction() as transaction:
            for number in range(40):
                transaction.append(numbered(number))
    rows = kraftlog.open(folder).records(columns=["base_offset", "timestamp_ms"]).to_table().to_pylist()
    stamps = {
        base: {row["timestamp_ms"] for row in each}
        for base, each in itertools.groupby(rows, lambda r: r["base_offset"])
    }
    assert all(len(each) == 1 for each in stamps.values())
    assert len(set.union(*stamps.values())) == len(stamps) > 3


def test_nothing_else_while_a_transaction_is_open(folder: Path):
    with MetadataLogWriter(folder, 1) as writer:
        with writer.transaction() as transaction:
            for refused in (lambda: writer.append([RECORD]), writer.transaction, lambda: writer.write_snapshot([])):
                with pytest.raises(InvalidTransactionStateError, match="is not possible while a transaction is open"):
                    refused()
            transaction.append([RECORD])
        assert InvalidTransactionStateError.kafka_code == 48
        with pytest.raises(InvalidTransactionStateError, match="it is over"):
            transaction.append([RECORD])
        with pytest.raises(ValueError, match="256 bytes"):
            writer.transaction("n" * 256)
        writer.append([RECORD])
    assert visible(folder) == [RECORD, RECORD]
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.append([RECORD])


def test_appends_that_are_refused_leave_nothing(folder: Path):
    with MetadataLogWriter(folder, 1, max_batch_bytes=300) as writer:
        for records_, error in (
            (numbered(*range(100)), RecordTooLargeError),
            ([RECORD + bytes(300)], RecordTooLargeError),
            ([RECORD, b"\x01\x18\0\0"], InvalidRecordError),
            (pa.array([None], pa.binary()), ValueError),
        ):
            with pytest.raises(error):
                writer.append(records_)
        assert writer.next_offset == 1
        with pytest.raises(InvalidRecordError):
            transact(writer, [RECORD], [b"\x01\x17\0\0"])
        transaction = writer.transaction()
        transaction.append([RECORD])
        with pytest.raises(RecordTooLargeError):
            transaction.append([RECORD + bytes(300)])
        with pytest.raises(InvalidTransactionStateError, match="an append to it failed"):
            transaction.append([RECORD])
        with pytest.raises(InvalidTransactionStateError, match="was aborted: an append to it failed"):
            transaction.__exit__(None, None, None)
        writer.append(numbered(7))
    assert visible(folder) == numbered(7)


def test_versions_without_transactions(folder: Path):
    with MetadataLogWriter(folder, 1, metadata_version="3.5", max_batch_bytes=300) as writer:
        with writer.transaction("not written") as transaction:
            transaction.append(numbered(1))
            transaction.append(numbered(2))
        before = log_bytes(folder)
        with pytest.raises(RecordTooLargeError, match="that is planned"):
            transact(writer, numbered(*range(20)), numbered(*range(20)))
        with pytest.raises(ZeroDivisionError):
            transact(writer, numbered(9), error=ZeroDivisionError())
        assert log_bytes(folder) == before
        writer.append(numbered(3))
    assert [value for _, value in records(folder)] == numbered(1, 2, 3)
    leave_open(folder, 2)
    for epoch, version, message in (
        (3, "3.6-IV0", "which this metadata.version does not support"),
        (2, None, "greater than 2 can abort"),
    ):
        size = len(log_bytes(folder))
        with pytest.raises(InvalidTransactionStateError, match=message):
            MetadataLogWriter(folder, epoch, metadata_version=version)
        assert len(log_bytes(folder)) == size


def leave_open(folder: Path, epoch: int) -> None:
    """End the log inside a transaction, as a controller that is killed does."""
    with MetadataLogWriter(folder, epoch) as writer:
        transaction = writer.transaction("left")
        transaction.append([RECORD + bytes(5000)] * 3)
        writer._transaction = None


def test_failover(folder: Path):
    leave_open(folder, 4)
    with pytest.raises(ValueError, match="leader_epoch 3 is stale; the last epoch of the log is 4"):
        MetadataLogWriter(folder, 3)
    with MetadataLogWriter(folder, 9, node_id=2, voters=[1, 2, 3]) as writer:
        writer.append(numbered(1))
    assert visible(folder) == numbered(1)
    rows = kraftlog.open(folder).records(
        columns=["offset", "value", "key", "control_type", "partition_leader_epoch"], include_control=True
    )
    *_, change, abort, last = rows.to_table().to_pylist()
    assert change["control_type"] == "LEADER_CHANGE"
    fields = kraftlog.decode_control(change["key"], change["value"]).fields
    assert (fields["leaderId"], [voter["voterId"] for voter in fields["voters"]]) == (2, [1, 2, 3])
    assert read_marker(abort["value"]) == ("AbortTransactionRecord", "Controller failover")
    assert {change["partition_leader_epoch"], abort["partition_leader_epoch"], last["partition_leader_epoch"]} == {9}
    assert batches(folder)[-2]["records_count"] == 1
    assert (folder / "leader-epoch-checkpoint").read_text() == f"0\n2\n4 0\n9 {change['offset']}\n"


def test_a_transaction_left_open_over_many_segments(folder: Path):
    with MetadataLogWriter(folder, 1, segment_bytes=8192) as writer:
        transaction = writer.transaction()
        transaction.append([RECORD + bytes(4000)] * 9)
        writer._transaction = None
    assert len(list(folder.glob("*.log"))) > 3
    with MetadataLogWriter(folder, 2, segment_bytes=8192) as writer:
        writer.append(numbered(1))
    assert visible(folder) == numbered(1)


def test_closing_inside_a_transaction_aborts_it(folder: Path):
    writer = MetadataLogWriter(folder, 1)
    transaction = writer.transaction()
    transaction.append([RECORD])
    writer.close()
    writer.close()
    with pytest.raises(InvalidTransactionStateError, match="the writer was closed inside it"):
        transaction.__exit__(None, None, None)
    assert visible(folder) == []
    assert read_marker(records(folder)[-1][1]).text == "The writer was closed"


def test_aborting_on_request(folder: Path):
    with MetadataLogWriter(folder, 1) as writer:
        with writer.transaction() as transaction:
            transaction.append([RECORD])
            transaction.abort("better not")
            with pytest.raises(InvalidTransactionStateError, match="the transaction is over"):
                transaction.abort("again")
        writer.append(numbered(1))
    assert visible(folder) == numbered(1)


def test_reasons_are_cut(folder: Path):
    with MetadataLogWriter(folder, 1) as writer, pytest.raises(ValueError, match="é"), writer.transaction():
        raise ValueError("é" * 300)
    reason = read_marker(records(folder)[-1][1]).text
    assert reason == "ValueError: " + "é" * 121


def test_snapshots(folder: Path):
    with MetadataLogWriter(folder, 2, clock=lambda: 77) as writer:
        writer.append(numbered(1, 2))
        path = writer.write_snapshot(numbered(2))
        assert path.name == "00000000000000000003-0000000002.checkpoint"
        with pytest.raises(FileExistsError):
            writer.write_snapshot([])
        writer.append(numbered(3))
        with pytest.raises(InvalidRecordError):
            writer.write_snapshot([b"\x01\x17\0\0"])
        assert [p.name for p in folder.glob("*checkpoint*") if p.suffix != ""] == [path.name]
    rows = (
        kraftlog.open(path)
        .records(columns=["offset", "value", "control_type"], include_control=True)
        .to_table()
        .to_pylist()
    )
    assert [row["control_type"] for row in rows] == ["SNAPSHOT_HEADER", None, "SNAPSHOT_FOOTER"]
    assert rows[0]["value"] == bytes(2) + (77).to_bytes(8, "big") + b"\0"
    assert rows[1]["value"] == numbered(2)[0]


def test_a_log_that_starts_at_a_snapshot(folder: Path):
    with MetadataLogWriter(folder, 2) as writer:
        writer.append(numbered(1, 2))
        writer.write_snapshot(numbered(2))
    for path in folder.glob("*0.*"):
        path.unlink()
    (folder / "leader-epoch-checkpoint").unlink()
    with MetadataLogWriter(folder, 2) as writer:
        assert writer.next_offset == 3
        writer.append(numbered(3))
    assert sorted(path.name for path in folder.glob("*3.*")) == [
        f"{3:020d}.{kind}" for kind in ("index", "log", "snapshot", "timeindex")
    ]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n2 3\n"
    (folder / f"{9:020d}-{2:010d}.checkpoint").write_bytes(b"")
    with pytest.raises(ValueError, match="ends at offset 4, before its snapshot of 9"):
        MetadataLogWriter(folder, 3)


def test_reopening(folder: Path):
    with MetadataLogWriter(folder, 1, segment_bytes=8192) as writer:
        writer.append([RECORD + bytes(5000)])
        writer.append([RECORD + bytes(5000)])
        with pytest.raises(LogDirectoryLockedError):
            MetadataLogWriter(folder, 2)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with MetadataLogWriter(folder, 1):
        pass
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    last = max(folder.glob("*.log"))
    for damage in (b"\0" * 500, b"\0" * 5, before[last.name][:-1]):
        last.write_bytes(before[last.name] + damage)
        for path in (last.with_suffix(".index"), last.with_suffix(".timeindex")):
            path.write_bytes(b"stale")
        (folder / "leader-epoch-checkpoint").unlink()
        with MetadataLogWriter(folder, 1):
            pass
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_damage_that_is_not_torn_is_left_to_recover(folder: Path):
    with MetadataLogWriter(folder, 1) as writer:
        writer.append(numbered(1))
        writer.append(numbered(2))
    (log,) = folder.glob("*.log")
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(data)
    with pytest.raises(
        kraftlog.CorruptRecordError, match=r"batch at byte 91: .*sound batches after it: see `kraftlog recover`"
    ):
        MetadataLogWriter(folder, 2)
    assert log.read_bytes() == data
    (log.parent.parent / ".lock").unlink()
    log.write_bytes(data[:-1])  # now nothing sound is behind it
    with MetadataLogWriter(folder, 2):
        pass
    assert visible(folder) == []


def test_index_files_are_those_of_a_rebuild(folder: Path):
    with MetadataLogWriter(folder, 1, segment_bytes=100_000, index_interval_bytes=1000) as writer:
        for _ in range(300):
            writer.append([topic_record("x" * 683)])
    assert list(kraftlog.open(folder).verify()) == []
    sizes = {path.stem: path.stat().st_size for path in sorted(folder.glob("*.index"))}
    assert len(sizes) == 3
    assert min(sizes.values()) > 100


def test_a_disk_that_is_full(folder: Path):
    with MetadataLogWriter(folder, 1) as writer:
        writer.append(numbered(1))
        size = len(log_bytes(folder))
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, limit[1]))
        try:
            with pytest.raises(OSError, match=f"was cut back to {size} bytes, and nothing more is written to it"):
                transact(writer, [RECORD + bytes(4000)] * 10)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert len(log_bytes(folder)) == size
        for refused in (lambda: writer.append([RECORD]), writer.transaction, lambda: writer.write_snapshot([])):
            with pytest.raises(OSError, match="an earlier write failed"):
                refused()
    with MetadataLogWriter(folder, 2) as writer:
        writer.append(numbered(2))
    assert visible(folder) == numbered(1, 2)


def test_a_commit_that_does_not_reach_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with MetadataLogWriter(folder, 1) as writer:
        transaction = writer.transaction().__enter__()
        transaction.append([RECORD + bytes(5000)] * 2)
        size = len(log_bytes(folder))
        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="Input/output error"):
            transaction.__exit__(None, None, None)
        assert len(log_bytes(folder)) == size
        monkeypatch.setattr(os, "fsync", lambda fd: None)
    with MetadataLogWriter(folder, 2) as writer:
        writer.append(numbered(2))
    assert visible(folder) == numbered(2)


@pytest.mark.parametrize(("fsync", "expected"), [("commit", [0, 2]), ("batch", [3, 2]), ("close", [0, 0])])
def test_when_the_disk_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch, fsync: str, expected: list[int]):
    with MetadataLogWriter(folder, 1, fsync=fsync) as writer:
        calls: list[int] = []
        monkeypatch.setattr(os, "fsync", calls.append)
        with writer.transaction() as transaction:
            transaction.append([RECORD + bytes(5000)] * 4)
            inside = len(calls)
        writer.append([RECORD])
        during = len(calls)
    assert [inside, during - inside] == expected
    assert len(calls) > during


def test_options(folder: Path):
    for options, message in (
        ({"max_batch_bytes": 61}, "max_batch_bytes"),
        ({"max_batch_bytes": (8 << 20) + 1}, "max_batch_bytes"),
        ({"segment_bytes": 100}, "segment_bytes"),
        ({"fsync": "never"}, "fsync"),
        ({"leader_epoch": -1}, "leader_epoch"),
        ({"leader_epoch": 2**31}, "leader_epoch"),
        ({"node_id": 4}, "node_id 4 is not one of the voters 1"),
        ({"metadata_version": "2.8"}, "version"),
    ):
        with pytest.raises(ValueError, match=message):
            MetadataLogWriter(folder, **{"leader_epoch": 1} | options)  # type: ignore[arg-type]
    assert not folder.exists()
