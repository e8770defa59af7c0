"""``kraftlog recover``: repair of log directories."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.layout.discover import discover, expanded_paths, stopping_folders
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.schema import RECOVERY
from kraftlog.write.recover import Recovery, file_of, partition_folders, recovery_table
from kraftlog.write.recovery_action import Action, RecoverOptions

ACTIONS_AT_ONCE = 1 << 10


@click.command()
@options.LOCAL_PATHS
@options.WHICH
@options.IDENTITY
@click.option(
    "--from",
    "sources",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Another replica of the partitions: a log directory or a partition's folder; may be given several times.",
)
@click.option("--write", is_flag=True, help="Change files; by default actions are only shown.")
@click.option("--cut-damage", is_flag=True, help="Cut at damage even if sound batches lie behind it, as Kafka does.")
@click.option("--rebuild", is_flag=True, help="Read every segment, also those that a broker takes as they are.")
@click.option(
    "--index-interval-bytes",
    type=click.IntRange(min=0),
    default=INDEX_INTERVAL_BYTES,
    show_default=True,
    help="index.interval.bytes of the topics.",
)
@click.option("--kept", "show_kept", is_flag=True, help="Show the files that are right as well.")
@options.OUTPUT
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
@click.pass_context
def recover(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    sources: tuple[str, ...],
    write: bool,
    cut_damage: bool,
    rebuild: bool,
    index_interval_bytes: int,
    show_kept: bool,
    output: Output,
    no_progress: bool,
) -> None:
    """Do what a broker does when it starts after a crash: cut torn tails, and rebuild index files.

    PATHS are folders of partitions or log directories. Without --write nothing is touched. With it the lock of the log
    directory is taken (a file .lock, which stays), so that no broker may run on it. Removed files are renamed to
    .deleted. A segment with sound batches behind damage, or with segments behind a torn tail, is left as it is and the
    exit code is 1, unless --cut-damage is given.

    As a broker does, it reads nothing of a log directory that was closed cleanly (.kafka_cleanshutdown), else the
    segments from the recovery point on (recovery-point-offset-checkpoint), and those without an .index; --rebuild reads
    all. Of the folder of a partition alone, without the files of its log directory, all segments are read.

    With --from, what a folder lacks or has damaged is taken from other replicas first, up to the offset at which these
    part from it: damaged batches, missing segments, and what lies before its first segment. Damage that none of them
    mends is refused, and the exit code is 1; missing offsets that none of them has are named. Their directories are
    only read; stop their brokers, too.

    .index, .timeindex, .txnindex, .snapshot and leader-epoch-checkpoint become what Kafka 2.8 to 4.3 makes of the log.

    \b
    Example:
      kraftlog recover sample/torn
    """  # noqa: D301  (\b keeps the example as it is)
    given = expanded_paths(paths)
    for path in given:
        entry = disk().entry(path) if isinstance(path, Path) else None
        if entry is not None and not entry.is_dir:
            raise click.UsageError(f"{path} is a file; recover takes folders of partitions and log directories")
    identity = options.given_identity(ctx)
    folders = partition_folders(given, topics or None, partitions or None)
    if identity:
        meant = {one.folder.absolute() for one in discover([*given, *identity]).segments}
        folders = [folder for folder in folders if folder.absolute() in meant]
    shown_columns = RECOVERY.select(output.columns)
    output.check([*folders, *given])
    others = discover([*sources, *identity]).segments if sources else []
    faults: list[Fault] = []
    counts: Counter[str] = Counter()
    not_read = 0
    with (
        Recovery(folders, RecoverOptions(write, cut_damage, rebuild, index_interval_bytes), others) as recovery,
        progress_bar(recovery.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar,
    ):
        actions = recovery.actions()
        with output.open(shown_columns) as writer:
            while some := list(islice(actions, ACTIONS_AT_ONCE)):
                counts.update(action.action for _, action in some)
                not_read += sum(action.is_trusted for _, action in some)
                faults += [_fault(folder, action) for folder, action in some if action.is_refusal]
                shown = [row for row in some if show_kept or row[1].action != "keep"]
                writer.write(recovery_table(shown).select(shown_columns.names))
                if bar:
                    bar(sum(action.size_before or 0 for _, action in some if action.path.suffix == ".log"))
    if not_read:
        count = "1 segment" if not_read == 1 else f"{not_read} segments"
        print(f"{count} not read, which a broker would not read either; --rebuild reads all", file=sys.stderr)
    for note in recovery.notes:
        print(note, file=sys.stderr)
    print(_summary(counts, done=write), file=sys.stderr)
    faults += stopping_folders({folder.absolute().parent for folder in folders})
    sys.exit(report_faults(faults))


def _summary(counts: Counter[str], *, done: bool) -> str:
    words = {"cut": "cut", "write": "written", "rename": "renamed", "remove": "removed"}
    parts = [
        f"{counts[action]} {word}" if done else f"{counts[action]} to {action}"
        for action, word in words.items()
        if counts[action]
    ]
    if counts["refuse"]:
        parts.append(f"{counts['refuse']} refused")
    hint = "; nothing was touched, --write does it" if parts and not done else ""
    return f"{counts['keep']} files kept, {', '.join(parts) or 'nothing to do'}{hint}"


def _fault(folder: PartitionFolder, action: Action) -> Fault:
    fault = Fault("not_recovered", action.reason, size_in_bytes=0)
    return fault.located(file_of(action), folder.topic, folder.partition, None)


COMMANDS = [recover]
