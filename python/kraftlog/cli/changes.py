"""``kraftlog changes``: what changed in a cluster, as events or as fields."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

import click
import numpy as np
import pyarrow as pa

from kraftlog.cli.metadata_options import DIRECTORY, STRICT, Moment, check_start, offset_of, refuse
from kraftlog.cli.options import CHANGES, output_options
from kraftlog.cli.output import CONTINUED, Output, broken_line
from kraftlog.cli.report import report_faults
from kraftlog.cli.tables import run_table
from kraftlog.codec.header_columns import timestamps
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.diff.diff import by_step, describe, diff_rows
from kraftlog.metadata.diff.images import changed_records
from kraftlog.metadata.image import Image
from kraftlog.metadata.record_types import TOPICS
from kraftlog.metadata.timeline.happenings import TIMELINE
from kraftlog.metadata_log.changes import changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.follow import follow
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.timeline import At, timeline
from kraftlog.read.log_pass import Pass
from kraftlog.read.messages import typed_chunks
from kraftlog.tables.open_log import no_such_topics

TEXT = "text"
ROWS_AT_ONCE = 1000
_NO_TIME = "-"
_GAP = "  "
SECONDS_BETWEEN_LOOKS = 1.0


@click.command("changes")
@DIRECTORY
@click.option("--from", "start", type=Moment(), help="Offset, or time, after which to begin; by default the start.")
@click.option("--to", "end", type=Moment(), help="Offset, or time, of the last record that counts; by default the end.")
@CHANGES
@click.option("--fields", "shows_fields", is_flag=True, help="Show each field that changed, instead of events.")
@click.option("--include-image", is_flag=True, help="With --fields: begin with the initial image, as added entries.")
@click.option("--show-secrets", is_flag=True, help="With --fields, in rows: show SCRAM credentials and passwords.")
@click.option("--follow", "follows", is_flag=True, help="Go on when more is written, until Ctrl-C.")
@output_options(TEXT)
@STRICT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    directory: LogPath,
    start: int | datetime | None,
    end: int | datetime | None,
    kinds: tuple[str, ...],
    changed_topics: tuple[str, ...],
    brokers: tuple[int, ...],
    shows_fields: bool,
    include_image: bool,
    show_secrets: bool,
    follows: bool,
    output: Output,
    strict: bool,
    no_progress: bool,
) -> None:
    """Show what changed in a cluster, as its metadata log tells: for people who must know who lost what, and when.

    DIR is the folder of __cluster_metadata, or a log directory that has it. A line is an event: brokers that are
    registered, fenced and unfenced, leaders that move, brokers that leave and join the ISR, topics, configs, quotas,
    users; new active controllers and aborted transactions of the metadata log itself. Equal changes within a second are
    one line; its time is that of the first, and the numbers after @ are offsets. --kind, --topic and --broker leave out
    what concerns no kind, topic or broker, such as new active controllers. --follow shows events as they are written,
    across segment rolls and truncations.

    With --fields a line is a record that changed, with its fields before and after, below the offset of the image that
    Kafka publishes: + was added, - was removed, ~ was changed. Its rows, such as --format jsonl, are those of the table
    metadata_changes: a row for each field, at the offset at which the change becomes visible.

    \b
    Examples:
      kraftlog changes sample/metadata --to 2026-11-21T03:12:18Z
      kraftlog changes sample/metadata --fields --topic meta-1 --format table
    """  # noqa: D301  (\b keeps the examples as they are)
    log, faults = MetadataLog.open(directory), list[Fault]()
    if log.is_snapshot:
        raise click.UsageError(f"{directory} is a snapshot, which has one image only")
    output.check(log.folders)
    is_text = (output.form or TEXT) == TEXT
    if is_text and output.columns is not None:
        raise click.UsageError("--columns does not go with --format text")
    if include_image and not shows_fields:
        raise click.UsageError("--include-image requires --fields")
    if show_secrets and (is_text or not shows_fields):
        raise click.UsageError("--show-secrets requires --fields and a format with rows, such as --format jsonl")
    is_limited = end is not None or output.tail is not None or strict
    if follows and (is_limited or not is_text or shows_fields or output.path is not None):
        raise click.UsageError(
            "--follow shows events as text on standard output; --fields, --to, --tail and --strict exclude it"
        )
    if changed_topics and not follows:  # a followed log may get the topic later
        _check_topics(log, set(changed_topics))
    first, last = offset_of(log, start), offset_of(log, end)
    if first is not None and last is not None and first > last:
        raise click.UsageError(f"--from, offset {first}, is after --to, offset {last}")
    if shows_fields and not is_text:
        check_start(log.last_offset, first)
        bounds = {"start_offset": _after(first), "end_offset": _after(last), "include_image": include_image}
        how = {"show_secrets": show_secrets, "strict": strict, "workers": 1, "no_progress": no_progress}
        which = {"kinds": kinds, "changed_topics": changed_topics, "brokers": brokers}
        run_table("metadata_changes", [directory], output, {**bounds, **how, **which})
    where = ChangeFilter(kinds or None, changed_topics or None, brokers or None)
    before = image_at(log, log.start_offset - 1 if first is None else first, faults)
    refuse(faults, strict=strict)
    if not follows:
        check_start(before.offset, first)
    if shows_fields:
        steps = _chosen(_steps(log, before, last, faults, where, output, include_image=include_image), output)
        texts = iter(list(steps)) if strict else steps
        refuse(faults, strict=strict)
        output.write_texts(texts)
        sys.exit(report_faults(faults, listed_by=None))
    of_events = where if kinds or changed_topics or brokers else None
    if follows:
        events = follow(lambda: MetadataLog.open(directory), before, faults, _wait, of_events)
        output.write_texts(islice(lines(events, output.text_width), output.limit), is_endless=True)
        sys.exit(report_faults(faults, listed_by=None))
    events = timeline(log, before, last, faults, of_events)
    if strict:
        events = iter(list(events))
        refuse(faults, strict=True)
    if is_text:
        output.write_texts(_chosen(lines(events, output.text_width), output))
    else:
        with output.open(TIMELINE.select(output.columns)) as writer:
            for rows in _tables(events):
                writer.write(rows.select(output.columns or rows.column_names))
                if writer.is_full:
                    break
    sys.exit(report_faults(faults, listed_by=None))


def _check_topics(log: MetadataLog, wanted: set[str]) -> None:
    """Refuse topics that the metadata log never had."""
    faults: list[Fault] = []
    at_start = image_at(log, log.start_offset - 1, faults).image.tables([TOPICS.name])[TOPICS.name]
    there = set(at_start.column("name").to_pylist())
    if wanted <= there:
        return
    for chunk in typed_chunks(log.segments, [], Pass(faults=faults)):
        there.update(chunk.messages.typed(TOPICS.name).fields.column("name").to_pylist())
    unknown = sorted(wanted - there)
    if unknown and not faults:
        raise click.UsageError(no_such_topics(unknown, there))


def _chosen(texts: Iterable[str], output: Output) -> Iterator[str]:
    return islice(texts, output.limit) if output.tail is None else iter(deque(texts, output.tail))


def _after(offset: int | None) -> int | None:
    return None if offset is None else offset + 1


def _steps(
    log: MetadataLog,
    before: ImageAt,
    last: int | None,
    faults: list[Fault],
    where: ChangeFilter,
    output: Output,
    *,
    include_image: bool,
) -> Iterator[str]:
    """Return the changes of each image that Kafka publishes."""

    def texts(rows: pa.Table) -> Iterator[str]:
        for offset, of_step in by_step(rows):
            records = (broken_line(f"  {line}", output.text_width, f"  {CONTINUED}") for line in describe(of_step))
            yield f"@{offset}\n" + "".join(f"{line}\n" for line in records)

    if include_image:
        yield from texts(diff_rows(changed_records(Image.empty(), before.image, before.offset), where))
    for steps in changes(log, before, last, faults, by_batch=True):
        yield from texts(diff_rows(steps.changed, where))


def lines(events: Iterable[At], width: int | None = None) -> Iterator[str]:
    """Return a line for each thing that happened; where the terminal is narrow, broken between words."""
    for at in events:
        what = at.what
        where = f"@{what.offset}" if what.offset == what.last_offset else f"@{what.offset}-{what.last_offset}"
        stamp = shown_time(at.timestamp)
        line = f"{what.message} {where}".translate(_CONTROL_CHARACTERS)
        yield broken_line(f"{stamp}{_GAP}{line}", width, " " * len(f"{stamp}{_GAP}")) + "\n"


def shown_time(timestamp: int) -> str:
    """Return milliseconds since the epoch as RFC 3339 text."""
    try:
        moment = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return _NO_TIME
    return _NO_TIME if timestamp < 0 else f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}Z"


def _wait() -> bool:
    sys.stdout.flush()
    time.sleep(SECONDS_BETWEEN_LOOKS)
    return True


def _tables(events: Iterator[At]) -> Iterator[pa.Table]:
    waiting: list[At] = []
    for at in events:
        waiting.append(at)
        if len(waiting) == ROWS_AT_ONCE:
            yield _table(waiting)
            waiting = []
    yield _table(waiting)


def _table(some: list[At]) -> pa.Table:
    stamps = timestamps(np.array([at.timestamp for at in some], np.int64))
    columns = {name: [getattr(at.what, name) for at in some] for name in TIMELINE.shown if name != "timestamp"}
    return pa.table({"timestamp": stamps, **columns}, schema=TIMELINE.select())


_CONTROL_CHARACTERS = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")

COMMANDS = [command]
