"""``kraftlog dump``: the text of kafka-dump-log, for every file that stands in a partition's folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import click

from kraftlog.cli.dump.differences import Differences
from kraftlog.cli.dump.index_text import IndexFile, dump_index, dump_snapshot
from kraftlog.cli.dump.log_text import Wanted, dump_log
from kraftlog.cli.dump.parsers import DECODERS, STRING_DECODER, parser_of_classes, parser_of_topic
from kraftlog.cli.report import report_faults
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout import names
from kraftlog.layout.discover import discover, expanded_paths
from kraftlog.layout.segment import Segment

# Options of kafka-dump-log, in the order in which it looks for them, and what their records are of.
TOPIC_DECODERS = {
    "--offsets-decoder": ("consumer_offsets", "__consumer_offsets"),
    "--transaction-log-decoder": ("transaction_state", "__transaction_state"),
    "--cluster-metadata-decoder": ("cluster_metadata", "the metadata log"),
    "--remote-log-metadata-decoder": ("remote_log_metadata", "__remote_log_metadata"),
    "--share-group-state-decoder": ("share_group_state", "__share_group_state"),
}


def _topic_decoders(command: Callable[..., None]) -> Callable[..., None]:
    for flag, (name, topic) in reversed(TOPIC_DECODERS.items()):
        text = f"Print keys and values as records of {topic}."
        command = click.option(flag, f"decodes_{name}", is_flag=True, help=text)(command)
    return command


def _decoder_class(side: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        f"--{side}-decoder-class",
        type=click.Choice(list(DECODERS)),
        metavar="CLASS",
        help=f"Print {side}s as this class of Kafka's tools does: {', '.join(DECODERS)}.",
    )


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--files", multiple=True, help="Paths with commas between them, as kafka-dump-log takes them.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values; implies --deep-iteration.")
@click.option("--deep-iteration", is_flag=True, help="Print a line for each record as well.")
@click.option("--skip-record-metadata", is_flag=True, help="Of records, print keys and values alone.")
@_topic_decoders
@_decoder_class("key")
@_decoder_class("value")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Read no more of each log file; whole batches count.")
@click.option("--index-sanity-check", is_flag=True, help="Check index files only as a broker does when it starts.")
@click.option("--verify-index-only", is_flag=True, help="Compare index files with the log, and print no entries.")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Of the metadata log, print SCRAM credentials and passwords, as kafka-dump-log.",
)
@click.option("--max-message-size", type=int, hidden=True)  # batches of any size are read
def dump(
    paths: tuple[str, ...],
    files: tuple[str, ...],
    print_data_log: bool,
    deep_iteration: bool,
    skip_record_metadata: bool,
    key_decoder_class: str | None,
    value_decoder_class: str | None,
    max_bytes: int | None,
    index_sanity_check: bool,
    verify_index_only: bool,
    show_secrets: bool,
    max_message_size: int | None,
    **decoders: bool,
) -> None:
    """Print the text of kafka-dump-log; its options are taken, too.

    Takes log files, snapshots of the metadata log, .index, .timeindex, .txnindex and .snapshot files; of a folder all
    its log files. Keys and values are printed as UTF-8, or as one of the decoders has it, which implies
    --print-data-log. Index files are compared with the log file beside them. What differs, and offsets that jump, is
    listed on stderr behind all files. The exit code is 1 when something could not be read.

    \b
    Example:
      kraftlog dump --print-data-log sample/broker/orders-0
    """  # noqa: D301  (\b keeps the example as it is)
    given = [*paths, *(name for names in files for name in names.split(",") if name)]
    if not given:
        raise click.UsageError("no file given: name paths, or give --files with commas between them")
    topic = next((name for name, _ in TOPIC_DECODERS.values() if decoders[f"decodes_{name}"]), None)
    classes = (key_decoder_class, value_decoder_class)
    parser = None
    if topic is not None:
        parser = parser_of_topic(topic, show_secrets=show_secrets)
    elif print_data_log or any(classes):
        parser = parser_of_classes(*(name or STRING_DECODER for name in classes))
    wanted = Wanted(deep_iteration or parser is not None, parser, skip_record_metadata, max_bytes)
    faults, differences = list[Fault](), Differences()
    for path in (path for one in given for path in _files(one)):
        print(f"Dumping {path}")
        for line in _dump_file(path, wanted, differences, index_sanity_check, verify_index_only):
            if isinstance(line, Fault):
                faults.append(line)
            else:
                print(line)
    sys.stdout.flush()
    for line in differences.lines():
        print(line, file=sys.stderr)
    sys.exit(report_faults(faults))


def _dump_file(
    path: LogPath, wanted: Wanted, differences: Differences, only_checked: bool, only_verified: bool
) -> Iterator[str | Fault]:
    parsed = names.parse_segment_file(path.name)
    if (parsed and parsed.kind == "snapshot") or path.name.endswith(".snapshot"):  # in a remote tier, of another name
        yield from dump_snapshot(path)
    elif parsed and parsed.kind != "log":
        file = IndexFile(path, parsed.kind, parsed.base_offset)
        yield from dump_index(file, differences, only_checked=only_checked, only_verified=only_verified)
    elif segments := _segments(path):
        yield from dump_log(segments[0], wanted, differences)
    else:
        sys.stdout.flush()
        print(f"Ignoring unknown file {path}", file=sys.stderr)


def _segments(path: LogPath) -> list[Segment]:
    """Return the segment of a log file; none of a file that is no log, as kafka-dump-log ignores it."""
    try:
        return discover(path).segments
    except ValueError:
        return []


def _files(given: str) -> list[LogPath]:
    """Return the files that a path or a glob names; of a folder, its log files."""
    files: list[LogPath] = []
    for path in expanded_paths(given):
        files += [segment.path for segment in discover(path).segments] if _is_folder(path) else [path]
    return files


def _is_folder(path: LogPath) -> bool:
    entry = disk().entry(path)
    return entry is not None and entry.is_dir


COMMANDS = [dump]
