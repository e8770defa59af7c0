"""``kraftlog verify``: whether a log is what it should be."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain, islice
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS
from kraftlog.layout.discover import LogPaths
from kraftlog.layout.unread import NOT_READ
from kraftlog.stream import errors_table
from kraftlog.tables.all_tables import TABLES
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

    \b
    Examples:
      kraftlog verify sample/broker
      kraftlog verify sample/damaged --format jsonl --columns error,position,size_in_bytes
    """  # noqa: D301  (\b keeps the examples as they are)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown_columns = ERRORS.schema.select(output.columns)
    output.check(log.folders)
    counts: Counter[str] = Counter()
    notes: list[str] = []
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        faults = chain(log.verify(ERRORS.read_options(bounds), bar, notes, workers=workers), log.left_alone())
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
    print(f"{log.size_in_bytes} bytes in {segments}: {summary}", file=sys.stderr)
    sys.exit(EXIT_FAULTS if counts else 0)


COMMANDS = [verify]
