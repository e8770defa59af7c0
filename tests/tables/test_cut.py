"""Accounts whose sum is constant, read at cuts of random times: no transaction is torn, nor an offset too late."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

import kraftlog
from accounts import ACCOUNTS, ORDERS, counted, history, holds_nothing_back, is_whole, with_clocks_of_leaders
from command_line import run_command
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import Cut, CutTime, Side

TIMES = 8


def is_extracted_whole(log: kraftlog.Log, folder: Path, time: int) -> None:
    """Compare a copy up to a time with the log at the cut; what is open there is aborted in the copy."""
    done = kraftlog.extract(folder / "store", folder / "copy", topics=[ACCOUNTS, ORDERS], end_timestamp=time + 1)
    copy = kraftlog.open(folder / "copy")
    at = kraftlog.open(
        folder / "store",
        topics=[ACCOUNTS, ORDERS],
        cut=f"at-or-before:{datetime.fromtimestamp(time / 1000, UTC).isoformat()}",
    )
    states = [row["state"] for row in copy.partition_transactions(["state"]).to_pylist()]
    ended = [row["state"] for row in at.partition_transactions(["state"]).to_pylist()]
    assert ended.count("open") == states.count("aborted") - ended.count("aborted") > 0
    assert states.count("open") == 0
    assert sum("ABORT" in note for note in done.notes) > 0
    for level in ("read_committed", "read_uncommitted"):
        columns = ["topic", "partition", "offset", "value"]
        rows = [one.records(columns, isolation_level=level).to_table() for one in (copy, at)]
        assert rows[0].equals(rows[1])
        assert rows[0].num_rows > 0


def test_cuts_at_random_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    draw = Random(1)
    with_clocks_of_leaders(monkeypatch, draw)
    begin, end = history(tmp_path / "store", draw)
    log = kraftlog.open(tmp_path / "store")
    whole, rows = log.cut("end"), list(counted(log))
    assert is_whole(log.at(whole))
    moved = later = 0
    for _ in range(TIMES):
        time = draw.randint(begin, end)
        before = log.cut(CutTime(Side.AT_OR_BEFORE, time))
        assert is_whole(log.at(before))
        assert holds_nothing_back(log.at(before))
        moved += any(True for _ in before.notes())
        later_rows = [row for row in rows if row[3] > time]
        for of, asked in before.asked.items():
            first = min((offset for *where, offset, _ in later_rows if of == tuple(where)), default=whole.asked[of])
            assert asked == first
        assert all(stamp <= time for *_, stamp in counted(log.at(before)))
        try:
            after = log.cut(CutTime(Side.AT_OR_AFTER, time))
        except ValueError as error:
            if not str(error).startswith("no cut: transaction"):
                raise
            continue
        later += 1
        assert is_whole(log.at(after))
        there = {row[:3] for row in counted(log.at(after))}
        assert {row[:3] for row in rows if row[3] <= time} <= there
        assert all(before.ends[of] <= after.ends[of] <= whole.asked[of] for of in after.ends)
    assert moved > 1
    assert later > 1
    time = draw.randint(begin, end)
    is_extracted_whole(log, tmp_path, time)


def test_a_file_that_is_truncated_before_it_is_cut(tmp_path: Path):
    """It ends where the readable part does, and each table reports that."""
    history(tmp_path / "store", Random(2))
    folder = tmp_path / "store" / f"{ORDERS}-0"
    log = kraftlog.open(folder)
    whole = log.batches(["position", "base_offset"]).to_pylist()
    end = log.partitions[0].end_offset
    truncated = whole[len(whole) // 2]
    os.truncate(next(folder.glob("*.log")), truncated["position"] + 80)
    cut = log.at(Cut({TopicPartition(ORDERS, 0): end}))
    assert cut.partitions[0].end_offset == truncated["base_offset"]
    stream = cut.records(["offset"])
    assert max(stream.to_table()["offset"].to_pylist()) < truncated["base_offset"]
    assert [(fault.error, fault.position) for fault in stream.faults] == [("unreadable_file", truncated["position"])]
    assert cut.errors(["error"]).to_pylist() == [{"error": "unreadable_file"}]


def test_a_fault_after_the_cut_is_reported_once(tmp_path: Path):
    """What cannot be read at the end moves the cut; each table reports it, and what lies before the cut as well."""
    history(tmp_path / "store", Random(2))
    folder = tmp_path / "store" / f"{ORDERS}-0"
    whole = kraftlog.open(folder).batches().to_pylist()
    first, last = whole[2], whole[-1]
    path = next(folder.glob("*.log"))
    data = bytearray(path.read_bytes())
    for batch in (first, last):
        data[batch["position"] + batch["size_in_bytes"] - 1] ^= 1
    path.write_bytes(data)
    log = kraftlog.open(tmp_path / "store", cut="end")
    stream = log.records(["offset"])
    rows = stream.to_table()
    assert sorted(fault.position or 0 for fault in stream.faults) == [first["position"], last["position"]]
    assert "the cut may lie elsewhere" in " ".join(stream.notes)
    assert rows.num_rows > 0
    with pytest.raises(kraftlog.RecordError):
        kraftlog.open(tmp_path / "store").cut("end")
    done = run_command("records", tmp_path / "store", "--cut", "end", "--columns", "offset")
    assert done.returncode == 1
    assert run_command("records", tmp_path / "store", "--cut", "end", "--last", 1).returncode == 2


def test_sql_up_to_a_cut(tmp_path: Path):
    """Rows, counts from headers, and the last offsets, which are searched from the end of the log."""
    begin, end = history(tmp_path / "store", Random(3))
    whole = kraftlog.open(tmp_path / "store")
    time = datetime.fromtimestamp((begin + end) / 2000, UTC).isoformat()
    cut = f"at-or-before:{time}"
    log = kraftlog.open(tmp_path / "store", cut=cut)
    rows = log.records(["partition", "offset", "value"], isolation_level="read_committed").to_table().to_pylist()
    assert 0 < len(rows) < whole.records(["offset"], isolation_level="read_committed").to_table().num_rows
    queries = {
        "select sum(cast(decode(value) as int))::int as found from accounts": 0,
        "select count(*) as found from records": len(rows),
        'select "offset" as found from records order by "offset" desc limit 1': max(row["offset"] for row in rows),
    }
    for query, found in queries.items():
        options = ("--isolation-level", "read_committed", "--cut", cut, "--format", "jsonl")
        done = run_command("sql", tmp_path / "store", *options, query)
        assert (done.returncode, json.loads(done.stdout)) == (0, {"found": found})
