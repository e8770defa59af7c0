"""What read_committed leaves out, compared with the rows of read_uncommitted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN, name_of, scenarios
from kraftlog.codec.options import ReadOptions
from kraftlog.topics import CLUSTER_METADATA

ORDERS = GOLDEN / "transactions" / "log"
FOLDERS = [folder / "log" for folder in scenarios() if name_of(folder) != "legacy"]


def rows_of(log: kraftlog.Log, **bounds: int) -> pa.Table:
    columns = ["partition", "offset", "transaction_state"]
    return log.records(columns, **bounds).to_table()  # type: ignore[arg-type]


@pytest.mark.sweep(12)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("bounds", [{}, {"start_offset": 7}, {"start_offset": 11, "end_offset": 41}], ids=str)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_aborted_records_are_counted(folder: Path, bounds: dict[str, int], workers: int) -> None:
    """Those before the last stable offset of their partition, and within the bounds."""
    log = kraftlog.open(folder)
    for topic in log.topics:
        if topic == CLUSTER_METADATA:
            continue
        one = kraftlog.open(folder, topics=[topic])
        stream = one.scan(
            "records", ["offset"], ReadOptions(isolation_level="read_committed", **bounds), workers=workers
        )
        stream.to_table()
        stops = {place.partition: place.offset for place in stream.notes.unstable_offsets}
        expected = [
            row
            for row in rows_of(one, **bounds).to_pylist()
            if row["transaction_state"] == "aborted" and row["offset"] < stops.get(row["partition"], 2**62)
        ]
        assert stream.notes.aborted_records == len(expected), topic
        again = stream.to_table()
        assert (stream.notes.aborted_records, again.num_rows) == (len(expected), stream.to_table().num_rows)


def test_a_batch_that_is_decoded_although_it_is_hidden(tmp_path: Path) -> None:
    """Damage after it leaves no header that its length leads to."""
    folder = Path(shutil.copytree(ORDERS / "orders-0", tmp_path / "orders-0"))
    whole = rows_of(kraftlog.open(folder))
    count = pc.sum(pc.equal(whole["transaction_state"], "aborted")).as_py()
    path, place = next(
        (path, later[0])
        for path in sorted(folder.glob("*.log"))
        for rows in [kraftlog.open(path).records(["position", "transaction_state"]).to_table().to_pylist()]
        for row in rows
        if row["transaction_state"] == "aborted"
        for later in [[one["position"] for one in rows if one["position"] > row["position"]]]
        if later and later[0] != row["position"]
    )
    data = bytearray(path.read_bytes())
    data[place + 8 : place + 12] = (13).to_bytes(4)  # batch_length of the next batch with records
    path.write_bytes(data)
    log = kraftlog.open(folder)
    stream = log.scan("records", ["offset"], ReadOptions(isolation_level="read_committed"))
    stream.to_table()
    assert stream.faults
    hidden = [row for row in rows_of(log).to_pylist() if row["transaction_state"] == "aborted"]
    assert 0 < stream.notes.aborted_records == len(hidden) <= count


def test_each_pass_counts_anew() -> None:
    stream = kraftlog.open(ORDERS, topics=["orders"]).records(["offset"], isolation_level="read_committed")
    for _ in range(2):
        stream.to_table()
        assert (stream.notes.aborted_records, len(stream.notes.unstable_offsets)) == (54, 2)


def test_export_says_how_many_records_were_left_out(tmp_path: Path) -> None:
    """In one note: the rest is what read_uncommitted has."""
    for folder, topic in ((ORDERS, "orders"), (GOLDEN / "transactions_hanging" / "log", "orders-late")):
        log = kraftlog.open(folder, topics=[topic])
        every = log.records(["offset"]).to_table().num_rows
        done = run_command("export", folder, tmp_path / topic, "-t", topic)
        assert done.returncode == 0
        (note,) = [line for line in done.stderr.splitlines() if line.startswith("read_committed: ")]
        numbers = [int(word.replace(",", "")) for word in note.split() if word.replace(",", "").isdecimal()]
        written = int(done.stdout.split()[1])
        assert sum(numbers) == every - written > 0
    done = run_command("export", GOLDEN / "codecs" / "log", tmp_path / "none", "-t", "codec-lz4")
    assert done.stderr == "read_committed: left out no records\n"
    done = run_command("export", ORDERS, tmp_path / "all", "-t", "orders", "--isolation-level", "read_uncommitted")
    assert done.stderr == ""


def test_bounds_count_in_the_note(tmp_path: Path) -> None:
    options = ("-t", "orders", "--start-offset", 10, "--end-offset", 60)
    done = run_command("export", ORDERS, tmp_path / "out", *options)
    text = run_command("records", ORDERS, *options, "--format", "jsonl", "--columns", "offset").stdout
    every = [json.loads(line) for line in text.splitlines()]
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("read_committed: ")]
    numbers = [int(word) for word in note.split() if word.isdecimal()]
    assert sum(numbers) == len(every) - int(done.stdout.split()[1]) > 0
