"""``kraftlog timeline``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from golden_files import GOLDEN
from kraftlog.cli.timeline import lines
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.timeline.happenings import TIMELINE
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import timeline

METADATA = GOLDEN / "metadata" / "log"
Command = Callable[..., Any]


def test_lines_and_rows_say_the_same(kraftlog_command: Command) -> None:
    text = kraftlog_command("timeline", METADATA)
    assert (text.returncode, text.stderr) == (0, "")
    done = kraftlog_command("timeline", METADATA, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    shown = text.stdout.splitlines()
    assert len(shown) == len(rows) > 50
    for line, row in zip(shown, rows, strict=True):
        assert list(row) == list(TIMELINE.shown)
        assert line.startswith(f"{row['timestamp']}  {row['message']} @{row['offset']}")
    some = kraftlog_command("timeline", METADATA, "--limit", 3, "--format", "csv", "--columns", "offset,event").stdout
    assert some.splitlines()[1:] == [f"{row['offset']},{row['event']}" for row in rows[:3]]


def test_from_and_to(kraftlog_command: Command) -> None:
    """Offsets, and times: those of the batches."""
    whole = kraftlog_command("timeline", METADATA).stdout.splitlines()
    start, end = "2026-11-21T03:12:15.999Z", "2026-11-21T03:12:20.999Z"
    found = kraftlog_command("timeline", METADATA, "--from", start, "--to", end).stdout.splitlines()
    stamps = [datetime.fromisoformat(line.split()[0]) for line in found]
    first, last = map(datetime.fromisoformat, (start, end))
    assert first < min(stamps) <= max(stamps) <= last
    assert found == [line for line in whole if first < datetime.fromisoformat(line.split()[0]) <= last]
    assert kraftlog_command("timeline", METADATA, "--from", 92, "--to", 180).stdout.splitlines() == found


def test_topics_and_brokers(kraftlog_command: Command) -> None:
    log = MetadataLog.open(METADATA)
    for options, where in (
        (("--topic", "meta-1"), ChangeFilter(topics=["meta-1"])),
        (("-t", "meta-1", "-t", "meta-0", "--broker", 1), ChangeFilter(topics=["meta-0", "meta-1"], brokers=[1])),
        (("--broker", 1, "--broker", 2), ChangeFilter(brokers=[1, 2])),
    ):
        done = kraftlog_command("timeline", METADATA, *options)
        assert done.stdout == "".join(lines(timeline(log, image_at(log, -1, []), None, [], where)))
        assert done.stdout
    done = kraftlog_command("timeline", METADATA, "--topic", "none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_width_of_a_terminal() -> None:
    log = MetadataLog.open(METADATA)

    def shown(width: int | None) -> str:
        return "".join(lines(timeline(log, image_at(log, -1, []), None, []), width))

    for width in (80, 120):
        assert max(map(len, shown(width).splitlines())) <= width
        assert shown(width).split() == shown(None).split()


def test_a_snapshot_has_none(kraftlog_command: Command) -> None:
    snapshot = max((METADATA / "__cluster_metadata-0").glob("0*-*.checkpoint"))
    done = kraftlog_command("timeline", snapshot)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a snapshot, which has one image only" in done.stderr


@pytest.mark.parametrize("command", ["diff", "timeline"])
def test_a_start_behind_the_end_is_refused(kraftlog_command: Command, command: str) -> None:
    done = kraftlog_command(command, METADATA, "--from", 523)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from 523 lies behind the end of the log; its last offset is 522, give that or less" in done.stderr
    assert kraftlog_command(command, METADATA, "--from", 522).returncode == 0
