"""``kraftlog lag``: how far groups are behind, as kafka-consumer-groups describes it."""

from __future__ import annotations

import sys

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import is_terminal, progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.cli.tables import check_topic
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.open_log import open as open_log


@click.command("lag")
@options.PATHS
@click.option("--group", "groups", multiple=True, help="Only this group. Can be given more than once.")
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic. Can be given more than once.")
@options.output_options()
@options.HEAL
@click.option("--strict", is_flag=True, help="Stop at the first fault.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    paths: LogPaths,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    output: Output,
    heal: bool,
    strict: bool,
    no_progress: bool,
) -> None:
    """Show how far groups are behind, as kafka-consumer-groups --describe does, without a broker.

    What a group has committed is compared with the end of the log (lag), and with the last stable offset, where
    read_committed consumers stop (read_committed_lag). A partition that a member has is shown before its first commit,
    too, without a lag. Give the log directories of the brokers that have
    __consumer_offsets and the topics; where the log of a partition is not among them, the column reason says so. The
    end is that of the files: a broker that runs may not have given it to consumers yet.

    \b
    Example:
      kraftlog lag sample/groups --group grp-migrated
    """  # noqa: D301  (\b keeps the example as it is)
    log = open_log(paths)
    check_topic(TABLES["lag"], log)
    output.check(log.folders)
    shows_bar = not no_progress and (output.path is not None or not is_terminal(sys.stdout))
    with progress_bar(log.size_in_bytes, wanted=shows_bar) as bar:
        stream = log.lag(
            output.columns, groups=groups or None, topics=topics or None, strict=strict, heal=heal, on_progress=bar
        )
        with output.open(stream.schema) as writer:
            for batch in stream.batches():
                writer.write(batch)
                if writer.is_full:
                    break
    for note in stream.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(stream.faults))


COMMANDS = [command]
