"""``kraftlog report``: one page of what is in a log, what is wrong with it, and what to do next."""

from __future__ import annotations

import sys

import click

from kraftlog.cli import options
from kraftlog.cli.progress import is_terminal, progress_bar
from kraftlog.cli.report import EXIT_FAULTS
from kraftlog.cli.target import check_target, is_standard_output, open_target
from kraftlog.layout.discover import LogPaths, each_path
from kraftlog.log_report.finding import counted
from kraftlog.log_report.report import report_of
from kraftlog.log_report.texts import shown
from kraftlog.tables.open_log import open as open_log


@click.command("report")
@options.PATHS
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file; standard output when left out.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "json"]),
    help="html, a page; json, the findings. By default as --output ends, or html.",
)
@options.FORCE
@options.WHICH
@click.option("--now", type=options.Timestamp(), help="The time that ages are counted to; by default the clock's.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Partitions read at once.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    paths: LogPaths,
    output: str | None,
    form: str | None,
    force: bool,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    now: int | None,
    workers: int,
    no_progress: bool,
) -> None:
    """Write one HTML page: what is wrong with a log, what to do next, and what is in it.

    Findings come first, each with the command that says more or repairs it: damage, hanging and open transactions,
    offsets of groups that the log does not have, what is not well in the cluster. Then transactions in time, groups and
    their lag, brokers and what happened to them, a map of each damaged segment, and all partitions with sizes, ages,
    codecs and batch sizes. The page loads nothing and runs no script.

    Everything is read once and checked as verify does. The exit code is 1 when something could not be read or does not
    hold, and the page is written all the same. Titles of findings are printed as well. --format json writes the
    findings as an object, with those of kraftlog audit as rows.

    \b
    Example:
      kraftlog report sample/broker -o report.html
    """  # noqa: D301  (\b keeps the example as it is)
    is_json = form == "json" or (form is None and str(output).endswith(".json"))
    if is_standard_output(output) and is_terminal(sys.stdout) and not is_json:
        raise click.UsageError("a page is not for a terminal; give -o report.html")
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    check_target(output, log.folders, force=force)
    with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
        made = report_of(log, each_path(paths), now=now, workers=workers, on_progress=bar)
    with open_target(output, force=force) as file:
        for piece in [f"{made.json}\n".encode()] if is_json else made.pieces():
            file.write(piece)
    for note in log.lines.notes(heals=False):
        print(shown(note), file=sys.stderr)
    segments = counted(log.segments_count, "segment", "segments")
    beside = sys.stderr if is_standard_output(output) else sys.stdout
    for one in made.findings:
        where = f" ({', '.join(one.where)}{', ...' if one.more > 0 else ''})" if one.where else ""
        print(f"{one.severity}: {shown(one.title + where)}", file=beside)
    print(f"{log.size_in_bytes} bytes in {segments}: {made.verdict}", file=beside)
    sys.exit(EXIT_FAULTS if made.has_faults else 0)


COMMANDS = [command]
