"""``kraftlog stats``: what partitions, producers and keys have written, and what takes the space."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click
import pyarrow as pa

from kraftlog import schema
from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log

UNITS = ("minute", "hour", "day")
_LAG = "min_compaction_lag_ms"
_OF_COMPACTION = ("rolls", "delete_retention_ms", _LAG)
_OF_RETENTION = ("retention_ms", "retention_bytes")
_MILLISECONDS = click.IntRange(min=0)

_SPACE: list[Callable[[Any], Any]] = [
    click.option("--space", "wants_space", is_flag=True, help="Bytes by key, value, headers, overhead and codec."),
    click.option("--compaction", "compacts", is_flag=True, help="With --space: what compaction would leave."),
    click.option("--roll", "rolls", is_flag=True, help="With --compaction: clean the last segment as well."),
    click.option("--delete-retention-ms", type=_MILLISECONDS, help="With --compaction; by default a day."),
    click.option("--min-compaction-lag-ms", _LAG, type=_MILLISECONDS, help="With --compaction; by default 0."),
    click.option("--retention-ms", type=_MILLISECONDS, help="With --space: what retention would leave."),
    click.option("--retention-bytes", type=_MILLISECONDS, help="The same, by size."),
    click.option("--now", type=options.Timestamp(), help="With these: the time that counts as now."),
]
_KEYS: list[Callable[[Any], Any]] = [
    click.option("--keys", "wants_keys", is_flag=True, help="Keys, duplicates and tombstones of each partition."),
    click.option("--top-keys", type=click.IntRange(min=1), metavar="N", help="The N keys with the most records."),
    click.option(
        "--key-memory",
        type=click.IntRange(min=1),
        metavar="MIB",
        help="Memory for the keys of a partition; of more keys there are estimates. By default 512.",
    ),
    click.option("--by-time", type=click.Choice(UNITS), help="Records by timestamp."),
]


def _stats(
    paths: LogPaths,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    output: Output,
    no_progress: bool,
    **given: Any,
) -> None:
    """Count batches, records and bytes of each partition or producer, from batch headers alone.

    With --space, --keys, --top-keys or --by-time the records are read, and what is counted is: bytes by what they are;
    how many keys, duplicates and tombstones there are; which keys have the most records; when records were written.

    \b
    Example:
      kraftlog stats sample/broker --topic orders --by producer
      kraftlog stats sample/broker --topic orders --space
      kraftlog stats sample/broker --topic orders --top-keys 3
    """  # noqa: D301  (\b keeps the example as it is)
    _check(given)
    log = open_log(paths, topics=topics or None, partitions=partitions or None)
    output.check(log.folders)
    table_schema, housekeeping = _wanted(given)
    on_request = [] if housekeeping is None else housekeeping.columns
    shown = table_schema.select(output.columns or [*table_schema.shown, *on_request])
    missing = [name for name in shown.names if name in table_schema.on_request and name not in on_request]
    if missing:
        raise click.UsageError(f"--columns {', '.join(missing)}: --compaction, --retention-ms or --retention-bytes")
    faults: list[Fault] = []
    heal = bool(given["heal"])
    notes = Notes(log.lines.notes(heals=heal))
    log.line_files(notes, heal=heal)
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not output.is_paged) as bar:
        table = _table(log, given, housekeeping, faults, notes, bar)
    with output.open(shown) as writer:
        writer.write(table.select(shown.names))
    for note in notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(faults))


def _check(given: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    kinds = {"--space": given["wants_space"], "--keys": given["wants_keys"], "--top-keys": given["top_keys"]}
    chosen = [name for name, value in (kinds | {"--by-time": given["by_time"]}).items() if value]
    if given["by"] is not None or given["decompress"]:
        chosen.append("--by" if given["by"] is not None else "--decompress")
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    says_what_is_left = given["compacts"] or any(given[name] is not None for name in _OF_RETENTION)
    for names, needed, is_there in (
        (("compacts", *_OF_RETENTION), "--space", given["wants_space"]),
        (_OF_COMPACTION, "--compaction", given["compacts"]),
        (("now",), "--compaction, --retention-ms or --retention-bytes", says_what_is_left),
        (("key_memory",), "--keys or --top-keys", given["wants_keys"] or given["top_keys"]),
    ):
        found = [name for name in names if given[name] is not None and given[name] is not False]
        if found and not is_there:
            option = {"compacts": "compaction", "rolls": "roll"}.get(found[0], found[0].replace("_", "-"))
            raise click.UsageError(f"--{option} goes with {needed}")


def _wanted(given: dict[str, Any]) -> tuple[schema.TableSchema, Any]:
    """Return the table that is asked for, and the settings of what compaction and retention would leave."""
    if given["wants_space"]:
        from kraftlog.tables.space import Housekeeping

        limits = {name: given[name] for name in (*_OF_COMPACTION, *_OF_RETENTION) if given[name] is not None}
        now = time.time_ns() // 1_000_000 if given["now"] is None else given["now"]
        return schema.SPACE, Housekeeping(now, compacts=given["compacts"], **limits)
    if given["wants_keys"] or given["top_keys"]:
        return schema.KEY_STATS if given["wants_keys"] else schema.TOP_KEYS, None
    return schema.WRITES if given["by_time"] else schema.STATS, None


def _table(
    log: Log, given: dict[str, Any], housekeeping: Any, faults: list[Fault], notes: Notes, bar: Progress | None
) -> pa.Table:
    heal = bool(given["heal"])
    if not any(given[name] for name in ("wants_space", "wants_keys", "top_keys", "by_time")):
        by_producer = given["by"] == "producer"
        return log.stats(faults, by_producer=by_producer, decompress=given["decompress"], heal=heal, on_progress=bar)
    faults += log.unreadable()
    read = Pass(faults=faults, notes=notes, on_progress=bar)
    if given["wants_space"]:
        return log.space(faults, housekeeping, heal=heal, on_progress=bar)
    if given["by_time"]:
        from kraftlog.tables.writes import writes

        return writes(log.line_files(heal=heal), given["by_time"], read)
    from kraftlog.tables.key_counts import MOST_BYTES, count_keys, key_stats, top_keys

    most = MOST_BYTES if given["key_memory"] is None else given["key_memory"] << 20
    counted = count_keys(log.line_files(heal=heal), read, most_bytes=most)
    return key_stats(counted) if given["wants_keys"] else top_keys(counted, given["top_keys"])


def _command() -> click.Command:
    decorators = [
        options.PATHS,
        options.WHICH,
        click.option(
            "--by", type=click.Choice(["partition", "producer"]), help="A row for each; by default partition."
        ),
        click.option("--decompress", is_flag=True, help="Decompress the batches, for compression_ratio."),
        *_SPACE,
        *_KEYS,
        options.HEAL,
        options.OUTPUT,
        click.option("--no-progress", is_flag=True, help="No progress bar on a terminal."),
    ]
    run: Any = _stats
    for decorator in reversed(decorators):
        run = decorator(run)
    return click.command("stats", help=_stats.__doc__)(run)


command = _command()

COMMANDS = [command]
