"""What the line of a partition lacks is read from replicas that agree with it, beside a twin in plain Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from held_replicas import ORDERS, Held, batch, damaged_replicas, write
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.filtered_batch import empty_batch
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED, ReadOptions
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import Replicas
from replica_histories import Record

History = dict[int, int]
"""Where each leader epoch begins."""


def history(held: Held) -> History:
    found: History = {}
    for one in held.records:
        found.setdefault(one.epoch, one.offset)
    return found


def end_of(epoch: int, of: History, end: int) -> int:
    return min((start for other, start in of.items() if other > epoch), default=end)


def agreeing(each: Sequence[Held], line: Held) -> list[tuple[Held, int]]:
    """Return the other replicas that share an epoch with the line, and the offset at which each parts from it."""
    found: list[tuple[Held, int]] = []
    known, rest = history(line), [held for held in each if held is not line]
    while rest:
        held = max(rest, key=lambda one: max(known.keys() & history(one).keys(), default=-1))
        theirs = history(held)
        common = max(known.keys() & theirs.keys(), default=None)
        if common is None:
            return found
        until = min(end_of(common, known, line.end), end_of(common, theirs, held.end))
        found.append((held, until))
        rest.remove(held)
        first = min(known)
        known[first] = min(known[first], theirs.get(first, known[first]))
        before = min(known[first], until)
        known |= {epoch: start for epoch, start in theirs.items() if epoch < first and start < before}
    return found


def gaps(held: Held) -> list[tuple[set[int], bool]]:
    """Return what a replica lacks between its first segment and its last sound record, and whether it is damaged."""
    found: list[tuple[set[int], bool]] = []
    reached = held.start
    for offset in sorted(held.sound):
        lacks = set(range(reached, offset))
        is_damaged = not lacks.isdisjoint(held.damaged)
        found.append((lacks if is_damaged else {one for one in lacks if one >= held.cleaned}, is_damaged))
        reached = offset + 1
    return found


def removed(held: Held) -> set[int]:
    """Return the offsets that a cleaner has removed."""
    every = set(range(held.start, max(held.sound, default=held.start)))
    return every - held.sound - {offset for lacks, _ in gaps(held) for offset in lacks}


def twin(each: Sequence[Held]) -> tuple[dict[int, int], int]:
    """Return the numbers of the records by offset, and how many batches are faults."""
    line = max(each, key=lambda held: (held.last_epoch, held.end, -held.start))
    sound = [one for one in line.records if one.offset in line.sound]
    rows, faults = {one.offset: one.number for one in sound}, 0
    before_it = [(set(range(line.start)), False)] if sound else []
    for lacks, is_damaged in [*before_it, *gaps(line)]:
        if not lacks:
            continue
        low = max((one.epoch for one in sound if one.offset < min(lacks)), default=-1)
        high = min(one.epoch for one in sound if one.offset > max(lacks))
        have: dict[int, int] = {}
        gone: set[int] = set()
        for held, until in agreeing(each, line):
            for one in held.records:
                if one.offset in lacks & held.sound and one.offset < until and low <= one.epoch <= high:
                    have.setdefault(one.offset, one.number)
            gone |= {offset for offset in removed(held) if offset < until}
        rows |= have
        if is_damaged and not lacks <= have.keys() | gone:
            faults += len((lacks & line.damaged) - have.keys())
    return dict(sorted(rows.items())), faults


@settings(max_examples=60)
@given(damaged_replicas(), st.integers(1, 4))
def test_random_replicas(each: list[Held], rolls: int):
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "abc"]
        for path, held in zip(paths, each, strict=True):
            write(path, held, rolls)
        stream = kraftlog.open(paths).records(["offset", "value"])
        rows = [(row["offset"], int(row["value"].split()[1])) for row in stream.to_table().to_pylist()]
        numbers, faults = twin(each)
        assert rows == list(numbers.items())
        assert len(stream.faults) == faults


def damage(folder: Path, numbers: Sequence[int]) -> None:
    """Flip a bit of each batch with such a number, of every log file below a folder; not of its last batch."""
    for path in folder.rglob("*.log"):
        headers = np.concatenate([np.empty(0, HEADER_DTYPE), *HeaderScan(path.read_bytes()).headers()])
        data = bytearray(path.read_bytes())
        for header in headers[:-1]:
            if int(header["base_offset"]) % 5 in numbers:
                data[int(header["position"]) + 17] ^= 1  # of the checksum
        path.write_bytes(data)


@pytest.fixture
def halves(tmp_path: Path) -> Callable[[Path], list[Path]]:
    def copy(directory: Path) -> list[Path]:
        """Return two copies of a log directory that are damaged in different places."""
        found = [tmp_path / name / "log" for name in "ab"]
        for folder, numbers in zip(found, ((0, 1), (2, 4)), strict=True):
            shutil.copytree(directory, folder)
            damage(folder, numbers)
        return found

    return copy


NAMES = (
    "transactions",
    "groups",
    "schema_registry/serializers",
    "metadata_txn/controller_failover",
    "compaction",
)


@pytest.mark.parametrize("name", NAMES)
def test_two_damaged_copies_have_the_rows_of_a_sound_one(name: str, halves: Callable[[Path], list[Path]]):
    directory = GOLDEN / name / "log"
    sound, damaged = kraftlog.open(directory), kraftlog.open(halves(directory))
    healed = 0
    for table in TABLES.values():
        if table.replicas is not Replicas.LINE:
            continue
        columns = [*table.schema.shown, *table.schema.on_request]
        for level in READ_UNCOMMITTED, READ_COMMITTED:
            how = columns, ReadOptions(isolation_level=level, strict=True, include_control=True)
            stream = damaged.scan(table.name, *how)
            assert stream.to_table().to_pylist() == sound.scan(table.name, *how).to_table().to_pylist(), table.name
            assert stream.faults == []
            healed += any(" read from " in note for note in stream.notes)
    assert healed


@pytest.mark.parametrize("table", ["records", "producers", "offsets", "transactions"])
def test_spark_logs_what_is_read_from_where(
    table: str, halves: Callable[[Path], list[Path]], caplog: pytest.LogCaptureFixture
):
    """Notes that other doors show are warnings of a job's plan, or of the one task that reads a table."""
    paths = halves(GOLDEN / "transactions" / "log")
    stream = kraftlog.open(paths).scan(table, None, TABLES[table].read_options({"strict": True}))
    expected = stream.to_table().num_rows
    assert any(" read from " in note for note in stream.notes)
    request = parse_request({"paths": json.dumps([*map(str, paths)]), "table": table})
    with caplog.at_level("WARNING", "kraftlog.spark"):
        assert sum(batch.num_rows for part in plan_parts(request) for batch in read(request, part, [])) == expected
    logged = [one.getMessage() for one in caplog.records]
    assert set(stream.notes) <= set(logged)
    assert len(logged) == len(set(logged))


