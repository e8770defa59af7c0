"""Metadata logs with missing offsets: all ways of reading give the answer of the rules, and the same one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_logs import batch_bytes, write_log
from metadata_twin import Batch, MetadataTwin

import kraftlog
from kraftlog.codec import markers
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.metadata.diff.diff import diff_rows
from kraftlog.metadata.image import Image
from kraftlog.metadata_log import replay
from kraftlog.metadata_log.changes import changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image
from kraftlog.read import metadata_walk

NOTHING = ImageAt(Image.empty(), -1, -1, -1)
COLUMNS = ["begin_offset", "end_offset", "state", "records_count"]
OF_TRANSACTIONS = {
    *("missing_offsets", "damaged_transaction", "begun_before_log"),
    *("begin_inside_transaction", "end_outside_transaction"),
}


def topics_of(at: ImageAt) -> list[int]:
    return sorted(int(name[1:]) for name in at.image.tables()["TopicRecord"]["name"].to_pylist())


def steps_behind(log: MetadataLog, before: ImageAt) -> list[tuple[int, list[int]]]:
    """Return each step behind an image, and the topics that come with it."""
    found: dict[int, list[int]] = {}
    for some in changes(log, before, None, []):
        found |= {offset: [] for offset in some.offsets.tolist()}
        for row in diff_rows(some.changed).to_pylist():
            found[row["group"]].append(int(row["key"][1:]))
    assert list(found) == sorted(found)
    return list(found.items())


@contextmanager
def in_pieces(most_waiting: int) -> Iterator[None]:
    """Read a few batches at a time; records wait for the end of a transaction up to a size, else are read again."""
    small = (markers, "BYTES_AT_ONCE"), (replay, "_BATCH_BYTES")
    sizes = [*((*one, 100) for one in small), (metadata_walk, "MOST_WAITING", most_waiting)]
    with ExitStack() as patches:
        for module, name, size in sizes:
            patches.enter_context(patch.object(module, name, size))
        yield


def codes(faults: list[Fault]) -> Counter[str]:
    return Counter(fault.error for fault in faults if fault.error in OF_TRANSACTIONS)


def laid_out(start: int, steps: list[tuple[tuple[str, ...], int, bool]]) -> list[Batch]:
    """Return batches of steps: records, by how much the leader epoch rises, whether a LEADER_CHANGE is written."""
    found, offset, epoch = [], start, 1
    for kinds, rise, has_change in steps:
        epoch += rise
        if rise and has_change:
            found.append(Batch(offset, epoch, ("change",)))
            offset += 1
        found.append(Batch(offset, epoch, kinds))
        offset += len(kinds)
    return found


KINDS = st.sampled_from(["data", "data", "data", "begin", "end", "abort"])
STEP = st.tuples(
    st.lists(KINDS, min_size=1, max_size=4).map(tuple),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([True, True, False]),
)
NUMBERS = st.sets(st.integers(0, 24), max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([0, 0, 10]), st.lists(STEP, min_size=1, max_size=14), NUMBERS, NUMBERS, NUMBERS, st.data())
def test_all_readers_agree(
    start: int, steps: list, removed: set[int], bad: set[int], cuts: set[int], data: st.DataObject
) -> None:
    """Images at any offset, their steps, read_committed, the table and the checks."""
    batches = laid_out(start, steps)
    left = [batch for number, batch in enumerate(batches) if number not in removed | bad]
    last_cut = max([cut for cut in cuts if cut < len(batches)], default=0)
    twin = MetadataTwin(start, left, batches[last_cut].base_offset)
    with tempfile.TemporaryDirectory() as directory:
        folder = write_log(Path(directory), batches, removed=removed, bad=bad, cuts=cuts)
        opened = kraftlog.open(folder)
        stream = opened.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == sorted(twin.visible_at)
        assert codes(stream.faults) == Counter(twin.errors)
        rows = opened.records(["offset", "visible_at"]).to_table().to_pylist()
        assert {row["offset"]: row["visible_at"] for row in rows if row["visible_at"] is not None} == twin.visible_at
        table = opened.scan("metadata_transactions", COLUMNS)
        assert table.to_table().to_pylist() == twin.transactions
        assert codes(table.faults) == Counter(twin.errors)
        assert codes(list(opened.verify())) == Counter(twin.errors)
        errors = opened.errors()["error"].to_pylist()
        assert Counter(error for error in errors if error in OF_TRANSACTIONS) == Counter(twin.errors)
        log = MetadataLog.open(folder)
        at = image_at(log, None, faults := [])
        assert topics_of(at) == sorted(twin.visible_at)
        assert codes(faults) == Counter(twin.errors)
        assert at.offset == (left[-1].next_offset - 1 if left else -1)
        offset = data.draw(st.integers(start - 1, batches[-1].next_offset))
        bounded = image_at(log, offset, [])
        assert topics_of(bounded) == sorted(at for at, seen in twin.visible_at.items() if seen <= offset)
        seen_at = {at: step for step, topics in steps_behind(log, bounded) for at in topics}
        assert seen_at == {at: seen for at, seen in twin.visible_at.items() if seen > offset}
        with in_pieces(data.draw(st.sampled_from([0, 1 << 13, 1 << 20]))):
            assert topics_of(image_at(log, offset, [])) == topics_of(bounded)
            assert topics_of(image_at(log, None, told := [])) == topics_of(at)
            assert sorted(map(str, told)) == sorted(map(str, faults))


X, BEGUN, ABORT = ("data",), ("begin", "data"), ("abort",)
WHOLE = ("begin", "data", "end")
CASES = {
    "Abort lost, then a whole transaction": ([(0, 1, X), (1, 1, BEGUN), (4, 2, WHOLE), (7, 2, X)], [0, 5, 7]),
    "End and Begin lost": ([(0, 1, X), (1, 1, BEGUN), (5, 2, ("data", "end")), (7, 2, X)], [0, 7]),
    "Abort lost, then records and a transaction": ([(0, 1, BEGUN), (3, 2, X), (4, 2, WHOLE)], [3, 5]),
    "End lost, then records": ([(0, 1, BEGUN), (3, 2, X), (4, 2, X)], [3, 4]),
    "End lost, records of the same epoch": ([(0, 1, BEGUN), (3, 1, X), (4, 1, X)], []),
    "End lost, records of the same epoch, then a Begin": ([(0, 1, BEGUN), (3, 1, X), (4, 1, WHOLE)], [3, 5]),
    "End lost, records, then an Abort of a new leader": ([(0, 1, BEGUN), (3, 1, X), (4, 2, (*ABORT, "data"))], [5]),
    "records lost, End there": ([(0, 1, BEGUN), (3, 1, ("data", "end", "data"))], [5]),
    "Begin lost": ([(0, 1, X), (3, 1, ("data", "end", "data"))], [0, 5]),
    "Begin or more lost, two gaps": ([(0, 1, X), (3, 1, X), (6, 1, ("data", "end", "data"))], [0, 8]),
    "records outside lost": ([(0, 1, X), (3, 1, X), (4, 1, WHOLE)], [0, 3, 5]),
    "nested Begin": ([(0, 1, BEGUN), (2, 2, (*WHOLE, "data"))], [1, 3, 5]),
    "Abort, then others (E7)": ([(0, 1, ("begin", "data", "abort", "data"))], [3]),
    "Abort and Begin in a batch (E8)": ([(0, 1, BEGUN), (2, 2, ("abort", *WHOLE))], [4]),
    "End and Abort outside": ([(0, 1, ("data", "end", "data", "abort"))], [0, 2]),
    "newer epoch without gap": ([(0, 1, BEGUN), (2, 2, ("data", "end"))], [1, 2]),
    "log starts inside": ([(10, 1, ("data", "end", "data"))], [10, 12]),
    "log starts inside, gap": ([(10, 1, X), (13, 1, ("data", "end", "data"))], [15]),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, tmp_path: Path) -> None:
    """What is visible, worked out by hand from the rules."""
    batches, visible = CASES[case]
    folder = write_log(tmp_path, [Batch(*batch) for batch in batches])
    assert topics_of(image_at(MetadataLog.open(folder), None, [])) == visible
    stream = kraftlog.open(folder).records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == visible


def test_bad_byte_in_an_end(tmp_path: Path) -> None:
    """What the transaction holds is left out, and nothing else."""
    batches = [Batch(0, 1, BEGUN), Batch(2, 1, ("end",)), *(Batch(3 + at, 2, X) for at in range(50))]
    folder = write_log(tmp_path, batches, bad=[1])
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert topics_of(at) == list(range(3, 53))
    assert (at.offset, at.open_since) == (52, None)
    assert [fault.error for fault in faults] == ["missing_offsets", "damaged_transaction", "bad_crc"]
    assert "offsets 0 to 1 are of a transaction that is not whole" in faults[1].message


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,), (1, 2, 3)])
def test_where_a_damaged_transaction_is_told(cuts: tuple[int, ...], tmp_path: Path) -> None:
    """In the segment that its first offset lies in, also where that is the segment's first one."""
    batches = [Batch(0, 1, X), Batch(1, 1, BEGUN), Batch(3, 1, ("end",)), Batch(4, 2, X)]
    folder = write_log(tmp_path, batches, bad=[2], cuts=cuts)
    image_at(MetadataLog.open(folder), None, faults := [])
    (fault,) = [one for one in faults if one.error == "damaged_transaction"]
    assert "offsets 1 to 2 are of a transaction" in fault.message
    begins = max(batches[cut].base_offset for cut in (0, *cuts) if batches[cut].base_offset <= 1)
    assert f"{begins:020d}.log" in fault.message


