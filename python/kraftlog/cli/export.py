"""``kraftlog export``: the records of topics as files, one for each partition, keys and values typed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from kraftlog.cli import options
from kraftlog.cli.options import Columns
from kraftlog.cli.output import FORMATS, Writer, open_writer
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.redact import redacts
from kraftlog.cli.report import report_faults
from kraftlog.cli.tables import Scan
from kraftlog.cli.target import check_new_folder
from kraftlog.cli.time_folders import TIMESTAMP_COLUMN, UNITS, TimeFolders
from kraftlog.cli.typed import TYPED
from kraftlog.codec.options import READ_COMMITTED
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.stream import Stream
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.left_out import LeftOut
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import INTERNAL_TOPICS, SCHEMAS
from kraftlog.values.typed import added_columns
from kraftlog.values.typed_options import ResolvedTypes

COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
FILE_FORMATS = tuple(form for form in FORMATS if form != "table")
RECORDS = replace(TABLES["records"], defaults={"isolation_level": READ_COMMITTED})


@click.command()
@options.PATHS
@click.argument("output", type=click.Path(path_type=Path))
@options.WHICH
@options.of_table(RECORDS)
@options.KCAT_OFFSET
@options.CUT
@TYPED
@redacts
@click.option("--format", "form", type=click.Choice(FILE_FORMATS), default="parquet", show_default=True)
@click.option(
    "--partition-by",
    "unit",
    type=click.Choice([*UNITS]),
    help="A folder for each day or hour (UTC) of the timestamps: day=2026-11-26, or hour=07 in it.",
)
@click.option("--columns", type=Columns(), help="Columns to read, separated by commas.")
@options.BINARY
@options.READING
def export(
    paths: LogPaths,
    output: Path,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    form: str,
    unit: str | None,
    columns: list[str] | None,
    binary: str | None,
    no_progress: bool,
    **given: Any,
) -> None:
    """Write the records of topics to OUTPUT, a new or empty folder, as Parquet or in another format.

    Each partition is a file, topic=orders/partition=0/records.parquet, with offset, timestamp, timestamp_type, key,
    value and headers. Options are those of records; only the default of --isolation-level is another one. Keys and
    values with a format have the columns key_raw, value_raw, key_error and value_error for what does not fit it. A
    topic has one schema; without --topic all topics except internal ones are written. A file gets its name when it is
    complete.

    With --partition-by day a partition has a folder for each day of its timestamps, day=2026-11-26/records.parquet.
    Records without a timestamp are in day=__HIVE_DEFAULT_PARTITION__, which readers take for null. Days that alternate
    many times have several files, as at most 16 are open at a time.

    \b
    Examples:
      kraftlog export sample/broker orders --topic orders
      kraftlog export sample/codecs parquet --value-format hex --key-format string
      kraftlog export sample/codecs days --partition-by day
    """  # noqa: D301  (\b keeps the examples as they are)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    check_new_folder(output, log.folders, "OUTPUT")
    scan = Scan.of(RECORDS, given)
    names = [one for one in log.topics if topics or one not in (*INTERNAL_TOPICS, SCHEMAS)]
    if not names:
        raise click.UsageError(f"no topics but internal ones: --topic names those to write, of {', '.join(log.topics)}")
    result = Export(Folder(output, form, binary or "text", unit), list(log.lines.notes(heals=scan.options.heal)))
    with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
        written = [result.write(log, topic, columns, scan, bar) for topic in names]
    for topic, (files, count) in zip(names, written, strict=True):
        records = f"{count:,} record{'' if count == 1 else 's'}"
        print(f"{topic}: {records} in {files} file{'' if files == 1 else 's'}")
    if scan.options.isolation_level == READ_COMMITTED:
        result.notes.append(str(result.left_out))
    for note in result.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(result.faults))


@dataclass(frozen=True)
class Folder:
    """The folder of an export, and how its files are written.

    Attributes
    ----------
    path : Path
    form, binary : str
        Format of the files, and the text of bytes in it.
    unit : {"day", "hour"} or None
        The time for which there are folders.
    """

    path: Path
    form: str
    binary: str
    unit: str | None

    @property
    def file_name(self) -> str:
        """The name of the file of a partition, or of one of its days."""
        return f"records.{self.form}"

    @contextmanager
    def open(self, path: Path, schema: pa.Schema) -> Iterator[Writer]:
        """Open the writer of a new file, and make its folder."""
        disk().make_folder(path.parent)
        with open_writer(self.form, str(path), schema, self.binary, force=False) as writer:
            yield writer


@dataclass
class Export:
    """An export, with its notes and faults, and the records that read_committed left out."""

    folder: Folder
    notes: list[str]
    faults: list[Fault] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    def write(self, log: Log, topic: str, columns: list[str] | None, scan: Scan, bar: Any) -> tuple[int, int]:
        """Write a topic; returns the number of files and rows."""
        of_topic = log.of_files(log.lines.found.only(lambda one, _: one == topic))
        types: ResolvedTypes | None = None
        if scan.typed is not None:
            types = scan.typed.sampling_all().resolved(of_topic.found, strict=scan.options.strict)
        names = columns or [*COLUMNS, *(added_columns(types.formats) if types else ())]
        files, count = 0, 0
        for partition in of_topic.partitions:
            number = partition.partition
            one = of_topic.of_files(of_topic.found.only(lambda _, found, number=number: found == number))  # type: ignore[misc]
            asked = names if self.folder.unit is None else [*names, TIMESTAMP_COLUMN]
            ((_, bounds),) = scan.parts(one)
            (stream,) = scan.streams(one, asked, types=types, on_progress=bar)
            folder = self.folder.path / f"topic={topic}" / f"partition={number}"
            files_of, rows_of = (self._by_time if self.folder.unit else self._whole)(folder, stream, len(names))
            files, count = files + files_of, count + rows_of
            self.faults += [fault for fault in stream.faults if fault not in self.faults]
            self.left_out.add(one, stream.notes, bounds)
            where = f"{topic}-{number}: "
            self.notes += [note if note.startswith(where) else where + note for note in stream.notes]
        return files, count

    def _whole(self, folder: Path, stream: Stream, _: int) -> tuple[int, int]:
        count = 0
        with self.folder.open(folder / self.folder.file_name, stream.schema) as writer:
            for batch in stream.batches():
                writer.write(batch)
                count += batch.num_rows
        return 1, count

    def _by_time(self, folder: Path, stream: Stream, width: int) -> tuple[int, int]:
        schema, count = pa.schema([*stream.schema][:width]), 0

        def opened(path: Path) -> AbstractContextManager[Writer]:
            return self.folder.open(path, schema)

        assert self.folder.unit is not None
        with TimeFolders(folder, self.folder.unit, self.folder.file_name, opened) as writer:
            for batch in stream.batches():
                rows = pa.RecordBatch.from_arrays(batch.columns[:width], schema=schema)
                writer.write(rows, batch.columns[width])
                count += batch.num_rows
        return writer.files, count


COMMANDS = [export]
