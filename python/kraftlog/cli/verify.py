"""``kraftlog verify``: whether a log is what it should be."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.discover import LogPaths
from kraftlog.schema import ERRORS
from kraftlog.stream import errors_table
from kraftlog.tables.open_log import open as open_log

FAULTS_AT_ONCE = 1 << 12


@click.command()
@options.PATHS
@options.WHICH
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def verify(
    paths: LogPaths,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    output: Output,
    no_progress: bool,
) -> None:
    """Check crc and structure of every record, that offsets rise, index files, and transactions.

    Of transactions: markers of the metadata log in their places, sequences of producers without gaps, nothing foreign
    between the batches of a transaction, .txnindex and .snapshot files that say what the log says, and no transaction
    that is committed in one partition and aborted in another, or that __transaction_state contradicts.

    Rows are those of the table errors. The exit code is 0 when all is well, 1 when not. A torn tail of the last
    segment, which an unclean shutdown leaves, is no error; standard error says where it is.

    \b
    Example:
      kraftlog verify sample/broker
    """  # noqa: D301  (\b keeps the example as it is)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown_columns = ERRORS.select(output.columns)
    output.check(log.folders)
    counts: Counter[str] = Counter()
    notes: list[str] = []
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        faults = log.verify(ReadOptions(), bar, notes)
        with output.open(shown_columns) as writer:
            while some := list(islice(faults, FAULTS_AT_ONCE)):
                counts.update(fault.error for fault in some)
                writer.write(errors_table(some, shown_columns.names))
    for note in notes:
        print(note, file=sys.stderr)
    summary = ", ".join(f"{count} {code}" for code, count in sorted(counts.items())) or "no errors"
    segments = "1 segment" if log.segments_count == 1 else f"{log.segments_count} segments"
    print(f"{log.size_in_bytes} bytes in {segments}: {summary}", file=sys.stderr)
    sys.exit(EXIT_FAULTS if counts else 0)


COMMANDS = [verify]