def test_open_transaction_with_a_gap_is_told(tmp_path: Path) -> None:
    """To the end of the log nothing says that it is over."""
    folder = write_log(tmp_path, [Batch(0, 1, BEGUN), Batch(3, 1, X)])
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert (topics_of(at), at.open_since) == ([], 0)
    assert "offsets from 0 on are of a transaction that is open, and some are missing" in faults[1].message
    rows = kraftlog.open(folder).metadata_transactions(COLUMNS, strict=False, faults=[]).to_pylist()
    assert rows == [{"begin_offset": 0, "end_offset": None, "state": "open", "records_count": 2}]


def test_snapshot_says_that_nothing_is_open(tmp_path: Path) -> None:
    """Where the End is lost, records behind a snapshot count, and those before it behind the gap."""
    batches = [Batch(0, 1, X), Batch(1, 1, BEGUN), Batch(3, 1, ("end",)), *(Batch(4 + at, 1, X) for at in range(6))]
    folder = write_log(tmp_path, batches, removed=[2])
    assert topics_of(image_at(MetadataLog.open(folder), None, [])) == [0]
    sound = write_log(tmp_path / "sound", batches)
    write_image(folder, image_at(MetadataLog.open(sound), 6, []))
    log = MetadataLog.open(folder)
    at = image_at(log, None, faults := [])
    assert (topics_of(at), at.open_since, faults) == ([0, 2, *range(4, 10)], None, [])
    replayed = image_at(log, None, faults, use_snapshots=False)
    assert topics_of(replayed) == [0, *range(4, 10)]
    assert [fault.error for fault in faults] == ["missing_offsets", "damaged_transaction"]
    stream = kraftlog.open(folder).records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == [0, *range(4, 10)]
    assert steps_behind(log, image_at(log, 7, [])) == [(8, [8]), (9, [9])]


