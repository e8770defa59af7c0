"""Checks of replicas against each other, on logs of which each record is known."""

from __future__ import annotations

import errno
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import kraftlog
from audit_replicas import CLEANED, NOT_CLEANED, batch, codes, replica, written
from held_replicas import ORDERS, Held, agreed, damaged_replicas, stretches
from kraftlog.codec.compression import decompressor
from kraftlog.codec.filtered_batch import filtered_batch
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.remote_path import LogPath
from replica_histories import Log, replicas


@settings(max_examples=60)
@given(logs=replicas(compacts=False))
def test_silent_on_replicas_that_elections_leave(logs: tuple[Log, Log, Log]):
    """Above notes: without high watermarks and a metadata log, nothing says that what is lost was committed."""
    with written([Held(log.start, log.records, set(), 0) for log in logs]) as directories:
        assert set(kraftlog.open(directories).findings(["code"])["code"].to_pylist()) <= {"lost_records"}


@settings(max_examples=60)
@given(logs=replicas(compacts=True))
def test_silent_on_compacted_replicas(logs: tuple[Log, Log, Log]):
    held = [
        Held(log.start, log.records, set(), log.end if len(log.records) < log.end - log.start else 0) for log in logs
    ]
    with written(held) as directories:
        assert set(kraftlog.open(directories).findings(["code"])["code"].to_pylist()) <= {"lost_records"}


@settings(max_examples=100)
@given(held=damaged_replicas())
def test_missing_records_are_those_of_plain_python(held: list[Held]):
    with written(held) as directories:
        log = kraftlog.open(directories)
        rows = {row["directory"]: row for row in log.replicas(faults=[]).to_pylist()}
        (line,) = (number for number, path in enumerate(directories) if rows[str(path.absolute())]["is_chosen"])
        expected = set()
        for number, one in enumerate(held):
            until = agreed(one, held[line])
            if number == line or until is None:
                continue
            for code, lacking, has in (
                ("leader_lacks_records", held[line], one),
                ("follower_lacks_records", one, held[line]),
            ):
                within = range(max(one.start, held[line].start, lacking.cleaned), until)
                offsets = sorted(offset for offset in has.sound - lacking.sound if offset in within)
                if offsets:
                    known = ", ".join(f"{a} to {b - 1}" if b - a > 1 else str(a) for a, b in stretches(offsets)[:3])
                    node = line if lacking is held[line] else number
                    expected.add((code, str(directories[node] / f"{ORDERS}-0"), known, len(offsets)))
        actual = set()
        for row in log.findings(faults=[]).to_pylist():
            if row["code"].endswith("_lacks_records"):
                words = row["known"].partition("; ")[0].partition(" offset")[2].removeprefix("s").strip()
                known, _, rest = words.partition(" (")
                count = int(rest.split()[0]) if rest else 1
                actual.add((row["code"], row["file"], known.removesuffix(", ..."), count))
        assert actual == expected


def test_a_copy_with_another_value(tmp_path: Path):
    first = replica(tmp_path / "1", (0, [batch(0, 4, "a", "b"), batch(2, 4, "c", "d"), batch(4, 4, "e")]), node=1)
    other = replica(tmp_path / "2", (0, [batch(0, 4, "a", "b"), batch(2, 4, "c", "D"), batch(4, 4, "e")]), node=2)
    (row,) = codes(first, other).values()
    assert (row["code"], row["severity"], row["offset"], row["node_id"]) == ("replicas_differ", "error", 3, 2)
    first_one = "the first one, at offset 3 in leader epoch 4, has other values of value"
    assert row["known"] == f"1 record differs between node 1 and node 2; {first_one}"
    assert " batches " in row["next_command"]
    assert " -t orders -p 0 --start-offset 3 --end-offset 4 --columns replica," in row["next_command"]


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        ({"timestamp_ms": 1_700_000_000_001}, "timestamp_ms"),
        ({"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}, "producer_id, producer_epoch, sequence"),
        ({"compression": "gzip"}, None),
        ({"epoch": 3}, None),
    ],
)
def test_which_differences_count(tmp_path: Path, changed: dict[str, Any], columns: str | None):
    """A tool may compress a batch, and a producer may send one again after an election: the records are the same."""
    batches = [batch(0, 3, "a"), batch(2, 5, "c")]
    first = replica(tmp_path / "1", (0, [batches[0], batch(1, 5, "b"), batches[1]]))
    other = replica(tmp_path / "2", (0, [batches[0], batch(1, changed.pop("epoch", 5), "b", **changed), batches[1]]))
    found = codes(first, other)
    assert ("replicas_differ" in found) == (columns is not None)
    if columns:
        assert found["replicas_differ"]["known"].endswith(f"has other values of {columns}")


def test_two_leaders_in_one_epoch(tmp_path: Path):
    common = [batch(0, 4, "a", "b")]
    first = replica(tmp_path / "1", (0, [*common, batch(2, 5, "c"), batch(3, 5, "d"), batch(4, 5, "e")]))
    other = replica(tmp_path / "2", (0, [*common, batch(2, 5, "x", "y"), batch(4, 5, "z")]))
    (row,) = codes(first, other).values()
    assert (row["code"], row["offset"]) == ("two_leaders_in_one_epoch", 2)
    assert row["known"].startswith("3 records differ between ")


