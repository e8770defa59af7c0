"""``kraftlog get-offsets``: where partitions start and end, and what lies at a time, as kafka-get-offsets tells it."""

from __future__ import annotations

import sys
from typing import Any

import click
import pyarrow as pa

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import is_terminal, progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.cli.topic_partitions import partitions_wanted, topic_partition_options
from kraftlog.codec.options import EARLIEST, ISOLATION_LEVELS, LATEST, MAX_TIMESTAMP, READ_UNCOMMITTED
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import none_wanted
from kraftlog.tables.open_log import open as open_log
from kraftlog.types import IsolationLevel

TEXT = "text"
_NUMBERS = {"-1": LATEST, "-2": EARLIEST, "-3": MAX_TIMESTAMP}  # of Kafka's protocol
_OF_REMOTE_STORAGE = {"-4": "earliest-local", "-5": "latest-tiered", "-6": "earliest-pending-upload"}


class Time(options.Timestamp):
    """A word of kafka-get-offsets, its number, or a timestamp."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return one of the words, or milliseconds since the epoch."""
        word = _NUMBERS.get(value, value)
        if word in _NUMBERS.values():
            return word
        if word in _OF_REMOTE_STORAGE or word in _OF_REMOTE_STORAGE.values():
            self.fail(
                f"{_OF_REMOTE_STORAGE.get(word, word)} is of remote storage, which these files are not", param, ctx
            )
        return super().convert(value, param, ctx)


@click.command("get-offsets")
@options.PATHS
@click.option(
    "--time",
    type=Time(),
    default=LATEST,
    show_default=True,
    help=f"{EARLIEST} (-2), {LATEST} (-1), {MAX_TIMESTAMP} (-3); or a time such as -1h, RFC 3339 or milliseconds: the"
    " first record with that or a later one.",
)
@topic_partition_options
@click.option(
    "--isolation-level",
    type=click.Choice(ISOLATION_LEVELS),
    default=READ_UNCOMMITTED,
    show_default=True,
    help="The level of the consumer that asks: with read_committed nothing behind the last stable offset counts.",
)
@options.output_options(others=(TEXT,))
@click.option("--strict", is_flag=True, help="Stop at the first fault.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    paths: LogPaths,
    time: Any,
    isolation_level: IsolationLevel,
    output: Output,
    strict: bool,
    no_progress: bool,
    **which: Any,
) -> None:
    """Show the offsets of partitions, as kafka-get-offsets does, without a broker.

    The log start offset counts, compacted and deleted records do not. The end is that of the files: a broker that runs
    may not have given it to consumers yet. --format text prints TOPIC:PARTITION:OFFSET, without the partitions that
    have no such record. Columns on request: log_start_offset, last_stable_offset, log_end_offset, timestamp_ms,
    high_watermark_at_least, high_watermark_at_most: records before the first are committed, those from the second on
    are not.

    \b
    Example:
      kraftlog get-offsets sample/broker --topic-partitions orders:0-2
    """  # noqa: D301  (\b keeps the example as it is)
    if output.form == TEXT and output.columns is not None:
        raise click.UsageError("--columns does not go with --format text")
    whole = open_log(paths)
    log = Log(whole.found.only(partitions_wanted(**which)))
    if not log.found.segments:
        raise click.UsageError(none_wanted(whole.found))
    output.check(log.folders)
    shows_bar = not no_progress and (output.path is not None or not is_terminal(sys.stdout))
    with progress_bar(log.size_in_bytes, wanted=shows_bar) as bar:
        columns = ["topic", "partition", "offset"] if output.form == TEXT else output.columns
        stream = log.partition_offsets(time, columns, isolation_level=isolation_level, strict=strict, on_progress=bar)
        if output.form == TEXT:
            lines = _lines(stream.to_table())
            lines = lines[: output.limit] if output.tail is None else lines[max(0, len(lines) - output.tail) :]
            output.write_texts(lines)
        else:
            with output.open(stream.schema) as writer:
                for batch in stream.batches():
                    writer.write(batch)
                    if writer.is_full:
                        break
    for note in stream.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(stream.faults))


def _lines(rows: pa.Table) -> list[str]:
    """Return the lines of kafka-get-offsets, in its order."""
    known = [row for row in rows.to_pylist() if row["offset"] is not None and row["topic"] is not None]
    known.sort(key=lambda row: f"{row['topic']}-{row['partition']}")
    return [f"{row['topic']}:{row['partition']}:{row['offset']}\n" for row in known]


COMMANDS = [command]
