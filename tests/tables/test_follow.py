"""Following logs: whatever happens to the files between two looks, rows come once, and are those that the logs have."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from growing_log import PLAIN, GrowingPartition
from kraftlog.tables.follow import Follower
from kraftlog.tables.search import Search

Row = dict[str, Any]
COLUMNS = ["topic", "partition", "offset", "value"]


def new(follower: Follower) -> list[Row]:
    return [row for batch in follower.look() for row in batch.to_pylist()]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_rows_come_once_and_in_order(tmp_path: Path, seed: int, level: Any):
    """Batches, transactions, torn batches, rolls and retention; the model of producers says what is visible."""
    chance = random.Random(seed)
    partition = GrowingPartition(tmp_path)
    follower = kraftlog.follow(tmp_path, columns=["offset", "value"], isolation_level=level)
    seen = [row["offset"] for row in new(follower)]
    opened: set[int] = set()
    for _ in range(60):
        step = chance.randrange(9)
        if step < 3:
            partition.append(chance.randint(1, 4))
        elif step < 5:
            producer = chance.randrange(3)
            opened.add(producer)
            partition.append(chance.randint(1, 3), producer)
        elif step == 5 and opened:
            producer = chance.choice(sorted(opened))
            opened.remove(producer)
            (partition.commit if chance.random() < 0.6 else partition.abort)(producer)
        elif step == 6:
            partition.append_torn(2)
            rows = new(follower)
            seen += [row["offset"] for row in rows]
            partition.complete()
        elif step == 7:
            partition.roll()
        elif step == 8:
            partition.roll()
            partition.retain(chance.randint(2, 4))
        if chance.random() < 0.7:
            rows = new(follower)
            assert [row["value"] for row in rows] == [b"v%d" % row["offset"] for row in rows]
            seen += [row["offset"] for row in rows]
            model = partition.model
            visible = model.visible if level == "read_committed" else sorted(model.state)
            begin = kraftlog.open(tmp_path).partitions[0].start_offset
            assert [at for at in visible if at >= begin and at not in seen] == []
            assert seen == sorted(set(seen))
            assert set(seen) <= set(visible)
    assert follower.faults == []


def batch(base_offset: int, values: list[bytes], epoch: int = 0) -> bytes:
    table = pa.table({"value": pa.array(values, pa.binary())})
    return kraftlog.encode(table, base_offset=base_offset, partition_leader_epoch=epoch).to_pybytes()


@pytest.mark.parametrize("epoch", [0, 3])
def test_truncation(tmp_path: Path, epoch: int):
    """To the middle, and written anew, shorter and longer than before, also under the same leader epoch."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    file = folder / f"{0:020d}.log"
    parts = [batch(at, [b"a%d" % at, b"a%d" % (at + 1)]) for at in range(0, 20, 2)]
    file.write_bytes(b"".join(parts))
    follower = kraftlog.follow(tmp_path, columns=["offset", "value"])
    assert [row["offset"] for row in new(follower)] == list(range(20))
    file.write_bytes(b"".join(parts[:5]))
    assert new(follower) == []
    assert follower.notes == ["t-0 was cut back to offset 10: rows of later offsets are shown as they are now"]
    file.write_bytes(b"".join(parts[:5]) + batch(10, [b"b"] * 3, epoch))
    assert new(follower) == [{"offset": at, "value": b"b"} for at in (10, 11, 12)]
    file.write_bytes(b"".join(parts[:2]) + batch(4, [b"c"] * 30, epoch))
    assert new(follower) == [{"offset": at, "value": b"c"} for at in range(4, 34)]
    assert follower.notes[1:] == ["t-0 was cut back to offset 4: rows of later offsets are shown as they are now"]
    file.write_bytes(batch(0, [b"d"], epoch))
    assert new(follower) == [{"offset": 0, "value": b"d"}]
    assert follower.notes[2:] == ["t-0 was cut back to offset 0: rows of later offsets are shown as they are now"]