def test_segment_that_cannot_be_opened(tmp_path: Path) -> None:
    """The segment of the End: what it held is missing, and the transaction of unknown outcome."""
    batches = [Batch(0, 1, X), Batch(1, 1, BEGUN), Batch(3, 1, ("data", "end")), Batch(5, 2, X)]
    folder = write_log(tmp_path, batches, cuts=[2, 3])
    opened = kraftlog.open(folder)
    (folder / f"{3:020d}.log").unlink()
    stream = opened.records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == [0, 5]
    errors = [fault.error for fault in stream.faults]
    assert errors == ["missing_offsets", "damaged_transaction", "unreadable_file"]
    found = opened.image(strict=False)
    assert topics_of(found) == [0, 5]
    assert [fault.error for fault in found.faults] == errors
    with pytest.raises(CorruptRecordError, match="offsets 3 to 4 are missing"):
        opened.image()


def test_image_of_a_sound_log_has_no_faults(tmp_path: Path) -> None:
    """With and without ``strict``."""
    opened = kraftlog.open(write_log(tmp_path, [Batch(0, 1, WHOLE)]))
    assert opened.image(strict=False).faults == opened.image().faults == ()


LEVELS = {
    "a new cluster, whose first transaction sets it": ([("begin", "level 25", "data", "end"), WHOLE], []),
    "set too low by the first transaction": ([("begin", "level 11", "end")], [2]),
    "too low": ([("level 12", "begin"), ("data", "end")], [1, 3]),
    "high enough": ([("level 13",), WHOLE], []),
    "raised later": ([("level 11", "data"), WHOLE, ("level 25",), WHOLE], [2, 4]),
    "raised by a transaction that is aborted": ([("level 11", "begin", "level 25", "abort", "begin")], [1, 4]),
    "no level": ([WHOLE, ("begin", "data", "abort")], []),
}