def test_an_epoch_that_agrees_again_has_one_leader(tmp_path: Path):
    first = replica(tmp_path / "1", (0, [batch(0, 5, "a"), batch(1, 5, "b"), batch(2, 5, "c"), batch(3, 5, "d")]))
    other = replica(tmp_path / "2", (0, [batch(0, 5, "a"), batch(1, 5, "x"), batch(2, 5, "y"), batch(3, 5, "d")]))
    assert set(codes(first, other)) == {"replicas_differ"}
    third = replica(tmp_path / "3", (0, [batch(0, 5, "a"), batch(1, 5, "x", "y", "d")]))
    assert set(codes(first, third)) == {"replicas_differ"}


def test_cleaned_ranges_are_compared_by_record(tmp_path: Path):
    """Each cleaner leaves other records; one of those that both have differs."""
    whole = [f"v{number}" for number in range(6)]
    one = replica(
        tmp_path / "1",
        (0, [_cleaned(whole, {0, 3, 5})]),
        checkpoints={CLEANED: "0\n1\norders 0 6\n"},
    )
    other = replica(tmp_path / "2", (0, [_cleaned(whole, {1, 3, 4, 5})]))
    assert codes(one, other) == {}
    whole[3] = "other"
    third = replica(tmp_path / "3", (0, [_cleaned(whole, {3, 5})]))
    (row,) = codes(one, third).values()
    assert (row["code"], row["offset"]) == ("replicas_differ", 3)


def _cleaned(values: list[str], kept: set[int]) -> bytes:
    """Return a batch as a cleaner leaves it, which keeps some offsets."""
    keeps = np.array([offset in kept for offset in range(len(values))])
    return filtered_batch(batch(0, 0, *values), keeps, None, decompressor(1 << 20))


