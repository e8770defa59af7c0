"""``kraftlog verify``: whether a log is what it should be."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click

from kraftlog.check.side_files import is_side_file, side_file_faults
from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS
from kraftlog.cli.tables import Scan
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery, LogPaths, each_path, expanded_paths
from kraftlog.layout.names import KINDS_BESIDE
from kraftlog.layout.unread import NOT_READ
from kraftlog.stream import errors_table
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log

FAULTS_AT_ONCE = 1 << 12
ERRORS = TABLES["errors"]


@click.command()
@options.PATHS
@options.WHICH
@options.of_table(ERRORS)
@options.OUTPUT
@options.READING
def verify(
    paths: LogPaths,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    output: Output,
    workers: int,
    no_progress: bool,
    **bounds: Any,
) -> None:
    """Check crc and structure of every record, that offsets rise, index files, transactions, and internal topics.

    Transactions: markers of the metadata log are in their places, sequences of producers have no gaps, no foreign
    record is between the batches of a transaction, .txnindex and .snapshot files agree with the log, and no transaction
    is committed in one partition and aborted in another, or contradicts __transaction_state. Internal topics: each
    record is a message that can be decoded.

    Rows are those of the table errors, with the columns topic, partition, position, error and message among others;
    files and folders that were not read are rows, too, with error not_read. The exit code is 0 without faults, else 1;
    not_read is not a fault. A torn tail of the last segment, which an unclean shutdown leaves, is not a fault either;
    standard error says where it is. With --start-offset or --end-offset, index files and sequences are not compared.

    PATHS may also be index and snapshot files, .index, .timeindex, .txnindex and .snapshot. Each is checked by itself,
    and compared with its log if that is in the same folder.

    \b
    Examples:
      kraftlog verify sample/broker
      kraftlog verify sample/broker/orders-0/00000000000000000032.index
      kraftlog verify sample/damaged --format jsonl --columns error,position,size_in_bytes
    """  # noqa: D301  (\b keeps the examples as they are)
    files, others = _side_files(paths)
    log = open_log(others, topics=topics or None, partitions=partitions or None) if others else Log(Discovery())
    shown_columns = ERRORS.schema.select(output.columns)
    output.check({*log.folders, *(path.parent for path in files)})
    counts: Counter[str] = Counter()
    notes: list[str] = []
    scan = Scan.of(ERRORS, {"workers": workers, **bounds})
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        of_files = chain.from_iterable(_faults_of(path, notes, strict=scan.options.strict) for path in files)
        of_logs = (one.verify(read, bar, notes, workers=workers) for one, read in scan.parts(log))
        faults = chain(of_files, chain.from_iterable(of_logs), log.left_alone())
        with output.open(shown_columns) as writer:
            while some := list(islice(faults, FAULTS_AT_ONCE)):
                counts.update(fault.error for fault in some)
                writer.write(errors_table(some, shown_columns.names))
    for note in notes:
        print(note, file=sys.stderr)
    not_read = counts.pop(NOT_READ, 0)
    summary = ", ".join(f"{count} {code}" for code, count in sorted(counts.items())) or "no errors"
    summary += f", {not_read} {NOT_READ}" if not_read else ""
    segments = "1 segment" if log.segments_count == 1 else f"{log.segments_count} segments"
    checked = [f"{log.size_in_bytes} bytes in {segments}"] if others else []
    checked += ["1 index or snapshot file" if len(files) == 1 else f"{len(files)} index and snapshot files"][
        : len(files)
    ]
    print(f"{', '.join(checked)}: {summary}", file=sys.stderr)
    sys.exit(EXIT_FAULTS if counts else 0)


def _side_files(paths: LogPaths) -> tuple[list[LogPath], list[Any]]:
    """Return the index and snapshot files among paths and globs, and everything else."""
    files: list[LogPath] = []
    others: list[Any] = []
    for one in each_path(paths):
        if isinstance(one, str) and Path(one).suffix[1:] in KINDS_BESIDE:
            for path in expanded_paths(one):
                (files if is_side_file(path) else others).append(path)
        else:
            others.append(one)
    return files, others


def _faults_of(path: LogPath, notes: list[str], *, strict: bool) -> Iterator[Fault]:
    for fault in side_file_faults(path, notes):
        if strict:
            raise error_from_fault(fault)
        yield fault


COMMANDS = [verify]
