"""``kraftlog downgrade``: the snapshot that a downgrade of metadata.version makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from kraftlog.cli.metadata_options import note_end
from kraftlog.cli.output import open_writer
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.cli.target import check_new_folder
from kraftlog.errors import Fault
from kraftlog.layout.discover import discover
from kraftlog.layout.segment import Segment
from kraftlog.metadata import levels
from kraftlog.metadata.downgrade import COLUMNS, IMPOSSIBLE, SAFE, DowngradeReport, downgrade_report, downgraded
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_snapshot import write_image
from kraftlog.read.partitions import is_metadata
from kraftlog.topics import CLUSTER_METADATA

FORMATS = ("table", "jsonl", "csv")


@click.command("downgrade")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option("--to", "to", metavar="LEVEL", required=True, help="A metadata.version such as 3.6-IV1, or a release.")
@click.option("--output", "target", required=True, type=click.Path(path_type=Path), help="A new or empty directory.")
@click.option("--force", is_flag=True, help="Do it although something is lost.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
def command(directory: Path, to: str, target: Path, force: bool, form: str) -> None:
    """Write the snapshot of the metadata log at a lower metadata.version, and list what is lost by it.

    DIR is the folder of __cluster_metadata, or a log directory that has it. The snapshot is written to
    __cluster_metadata-0 in the output directory; DIR is left as it is. What the level has no records or fields for is
    not in the snapshot. Unless the downgrade is safe and loses nothing, --force is needed. Kafka 4 itself does safe
    downgrades only.

    \b
    Example:
      kraftlog downgrade sample/metadata --to 4.2 --output downgraded --force
    """  # noqa: D301  (\b keeps the example as it is)
    level = levels.level_of(to)
    _check_target(target, directory)
    faults: list[Fault] = []
    at = image_at(_segments(directory), None, faults)
    note_end(at, None)
    from_level = at.image.metadata_version
    if from_level is None:
        raise ValueError(f"{directory}: its metadata log says no metadata.version")
    tables = at.image.tables()
    report = downgrade_report(tables, from_level, level, [fault.message for fault in faults])
    with open_writer(form, None, COLUMNS, "base64", force=False) as writer:
        for batch in report.table.to_batches():
            writer.write(batch)
    for line in verdict_lines(report):
        print(line, file=sys.stderr)
    code = report_faults(faults)
    if code:
        print("nothing was written, since the log could not be read whole", file=sys.stderr)
        sys.exit(code)
    if report.verdict == IMPOSSIBLE or not (force or report.is_lossless):
        hint = "" if report.verdict == IMPOSSIBLE else "; --force does it all the same"
        print(f"nothing was written{hint}", file=sys.stderr)
        sys.exit(EXIT_FAULTS)
    records = [(name, version, table) for name, (version, table) in downgraded(tables, level).items()]
    print(write_image(target / f"{CLUSTER_METADATA}-0", at, records), file=sys.stderr)
    sys.exit(code)


def image_of(segments: Sequence[Segment], faults: list[Fault]) -> Image:
    """Return the image at the end of a metadata log."""
    return image_at(segments, None, faults).image


def verdict_lines(report: DowngradeReport) -> Iterator[str]:
    """Return what is said of a downgrade, a line for each reason."""
    before, after = levels.name_of(report.from_level), levels.name_of(report.to_level)
    yield f"metadata.version {before} to {after}: {report.verdict}"
    yield from (f"  {reason}" for reason in report.reasons)
    if report.verdict == SAFE and not report.is_lossless:
        yield "  something is lost all the same"


def _segments(directory: Path) -> list[Segment]:
    segments = [segment for segment in discover(directory).segments if is_metadata(segment)]
    if not segments:
        raise ValueError(f"{directory}: no metadata log in it")
    return segments


def _check_target(target: Path, directory: Path) -> None:
    check_new_folder(target, [directory])


COMMANDS = [command]
