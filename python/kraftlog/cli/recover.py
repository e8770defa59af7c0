"""``kraftlog recover``: repair of log directories."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice

import click

from kraftlog.cli import options
from kraftlog.cli.output import open_writer
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_output
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment, expanded_paths
from kraftlog.schema import RECOVERY
from kraftlog.tables.log import open as open_log
from kraftlog.write.recover import file_of, recovery_table
from kraftlog.write.recover import recover as recover_segments
from kraftlog.write.recovery_action import Action, RecoverOptions

ACTIONS_AT_ONCE = 1 << 10


@click.command()
@options.PATHS
@options.WHICH
@click.option("--write", is_flag=True, help="Do it; otherwise only show what there is to do.")
@click.option("--cut-damage", is_flag=True, help="Cut at damage even if sound batches lie behind it, as Kafka does.")
@click.option(
    "--index-interval-bytes",
    type=click.IntRange(min=0),
    help="index.interval.bytes of the topics.  [default: as the index files show, else 4096]",
)
@click.option("--all", "show_all", is_flag=True, help="Show the files that are right as well.")
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def recover(
    paths: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    write: bool,
    cut_damage: bool,
    index_interval_bytes: int | None,
    show_all: bool,
    form: str,
    output: str | None,
    columns: list[str] | None,
    limit: int | None,
    binary: str,
    no_progress: bool,
) -> None:
    """Cut torn tails, and rebuild .index, .timeindex, .txnindex and .snapshot files that are not what the log says.

    PATHS are folders of partitions or log directories. Without --write nothing is touched. With it the lock of the log
    directory is taken (a file .lock, which stays), so that no broker may run on it. Removed files are renamed to
    .deleted. A segment with sound batches behind damage, or with segments behind a torn tail, is left as it is and the
    exit code is 1, unless --cut-damage is given.

    \b
    Example:
      kraftlog recover tests/golden/damaged/truncated_in_last_records/log
    """  # noqa: D301  (\b keeps the example as it is)
    for path in expanded_paths(paths):
        entry = disk().entry(path)
        if entry is None or not entry.is_dir:
            raise click.UsageError(f"{path} is a file; recover takes folders of partitions and log directories")
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    shown_columns = RECOVERY.select(columns)
    check_output(output, log)
    faults: list[Fault] = []
    counts: Counter[str] = Counter()
    left = limit
    with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
        actions = recover_segments(
            log.found.segments, RecoverOptions(write, cut_damage, interval_bytes=index_interval_bytes)
        )
        with open_writer(form, output, shown_columns, binary) as writer:
            while some := list(islice(actions, ACTIONS_AT_ONCE)):
                counts.update(action.action for _, action in some)
                faults += [_fault(segment, action) for segment, action in some if action.is_refusal]
                shown = [row for row in some if show_all or row[1].action != "keep"][:left]
                left = None if left is None else left - len(shown)
                for batch in recovery_table(shown).select(shown_columns.names).to_batches():
                    writer.write(batch)
                if bar:
                    bar(sum(action.size_before or 0 for _, action in some if action.path.suffix == ".log"))
    print(_summary(counts, done=write), file=sys.stderr)
    sys.exit(report_faults(faults))


def _summary(counts: Counter[str], *, done: bool) -> str:
    words = {"cut": "cut", "write": "written", "remove": "removed"}
    parts = [
        f"{counts[action]} {word}" if done else f"{counts[action]} to {action}"
        for action, word in words.items()
        if counts[action]
    ]
    if counts["refuse"]:
        parts.append(f"{counts['refuse']} refused")
    hint = "; nothing was touched, --write does it" if parts and not done else ""
    return f"{counts['keep']} files kept, {', '.join(parts) or 'nothing to do'}{hint}"


def _fault(segment: Segment, action: Action) -> Fault:
    fault = Fault("not_recovered", action.reason, size_in_bytes=0)
    return fault.located(file_of(action), segment.topic, segment.partition, None)
