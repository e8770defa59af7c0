"""``kraftlog stats``: what partitions and producers have written."""

from __future__ import annotations

import sys

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.errors import Fault
from kraftlog.schema import STATS
from kraftlog.tables.open_log import open as open_log


@click.command()
@options.PATHS
@options.WHICH
@click.option("--by", type=click.Choice(["partition", "producer"]), default="partition", show_default=True)
@click.option("--decompress", is_flag=True, help="Decompress the batches, for compression_ratio.")
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def stats(
    paths: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    by: str,
    decompress: bool,
    output: Output,
    no_progress: bool,
) -> None:
    """Count batches, records and bytes of each partition or producer, from batch headers alone.

    \b
    Example:
      kraftlog stats sample/broker --topic orders --by producer
    """  # noqa: D301  (\b keeps the example as it is)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown_columns = STATS.select(output.columns)
    output.check(log.folders)
    faults: list[Fault] = []
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        table = log.stats(faults, by_producer=by == "producer", decompress=decompress, on_progress=bar)
    with output.open(shown_columns) as writer:
        writer.write(table.select(shown_columns.names))
    sys.exit(report_faults(faults))


COMMANDS = [stats]
