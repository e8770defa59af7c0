"""Times and offsets as users give them, in every interface; and why nothing is shown, or a file is refused."""

from __future__ import annotations

import datetime
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk
from kraftlog.spark.offsets import Position
from kraftlog.spark.options import parse_request
from kraftlog.times import milliseconds, text_of

NOW = 1_795_248_000_000  # 2026-11-21T08:00:00Z
DAY = 86_400_000
LOG = GOLDEN / "transactions" / "log"
ORDERS = LOG / "orders-0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("today", NOW - 8 * 3_600_000),
        ("yesterday", NOW - DAY - 8 * 3_600_000),
        ("Yesterday 14:00", NOW - DAY + 6 * 3_600_000),
        ("yesterday  7:00:01", NOW - DAY - 3_599_000),
        ("-90s", NOW - 90_000),
        ("-1h30m", NOW - 5_400_000),
        ("-2w1d", NOW - 15 * DAY),
        ("2026-11-21", NOW - 8 * 3_600_000),
        (" 2026-11-21T09:00+01:00 ", NOW),
        ("@1795248000.5", NOW + 500),
        ("1795248000000", NOW),
        ("1795248000ms", 1_795_248_000),
        ("99", 99),
        (datetime.datetime(2026, 11, 21, 8), NOW),
        (10**9 - 1, 10**9 - 1),
        (10**11, 10**11),
    ],
)
def test_times(text: Any, expected: int):
    assert milliseconds(text, NOW) == expected


def test_the_clock_counts_spans_and_days():
    before = milliseconds("now")
    assert before - 60_000 <= milliseconds("-1m") <= milliseconds("now") - 60_000
    assert text_of(milliseconds("today")).endswith("T00:00:00Z")


@pytest.mark.parametrize("text", ["soon", "-5", "", "-1y", "yesterday 25:00", "tomorrow", "1.5", "@", "-h", "1h"])
def test_what_is_no_time(text: str):
    with pytest.raises(ValueError, match="is not a time such as 2026-11-21T08:00:00Z"):
        milliseconds(text)


LIKE_SECONDS = "timestamp 1704067200 looks like seconds of 2024-01-01T00:00:00Z: give 1704067200000, or"
REFUSED = [
    ({"start_timestamp": 1_704_067_200}, LIKE_SECONDS),
    ({"start_offset": 5, "end_offset": 4}, "the start offset 5 is after the end offset 4"),
    (
        {"start_timestamp": "2026-11-21", "end_timestamp": "2026-11-20T12:00"},
        "the start time 2026-11-21T00:00:00Z is after the end time 2026-11-20T12:00:00Z",
    ),
    ({"end_offset": -5}, "the end offset -5 is negative"),
]


@pytest.mark.parametrize(("bounds", "said"), REFUSED)
def test_bounds_that_mean_nothing_are_refused_in_python_and_commands(bounds: dict[str, Any], said: str):
    log = kraftlog.open(ORDERS)
    with pytest.raises(ValueError, match=said):
        log.records(**bounds)
    options = [text for name, value in bounds.items() for text in (f"--{name.replace('_', '-')}", value)]
    for command in ("records", "batches"):
        done = run_command(command, ORDERS, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startTimestamp": "1704067200"}, f"option startTimestamp: {LIKE_SECONDS}"),
        ({"startTimestamp": "-1h", "endTimestamp": "-2h"}, "the start time .* is after the end time"),
        ({"startingOffsets": "-5"}, "option startingOffsets is '-5', not earliest, latest, a number or JSON"),
    ],
)
def test_bounds_that_mean_nothing_are_refused_in_spark(options: dict[str, str], said: str):
    with pytest.raises(ValueError, match=said):
        parse_request({"path": str(ORDERS), **options})


def test_an_inverted_range_of_offsets_in_spark():
    given = {"path": str(ORDERS), "startingOffsets": "9", "endingOffsets": "8"}
    with pytest.raises(ValueError, match="the start offset 9 is after the end offset 8"):
        parse_request(given)
    request = parse_request({**given, "startingOffsets": "8"})
    interval = replace(request.interval, starting=Position(9))
    with pytest.raises(ValueError, match="orders-0: the start offset 9 is after the end offset 8"):
        interval.within(request.options, kraftlog.open(ORDERS).found.segments)


def test_equal_bounds_are_an_empty_range():
    assert kraftlog.open(ORDERS).records(start_offset=5, end_offset=5).to_table().num_rows == 0


