"""The loss ledger: records that only a lost line holds, on logs of which each record is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import kraftlog
from audit_replicas import NOT_CLEANED, batch, codes, replica, written
from command_line import run_command
from held_replicas import ORDERS, Held, agreed
from kraftlog.backup.loss_ledger import LEDGER_FILE, write_loss_ledger
from replica_histories import Log, replicas

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
WATERMARKS = "replication-offset-checkpoint"


def values(path: Path) -> list[bytes]:
    return pq.read_table(path / LEDGER_FILE)["value"].to_pylist()


@settings(max_examples=150)
@given(logs=replicas())
def test_what_is_lost_is_what_the_line_never_had(logs: tuple[Log, Log, Log]):
    """Each record once, and those before the start of the line only if they were not in its history."""
    held = [Held(log.start, log.records, set(), 0) for log in logs]
    with written(held) as directories:
        log = kraftlog.open(directories)
        (line,) = (int(Path(row["directory"]).name) for row in log.replicas().to_pylist() if row["is_chosen"])
        expected = {
            one.number
            for number, other in enumerate(held)
            if number != line and (parts_at := agreed(other, held[line])) is not None
            if parts_at == held[line].end or parts_at in held[line].sound
            for one in other.records
            if one.offset >= parts_at
        }
        assert not expected & {one.number for one in logs[line].history}
        target = directories[0].parent / "ledger"
        done = write_loss_ledger(log, target)
        found = values(target)
        assert sorted(int(value.removeprefix(b"record ")) for value in found) == sorted(expected)
        assert done.records_count == len(found)
        again = [kraftlog.open(folder).records(["value"]).to_table()["value"].to_pylist() for folder in done.folders]
        assert sorted(value for some in again for value in some) == sorted(found)
        assert all(not list(kraftlog.open(folder).verify()) for folder in done.folders)
        counts = [
            int(known.split(" alone has ")[1].split()[0]) for known in log.findings(["known"])["known"].to_pylist()
        ]
        assert sum(counts) == len(found)


@settings(max_examples=150)
@given(logs=replicas(compacts=True))
def test_no_cleaner_makes_records_lost(logs: tuple[Log, Log, Log]):
    """A cleaner may remove all records of a leader epoch, and logs seem to part earlier than they do."""
    with written([Held(log.start, log.records, set(), log.end) for log in logs]) as directories:
        log = kraftlog.open(directories)
        (line,) = (int(Path(row["directory"]).name) for row in log.replicas().to_pylist() if row["is_chosen"])
        target = directories[0].parent / "ledger"
        write_loss_ledger(log, target)
        found = {int(value.removeprefix(b"record ")) for value in values(target)}
        assert not found & {one.number for one in logs[line].history}


def test_lines_that_share_a_lost_history_list_it_once(tmp_path: Path):
    common, old = [batch(0, 1, "a")], [batch(1, 2, "b"), batch(2, 2, "c", "d")]
    line = replica(tmp_path / "1", (0, [*common, batch(1, 4, "x")]))
    first = replica(tmp_path / "2", (0, [*common, *old, batch(4, 3, "e")]), node=2)
    second = replica(tmp_path / "3", (0, [*common, *old[:1]]), (2, [*old[1:], batch(4, 2, "f")]), node=3)
    assert write_loss_ledger(kraftlog.open([line, first, second]), tmp_path / "ledger").records_count == 5
    rows = pq.read_table(tmp_path / "ledger" / LEDGER_FILE).to_pylist()
    assert [(row["node_id"], row["offset"], row["partition_leader_epoch"], row["value"]) for row in rows] == [
        (2, 1, 2, b"b"),
        (2, 2, 2, b"c"),
        (2, 3, 2, b"d"),
        (2, 4, 3, b"e"),
        (3, 4, 2, b"f"),
    ]


def test_what_a_producer_has_sent_again_is_not_lost(tmp_path: Path):
    """At the same offset, or at another one with the same sequence; then only what is left is written."""
    old = [
        batch(number, 2, f"v{number}", producer_id=7, producer_epoch=0, base_sequence=number) for number in range(1, 5)
    ]
    new = [
        batch(1, 4, "v1", producer_id=7, producer_epoch=0, base_sequence=1),
        batch(2, 4, "other"),
        batch(3, 4, "v3", producer_id=7, producer_epoch=0, base_sequence=3, timestamp_ms=5),
        batch(4, 4, "v2", producer_id=7, producer_epoch=1, base_sequence=2),
    ]
    first = replica(tmp_path / "1", (0, [batch(0, 1, "a"), *new]))
    other = replica(tmp_path / "2", (0, [batch(0, 1, "a"), *old]))
    write_loss_ledger(kraftlog.open([first, other]), tmp_path / "ledger")
    assert values(tmp_path / "ledger") == [b"v2", b"v4"]
    copy = kraftlog.open(tmp_path / "ledger" / "replica-0").records(["offset", "value"]).to_table().to_pylist()
    assert copy == [{"offset": 2, "value": b"v2"}, {"offset": 4, "value": b"v4"}]


def with_key(base_offset: int, epoch: int, value: str, **options: Any) -> bytes:
    """Return a batch of one record, whose key does not depend on its offset."""
    rows = pa.table({"key": [b"k"], "value": [value.encode()]})
    given = {"partition_leader_epoch": epoch, "timestamp_ms": 9, **options}
    return bytes(kraftlog.encode(rows, base_offset=base_offset, **given))


@pytest.mark.parametrize(("again", "lost"), [("b", []), ("other", [b"b"])])
def test_another_batch_of_the_same_sequence_does_not_make_up_for_a_lost_one(
    tmp_path: Path, again: str, lost: list[bytes]
) -> None:
    """A coordinator whose own log was cut off gives a producer id and an epoch to another producer."""
    sent = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 0}
    common = batch(0, 1, "a")
    line = replica(tmp_path / "1", (0, [common, batch(1, 4, "x"), with_key(2, 4, again, timestamp_ms=5, **sent)]))
    other = replica(tmp_path / "2", (0, [common, with_key(1, 2, "b", **sent)]))
    write_loss_ledger(kraftlog.open([line, other]), tmp_path / "ledger")
    assert values(tmp_path / "ledger") == lost
    assert ("lost_records" in codes(line, other)) == bool(lost)


def with_leader(directory: Path, leader: int, leader_epoch: int) -> Path:
    """Write a metadata log that names the leader of orders-0."""
    topic = pa.table({"name": [ORDERS], "topic_id": [TOPIC_ID]})
    nodes = pa.array([[1, 2, 3]], pa.list_(pa.int32()))
    of_partition = {"topic_id": pa.array([TOPIC_ID]), "replicas": nodes, "isr": nodes}
    numbers = {"partition_id": 0, "leader": leader, "leader_epoch": leader_epoch}
    partition = pa.table(of_partition | {name: pa.array([number], pa.int32()) for name, number in numbers.items()})
    messages = [
        kraftlog.encode_messages("TopicRecord", topic)[0],
        kraftlog.encode_messages("PartitionRecord", partition)[0],
    ]
    data = kraftlog.encode(pa.table({"value": messages}), timestamp_ms=1, partition_leader_epoch=1)
    folder = directory / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(bytes(data))
    return directory


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "high_watermark", "code"),
    [
        (1, 4, 3, "lost_committed_records"),
        (1, 4, 2, "lost_records"),
        (1, 4, None, "lost_records"),
        (None, 4, 3, "lost_records"),
        (-1, 4, 3, "lost_records"),
        (3, 5, 3, None),  # its files are not given, and it may have the records
        (1, 3, 3, None),  # the other one is as new as the leader: it was read later
        (1, 2, 3, None),
    ],
)
def test_committed_records_are_those_before_the_high_watermark(
    tmp_path: Path, leader: int | None, leader_epoch: int, high_watermark: int | None, code: str | None
):
    watermarks = {} if high_watermark is None else {WATERMARKS: f"0\n1\norders 0 {high_watermark}\n"}
    common = [batch(0, 1, "a", "b")]
    first = replica(tmp_path / "1", (0, common), node=1)
    other = replica(tmp_path / "2", (0, [*common, batch(2, 3, "c")]), node=2, checkpoints={**NOT_CLEANED, **watermarks})
    metadata = [] if leader is None else [with_leader(tmp_path / "100", leader, leader_epoch)]
    if leader != 1:
        (first / "orders-0" / f"{2:020d}.log").write_bytes(batch(2, 4, "x"))
    found = codes(first, other, *metadata)
    assert list(found) == ([] if code is None else [code])
    if code is not None:
        row = found[code]
        assert (row["offset"], row["node_id"], row["topic"], row["partition"]) == (2, 2, "orders", 0)
        assert row["severity"] == ("error" if code == "lost_committed_records" else "note")


def test_what_the_line_lacks_where_logs_part_is_not_known(tmp_path: Path):
    """Its cleaner may have removed a leader epoch that the other one has, or it begins later."""
    common = [batch(0, 1, "a")]
    other = replica(tmp_path / "2", (0, [*common, batch(1, 2, "b")]))
    for number, batches in enumerate(([*common, batch(3, 4, "x")], [batch(3, 4, "x")])):
        line = replica(tmp_path / f"line{number}", (0 if number == 0 else 3, batches))
        assert "lost_records" not in codes(line, other)


def test_markers_alone_are_not_records(tmp_path: Path):
    common = [batch(0, 1, "a")]
    marker = kraftlog.encode_marker("COMMIT", producer_id=7, producer_epoch=0, base_offset=1, timestamp_ms=1)
    data = bytearray(marker.to_pybytes())
    data[12:16] = (2).to_bytes(4, "big")  # the leader epoch, which the checksum does not cover
    line = replica(tmp_path / "1", (0, [*common, batch(1, 3, "x")]))
    other = replica(tmp_path / "2", (0, [*common, bytes(data)]))
    assert codes(line, other) == {}


def test_the_command_writes_the_ledger(tmp_path: Path):
    common = [batch(0, 1, "a")]
    replica(tmp_path / "1", (0, [*common, batch(1, 4, "x")]), node=1)
    replica(tmp_path / "2", (0, [*common, batch(1, 2, "b"), batch(2, 2, "c")]), node=2)
    done = run_command("audit", "1", "2", "--loss-ledger", "ledger", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert done.stdout.rstrip().endswith("kraftlog audit 1 2 -t orders -p 0 --loss-ledger ledger")
    replay = "kraftlog replay ledger/node-2 --append --mapping node-2.mapping --to BROKER"
    assert done.stderr.splitlines()[-2:] == ["ledger/loss-ledger.parquet: 2 records", f"produce them again: {replay}"]
    assert values(tmp_path / "ledger") == [b"b", b"c"]
    assert sorted(path.name for path in (tmp_path / "ledger").iterdir()) == ["loss-ledger.parquet", "node-2"]
    refused = run_command("audit", "1", "2", "--loss-ledger", "ledger", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--loss-ledger ledger holds" in refused.stderr
    refused = run_command("audit", "1", "2", "--loss-ledger", "2/ledger", cwd=tmp_path)
    assert refused.returncode == 2


def test_without_losses_the_ledger_is_empty(tmp_path: Path):
    paths = [replica(tmp_path / name, (0, [batch(0, 1, "a")])) for name in ("1", "2")]
    done = write_loss_ledger(kraftlog.open(paths), tmp_path / "ledger")
    assert (done.records_count, done.folders, values(tmp_path / "ledger")) == (0, [], [])


def test_damage_of_a_lost_line_is_a_fault(tmp_path: Path):
    damaged = bytearray(batch(2, 2, "c"))
    damaged[-1] ^= 1
    line = replica(tmp_path / "1", (0, [batch(0, 1, "a"), batch(1, 4, "x")]))
    other = replica(tmp_path / "2", (0, [batch(0, 1, "a"), batch(1, 2, "b"), bytes(damaged), batch(3, 2, "d")]))
    done = write_loss_ledger(kraftlog.open([line, other]), tmp_path / "ledger")
    assert values(tmp_path / "ledger") == [b"b", b"d"]
    assert {fault.error for fault in done.faults} == {"bad_crc"}


def test_transactions_of_a_lost_line_keep_their_markers(tmp_path: Path):
    """A marker follows a batch that was sent again, which is left out."""
    sent = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
    again = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 5}
    marker = bytearray(
        kraftlog.encode_marker("COMMIT", producer_id=9, producer_epoch=0, base_offset=4, timestamp_ms=1).to_pybytes()
    )
    marker[12:16] = (2).to_bytes(4, "big")  # the leader epoch, which the checksum does not cover
    lost = [batch(1, 2, "b", base_sequence=0, **sent), with_key(2, 2, "c", **again), batch(3, 2, "d"), bytes(marker)]
    line = replica(tmp_path / "1", (0, [batch(0, 1, "a"), with_key(1, 4, "c", **again)]))
    other = replica(tmp_path / "2", (0, [batch(0, 1, "a"), *lost]))
    (folder,) = write_loss_ledger(kraftlog.open([line, other]), tmp_path / "ledger").folders
    log = kraftlog.open(folder)
    rows = log.records(["offset", "value"], isolation_level="read_committed").to_table().to_pylist()
    assert rows == [{"offset": 1, "value": b"b"}, {"offset": 3, "value": b"d"}]
    assert list(log.verify()) == []
    table = pq.read_table(tmp_path / "ledger" / LEDGER_FILE, columns=["value", "transaction_state"]).to_pylist()
    assert [(row["value"], row["transaction_state"]) for row in table] == [(b"b", "committed"), (b"d", None)]
