"""Lists of files in columns have the rows, in their order, that a list of Python's rows would have."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from growing_log import GrowingPartition
from kraftlog.backup import file_list
from kraftlog.backup.backup_folder import BackupFolder
from kraftlog.backup.file_list import FilesByPartition, NewFiles
from kraftlog.backup.sizes_at_cut import with_sizes_at_cut
from kraftlog.disk.backup_files import FILES, read_files, written_files
from kraftlog.topics import TopicPartition

Row = dict[str, Any]


def row(of: TopicPartition | None, number: int, **others: object) -> Row:
    path = f"{of}/{number:020d}.log" if of else f"checkpoint-{number}"
    topic, partition = of or (None, None)
    every = dict.fromkeys(FILES.names) | {"path": path, "topic": topic, "partition": partition, "size": number}
    return {**every, "size_at_cut": number, **others}


PARTITIONS = st.sampled_from([None, *(TopicPartition(topic, number) for topic in ("a", "b") for number in range(3))])
RUNS = st.lists(st.tuples(PARTITIONS, st.integers(0, 3)), max_size=12)


def rows_of_runs(runs: list[tuple[TopicPartition | None, int]]) -> list[Row]:
    each = [of for of, count in runs for _ in range(count)]
    return [row(of, number) for number, of in enumerate(each)]


@given(RUNS)
def test_files_of_a_partition_are_found_wherever_they_are(runs: list[tuple[TopicPartition | None, int]]):
    rows = rows_of_runs(runs)
    files = FilesByPartition(pa.Table.from_pylist(rows, FILES))
    for of in (TopicPartition(topic, number) for topic in ("a", "b", "c") for number in range(4)):
        assert files.rows_of(of) == [one for one in rows if (one["topic"], one["partition"]) == of]


@settings(deadline=None)
@given(RUNS, st.data(), st.integers(1, 4), st.integers(2, 4))
def test_new_files_are_those_that_were_added(
    runs: list[tuple[TopicPartition | None, int]], data: st.DataObject, at_once: int, most_tables: int
):
    """Rows and the files of an older list are in turn; both are collected into larger tables."""
    older_rows = rows_of_runs(runs)
    older = FilesByPartition(pa.Table.from_pylist(older_rows, FILES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_list, "ROWS_AT_ONCE", at_once)
        patch.setattr(file_list, "_MOST_TABLES", most_tables)
        new, expected = NewFiles(), list[Row]()
        partitions = [of for of, _ in groupby(runs, key=lambda one: one[0])]
        for of in data.draw(st.permutations(partitions)) if data.draw(st.booleans()) else partitions:
            if of is None or data.draw(st.booleans()):
                rows = [row(of, 1000 + number) for number in range(data.draw(st.integers(0, 3)))]
                new.add(rows)
            else:
                rows = older.rows_of(of)
                new.add_same(older, of)
            expected += rows
            assert len(new) == len(expected)
        assert new.table().to_pylist() == expected


def test_a_list_of_several_row_groups_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kraftlog.disk.backup_files._ROWS_AT_ONCE", 3)
    files = pa.Table.from_pylist(rows_of_runs([(TopicPartition("a", 0), 8), (None, 2)]), FILES)
    path = Path("nightly/backups/x.parquet")
    assert read_files(written_files(files), path).equals(files)
    assert read_files(written_files(files), path, ["size", "path"]).equals(files.select(["size", "path"]))
    assert read_files(written_files(FILES.empty_table()), path).equals(FILES.empty_table())


def test_sizes_at_a_cut(tmp_path: Path):
    """The segments end at 20, 40 and 60; those of an older cut, and snapshots, are counted again."""
    log = GrowingPartition(tmp_path / "log")
    batches = [log.segment.stat().st_size]
    for number in range(6):
        log.append(10)
        batches.append(log.segment.stat().st_size)
        if number % 2 and number < 5:
            log.roll()
    repository = kraftlog.Repository(tmp_path / "nightly")
    files = repository.files(repository.backup(tmp_path / "log").name)
    logs = [one for one in files.to_pylist() if one["path"].endswith(".log")]
    assert [one["next_offset"] for one in logs] == [20, 40, 60]
    of = TopicPartition(logs[0]["topic"], logs[0]["partition"])
    besides = [row(of, 0, path=f"{of}/{at:020d}.{kind}", size=5) for at, kind in ((20, "txnindex"), (60, "snapshot"))]
    first, last = batches[1], batches[5]  # the first batch of the first and the last segment
    for end_offset, expected in (
        (100, [logs[0]["size"], logs[1]["size"], logs[2]["size"], 5, 5]),
        (60, [logs[0]["size"], logs[1]["size"], logs[2]["size"], 5, 5]),
        (50, [logs[0]["size"], logs[1]["size"], last, 5, None]),
        (40, [logs[0]["size"], logs[1]["size"], None, 5, None]),
        (20, [logs[0]["size"], None, None, 5, None]),
        (10, [first, None, None, None, None]),
        (0, [0, None, None, None, None]),
    ):
        for size_at_older_cut in (None, 1, "size"):
            rows = [
                {**one, "size_at_cut": one["size"] if size_at_older_cut == "size" else size_at_older_cut}
                for one in (*logs, *besides)
            ]
            other = row(None, 7)
            table = pa.Table.from_pylist([other, *rows, other], FILES)
            found = with_sizes_at_cut(table, [(1, 6)], [end_offset], BackupFolder(tmp_path / "nightly"))
            assert found.column("size_at_cut").to_pylist() == [7, *expected, 7], (end_offset, size_at_older_cut)
            assert found.drop_columns(["size_at_cut"]).equals(table.drop_columns(["size_at_cut"]))
