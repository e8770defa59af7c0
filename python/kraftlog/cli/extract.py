"""``kraftlog extract``: partitions, or stretches of them, as a log directory of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.extract import ExtractedPartition, extract_log
from kraftlog.cli import options
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import report_faults
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.user_options import read_options


@click.command()
@options.PATHS
@click.argument("target", type=click.Path(path_type=Path))
@options.WHICH
@options.BOUNDS
@options.INCLUDE_DELETED
@options.HEAL
@options.CUT
@click.option(
    "--per-partition",
    is_flag=True,
    help="Take --end-timestamp of each partition for itself: transactions may be torn.",
)
@options.RENAME
@click.option(
    "--committed", is_flag=True, help="Leave out records of aborted and open transactions, as read_committed does."
)
@click.option(
    "--compression", type=click.Choice(COMPRESSION_TYPES), help="Of all batches; by default each keeps its own."
)
@redacts
@options.EXCLUDE_KEYS
@click.option("--strict", is_flag=True, help="Stop at the first fault, and write nothing.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def extract(
    paths: LogPaths,
    target: Path,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    renamed: tuple[tuple[str, str], ...],
    per_partition: bool,
    committed: bool,
    compression: str | None,
    rules: tuple[str, ...],
    key_file: Path | None,
    exclude_keys: Path | None,
    no_progress: bool,
    **given: Any,
) -> None:
    """Copy partitions to TARGET, a new or empty folder, which becomes a log directory that a broker reads.

    Offsets, keys, timestamps, headers and producers stay as they are. Batches are copied without decoding where none
    of their records lies outside of the bounds and the compression stays. Index files, producer snapshots and
    leader-epoch-checkpoint are rebuilt. Transactions keep their markers, also where these lie after the bounds.
    With --end-timestamp each partition ends where no transaction is torn, at or before the time; standard error says
    how far that is from it. Transactions that are open there get an ABORT marker, in place of a later one of their own.
    --per-partition ends each partition at the time.
    What is damaged is left out and named, and the exit code is 1 then. Without --topic all topics but Kafka's own are
    copied. TARGET gets its name when all of it is on disk. With --redact every batch is rewritten; a key or value
    that is no JSON, where a JSON path was given, is redacted as a whole.

    \b
    Examples:
      kraftlog extract sample/broker copy --topic orders
      kraftlog extract sample/codecs part -t codec-lz4 --start-offset 100 --end-offset 200 --rename codec-lz4=restored
    """  # noqa: D301  (\b keeps the examples as they are)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    level = READ_COMMITTED if committed else READ_UNCOMMITTED
    redaction = redaction_of(rules, key_file)
    bounds = read_options(**given, isolation_level=level)
    with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
        done = extract_log(
            *(log, target, bounds, dict(renamed), compression, redaction),
            is_chosen=bool(topics),
            per_partition=per_partition,
            excluded=ExcludedKeys.of_file(exclude_keys),
            on_progress=bar,
        )
    for one in done.partitions:
        print(_line(one))
    for note in done.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(done.faults))


def _line(one: ExtractedPartition) -> str:
    written, name = one.written, f"{one.topic}-{one.partition}"
    if not written.size_in_bytes:
        return f"{name}: no records"
    where = f"in batches of offsets {written.start_offset} to {written.end_offset - 1}"
    return f"{name}: {written.records:,} records {where}, {written.size_in_bytes:,} bytes"


COMMANDS = [extract]