def test_a_negative_start_counts_from_the_end():
    columns = ("--columns", "partition,offset")
    for count in (1, 5):
        from_end = run_command("records", LOG, "-t", "orders", "--start-offset", -count, *columns)
        assert from_end.stdout == run_command("records", LOG, "-t", "orders", "-o", -count, *columns).stdout != ""
    done = run_command("records", LOG, "-t", "orders", "--start-offset", -1, "-o", 3)
    assert (done.returncode, "-o and --start-offset exclude each other" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["records", ORDERS, "--start-offset", 500], "no rows: no offset from 500 on; orders-0 has 0 to 129"),
        (
            ["records", ORDERS, "--start-offset", 3, "--end-offset", 3],
            "no rows: no record with an offset from 3 on and before 3",
        ),
        (
            ["records", ORDERS, "--end-timestamp", "2020-01-01"],
            "no rows: no record with a timestamp before 2020-01-01T00:00:00Z",
        ),
        (["grep", ORDERS, "--value", "not there"], "no rows: no record matches"),
        (["records", LOG, "-t", "orders", "-p", 0, "-c", 0], ""),
        (["records", ORDERS, "-c", 1], ""),
    ],
)
def test_why_nothing_is_shown(arguments: list[object], said: str):
    done = run_command(*arguments)
    assert (done.returncode, done.stderr.strip()) == (int(arguments[0] == "grep"), said)
    assert (done.stdout == "") == (said != "" or 0 in arguments[1:][-1:])


def test_nothing_is_there(tmp_path: Path):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").touch()
    done = run_command("records", tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "no rows: orders-0 is empty")


def test_what_is_not_committed_is_named():
    rows = kraftlog.open(ORDERS).records(["offset", "transaction_state"]).to_table().to_pylist()
    aborted = next(row["offset"] for row in rows if row["transaction_state"] == "aborted")
    bounds = ("--start-offset", aborted, "--end-offset", aborted + 1)
    done = run_command("records", ORDERS, "--isolation-level", "read_committed", *bounds)
    within = f"an offset from {aborted} on and before {aborted + 1}"
    assert f"no rows: no committed record with {within}; read_uncommitted shows" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{0:020d}.index", "is an index of offsets, not a log: kraftlog dump .* shows it, and kraftlog verify"),
        (f"{0:020d}.timeindex", "is an index of timestamps, not a log"),
        (f"{0:020d}.txnindex", "is an index of aborted transactions, not a log"),
        (f"{32:020d}.snapshot", "is a snapshot of producers, not a log"),
        ("leader-epoch-checkpoint", "is the checkpoint of leader epochs, not a log"),
        ("notes.txt", "is not a log: neither its name nor its first bytes are those of a log file"),
    ],
)
@pytest.mark.parametrize("command", ["records", "verify"])
def test_files_that_are_no_logs(tmp_path: Path, command: str, name: str, said: str):
    folder = shutil.copytree(ORDERS, tmp_path / "orders-0")
    (folder / "notes.txt").write_text("these are the notes of one who has looked at a log")
    if command == "records" or not said.startswith(("is an index", "is a snapshot")):  # verify checks those
        done = run_command(command, folder / name)
        assert (done.returncode, done.stdout) == (2, "")
    with pytest.raises(ValueError, match=said):
        kraftlog.open(folder / name)
    copy = shutil.copy(folder / f"{0:020d}.log", tmp_path / "copy.bin")
    both = kraftlog.open([copy, folder / name])
    assert both.segments_count == 1


def test_a_copy_of_a_log_by_another_name(tmp_path: Path):
    for path in (LOG / "orders-0" / f"{0:020d}.log", next((GOLDEN / "legacy").rglob("*.log"))):
        copy = shutil.copy(path, tmp_path / "copy.bin")
        assert kraftlog.open(copy).records().to_table().num_rows > 0


def test_what_cannot_be_read_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder that cannot be listed is a fault of its topic, also where it is all that was asked for."""
    shutil.copytree(LOG, tmp_path / "log")

    def entries(self: Disk, folder: Any) -> Any:
        if folder.name in ("orders-0", "__consumer_offsets-0"):
            raise PermissionError(13, "Permission denied")
        return whole(self, folder)

    whole = Disk.entries
    monkeypatch.setattr(Disk, "entries", entries)
    for arguments in (["records", "-t", "orders", "-p", 0], ["offsets"], ["verify", "-t", "__consumer_offsets"]):
        command, *more = arguments
        done = run_command(command, tmp_path / "log", *more)
        assert done.returncode == 1
        assert "Permission denied" in done.stderr + done.stdout
        assert "no topic" not in done.stderr
    absent = run_command("records", tmp_path / "log", "-t", "absent")
    assert (absent.returncode, "no topic 'absent'" in absent.stderr) == (2, True)


@pytest.mark.parametrize(
    ("number", "unit"), [(1_795_248_000_123_456, "microseconds"), (1_795_248_000_123_456_789, "nanoseconds")]
)
def test_a_number_of_a_finer_unit_is_refused(number: int, unit: str):
    text = f"{number} looks like {unit} of 2026-11-21T08:00:00.123Z: give 1795248000123, or '{number}ms'"
    for moment in (number, str(number)):
        with pytest.raises(ValueError, match=text):
            milliseconds(moment)
    assert milliseconds(f"{number}ms") == number


def test_numbers_between_the_units_are_milliseconds():
    for number in (10**13, 10**15 - 1, 10**16, 10**18 - 1, 10**19, 2**63 - 1):
        assert milliseconds(number) == number