@pytest.mark.parametrize("name", NAMES[:4])
def test_without_it_damage_is_a_fault(name: str, halves: Callable[[Path], list[Path]]):
    directory = GOLDEN / name / "log"
    log = kraftlog.open(halves(directory))
    for table in TABLES.values():
        if table.replicas is Replicas.LINE and kraftlog.open(directory).scan(table.name).to_table().num_rows:
            stream = log.scan(table.name, None, table.read_options({"heal": False, "strict": False}))
            rows = stream.to_table().to_pylist()
            assert not any(" read from " in note and "are read from" in note for note in stream.notes)
            alone = log.lines.found
            expected = type(log)(alone).scan(table.name, None, table.read_options({"strict": False}))
            assert rows == expected.to_table().to_pylist()
            assert stream.faults == expected.faults


def held(*records: tuple[int, int, int], damaged: tuple[int, ...] = (), cleaned: int = 0, start: int = 0) -> Held:
    """Return a replica of records, by offset, leader epoch and number."""
    return Held(start, [Record(*one) for one in records], set(damaged), cleaned)


def of_epoch(epoch: int, *offsets: int) -> list[tuple[int, int, int]]:
    return [(offset, epoch, offset) for offset in offsets]


CASES: dict[str, tuple[list[Held], list[int], int]] = {
    "a gap that a cleaner left": (
        [held(*of_epoch(0, 0, 3, 4), cleaned=3), held(*of_epoch(0, 0, 1, 2, 3))],
        [0, 3, 4],
        0,
    ),
    "a gap behind where the cleaner was": (
        [held(*of_epoch(0, 0, 3, 4), cleaned=2), held(*of_epoch(0, 0, 1, 2, 3))],
        [0, 2, 3, 4],
        0,
    ),
    "damage behind where they part": (
        [held(*of_epoch(1, 0, 1, 2), *of_epoch(2, 3, 4), damaged=(3,)), held(*of_epoch(1, 0, 1, 2, 3, 4))],
        [0, 1, 2, 4],
        1,
    ),
    "a gap between epochs that the other's is not between": (
        [held(*of_epoch(2, 0, 2, 3)), held(*of_epoch(1, 0, 1), *of_epoch(2, 2))],
        [0, 2, 3],
        0,
    ),
    "an epoch that is only shared with another replica": (
        [
            held(*of_epoch(0, 0, 1)),
            held(*of_epoch(0, 0), *of_epoch(1, 1), *of_epoch(2, 2), damaged=(0,)),
            held(*of_epoch(2, 2, 3), start=2),
        ],
        [0, 1, 2, 3],
        0,
    ),
    "an epoch that is shared with another replica, of which one is shared with the line": (
        [
            held(*of_epoch(0, 0, 1)),
            held(*of_epoch(0, 0), *of_epoch(1, 1), *of_epoch(2, 2), damaged=(0,)),
            held(*of_epoch(2, 2), *of_epoch(3, 3), start=2),
        ],
        [0, 1, 2, 3],
        0,
    ),
    "what two others have": (
        [held(*of_epoch(0, 0, 1, 2)), held(*of_epoch(0, 0, 1, 2)), held(*of_epoch(0, 0, 3))],
        [0, 1, 2, 3],
        0,
    ),
    "damage that the other's cleaner has removed": (
        [held(*of_epoch(0, 0, 2, 3, 4), damaged=(2,)), held(*of_epoch(0, 0, 3), cleaned=3)],
        [0, 3, 4],
        0,
    ),
    "damage between others' offsets": (
        [held(*of_epoch(0, 1, 3, 4), damaged=(1,)), held(*of_epoch(0, 0, 2, 3))],
        [0, 2, 3, 4],
        1,
    ),
    "damage in all replicas": (
        [held(*of_epoch(0, 0, 1, 2), damaged=(1,)), held(*of_epoch(0, 0, 1, 2), damaged=(1,))],
        [0, 2],
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, tmp_path: Path):
    each, offsets, faults = CASES[name]
    for number, one in enumerate(each):
        write(tmp_path / str(number), one, 5)
    log = kraftlog.open([tmp_path / str(number) for number in range(len(each))])
    for level, salvage in product((READ_UNCOMMITTED, READ_COMMITTED), (False, True)):
        stream = log.scan("records", ["offset"], ReadOptions(isolation_level=level, salvage=salvage))
        assert stream.to_table()["offset"].to_pylist() == offsets == list(twin(each)[0])
        assert len(stream.faults) == faults == twin(each)[1]


@pytest.mark.parametrize(
    ("emptied", "missing", "offsets"),
    [(None, [(2, 6)], [0, 1, 2, 3, 4, 5, 6, 7]), (0, [(2, 6)], [2, 3, 4, 5, 6, 7]), (6, [], [0, 1])],  # of a sound one
)
@pytest.mark.parametrize("is_sound", [True, False])
def test_a_batch_that_lacks_records_shows_a_cleaner(
    emptied: int | None, missing: list[tuple[int, int]], offsets: list[int], is_sound: bool, tmp_path: Path
):
    """Without a checkpoint of it, too: what lies before such a batch is no gap, if the batch is sound."""
    for name, firsts in (("a", (0, 6, 8)), ("b", (0, 2, 4))):
        (folder := tmp_path / name / "orders-0").mkdir(parents=True)
        for first in firsts:
            two = pa.table({"value": [b"v", b"w"]})
            data = kraftlog.encode(two, base_offset=first, partition_leader_epoch=0).to_pybytes()
            if name == "a" and first == emptied:
                data = bytearray(empty_batch(data))
                data[17] ^= not is_sound  # of the checksum
            with (folder / f"{min(first, 6):020d}.log").open("ab") as file:
                file.write(data)
    if not is_sound:
        missing = [(0 if emptied == 0 else 2, 6)]
        offsets = [0, 1, 2, 3, 4, 5, *([] if emptied == 6 else [6, 7])]
    log = kraftlog.open([tmp_path / "a", tmp_path / "b"])
    rows = log.replicas(["directory", "missing"], faults=[]).to_pylist()
    (found,) = [row["missing"] for row in rows if row["directory"] == str(tmp_path / "a")]
    assert [(one["first_offset"], one["end_offset"]) for one in found] == missing
    assert log.records(["offset"], strict=False).to_table()["offset"].to_pylist() == [*offsets, 8, 9]


@pytest.mark.parametrize(("other", "offsets"), [((0, 1, 2, 3, 4), [0, 1, 2, 3, 4]), ((0, 1, 3, 4), [0, 2, 3, 4])])
def test_what_a_search_finds_is_read_once(other: tuple[int, ...], offsets: list[int], tmp_path: Path):
    """Behind a header that is damaged; where others lack some of what may be there, the line is searched instead."""
    for name, has in (("a", range(5)), ("b", other)):
        write(tmp_path / name, held(*of_epoch(0, *has)), 3)
    (path,) = (tmp_path / "a").rglob(f"{0:020d}.log")
    data = bytearray(path.read_bytes())
    size = len(data) // 3
    data[size + 8 : size + 12] = b"\xff" * 4  # of a batch: its length
    path.write_bytes(data)
    found = kraftlog.open([tmp_path / "a", tmp_path / "b"]).records(["offset"], salvage=True, strict=False)
    assert found.to_table()["offset"].to_pylist() == offsets


def test_damage_that_is_left_is_where_it_is_in_the_file(tmp_path: Path):
    """Beside damage that was replaced, which cuts the file into parts."""
    each = held(*of_epoch(0, *range(6)), damaged=(1, 3)), held(*of_epoch(0, *range(5)), damaged=(3,))
    for number, one in enumerate(each):
        write(tmp_path / str(number), one, 9)
    log = kraftlog.open([tmp_path / "0", tmp_path / "1"])
    healed, alone = log.records(["offset"]), log.records(["offset"], heal=False)
    assert healed.to_table()["offset"].to_pylist() == [0, 1, 2, 4, 5]
    assert alone.to_table()["offset"].to_pylist() == [0, 2, 4, 5]
    assert [fault.base_offset for fault in alone.faults] == [1, 3]
    assert healed.faults == alone.faults[1:]


LATER: dict[str, tuple[dict[int, tuple[int, ...]], list[int], int]] = {  # offsets by base offset of changed files
    "a file that was cleaned": ({0: (1,)}, [2, 3, 4, 5], 1),
    "files that were cleaned into one": ({0: (1, 3), 2: ()}, [1, 3, 4, 5], 1),
    "files that retention deleted": ({0: (), 2: ()}, [0, 1, 2, 3, 4, 5], 0),
}


@pytest.mark.parametrize("name", LATER)
def test_files_that_a_broker_replaced_after_they_were_listed_are_no_damage(name: str, tmp_path: Path):
    """Another replica may have what was just removed: where its own cleaner was, it would be among later records."""
    changed, offsets, faults = LATER[name]
    line = held(*of_epoch(0, *range(6)))
    write(tmp_path / "a", line, 2)
    write(tmp_path / "b", held(*of_epoch(0, *range(4))), 4)
    log = kraftlog.open([tmp_path / "a", tmp_path / "b"])
    for base_offset, left in changed.items():
        path = tmp_path / "a" / f"{ORDERS}-0" / f"{base_offset:020d}.log"
        path.write_bytes(b"".join(batch(one) for one in line.records if one.offset in left))
        if not left:
            path.unlink()
    stream = log.records(["offset"], strict=False)
    assert stream.to_table()["offset"].to_pylist() == offsets
    assert len(stream.faults) == faults
