"""``kraftlog export``: records as Parquet, with keys and values typed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.options import Columns
from kraftlog.cli.output import open_writer
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_new_folder
from kraftlog.cli.typed import TYPED, typed_options
from kraftlog.codec.options import ISOLATION_LEVELS, READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.user_options import read_options
from kraftlog.topics import INTERNAL_TOPICS, SCHEMAS
from kraftlog.values.typed import added_columns
from kraftlog.values.typed_options import TypedOptions

COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


@click.command()
@options.PATHS
@click.argument("output", type=click.Path(path_type=Path))
@options.WHICH
@options.BOUNDS
@options.INCLUDE_DELETED
@options.HEAL
@options.CUT
@click.option(
    "--isolation-level",
    type=click.Choice(ISOLATION_LEVELS),
    default=READ_COMMITTED,
    show_default=True,
    help="What is handed on has no records of aborted and open transactions, unless it is read_uncommitted.",
)
@options.INCLUDE_CONTROL
@options.COMMITTED_ONLY
@TYPED
@redacts
@click.option("--columns", type=Columns(), help="Names with commas between them; only these are read.")
@options.READING
def export(
    paths: LogPaths,
    output: Path,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    columns: list[str] | None,
    rules: tuple[str, ...],
    key_file: Path | None,
    workers: int,
    no_progress: bool,
    **given: Any,
) -> None:
    """Write the records of topics to OUTPUT, a new or empty folder, as Parquet.

    Each partition is a file, topic=orders/partition=0/records.parquet, with offset, timestamp, timestamp_type, key,
    value and headers. Where keys and values have a format, key_raw, value_raw, key_error and value_error say what does
    not fit it. A topic has one schema; without --topic all but internal topics are written. A file gets its name when
    it is complete. Records of aborted and open transactions are left out, unless --isolation-level says otherwise.

    \b
    Examples:
      kraftlog export sample/broker orders --topic orders
      kraftlog export sample/codecs parquet --value-format hex --key-format string
    """  # noqa: D301  (\b keeps the examples as they are)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    check_new_folder(output, log.folders, "OUTPUT")
    typed, redaction = typed_options(given), redaction_of(rules, key_file)
    rows = read_options(**given)
    wanted = [one for one in log.topics if topics or one not in (*INTERNAL_TOPICS, SCHEMAS)]
    if not wanted:
        raise click.UsageError(f"no topics but internal ones: --topic names those to write, of {', '.join(log.topics)}")
    faults: list[Fault] = []
    notes = list(log.lines.notes(heals=rows.heal))
    if rows.isolation_level == READ_COMMITTED:
        notes.append("read_committed: records of aborted and open transactions are left out")
    with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
        how = {"workers": workers, "on_progress": bar, "redaction": redaction}
        written = [_export(log, topic, output, columns, rows, typed, how, faults, notes) for topic in wanted]
    for topic, (files, count) in zip(wanted, written, strict=True):
        print(f"{topic}: {count:,} records in {files} file{'' if files == 1 else 's'}")
    for note in notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(faults))


def _export(
    log: Log,
    topic: str,
    output: Path,
    columns: list[str] | None,
    rows: ReadOptions,
    typed: TypedOptions | None,
    how: dict[str, Any],
    faults: list[Fault],
    notes: list[str],
) -> tuple[int, int]:
    """Write a topic; returns the number of files and rows."""
    of_topic = log.of_files(log.lines.found.only(lambda one, _: one == topic))
    resolved = None if typed is None else typed.sampling_all().resolved(of_topic.found, strict=rows.strict)
    added = [] if resolved is None else added_columns(resolved.formats)
    names, files, count = columns or [*COLUMNS, *added], 0, 0
    for partition in of_topic.partitions:
        number = partition.partition
        one = of_topic.of_files(of_topic.found.only(lambda _, found, number=number: found == number))  # type: ignore[misc]
        stream = one.scan("records", names, rows, typed=resolved, **how)
        folder = output / f"topic={topic}" / f"partition={number}"
        disk().make_folder(folder)
        with open_writer("parquet", str(folder / "records.parquet"), stream.schema, "base64", force=False) as writer:
            for batch in stream.batches():
                writer.write(batch)
                count += batch.num_rows
        faults += [fault for fault in stream.faults if fault not in faults]
        where = f"{topic}-{number}: "
        notes += [note if note.startswith(where) else where + note for note in stream.notes]
        files += 1
    return files, count


COMMANDS = [export]