@pytest.mark.parametrize("case", LEVELS)
def test_markers_below_the_first_level_that_has_transactions(case: str, tmp_path: Path) -> None:
    """A row of errors for each; what they hold is read as anywhere (edge case E19)."""
    kinds, refused = LEVELS[case]
    folder = write_log(tmp_path, laid_out(0, [(each, 0, False) for each in kinds]))
    opened = kraftlog.open(folder)
    errors = opened.errors().filter(pc.field("error") == "unsupported_marker").to_pylist()
    assert [row["base_offset"] + row["record_index"] for row in errors] == refused
    for row in errors:
        assert "has no transactions; 3.6-IV1 is the first that has" in row["message"]
    image_at(MetadataLog.open(folder), None, faults := [])
    assert [fault.error for fault in faults] == ["unsupported_marker"] * len(refused)
    assert sum(fault.error == "unsupported_marker" for fault in opened.verify()) == len(refused)


def test_level_of_a_log_that_starts_later(tmp_path: Path) -> None:
    """The snapshot that it goes on from has it."""
    before = write_log(tmp_path, [Batch(0, 1, ("level 11", "data"))])
    for folder, level in ((tmp_path / "low", 11), (tmp_path / "high", 25)):
        folder.mkdir()
        later = write_log(folder, [Batch(2, 1, WHOLE)])
        at = image_at(MetadataLog.open(before), None, [])
        at.image.apply({"FeatureLevelRecord": feature_level(level)})
        write_image(later, at)
        errors = [fault.error for fault in kraftlog.open(later).verify()]
        assert errors == (["unsupported_marker"] * 2 if level < 13 else [])


def feature_level(level: int) -> pa.RecordBatch:
    columns = {"offset": [1], "name": ["metadata.version"], "feature_level": pa.array([level], pa.int16())}
    return pa.record_batch(columns)


MEMORY = """
import resource, sys
from kraftlog.metadata_log.changes import changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
import kraftlog
log = MetadataLog.open(sys.argv[1])
at = image_at(log, None, faults := [])
end = log.end_offset
at_time = log.offset_at(1 << 40)
committed = sum(batch.num_rows for batch in kraftlog.open(sys.argv[1]).records(
    ["offset"], isolation_level="read_committed").batches())
print(at.offset, end, at_time, committed, len(faults), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Batches of one NoOpRecord each, as an idle controller writes them: 80 bytes of each were kept."""
    used = []
    for count in (400_000, 1_400_000):  # what is held back for the next chunks grows no more from there on
        folder = tmp_path / str(count) / "__cluster_metadata-0"
        folder.mkdir(parents=True)
        write_no_ops(folder / f"{0:020d}.log", count)
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True, timeout=600
        )
        offset, end, at_time, committed, faults, most = map(int, done.stdout.split())
        assert (offset, end, at_time, committed, faults) == (count - 1, count, count - 1, count, 0)
        used.append(most)
    assert used[1] - used[0] < 48 << 10  # KiB; 80 bytes of a batch were 78 MiB


def write_no_ops(path: Path, count: int) -> None:
    """Write batches that differ in their base offset alone, which the checksum does not cover."""
    rows = pa.table({"value": pa.array([bytes.fromhex("01140000")], pa.binary())})
    one = np.frombuffer(bytes(kraftlog.encode(rows, partition_leader_epoch=1, timestamp_ms=7)), np.uint8)
    with path.open("wb") as file:
        for begin in range(0, count, 50_000):
            batches = np.tile(one, (min(50_000, count - begin), 1))
            offsets = np.arange(begin, begin + len(batches), dtype=">i8")
            batches[:, :8] = offsets.view(np.uint8).reshape(-1, 8)
            file.write(batches.tobytes())


def test_record_that_cannot_be_read_may_have_been_a_marker(tmp_path: Path) -> None:
    """No offset is missing, but the End is cut off its batch, whose checksum matches."""
    batches = [Batch(0, 1, BEGUN), Batch(2, 1, ("data", "end")), Batch(4, 2, X)]
    folder = write_log(tmp_path, batches[:1])
    cut = bytearray(batch_bytes(batches[1])[:-10])
    cut[8:12] = (len(cut) - 12).to_bytes(4, "big")
    cut[17:21] = kraftlog.crc32c(bytes(cut[21:])).to_bytes(4, "big")
    with (folder / f"{0:020d}.log").open("ab") as file:
        file.write(bytes(cut) + batch_bytes(batches[2]))
    opened = kraftlog.open(folder)
    assert opened.records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist() == [4]
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert topics_of(at) == [4]
    assert [fault.error for fault in faults][:1] == ["damaged_transaction"]
    assert len(faults) == 2
