"""``kraftlog changes``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from golden_files import lines as json_lines
from kraftlog.cli.changes import lines
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.timeline.happenings import TIMELINE
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import timeline

METADATA = GOLDEN / "metadata" / "log"
Command = Callable[..., Any]


def test_lines_and_rows_say_the_same(kraftlog_command: Command) -> None:
    text = kraftlog_command("changes", METADATA)
    assert (text.returncode, text.stderr) == (0, "")
    done = kraftlog_command("changes", METADATA, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    shown = text.stdout.splitlines()
    assert len(shown) == len(rows) > 50
    for line, row in zip(shown, rows, strict=True):
        assert list(row) == list(TIMELINE.shown)
        assert line.startswith(f"{row['timestamp']}  {row['message']} @{row['offset']}")
    some = kraftlog_command("changes", METADATA, "--limit", 3, "--format", "csv", "--columns", "offset,event").stdout
    assert some.splitlines()[1:] == [f"{row['offset']},{row['event']}" for row in rows[:3]]


def test_from_and_to(kraftlog_command: Command) -> None:
    """Offsets, and times: those of the batches."""
    whole = kraftlog_command("changes", METADATA).stdout.splitlines()
    start, end = "2026-11-21T03:12:15.999Z", "2026-11-21T03:12:20.999Z"
    found = kraftlog_command("changes", METADATA, "--from", start, "--to", end).stdout.splitlines()
    stamps = [datetime.fromisoformat(line.split()[0]) for line in found]
    first, last = map(datetime.fromisoformat, (start, end))
    assert first < min(stamps) <= max(stamps) <= last
    assert found == [line for line in whole if first < datetime.fromisoformat(line.split()[0]) <= last]
    assert kraftlog_command("changes", METADATA, "--from", 92, "--to", 180).stdout.splitlines() == found


def test_topics_and_brokers(kraftlog_command: Command) -> None:
    log = MetadataLog.open(METADATA)
    for options, where in (
        (("--topic", "meta-1"), ChangeFilter(topics=["meta-1"])),
        (("-t", "meta-1", "-t", "meta-0", "--broker", 1), ChangeFilter(topics=["meta-0", "meta-1"], brokers=[1])),
        (("--broker", 1, "--broker", 2), ChangeFilter(brokers=[1, 2])),
    ):
        done = kraftlog_command("changes", METADATA, *options)
        assert done.stdout == "".join(lines(timeline(log, image_at(log, -1, []), None, [], where)))
        assert done.stdout


def test_a_topic_that_never_was_is_refused(kraftlog_command: Command) -> None:
    """Not one that was deleted, or created after the start."""
    for options in ([], ["--fields"], ["--fields", "--format", "jsonl"]):
        refused = kraftlog_command("changes", METADATA, "--topic", "meta-1", "--topic", "meat-1", *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "no topic 'meat-1'; did you mean meta-1" in refused.stderr
    deleted = kraftlog_command("changes", METADATA, "--topic", "meta-2")
    assert deleted.returncode == 0
    assert "topic meta-2 deleted" in deleted.stdout


def test_width_of_a_terminal() -> None:
    log = MetadataLog.open(METADATA)

    def shown(width: int | None) -> str:
        return "".join(lines(timeline(log, image_at(log, -1, []), None, []), width))

    for width in (80, 120):
        assert max(map(len, shown(width).splitlines())) <= width
        assert shown(width).split() == shown(None).split()


def test_a_snapshot_has_none(kraftlog_command: Command) -> None:
    snapshot = max((METADATA / "__cluster_metadata-0").glob("0*-*.checkpoint"))
    done = kraftlog_command("changes", snapshot)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a snapshot, which has one image only" in done.stderr


@pytest.mark.parametrize("command", ["diff", "changes"])
def test_a_start_after_the_end_is_refused(kraftlog_command: Command, command: str) -> None:
    done = kraftlog_command(command, METADATA, "--from", 523)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from 523 is after the end of the log; its last offset is 522, give that or less" in done.stderr
    assert kraftlog_command(command, METADATA, "--from", 522).returncode == 0


def test_fields_in_rows_are_the_table_metadata_changes(kraftlog_command: Command) -> None:
    """With the bounds, filters and options of the table; a start after the end is refused, as of events."""
    log = kraftlog.open(METADATA)
    for options, table in (
        ((), log.metadata_changes()),
        (("--from", 92, "--to", 180), log.metadata_changes(start_offset=93, end_offset=181)),
        (("--kind", "partition", "-t", "meta-1"), log.metadata_changes(kinds=["partition"], topics=["meta-1"])),
        (("--broker", 1, "--include-image"), log.metadata_changes(brokers=[1], include_image=True)),
        (("--from", 180, "--include-image"), log.metadata_changes(start_offset=181, include_image=True)),
        (
            ("--show-secrets", "--kind", "scram_credential"),
            log.metadata_changes(show_secrets=True, kinds=["scram_credential"]),
        ),
    ):
        done = kraftlog_command("changes", METADATA, "--fields", "--format", "jsonl", *options)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        names = ["offset", "kind", "key", "change", "field", "before", "after"]
        assert [[row[name] for name in names] for row in rows] == [
            [row[name] for name in names] for row in table.to_table().to_pylist()
        ]
        assert rows
    done = kraftlog_command("changes", METADATA, "--fields", "--format", "csv", "--from", 523)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from 523 is after the end of the log; its last offset is 522" in done.stderr


def test_fields_as_text(kraftlog_command: Command) -> None:
    """Offsets are those of the images that Kafka publishes; the steps add up to the difference of the images."""
    published = [one["offset"] for one in json_lines(GOLDEN / "metadata" / "expected" / "published_images.jsonl")]
    bounds = ("--from", 7, "--to", published[14])
    text = kraftlog_command("changes", METADATA, "--fields", *bounds).stdout
    offsets = [int(line[1:]) for line in text.splitlines() if line.startswith("@")]
    assert offsets == [offset for offset in published[:15] if offset > 7 and offset in offsets]
    assert len(offsets) > 5
    whole = kraftlog_command("diff", METADATA, *bounds).stdout.splitlines()
    added = [line for line in whole if line.startswith("+ topic")]
    assert [line.strip() for line in text.splitlines() if line.startswith("  + topic")] == added
    assert kraftlog_command("changes", METADATA, "--fields", *bounds, "--limit", 2).stdout == "@".join(
        text.split("@")[:3]
    )
    image = kraftlog_command("changes", METADATA, "--fields", "--from", 85, "--to", 85, "--include-image").stdout
    before, *lines_of_image = image.splitlines()
    assert before == "@85"
    assert sorted(line.strip() for line in lines_of_image) == sorted(
        kraftlog_command("diff", METADATA, "--to", 85).stdout.splitlines()
    )


@pytest.mark.parametrize("options", [("--kind", "config"), ("-t", "meta-0"), ("--broker", 1)], ids=str)
def test_fields_as_text_are_filtered(kraftlog_command: Command, options: tuple[object, ...]) -> None:
    """They name the same keys as the rows."""
    text = kraftlog_command("changes", METADATA, "--fields", *options).stdout
    rows = kraftlog_command("changes", METADATA, "--fields", *options, "--format", "jsonl").stdout
    shown = {re.split(r"[:(]", line[4:])[0].strip() for line in text.splitlines() if not line.startswith("@")}
    assert shown == {f"{row['kind']} {row['key']}" for row in map(json.loads, rows.splitlines())}
    fields = {row["field"] for row in map(json.loads, rows.splitlines()) if row["change"] == "changed"}
    assert ("leader_epoch" in fields) == (" leader_epoch 0 -> 1" in text)  # of a partition, without a broker
    everything = kraftlog_command("changes", METADATA, "--fields").stdout
    assert 0 < len(text) < len(everything)


def test_events_of_one_kind(kraftlog_command: Command) -> None:
    done = kraftlog_command("changes", METADATA, "--kind", "broker", "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["event"] for row in rows} == {"broker"}


def test_topics_without_their_partitions(kraftlog_command: Command) -> None:
    """The number of partitions is not known, and is not said to be 0."""
    done = kraftlog_command("changes", METADATA, "--kind", "topic")
    every = kraftlog_command("changes", METADATA).stdout.splitlines()
    created = [line for line in every if re.search(r"topics? .*(created|deleted)", line)]
    expected = [re.sub(r"(created|deleted),.*?(?=: | @)", r"\1", line) for line in created]
    assert done.stdout.splitlines() == expected
    assert len(created) > 5
    assert '"partitions":null' in kraftlog_command("changes", METADATA, "--kind", "topic", "--format", "jsonl").stdout


@pytest.mark.parametrize("options", [(), ("--fields",)], ids=str)
def test_the_last_events_as_text(kraftlog_command: Command, options: tuple[str, ...]) -> None:
    every = kraftlog_command("changes", METADATA, *options).stdout
    last = kraftlog_command("changes", METADATA, *options, "--tail", 2).stdout
    starts = [at.start() for at in re.finditer("^@" if options else "^2", every, re.MULTILINE)]
    assert last == every[starts[-2] :]
    assert kraftlog_command("changes", METADATA, *options, "--tail", 0).stdout == ""


def test_wrong_usage(kraftlog_command: Command) -> None:
    for options, words in (
        (("--include-image",), "--include-image requires --fields"),
        (("--show-secrets", "--format", "jsonl"), "--show-secrets requires --fields and a format with rows"),
        (("--show-secrets", "--fields"), "--show-secrets requires --fields and a format with rows"),
        (("--follow", "--fields"), "--follow shows events as text on standard output"),
        (("--follow", "--tail", 1), "--follow shows events as text on standard output"),
        (("--from", 100, "--to", 50), "--from, offset 100, is after --to, offset 50"),
        (("--from", 100, "--to", 50, "--fields", "--format", "csv"), "--from, offset 100, is after --to, offset 50"),
        (("--columns", "offset"), "--columns does not go with --format text"),
        (("--kind", "none"), "'none' is not a kind of change"),
    ):
        done = kraftlog_command("changes", METADATA, *options)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("timeline", METADATA), "there is no command 'timeline'; did you mean changes?"),
        (("metadata-changes", METADATA), "no command 'metadata-changes'; did you mean changes --fields?"),
        (("diff", METADATA, "--steps"), "there is no option '--steps'; did you mean changes --fields?"),
    ],
)
def test_earlier_names(kraftlog_command: Command, words: tuple[object, ...], named: str) -> None:
    done = kraftlog_command(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
