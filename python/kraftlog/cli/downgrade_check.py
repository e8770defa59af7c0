"""``kraftlog downgrade-check``: what an older release could not read."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.cli import options
from kraftlog.cli.downgrade import image_of, verdict_lines
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.coordinator.downgrade_check import FAILS, FIELD_IGNORED, SKIPPED, UNKNOWN, downgrade_check
from kraftlog.coordinator.message_counts import count_messages
from kraftlog.coordinator.record_counts import RecordCounts
from kraftlog.coordinator.releases import FORMATS, Release, release_of
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata import levels
from kraftlog.metadata.downgrade import DowngradeReport, downgrade_report, newer_features
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.messages import format_of, typed_chunks
from kraftlog.read.partitions import by_partition, topics_of
from kraftlog.schema import TableSchema
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import CLUSTER_METADATA

METADATA = "metadata"

DOWNGRADE_CHECK = TableSchema(
    "downgrade_check",
    "records that an older release could not read, or what a downgrade of metadata.version would lose",
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "type": pa.string(),
        "key": pa.string(),
        "key_version": pa.int16(),
        "value_version": pa.int16(),
        "tag": pa.int32(),
        "field": pa.string(),
        "records_count": pa.int64(),
        "first_offset": pa.int64(),
        "outcome": pa.string(),
        "message": pa.string(),
    },
)

Counts = dict[str, dict[tuple[str, int | None], RecordCounts]]


@click.command("downgrade-check")
@options.PATHS
@click.option("--to", "to", metavar="RELEASE", required=True, help="A release such as 3.4.1, or a metadata.version.")
@options.WHICH
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    paths: LogPaths,
    to: str,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    output: Output,
    no_progress: bool,
) -> None:
    """Show what an older release could not read of the coordinators' topics and of the metadata log.

    All records count, those that later ones overwrite as well: a coordinator reads them when it loads a partition. Of
    several replicas of a partition the longest counts. An outcome is "fails" (the partition cannot be loaded),
    "skipped" (its state is not known there), "field_ignored" or "unknown" (newer than all that kraftlog knows, so that
    nobody can say what is lost). For the metadata log there are also the rows of a
    downgrade of metadata.version, as `kraftlog downgrade` shows them.

    The exit code is 0 when the release reads everything, though it may ignore fields, else 1.

    \b
    Example:
      kraftlog downgrade-check sample/broker --to 3.9
    """  # noqa: D301  (\b keeps the example as it is)
    release, level = release_of(to), levels.level_of(to)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown = DOWNGRADE_CHECK.select(output.columns)
    output.check(log.folders)
    faults = log.unreadable()
    if not any(format_of(segment) for segment in log.found.segments):
        report_faults(faults)
        raise ValueError(f"no internal topic among {', '.join(topics_of(log.found.segments))}; nothing was checked")
    notes: list[str] = []
    log.line_files(notes)
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        counts = count_records(log, faults, bar)
    tables = [downgrade_check(name, counted, release) for name, counted in counts.items()]
    reports = list(_reports(log, level, faults))
    found = _as_shown([*tables, *(report.table for report in reports)])
    with output.open(shown) as writer:
        writer.write(found.select(shown.names))
    for line in [
        *log.lines.notes(),
        *notes,
        *(() if faults else _summary(found, release)),
        *(line for report in reports for line in verdict_lines(report)),
    ]:
        print(line, file=sys.stderr)
    reads_all = not pc.any(
        pc.is_in(found.column("outcome"), value_set=pa.array([FAILS, SKIPPED, UNKNOWN])), min_count=0
    ).as_py()
    is_right = reads_all and all(report.is_lossless for report in reports)
    sys.exit(report_faults(faults) or (0 if is_right else EXIT_FAULTS))


def count_records(log: Log, faults: list[Fault], on_progress: Progress | None = None) -> Counts:
    """Count the records of internal topics: by format, and by topic and partition."""
    counts: Counts = {name: {} for name in FORMATS}
    internal = [one for one in log.line_files().segments if not one.state and format_of(one) in counts]
    for chunk in typed_chunks(internal, [], Pass(faults=faults, on_progress=on_progress)):
        name = format_of(chunk.segment) or METADATA
        where = chunk.segment.topic or CLUSTER_METADATA, chunk.segment.partition
        counted = counts[name].setdefault(where, RecordCounts())
        count_messages(counted, BUILT_IN.formats[name], chunk.messages, np.asarray(chunk.records.column("offset")))
    return counts


def _reports(log: Log, level: int, faults: list[Fault]) -> Iterator[DowngradeReport]:
    """Return what a downgrade would do to each metadata log that is at a higher level."""
    metadata = [segment for segment in log.line_files().segments if format_of(segment) == METADATA]
    live = [segment for segment in metadata if not segment.state]
    for segments in by_partition(live or metadata):  # a log, or snapshots alone
        unread: list[Fault] = []
        image = image_of(segments, unread)
        faults += unread
        from_level = image.metadata_version
        if from_level is None:
            continue
        tables = image.tables()
        if from_level > level or newer_features(tables):
            messages = [fault.message for fault in unread]
            yield downgrade_report(tables, from_level, min(level, from_level), messages)


def _as_shown(tables: list[pa.Table]) -> pa.Table:
    schema = DOWNGRADE_CHECK.select(None)
    parts = [schema.empty_table()]
    for table in tables:
        if "kind" in table.column_names:
            table = table.rename_columns({"kind": "type"})
            topic = pa.repeat(pa.scalar(CLUSTER_METADATA), table.num_rows)
            table = table.append_column("topic", topic)
        given = [
            table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
        parts.append(pa.table(given, schema=schema))
    return pa.concat_tables(parts)


def _summary(found: pa.Table, release: Release) -> Iterator[str]:
    counts: Counter[str] = Counter()
    of_records = found.filter(pc.is_valid(found.column("records_count")))
    for outcome, records in zip(
        of_records["outcome"].to_pylist(), of_records["records_count"].to_pylist(), strict=True
    ):
        counts[outcome] += records
    words = {
        FAILS: "records keep a log from being loaded",
        SKIPPED: "records are skipped",
        FIELD_IGNORED: "fields are ignored",
        UNKNOWN: "records are newer than what is known",
    }
    said = [f"{counts[outcome]} {word}" for outcome, word in words.items() if counts[outcome]]
    yield f"{release}: {', '.join(said) or 'reads all records'}"


COMMANDS = [command]