def test_segments_of_replicas_may_roll_elsewhere(tmp_path: Path):
    batches = [batch(number, number // 4, f"v{number}") for number in range(12)]
    first = replica(tmp_path / "1", (0, batches[:5]), (5, batches[5:]))
    other = replica(tmp_path / "2", (0, batches[:9]), (9, batches[9:]))
    late = replica(tmp_path / "3", (4, batches[4:7]), (7, batches[7:10]))
    assert codes(first, other, late) == {}
    without = replica(tmp_path / "4", (0, batches[:6]), (7, batches[7:]))
    assert set(codes(first, without)) == {"follower_lacks_records"}


@pytest.mark.parametrize("checkpoints", [{}, {CLEANED: "0\n1\norders 0 7\n"}])
def test_what_a_cleaner_may_have_removed_is_not_missing(tmp_path: Path, checkpoints: dict[str, str]):
    batches = [batch(number, 0, f"v{number}") for number in range(12)]
    first = replica(tmp_path / "1", (0, batches))
    without = replica(tmp_path / "2", (0, batches[:6] + batches[7:]), checkpoints=checkpoints)
    assert codes(first, without) == {}


def test_what_is_missing_after_a_cleaner_counts(tmp_path: Path):
    batches = [batch(number, 0, f"v{number}") for number in range(12)]
    first = replica(tmp_path / "1", (0, batches))
    cleaned = {CLEANED: "0\n1\norders 0 7\n"}
    without = replica(tmp_path / "2", (0, batches[:5] + batches[9:]), checkpoints=cleaned)
    assert "with offsets 7 to 8 (2 in all)" in codes(first, without)["follower_lacks_records"]["known"]


def test_records_that_retention_has_deleted_are_not_missing(tmp_path: Path):
    batches = [batch(number, 0, f"v{number}") for number in range(12)]
    first = replica(tmp_path / "1", (0, batches))
    start = {**NOT_CLEANED, "log-start-offset-checkpoint": "0\n1\norders 0 8\n"}
    late = replica(tmp_path / "2", (0, [batches[0], *batches[7:]]), checkpoints=start)
    assert codes(first, late) == {}


class BadSectors(Disk):
    """The real disk, but for a file that cannot be opened."""

    def __init__(self, bad: Path) -> None:
        self.bad = bad

    def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
        if path == self.bad:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return super().open(path, size)


def test_a_file_that_cannot_be_read_lacks_nothing(tmp_path: Path):
    batches = [batch(number, 0, f"v{number}") for number in range(12)]
    first = replica(tmp_path / "1", (0, batches))
    other = replica(tmp_path / "2", (0, batches[:6]), (6, batches[6:]))
    faults: list[kraftlog.Fault] = []
    with use_disk(BadSectors(other / "orders-0" / f"{0:020d}.log")):
        assert kraftlog.open([first, other]).findings(faults=faults).to_pylist() == []
    assert {fault.error for fault in faults} == {"unreadable_file"}


def test_old_messages_are_not_compared(tmp_path: Path):
    """Messages without leader epochs: nothing says which of two is right, or what was removed."""
    old = [(0, [message(0, "a"), message(1, "b")]), (0, [message(0, "a"), message(1, "x"), message(3, "d")])]
    new = [batch(4, 0, "e")], [batch(5, 0, "f")]
    for number, ((base_offset, messages), batches) in enumerate(zip(old, new, strict=True)):
        replica(tmp_path / str(number), (base_offset, messages + batches))
    assert set(codes(tmp_path / "0", tmp_path / "1")) <= {"lost_records"}


def message(offset: int, value: str) -> bytes:
    """Return a message of magic 1."""
    body = struct.pack(">bbqii", 1, 0, 1_700_000_000_000, -1, len(value)) + value.encode()
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_other_topics_of_the_same_name_are_refused(tmp_path: Path):
    first = replica(tmp_path / "1", (0, [batch(0, 0, "a")]))
    other = replica(tmp_path / "2", (0, [batch(0, 0, "b")]))
    for path, topic_id in ((first, "AAAAAAAAAAAAAAAAAAAAAQ"), (other, "AAAAAAAAAAAAAAAAAAAAAg")):
        (path / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    with pytest.raises(ValueError, match="several topics have the name orders"):
        codes(first, other)


def test_moved_and_stray_copies_are_not_compared(tmp_path: Path):
    first = replica(tmp_path / "1", (0, [batch(0, 0, "a")]))
    other = replica(tmp_path / "2", (0, [batch(0, 0, "b")]))
    assert set(codes(first, other / "orders-0")) == {"replicas_differ"}
    moved = (other / "orders-0").rename(other / "orders-0.0123456789abcdef0123456789abcdef-future")
    assert codes(first, moved) == {}


def test_records_are_compared_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kraftlog.audit.replicas.DECODED_AT_ONCE", 200)
    batches = [batch(number, 0, f"v{number}") for number in range(40)]
    others = [batch(number, 0, f"v{number}" if number in (0, 39) else "x") for number in range(40)]
    first, other = replica(tmp_path / "1", (0, batches)), replica(tmp_path / "2", (0, others[:17]), (17, others[17:]))
    (row,) = codes(first, other).values()
    assert (row["code"], row["offset"]) == ("replicas_differ", 1)
    assert row["known"].startswith("38 records differ ")


def test_records_of_cleaned_batches_show_that_a_cleaner_was_there(tmp_path: Path):
    """Its checkpoint may be older: what is missing before such a batch was removed."""
    whole = [f"v{number}" for number in range(6)]
    end = batch(8, 0, "i")
    first = replica(tmp_path / "1", (0, [batch(0, 0, *whole), batch(6, 0, "g", "h"), end]))
    last = filtered_batch(batch(6, 0, "g", "h"), np.array([False, True]), None, decompressor(1 << 20))
    assert codes(first, replica(tmp_path / "2", (0, [last, end]))) == {}
    without = replica(tmp_path / "3", (0, [_cleaned(whole, {3})]), (8, [end]))
    assert "(2 in all)" in codes(first, without)["follower_lacks_records"]["known"]


def test_batches_of_other_sizes_are_compared_by_record(tmp_path: Path):
    """A batch of one replica begins in a segment of the other, and ends in the next one."""
    first = replica(tmp_path / "1", (0, [batch(0, 0, "a", "b")]), (2, [batch(2, 0, "c", "d")]), (4, [batch(4, 0, "e")]))
    other = replica(tmp_path / "2", (0, [batch(0, 0, "a", "b", "c", "d")]), (4, [batch(4, 0, "e")]))
    assert codes(first, other) == {}
    third = replica(tmp_path / "3", (0, [batch(0, 0, "a", "b", "c", "D")]), (4, [batch(4, 0, "e")]))
    assert codes(first, third)["replicas_differ"]["offset"] == 3


def test_each_record_that_differs_is_counted(tmp_path: Path):
    """Each in another column."""
    batches = [batch(number, 0, "v", producer_id=7, producer_epoch=0, base_sequence=number) for number in range(4)]
    others = [*batches]
    others[1] = batch(1, 0, "other", producer_id=7, producer_epoch=0, base_sequence=1)
    others[2] = batch(2, 0, "v", producer_id=7, producer_epoch=0, base_sequence=2, timestamp_ms=5)
    joined = [b"".join(some) for some in (batches, others)]
    first, other = (replica(tmp_path / str(number), (0, [data])) for number, data in enumerate(joined))
    assert codes(first, other)["replicas_differ"]["known"].startswith("2 records differ ")


def test_batches_without_leader_epochs_are_not_compared(tmp_path: Path):
    """No leader has appended them; a tool may have written both."""
    first = replica(tmp_path / "1", (0, [batch(0, -1, "a"), batch(1, -1, "b")]))
    other = replica(tmp_path / "2", (0, [batch(0, -1, "x"), batch(1, -1, "b")]))
    assert codes(first, other) == {}
    first = replica(tmp_path / "3", (0, [batch(0, -1, "a"), batch(1, 0, "b")]))
    other = replica(tmp_path / "4", (0, [batch(0, -1, "x"), batch(1, 0, "y")]))
    assert codes(first, other)["replicas_differ"]["known"].startswith("1 record differs ")
