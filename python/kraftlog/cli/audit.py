"""``kraftlog audit``: what the files of a cluster contradict."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kraftlog.audit.finding import Severity
from kraftlog.backup.loss_ledger import LEDGER_FILE, write_loss_ledger
from kraftlog.cli import options
from kraftlog.cli.output import SENTENCES, Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.cli.tables import Scan
from kraftlog.cli.target import check_new_folder
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.commands import kraftlog
from kraftlog.tables.open_log import open as open_log

FINDINGS = TABLES["findings"]


@click.command("audit")
@options.PATHS
@options.WHICH
@click.option(
    "--loss-ledger",
    "ledger",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the records that only lost replicas hold to a new folder: as Parquet, and as input of replay.",
)
@options.of_table(FINDINGS)
@options.OUTPUT_OF_SENTENCES
@options.READING
def command(
    paths: LogPaths,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    ledger: Path | None,
    output: Output,
    workers: int,
    no_progress: bool,
    **given: Any,
) -> None:
    """Find what the files of a cluster contradict: replicas, transactions, offsets, configuration.

    Which copy is right, what a failover lost, whether exactly-once held. Give the log directories of all brokers. A
    check is silent where the files cannot prove anything: a copy of one broker shows fewer findings than those of all.

    Each finding is a row of the table findings: its code, severity, place, what is known, what it may mean, and the
    next command. The exit code is 1 when there is an error or a warning, or when something could not be read; notes do
    not count.

    --loss-ledger writes the records that only a replica holds whose history the cluster has left, as after an unclean
    election: loss-ledger.parquet, and a log directory for each broker that has some, which kraftlog replay produces
    into a live broker.

    With --against, the findings are what another cluster lacks or has otherwise: topics, settings, records by content,
    their order, offsets of groups and those of MirrorMaker. Records are compared by offset where topic ids are equal.

    \b
    Example:
      kraftlog audit sample/broker
    """  # noqa: D301  (\b keeps the example as it is)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    output.check(log.folders)
    if ledger is not None and given["against"]:
        raise click.UsageError("--loss-ledger cannot be combined with --against")
    if ledger is not None:
        check_new_folder(ledger, log.folders, "--loss-ledger")
    if output.form in (None, SENTENCES):
        if output.columns is not None:
            raise click.UsageError("--columns requires --format; without it a finding is a sentence")
        output = replace(output, form=SENTENCES, columns=["sentence"])
    shown = FINDINGS.schema.select(output.columns)
    scan = Scan.of(FINDINGS, {"workers": workers, **given})
    counts: Counter[str] = Counter()
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        (stream,) = scan.streams(log, list(dict.fromkeys([*shown.names, "severity"])), on_progress=bar)
        with output.open(shown) as writer:
            for batch in stream.batches():
                counts.update(batch.column("severity").to_pylist())
                writer.write(batch.select(shown.names))
    faults = stream.faults
    for note in stream.notes:
        print(note, file=sys.stderr)
    segments = "1 segment" if log.segments_count == 1 else f"{log.segments_count} segments"
    each = [(counts[str(one)], str(one)) for one in Severity]
    summary = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in each if count)
    print(f"{log.size_in_bytes} bytes in {segments}: {summary or 'no findings'}", file=sys.stderr)
    if ledger is not None:
        written = write_loss_ledger(log, ledger)
        faults = [*faults, *(fault for fault in written.faults if fault not in faults)]
        records = "1 record" if written.records_count == 1 else f"{written.records_count} records"
        print(f"{ledger / LEDGER_FILE}: {records}", file=sys.stderr)
        for folder in written.folders:
            mapping = f"{folder.name}.mapping"
            again = kraftlog("replay", [str(folder)], "--append", "--mapping", mapping, "--to", "BROKER")
            print(f"produce them again: {again}", file=sys.stderr)
    code = report_faults(faults)
    sys.exit(EXIT_FAULTS if counts[str(Severity.ERROR)] or counts[str(Severity.WARNING)] else code)


COMMANDS = [command]