def test_truncation_over_segments(tmp_path: Path):
    """The last segments are gone, as a follower removes them, and one is cut."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    files = [folder / f"{base:020d}.log" for base in (0, 10, 20)]
    for file, base in zip(files, (0, 10, 20), strict=True):
        file.write_bytes(b"".join(batch(at, [b"a"]) for at in range(base, base + 10)))
    follower = kraftlog.follow(tmp_path, columns=["offset"])
    assert [row["offset"] for row in new(follower)] == list(range(30))
    extra = batch(30, [b"a"])
    with files[2].open("ab") as out:
        out.write(extra)
    assert [row["offset"] for row in new(follower)] == [30]
    files[2].write_bytes(b"".join(batch(at, [b"a"]) for at in range(20, 25)))
    assert new(follower) == []
    with files[2].open("ab") as out:
        out.write(batch(25, [b"n"] * 2, 7))
    assert [row["offset"] for row in new(follower)] == [25, 26]
    assert len(follower.notes) == 1


def test_partitions_come_and_go_and_are_deleted_from(tmp_path: Path):
    first = GrowingPartition(tmp_path, partition=0)
    first.append(3)
    follower = kraftlog.follow(tmp_path, columns=["partition", "offset"])
    assert [tuple(row.values()) for row in new(follower)] == [(0, 0), (0, 1), (0, 2)]
    second = GrowingPartition(tmp_path, partition=1)
    second.append(2)
    assert [tuple(row.values()) for row in new(follower)] == [(1, 0), (1, 1)]
    first.append(4)
    first.roll()
    first.retain(1)
    first.append(1)
    assert [tuple(row.values()) for row in new(follower)] == [(0, 7)]
    shutil.rmtree(second.folder)
    assert new(follower) == []
    shutil.rmtree(first.folder)
    assert new(follower) == []
    assert follower.notes[:3] == [
        "orders-1 is new",
        "orders-0 begins at offset 7 now: offsets 3 to 6 were deleted before they were shown",
        "orders-1 is gone",
    ]
    assert "orders-0 is gone" in follower.notes


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", ["transactions", "codecs", "compaction", "deleted_records"])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("count", [0, 1, 7, 100_000])
def test_last_rows(name: str, level: Any, count: int):
    log = kraftlog.open(GOLDEN / name / "log")
    rows = log.records(COLUMNS, isolation_level=level).to_table().to_pylist()
    text = rows[len(rows) // 2]["value"][:3] if rows[len(rows) // 2]["value"] else b"a"
    for search in (None, Search(value=text)):
        wanted: dict[Any, list[Row]] = {}
        for row in rows:
            if search is None or text in (row["value"] or b""):
                wanted.setdefault((row["topic"], row["partition"]), []).append(row)
        follower = kraftlog.follow(
            GOLDEN / name / "log", columns=COLUMNS, last=count, search=search, isolation_level=level
        )
        expected = [
            row for key in sorted(wanted) for row in wanted[key][len(wanted[key]) - min(count, len(wanted[key])) :]
        ]
        assert sorted(new(follower), key=lambda row: (row["topic"], row["partition"])) == expected
        assert new(follower) == []


def pieces(folder: Path, tmp_path: Path, count: int) -> Any:
    """Copy a partition's folder bit by bit, segment after segment; yields after each bit."""
    target = tmp_path / folder.name
    target.mkdir(parents=True)
    for segment in sorted(folder.glob("*.log")):
        data, file = segment.read_bytes(), target / segment.name
        for number in range(1, count + 1):
            file.write_bytes(data[: len(data) * number // count])
            yield target


@pytest.mark.parametrize("table", ["messages", "TopicRecord"])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_messages_of_the_metadata_log(tmp_path: Path, table: str, level: Any):
    source = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
    follower, rows = None, list[Row]()
    for folder in pieces(source, tmp_path, 40):
        if follower is None:
            follower = kraftlog.follow(folder, table, ["offset", "timestamp"], isolation_level=level)
        rows += new(follower)
    whole = kraftlog.open(tmp_path / source.name).messages(
        ["offset", "timestamp"], type=None if table == "messages" else table, isolation_level=level
    )
    assert rows == whole.to_table().to_pylist()
    assert rows


@pytest.mark.parametrize("table", ["groups", "transactional_ids"])
def test_folded_tables(tmp_path: Path, table: str):
    """The rows that have changed, put over those before them, are the table as it is."""
    log, key = ("groups", "group") if table == "groups" else ("transactions", "transactional_id")
    topic = "__consumer_offsets-*" if table == "groups" else "__transaction_state-*"
    source = max(
        (GOLDEN / log / "log").glob(topic), key=lambda path: sum(one.stat().st_size for one in path.glob("*.log"))
    )
    follower, state, changes = None, dict[Any, Row](), 0
    for folder in pieces(source, tmp_path, 60):
        if follower is None:
            follower = kraftlog.follow(folder, table)
        rows = new(follower)
        changes += len(rows)
        state |= {row[key]: row for row in rows}
        there = kraftlog.open(folder).scan(table).to_table().to_pylist()
        gone = [note.removeprefix(f"{table}: ").removesuffix(" is gone") for note in follower.notes]
        state = {name: row for name, row in state.items() if row in there or name not in gone}
        assert sorted(state.values(), key=str) == sorted(there, key=str)
        assert new(follower) == []
    assert changes > len(state) > 0


def test_compaction_shows_nothing_again(tmp_path: Path):
    store = kraftlog.LogStore(tmp_path / "store")
    store.create_topic("t", configs={"cleanup.policy": "compact", "internal.segment.bytes": 2000})
    seen: list[int] = []
    follower = None
    for round_ in range(6):
        with store.producer() as producer:
            for number in range(40):
                producer.send("t", key=f"k{number % 7}", value=f"{round_}-{number}" * 5)
        follower = follower or kraftlog.follow(tmp_path / "store", columns=["offset"], topics=["t"])
        seen += [row["offset"] for row in new(follower)]
        store.clean(["t"], roll=True)
        seen += [row["offset"] for row in new(follower)]
    store.close()
    assert seen == list(range(240))
    assert follower is not None
    assert follower.notes == []


def test_damage_is_reported_once(tmp_path: Path):
    shutil.copytree(GOLDEN / "damaged" / "bit_flip_payload" / "log", tmp_path / "log")
    follower = kraftlog.follow(tmp_path / "log", columns=["offset"])
    assert len(new(follower)) == 17
    (file,) = (tmp_path / "log").rglob("*.log")
    with file.open("ab") as out:
        out.write(batch(18, [b"later"]))
    assert new(follower) == [{"offset": 18}]
    assert [fault.error for fault in follower.faults] == ["bad_crc"]


def test_what_cannot_be_followed(tmp_path: Path):
    with pytest.raises(ValueError, match="table batches cannot be followed"):
        kraftlog.follow(GOLDEN / "codecs" / "log", "batches")
    with pytest.raises(ValueError, match="last -1 is negative"):
        kraftlog.follow(GOLDEN / "codecs" / "log", last=-1)
    with pytest.raises(ValueError, match="has no column 'ofset'"):
        kraftlog.follow(GOLDEN / "codecs" / "log", columns=["ofset"])
    file = tmp_path / "copy.log"
    file.write_bytes(batch(0, [b"a"]))
    with pytest.raises(ValueError, match=r"copy\.log: only the folders of partitions can be followed"):
        new(kraftlog.follow(file))


def test_command_until_it_is_interrupted(tmp_path: Path):
    partition = GrowingPartition(tmp_path)
    partition.append(5)
    words = ["records", str(tmp_path), "--follow", "--last", "2", "--columns", "offset"]
    program = Path(sys.executable).parent / "kraftlog"
    process = subprocess.Popen([str(program), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    shown = [process.stdout.readline() for _ in range(2)]
    partition.append(1, PLAIN)
    partition.roll()
    partition.append(1)
    shown += [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    left, errors = process.communicate(timeout=30)
    assert [json.loads(line)["offset"] for line in shown] == [3, 4, 5, 6]
    assert (process.returncode, left, errors) == (130, "", "\nkraftlog: interrupted\n")
