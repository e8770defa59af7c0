"""``kraftlog downgrade``: what an older release could not read, and the snapshot of a lower metadata.version."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.cli import options
from kraftlog.cli.metadata_options import note_end
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.cli.target import check_new_folder
from kraftlog.coordinator.downgrade_check import FAILS, FIELD_IGNORED, SKIPPED, UNKNOWN, downgrade_check
from kraftlog.coordinator.message_counts import count_messages
from kraftlog.coordinator.record_counts import RecordCounts
from kraftlog.coordinator.releases import FORMATS, Release, release_of
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata import levels
from kraftlog.metadata.downgrade import (
    IMPOSSIBLE,
    SAFE,
    DowngradeReport,
    downgrade_report,
    downgraded,
    newer_features,
)
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.messages import format_of, typed_chunks
from kraftlog.read.partitions import by_partition, topics_of
from kraftlog.schema import TableSchema
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import CLUSTER_METADATA

METADATA = "metadata"

DOWNGRADE = TableSchema(
    "downgrade",
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


class MetadataDowngrade(NamedTuple):
    """The downgrade of a metadata log: its image, and the report."""

    at: ImageAt
    report: DowngradeReport


@click.command("downgrade")
@options.PATHS
@click.option("--to", "to", metavar="RELEASE", required=True, help="A release such as 3.4.1, or a metadata.version.")
@click.option(
    "--write",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the snapshot of the metadata log at that level to __cluster_metadata-0 in DIR, a new or empty folder.",
)
@click.option("--unsafe", "is_unsafe", is_flag=True, help="With --write: write it although something may be lost.")
@options.WHICH
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def command(
    paths: LogPaths,
    to: str,
    target: Path | None,
    is_unsafe: bool,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    output: Output,
    no_progress: bool,
) -> None:
    """Show what an older release could not read of the coordinators' topics and of the metadata log.

    All records count, also those that later ones overwrite: a coordinator reads them when it loads a partition. Of
    several replicas of a partition the longest counts. An outcome is "fails" (the partition cannot be loaded),
    "skipped" (its state is unknown there), "field_ignored" or "unknown" (newer than everything that kraftlog knows, so
    that nobody can say what is lost). For the metadata log there are also the rows of a downgrade of metadata.version:
    "dropped" and "lossy" are lost.

    The exit code is 0 when the release reads everything, though it may ignore fields, else 1.

    --write DIR also writes the snapshot that a downgrade of metadata.version makes; PATHS are not changed. The snapshot
    lacks records and fields that the level does not have. Unless the downgrade is safe and loses nothing, --unsafe is
    required. Kafka 4 itself only does safe downgrades. The exit code is then 0 when the snapshot was written, else 1.

    \b
    Examples:
      kraftlog downgrade sample/broker --to 3.9
      kraftlog downgrade sample/metadata --to 4.2 --write downgraded --unsafe
    """  # noqa: D301  (\b keeps the examples as they are)
    if is_unsafe and target is None:
        raise click.UsageError("--unsafe requires --write")
    release, level = release_of(to), levels.level_of(to)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown = DOWNGRADE.select(output.columns)
    output.check(log.folders)
    if target is not None:
        check_new_folder(target, log.folders, "--write")
    faults = log.unreadable()
    if not any(format_of(segment) for segment in log.found.segments):
        report_faults(faults)
        raise ValueError(f"no internal topic among {', '.join(topics_of(log.found.segments))}; nothing was checked")
    notes: list[str] = []
    log.line_files(notes)
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        counts = _count_records(log, faults, bar)
    tables = [downgrade_check(name, counted, release) for name, counted in counts.items()]
    downgrades = list(_downgrades(log, level, faults, writes=target is not None))
    reports = [one.report for one in downgrades]
    rows = _rows([*tables, *(report.table for report in reports)])
    with output.open(shown) as writer:
        writer.write(rows.select(shown.names))
    for line in [
        *log.lines.notes(),
        *notes,
        *(() if faults else _summary(rows, release)),
        *(line for report in reports for line in _verdict_lines(report)),
    ]:
        print(line, file=sys.stderr)
    code = report_faults(faults)
    if target is not None:
        sys.exit(_write(target, downgrades, level, code, is_unsafe=is_unsafe))
    reads_all = not pc.any(
        pc.is_in(rows.column("outcome"), value_set=pa.array([FAILS, SKIPPED, UNKNOWN])), min_count=0
    ).as_py()
    is_right = reads_all and all(report.is_lossless for report in reports)
    sys.exit(code or (0 if is_right else EXIT_FAULTS))


def _write(target: Path, downgrades: list[MetadataDowngrade], level: int, code: int, *, is_unsafe: bool) -> int:
    """Write the snapshot of the only metadata log, unless something forbids it; returns the exit code."""
    if len(downgrades) != 1:
        raise ValueError(f"--write requires one metadata log with a metadata.version, found {len(downgrades)}")
    at, report = downgrades[0]
    note_end(at, None)
    if code:
        print("nothing was written, since the log could not be read whole", file=sys.stderr)
        return code
    if report.verdict == IMPOSSIBLE or not (is_unsafe or report.is_lossless):
        hint = "" if report.verdict == IMPOSSIBLE else "; --unsafe writes it nevertheless"
        print(f"nothing was written{hint}", file=sys.stderr)
        return EXIT_FAULTS
    records = [(name, version, table) for name, (version, table) in downgraded(at.image.tables(), level).items()]
    print(write_image(target / f"{CLUSTER_METADATA}-0", at, records), file=sys.stderr)
    return 0


def _count_records(log: Log, faults: list[Fault], on_progress: Progress | None = None) -> Counts:
    """Count the records of internal topics: by format, and by topic and partition."""
    counts: Counts = {name: {} for name in FORMATS}
    internal = [one for one in log.line_files().segments if not one.state and format_of(one) in counts]
    for chunk in typed_chunks(internal, [], Pass(faults=faults, on_progress=on_progress)):
        name = format_of(chunk.segment) or METADATA
        where = chunk.segment.topic or CLUSTER_METADATA, chunk.segment.partition
        counted = counts[name].setdefault(where, RecordCounts())
        count_messages(counted, BUILT_IN.formats[name], chunk.messages, np.asarray(chunk.records.column("offset")))
    return counts


def _downgrades(log: Log, level: int, faults: list[Fault], *, writes: bool) -> Iterator[MetadataDowngrade]:
    """Return the downgrade of each metadata log: of all that a snapshot may be written of, else of higher levels."""
    metadata = [segment for segment in log.line_files().segments if format_of(segment) == METADATA]
    live = [segment for segment in metadata if not segment.state]
    for segments in by_partition(live or metadata):  # a log, or snapshots without a log
        unread: list[Fault] = []
        at = image_at(segments, None, unread)
        faults += unread
        from_level = at.image.metadata_version
        if from_level is None:
            continue
        tables = at.image.tables()
        if writes or from_level > level or newer_features(tables):
            to_level = level if writes else min(level, from_level)
            messages = [fault.message for fault in unread]
            yield MetadataDowngrade(at, downgrade_report(tables, from_level, to_level, messages))


def _rows(tables: list[pa.Table]) -> pa.Table:
    schema = DOWNGRADE.select(None)
    parts = [schema.empty_table()]
    for table in tables:
        if "kind" in table.column_names:
            table = table.rename_columns({"kind": "type"})
            topic = pa.repeat(pa.scalar(CLUSTER_METADATA), table.num_rows)
            table = table.append_column("topic", topic)
        columns = [
            table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
        parts.append(pa.table(columns, schema=schema))
    return pa.concat_tables(parts)


def _summary(rows: pa.Table, release: Release) -> Iterator[str]:
    counts: Counter[str] = Counter()
    of_records = rows.filter(pc.is_valid(rows.column("records_count")))
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
    parts = [f"{counts[outcome]} {word}" for outcome, word in words.items() if counts[outcome]]
    yield f"{release}: {', '.join(parts) or 'reads all records'}"


def _verdict_lines(report: DowngradeReport) -> Iterator[str]:
    """Return the verdict of a downgrade, and a line for each reason."""
    before, after = levels.name_of(report.from_level), levels.name_of(report.to_level)
    yield f"metadata.version {before} to {after}: {report.verdict}"
    yield from (f"  {reason}" for reason in report.reasons)
    if report.verdict == SAFE and not report.is_lossless:
        yield "  something is lost nevertheless"


COMMANDS = [command]
