"""Files beside segments that a crash may have left unfinished: the headers decide what was aborted."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.read.ranges import plan
from kraftlog.tables.user_options import read_options
from kraftlog.transactions.producer_state import ProducerState
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

ENTRY = 34
CHECKPOINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a partition with several aborted transactions in each closed segment."""
    with LogStore(tmp_path / "log") as store:
        store.create_topic("t", configs={"internal.segment.bytes": 2000})
        producers = {name: store.producer(name) for name in ("a", "b")}
        for number in range(30):
            producer = producers["ab"[number % 2]]
            producer.begin_transaction()
            producer.send("t", key="k", value=f"{number}")
            producer.flush()
            (producer.commit_transaction if number % 3 == 0 else producer.abort_transaction)()
    for name in (".kafka_cleanshutdown", CHECKPOINT):
        (tmp_path / "log" / name).unlink(missing_ok=True)
    return tmp_path / "log/t-0"


COMMITTED = [b"%d" % number for number in range(0, 30, 3)]


def values(path: Path, columns: list[str] | None = None) -> list[bytes]:
    log = kraftlog.open(path, topics=["t"])
    table = log.records(columns or ["value"], isolation_level="read_committed", strict=True).to_table()
    return table["value"].to_pylist()


def indexes(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.txnindex"))
    assert len(found) > 2
    assert found[0].stat().st_size > ENTRY
    return found


@pytest.mark.parametrize("recovery_point", [None, 0])
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_txnindex_that_is_cut_or_missing_hides_no_abort(
    folder: Path, recovery_point: int | None, is_alone: bool
) -> None:
    """Behind the recovery point, or where none is known, as in a backup of a partition's folder."""
    if recovery_point is not None:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {recovery_point}\n")
    read = folder if is_alone else folder.parent
    assert values(read) == COMMITTED
    for path in indexes(folder):
        data = path.read_bytes()
        for size in range(0, len(data), ENTRY):
            path.write_bytes(data[:size])
            assert values(read) == COMMITTED
            assert values(read, ["value", "visible_at"]) == COMMITTED
        path.unlink()
        assert values(read) == COMMITTED


@pytest.mark.parametrize("damage", [b"", b"\0" * 10, b"\0\1\0\0\0\1\0\0\0\0"], ids=["empty", "zeros", "wrong crc"])
def test_a_snapshot_that_a_crash_has_cut_is_as_good_as_none(folder: Path, damage: bytes) -> None:
    """Behind the recovery point; before it there is a fault, as headers are not read again."""
    found = sorted(folder.glob("*.snapshot"))
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    producers = kraftlog.open(folder.parent, topics=["t"]).producers().to_pylist()
    (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {bases[1]}\n")
    for path in found:
        if int(path.stem) > bases[1]:
            path.write_bytes(damage)
    log = kraftlog.open(folder.parent, topics=["t"])
    assert values(folder.parent) == COMMITTED
    assert log.producers(strict=False, faults=[]).num_rows == len(producers)
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist()
    (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {bases[-1]}\n")
    with pytest.raises(kraftlog.CorruptRecordError, match="snapshot"):
        values(folder.parent)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_txnindex_before_the_recovery_point_is_believed(folder: Path, is_clean: bool) -> None:
    """An index that names fewer transactions shows that it was read in the place of the headers."""
    first, second, *_ = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    if is_clean:
        (folder.parent / ".kafka_cleanshutdown").touch()
    else:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {second}\n")
    (folder / f"{first:020d}.txnindex").write_bytes(b"")
    assert len(values(folder)) > len(COMMITTED)
    if not is_clean:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {second - 1}\n")
        assert values(folder) == COMMITTED


@pytest.mark.parametrize("columns", [["value"], ["value", "transaction_state"]])
@pytest.mark.parametrize(("more", "is_hidden"), [(0, True), (1, True), (2, True), (3, False), (-1, True)])
def test_a_transaction_that_begins_inside_of_a_batch_hides_all_of_it(
    tmp_path: Path, more: int, is_hidden: bool, columns: list[str]
) -> None:
    """As with Kafka's consumer, which is told the first offset that the index of a broker has."""
    with LogStore(tmp_path / "log") as store:
        store.create_topic("t", configs={"internal.segment.bytes": 1024})
        producer = store.producer("a")
        for number in range(6):
            producer.begin_transaction()
            producer.send("t", pa.table({"value": [f"{number:100}"] * 3}))
            producer.flush()
            (producer.abort_transaction if number == 1 else producer.commit_transaction)()
    (tmp_path / "log" / ".kafka_cleanshutdown").touch()
    [index] = [path for path in (tmp_path / "log/t-0").glob("*.txnindex") if path.stat().st_size]
    entry = bytearray(index.read_bytes())
    first = int.from_bytes(entry[10:18])
    entry[10:18] = (first + more).to_bytes(8)
    index.write_bytes(entry)
    shown = [b"%100d" % number for number in range(6) if number != 1 or not is_hidden for _ in range(3)]
    assert values(tmp_path / "log", columns) == shown


def checkpoint(folder: Path, recovery_point: int) -> None:
    (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {recovery_point}\n")


def test_a_snapshot_of_another_log_hides_nothing(folder: Path) -> None:
    """A power failure may bring back the snapshot of a tail that was cut off; its checksum is right."""
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    stale = producer_snapshot_bytes([ProducerState(99, 0, 0, 3, 0, 1, -1, 3)])
    for base in bases[1:]:
        (folder / f"{base:020d}.snapshot").write_bytes(stale)
    checkpoint(folder, bases[1] - 1)
    assert values(folder.parent) == COMMITTED
    assert values(folder.parent, ["value", "visible_at"]) == COMMITTED
    log = kraftlog.open(folder.parent, topics=["t"])
    last = log.batches(["last_offset"])["last_offset"][-1].as_py()
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [last + 1]


def test_a_snapshot_before_the_recovery_point_is_believed(folder: Path) -> None:
    """One that names an open transaction shows that it was read in the place of the headers before it."""
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    (folder / f"{bases[-1]:020d}.snapshot").write_bytes(
        producer_snapshot_bytes([ProducerState(99, 0, 0, 3, 0, 1, -1, 3)])
    )
    for recovery_point, expected in ((bases[-1], 3), (bases[-1] - 1, None)):
        checkpoint(folder, recovery_point)
        (stable,) = kraftlog.open(folder.parent, topics=["t"]).last_stable_offsets()["last_stable_offset"].to_pylist()
        assert (stable == expected) if expected is not None else (stable > bases[-1])


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_time_index_of_another_log_leaves_no_record_out(tmp_path: Path, is_settled: bool) -> None:
    """Its entry is that of a batch which is there, but an earlier one is later than it says."""
    folder = tmp_path / "log/t-0"
    folder.mkdir(parents=True)
    stamps = [10, 900, 20, 30, 1000]
    batches = [
        kraftlog.encode(pa.table({"value": [b"%d" % stamp]}), base_offset=offset, timestamp_ms=stamp).to_pybytes()
        for offset, stamp in enumerate(stamps)
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    (folder / f"{0:020d}.index").write_bytes(struct.pack(">ii", 2, sum(map(len, batches[:2]))))
    (folder / f"{0:020d}.timeindex").write_bytes(struct.pack(">qi", 20, 2))
    checkpoint(folder, 3 if is_settled else 2)
    found = kraftlog.open(folder.parent).records(["timestamp_ms"], start_timestamp=100).to_table()
    assert found["timestamp_ms"].to_pylist() == ([1000] if is_settled else [900, 1000])


@pytest.mark.parametrize(
    ("time_index", "is_whole"),
    [
        (struct.pack(">qiqi", 10, 0, 30, 2), True),
        (struct.pack(">qi", 10, 0) * 10_000 + struct.pack(">qi", 30, 2), True),
        (b"", False),
        (struct.pack(">qiq", 10, 0, 30), False),
        (struct.pack(">qiqi", 10, 0, 0, 0), False),
        (bytes(24), False),
        (struct.pack(">qiqi", 31, 0, 30, 2), False),
        (struct.pack(">qiqi", 10, 2, 30, 1), False),
        (struct.pack(">qiqi", 10, 0, 30, 3), False),  # the offset is that of the next segment
    ],
)
@pytest.mark.parametrize("is_settled", [True, False])
def test_a_whole_time_index_leaves_out_a_closed_segment(
    tmp_path: Path, time_index: bytes, is_whole: bool, is_settled: bool
) -> None:
    """Before the recovery point; else the segment is read."""
    folder = tmp_path / "log/t-0"
    folder.mkdir(parents=True)
    for base, stamps in ((0, [10, 20, 30]), (3, [1000])):
        batches = [
            kraftlog.encode(pa.table({"value": [b"v"]}), base_offset=base + at, timestamp_ms=stamp).to_pybytes()
            for at, stamp in enumerate(stamps)
        ]
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
    (folder / f"{0:020d}.timeindex").write_bytes(time_index)
    checkpoint(folder, 3 if is_settled else 2)
    segments = kraftlog.open(folder.parent).found.segments
    planned = {part.segment.base_offset for part in plan(segments, read_options(start_timestamp=31), None)}
    assert planned == ({3} if is_settled and is_whole else {0, 3})
    assert len(list(plan(segments, read_options(start_timestamp=30, end_timestamp=31), None))) == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_recovery_makes_a_txnindex_anew_whose_transactions_ended_before_the_segment(
    folder: Path, is_clean: bool
) -> None:
    """As Kafka's LogLoader, wherever the segment is: an entry that is wrong in another way it takes as it is."""
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    checkpoint(folder, bases[-1] + 1)
    if is_clean:
        (folder.parent / ".kafka_cleanshutdown").touch()
    path = folder / f"{bases[1]:020d}.txnindex"
    data = path.read_bytes()
    version, producer, first, last, stable = struct.unpack_from(">hqqqq", data)
    for entry, is_made_anew in (
        ((version, producer, first, bases[1] - 1, stable), True),
        ((version, producer, first + 1, last, stable), False),
    ):
        path.write_bytes(struct.pack(">hqqqq", *entry) + data[ENTRY:])
        wrong = path.read_bytes()
        done = recover([folder], RecoverOptions(write=True))
        written = {action.path.name for _, action in done if action.action == "write"}
        assert (path.name in written) == is_made_anew
        assert path.read_bytes() == (data if is_made_anew else wrong)
