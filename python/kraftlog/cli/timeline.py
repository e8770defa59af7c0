"""``kraftlog timeline``: what happened in a cluster, a line each."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import click
import numpy as np
import pyarrow as pa

from kraftlog.cli.metadata_options import DIRECTORY, STRICT, Moment, check_start, offset_of, refuse
from kraftlog.cli.options import output_options
from kraftlog.cli.output import Output, broken_line
from kraftlog.cli.report import report_faults
from kraftlog.codec.headers import timestamps
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.timeline.happenings import TIMELINE
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.follow import follow
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import At, timeline

TEXT = "text"
ROWS_AT_ONCE = 1000
_NO_TIME = "-"
_GAP = "  "
SECONDS_BETWEEN_LOOKS = 1.0


@click.command("timeline")
@DIRECTORY
@click.option("--from", "start", type=Moment(), help="Offset, or time, behind which to begin; by default the start.")
@click.option("--to", "end", type=Moment(), help="Offset, or time, of the last record that counts; by default the end.")
@click.option("-t", "--topic", "topics", multiple=True, help="Only of this topic; may be given several times.")
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=int,
    help="Only of this broker, its configs, and of partitions where it comes or goes; may be given several times.",
)
@click.option("--follow", "follows", is_flag=True, help="Go on when more is written, until Ctrl-C.")
@output_options(TEXT)
@STRICT
def command(
    directory: LogPath,
    start: int | datetime | None,
    end: int | datetime | None,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    follows: bool,
    output: Output,
    strict: bool,
) -> None:
    """Show what happened in a cluster, as its metadata log tells: for people who must know who lost what, and when.

    DIR is the folder of __cluster_metadata, or a log directory that has it. Brokers that are registered, fenced and
    unfenced, leaders that move, who leaves and joins the ISR, topics, configs, quotas, users; new active controllers
    and aborted transactions of the metadata log itself. Equal changes within a second are one line; its time is that of
    the first, and behind @ stand the offsets. --topic and --broker leave out what concerns no topic or broker, such as
    new active controllers. --follow shows what is written as it comes, over rolls and truncations.

    \b
    Example:
      kraftlog timeline sample/metadata --to 2026-11-21T03:12:18Z
    """  # noqa: D301  (\b keeps the example as it is)
    log, faults = MetadataLog.open(directory), list[Fault]()
    if log.is_snapshot:
        raise click.UsageError(f"{directory} is a snapshot, which has one image only")
    output.check(log.folders)
    if (output.form or TEXT) == TEXT and output.columns is not None:
        raise click.UsageError("--columns does not go with --format text")
    is_text = (output.form or TEXT) == TEXT
    if follows and (end is not None or strict or not is_text or output.path is not None):
        raise click.UsageError("--follow goes with --format text on standard output, and not with --to and --strict")
    where = ChangeFilter(topics=topics or None, brokers=brokers or None) if topics or brokers else None
    first, last = offset_of(log, start), offset_of(log, end)
    before = image_at(log, log.start_offset - 1 if first is None else first, faults)
    refuse(faults, strict=strict)
    if not follows:
        check_start(before, first)
    if follows:
        found = follow(lambda: MetadataLog.open(directory), before, faults, _wait, where)
        output.write_texts(_limited(lines(found, output.text_width), output.limit), is_endless=True)
        sys.exit(report_faults(faults, listed_by=None))
    found = timeline(log, before, last, faults, where)
    if strict:
        found = iter(list(found))
        refuse(faults, strict=True)
    if is_text:
        output.write_texts(_limited(lines(found, output.text_width), output.limit))
    else:
        with output.open(TIMELINE.select(output.columns)) as writer:
            for rows in _tables(found):
                writer.write(rows.select(output.columns or rows.column_names))
                if writer.is_full:
                    break
    sys.exit(report_faults(faults, listed_by=None))


def lines(found: Iterable[At], width: int | None = None) -> Iterator[str]:
    """Return a line for each thing that happened; where the terminal is narrow, broken between words."""
    for at in found:
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


def _limited(texts: Iterator[str], limit: int | None) -> Iterator[str]:
    for number, text in enumerate(texts):
        if limit is not None and number >= limit:
            return
        yield text


def _tables(found: Iterator[At]) -> Iterator[pa.Table]:
    waiting: list[At] = []
    for at in found:
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
