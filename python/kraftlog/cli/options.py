"""Options that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from kraftlog.cli import format_string
from kraftlog.cli.format_string import FormatString
from kraftlog.cli.output import BINARY_TEXTS, FORMATS, SENTENCES, takes_output
from kraftlog.codec.options import ISOLATION_LEVELS, MOST_DECOMPRESSED_BYTES, ReadOptions
from kraftlog.disk.remote_path import RemotePath, log_path
from kraftlog.layout.backups import backup_path
from kraftlog.layout.identity import Identity
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.tables.options import Bounds
from kraftlog.tables.table import Table
from kraftlog.times import milliseconds

if TYPE_CHECKING:
    from kraftlog.transactions.cut import CutTime
    from kraftlog.transactions.transaction import ProducerIdAndEpoch

Command = TypeVar("Command", bound=Callable[..., Any])


class Timestamp(click.ParamType[int]):
    """A time as ``kraftlog.times`` reads it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since the epoch."""
        if isinstance(value, int):
            return value
        try:
            return milliseconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Columns(click.ParamType[list[str]]):
    """Names, separated by commas."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.fail("names no column", param, ctx)
        return names


class ExistingPath(click.Path):
    """A local path that exists, or a URI."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path; URIs are not checked before they are read."""
        path = backup_path(value) or log_path(value)
        return path if isinstance(path, RemotePath) else super().convert(path, param, ctx)


def applied(decorators: list[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Return several decorators as one."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


class Pair(click.ParamType[tuple[str, str]]):
    """Two texts, separated by an equals sign.

    Parameters
    ----------
    name : str
        Name of the type, such as ``old=new``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return both."""
        if isinstance(value, tuple):
            return value
        first, equals, second = value.partition("=")
        if not (first and equals and second):
            self.fail(f"{value!r} is not of the form {self.name.upper()}", param, ctx)
        return first, second


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store an option for the paths to which it belongs."""
    assert param.name is not None
    ctx.meta[param.name] = value


def _with_others(
    ctx: click.Context, param: click.Parameter, paths: tuple[str, ...]
) -> tuple[str | RemoteTier | Identity | CutTime, ...]:
    """Return the paths, the remote tier, the selected topic ids and cluster id, and the cut."""
    tier = given_tier(ctx)
    if not paths and tier is None:
        raise click.MissingParameter(ctx=ctx, param=param)
    return *paths, *([] if tier is None else [tier]), *given_identity(ctx), *given_cut(ctx)


def given_tier(ctx: click.Context) -> RemoteTier | None:
    """Return the remote tier of the options, or None."""
    location, keys = ctx.meta.get("remote_tier"), dict(ctx.meta.get("tier_keys") or ())
    if location is None and keys:
        raise click.UsageError("--tier-key goes with --remote-tier")
    return None if location is None else RemoteTier(location, keys)


def given_identity(ctx: click.Context) -> list[Identity]:
    """Return the topic ids and the cluster id of the options; an empty list without them."""
    topic_ids, cluster_id = ctx.meta.get("topic_ids") or (), ctx.meta.get("cluster_id")
    return [Identity(tuple(topic_ids), cluster_id)] if topic_ids or cluster_id is not None else []


def given_cut(ctx: click.Context) -> list[CutTime]:
    """Return the cut of the options; an empty list without it."""
    cut = ctx.meta.get("cut")
    return [] if cut is None else [cut]


class CutOption(click.ParamType["CutTime"]):
    """A cut: end, or a time and the side of it on which the cut lies."""

    name = "cut"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> CutTime:
        """Return the side and the time."""
        from kraftlog.transactions.cut import CutTime, Side

        if isinstance(value, CutTime):
            return value
        name, colon, time = value.partition(":")
        if name in (Side.AT_OR_BEFORE.value, Side.AT_OR_AFTER.value) and time:
            return CutTime(Side(name), Timestamp().convert(time, param, ctx))
        if name != Side.END.value or colon:
            self.fail(f"{value!r} is not end, at-or-before:TIME or at-or-after:TIME", param, ctx)
        return CutTime(Side.END)


CUT = click.option(
    "--cut",
    metavar="CUT",
    type=CutOption(),
    is_eager=True,
    expose_value=False,
    callback=_keep,
    help="Read the log up to a cut, at which no transaction is torn: end, at-or-before:TIME or at-or-after:TIME."
    " Transactions that are open at the cut count as aborted.",
)

IDENTITY = applied(
    [
        click.option(
            "--topic-id",
            "topic_ids",
            metavar="ID",
            multiple=True,
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Id of the topic to read, if several topics have the same name. Repeatable.",
        ),
        click.option(
            "--cluster-id",
            metavar="ID",
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Id of the cluster to read, if the directories belong to several clusters.",
        ),
    ]
)

TIER = applied(
    [
        click.option(
            "--remote-tier",
            metavar="PATH",
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Tiered storage of the brokers, a folder or URI. PATHS continue where the tier ends; optional.",
        ),
        click.option(
            "--tier-key",
            "tier_keys",
            metavar="NAME=FILE",
            multiple=True,
            type=Pair("name=file"),
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Private key (PEM) of a key pair that encrypts the tier. Repeatable.",
        ),
    ]
)

LOCAL_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path())
_PATHS = click.argument("paths", nargs=-1, metavar="PATHS...", type=click.Path(), callback=_with_others)
PATHS = applied([_PATHS, TIER, IDENTITY])

WHICH = applied(
    [
        click.option("-t", "--topic", "topics", multiple=True, help="Only this topic. Repeatable."),
        click.option(
            "-p",
            "--partition",
            "partitions",
            multiple=True,
            type=int,
            help="Only this partition. Repeatable.",
        ),
    ]
)

EXCLUDE_KEYS = click.option(
    "--exclude-keys",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Leave out records whose key is in this file: one on each line, as UTF-8 or base64:...; after a topic and a"
    " tab only those of this topic.",
)

CHANGES = applied(
    [
        click.option(
            "--kind", "kinds", multiple=True, help="Only changes of this kind: topic, partition, ... Repeatable."
        ),
        click.option(
            "-t",
            "--topic",
            "changed_topics",
            multiple=True,
            help="Only changes of this topic, its partitions and configs. Repeatable.",
        ),
        click.option(
            "--broker",
            "brokers",
            multiple=True,
            type=int,
            help="Only changes of this broker and its configs, and of partitions that add or remove it as leader, in"
            " the ISR or in another list. Repeatable.",
        ),
    ]
)

_OF_TABLES: dict[str, Callable[[Any], Any]] = {
    "start_offset": click.option("--start-offset", type=int, help="First offset; -5 begins 5 before the end."),
    "end_offset": click.option("--end-offset", type=int, help="End offset, exclusive."),
    "start_timestamp": click.option(
        "--start-timestamp",
        type=Timestamp(),
        help="First time: 2026-11-21T08:00Z, yesterday 14:00, -1h, @SECONDS, milliseconds.",
    ),
    "end_timestamp": click.option("--end-timestamp", type=Timestamp(), help="End time, exclusive."),
    "at": click.option("--at", type=int, help="Last offset to apply, in each partition of the topic."),
    "include_deleted": click.option(
        "--include-deleted",
        is_flag=True,
        help="Include records before the log start offset, which consumers do not see.",
    ),
    "heal": click.option(
        "--heal/--no-heal",
        default=ReadOptions.heal,
        show_default=True,
        help="Read missing or damaged offsets of the chosen replica from replicas that agree with it.",
    ),
    "include_control": click.option("--include-control", is_flag=True, help="Include the records of control batches."),
    "salvage": click.option(
        "--salvage",
        is_flag=True,
        help="Search damaged parts of files for batches; the column salvaged marks their records.",
    ),
    "max_decompressed_bytes": click.option(
        "--max-decompressed-bytes",
        type=click.IntRange(1, MOST_DECOMPRESSED_BYTES),
        default=ReadOptions.max_decompressed_bytes,
        show_default=True,
        help="Maximum size of a batch after decompression, in bytes.",
    ),
    "committed_only": click.option(
        "--committed-only",
        is_flag=True,
        help="End each partition at the high watermark that the files prove; what follows may be cut off again.",
    ),
    "include_image": click.option(
        "--include-image", is_flag=True, help="Begin with the initial image, as added entries."
    ),
    "against": click.option(
        "--against",
        metavar="PATH",
        multiple=True,
        help="Compare with another cluster instead: a backup, a restored cluster or a mirror. Repeatable.",
    ),
    "show_secrets": click.option(
        "--show-secrets", is_flag=True, help="Show SCRAM credentials and passwords, also in raw_value."
    ),
}
OF_PYTHON = ("batch_rows", "batch_bytes")  # sizes of the record batches in Python


def of_table(table: Table) -> Callable[[Command], Command]:
    """Return the options of a table, except ``strict``, which all tables have (see ``READING``)."""
    by_table = ("check_crc", "isolation_level")  # whose defaults depend on the table
    names = [name for name in table.option_names if name not in (*OF_PYTHON, "strict", *by_table)]
    decorators = [_OF_TABLES[name] for name in names]
    if "isolation_level" in table.option_names:
        level = table.defaults.get("isolation_level", ReadOptions.isolation_level)
        text = "read_committed leaves out the records of aborted and open transactions."
        levels = click.Choice(ISOLATION_LEVELS)
        decorators.append(click.option("--isolation-level", type=levels, default=level, show_default=True, help=text))
    if "check_crc" in table.option_names:
        is_default = bool(table.defaults.get("check_crc", ReadOptions.check_crc))
        text = "Verify the checksums of batches." if is_default else "Verify the checksums of batches, for crc_ok."
        decorators.append(click.option("--check-crc/--no-check-crc", default=is_default, show_default=True, help=text))
    return applied(decorators)


BOUNDS = applied([_OF_TABLES[name] for name in Bounds.__annotations__])
AGAINST = _OF_TABLES["against"]
HEAL = _OF_TABLES["heal"]
INCLUDE_DELETED = _OF_TABLES["include_deleted"]
COMMITTED_ONLY = _OF_TABLES["committed_only"]


class TransactionId(click.ParamType["ProducerIdAndEpoch"]):
    """Producer id and epoch, separated by a colon."""

    name = "PID:EPOCH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ProducerIdAndEpoch:
        """Return both."""
        from kraftlog.transactions.transaction import ProducerIdAndEpoch

        if isinstance(value, ProducerIdAndEpoch):
            return value
        try:
            return ProducerIdAndEpoch.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


TRANSACTION = click.option(
    "--transaction",
    type=TransactionId(),
    metavar="PID:EPOCH",
    help="Only records of this transaction of the table transactions, in all its partitions, also if it is open or"
    " aborted.",
)


class OffsetOrTime(click.ParamType[tuple[str, int]]):
    """A bound in kcat's syntax: beginning, end, an offset, -N, or s@ and e@ with a timestamp."""

    name = "offset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the name of a bound and its value."""
        if isinstance(value, tuple):
            return value
        if value in ("beginning", "end"):
            return (START_OFFSET, 0) if value == "beginning" else (OFFSETS_FROM_END, 0)
        for prefix, bound in (("s@", "start_timestamp"), ("e@", "end_timestamp")):
            if value.startswith(prefix):
                return bound, Timestamp().convert(value[len(prefix) :], param, ctx)
        if not re.fullmatch(r"-?[0-9]+", value):
            self.fail(f"{value!r} is not beginning, end, N, -N, s@TIMESTAMP or e@TIMESTAMP", param, ctx)
        return (OFFSETS_FROM_END, -int(value)) if value.startswith("-") else (START_OFFSET, int(value))


START_OFFSET, OFFSETS_FROM_END = "start_offset", "offsets_from_end"

KCAT_OFFSET = click.option(
    "-o",
    "bounds",
    multiple=True,
    type=OffsetOrTime(),
    help="Start as in kcat: beginning, end, an offset, -5 for the last five of each partition, or s@TIMESTAMP;"
    " e@TIMESTAMP sets the end.",
)

FOLLOW = applied(
    [
        click.option("--follow", "follows", is_flag=True, help="Wait for new rows, until Ctrl-C."),
        click.option(
            "--last",
            type=click.IntRange(min=0),
            help="Begin with the last N rows of each partition; with --follow, 0 shows only new rows.",
        ),
    ]
)

BINARY = click.option(
    "--binary",
    type=click.Choice(BINARY_TEXTS),
    show_default="text",
    help='Text of bytes. text: UTF-8 as it is; other bytes are {"base64": "..."} in jsonl, base64:... in csv, hex in'
    " tables. utf8: U+FFFD stands for what is not UTF-8.",
)

FORCE = click.option("--force", is_flag=True, help="Replace an existing output file.")


def output_options(
    own_format: str | None = None,
    *,
    others: tuple[str, ...] = (),
    has_bytes: bool = False,
    has_columns: bool = True,
    piped: str = "table",
) -> Callable[[Command], Command]:
    """Return the output options, which a command receives as one ``Output``.

    Parameters
    ----------
    own_format : str or None
        The default format, which only this command has.
    others : tuple of str
        Other formats that only this command has.
    has_bytes : bool
        Whether rows have columns of bytes.
    has_columns : bool
        Whether columns can be chosen.
    piped : str
        The default format if standard output is not a terminal.
    """
    default = own_format or ("table" if piped == "table" else f"table on a terminal, {piped} elsewhere")
    formats = (*([] if own_format is None else [own_format]), *FORMATS, *others)
    given = [
        click.option(
            "--format",
            "form",
            type=click.Choice(formats),
            help=f"Default: by the extension of the output file; on standard output {default}.",
        ),
        click.option("--output", type=click.Path(dir_okay=False), help="Output file; default: standard output."),
        FORCE,
        *([click.option("--columns", type=Columns(), help="Columns to read, separated by commas.")] * has_columns),
        click.option("-c", "--limit", type=click.IntRange(min=0), help="Show the first N rows."),
        click.option("--tail", type=click.IntRange(min=0), help="Show the last N rows."),
        click.option("--all", "shows_all", is_flag=True, help="Show all rows on a terminal; by default the first 100."),
        click.option("--full", "is_full", is_flag=True, help="Show all columns on a terminal, in full."),
    ]
    if has_bytes:
        given.append(BINARY)

    def taking(command: Command) -> Command:
        return cast("Command", takes_output(command, own_format, piped))

    return applied([*given, taking])


OUTPUT = output_options(has_bytes=True)
OUTPUT_OF_QUERIES = output_options(has_bytes=True, has_columns=False)
OUTPUT_OF_SENTENCES = output_options(SENTENCES)
OUTPUT_OF_RECORDS = output_options(has_bytes=True, piped="jsonl")

READING = applied(
    [
        click.option("--strict", is_flag=True, help="Stop at the first fault."),
        click.option(
            "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Number of decoding threads."
        ),
        click.option("--no-progress", is_flag=True, help="No progress bar on a terminal."),
    ]
)

OF_GROUPS = click.option("--group", "groups", multiple=True, metavar="NAME", help="Only this group. Repeatable.")

CHOICES = {
    "groups": OF_GROUPS,
    "states": click.option(
        "--state",
        "states",
        multiple=True,
        type=click.Choice(["open", "torn", "aborted", "committed"]),
        help="Only transactions in this state. Repeatable.",
    ),
}

OFFSETS_ONLY = applied(
    [
        OF_GROUPS,
        click.option(
            "--reset-plan",
            "is_plan",
            is_flag=True,
            help="Write committed offsets as CSV for kafka-consumer-groups --reset-offsets --from-file.",
        ),
        click.option(
            "--mapping",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Mapping file of kraftlog replay: with --reset-plan, translate offsets to the target cluster.",
        ),
    ]
)

RENAME = click.option(
    "--rename", "renamed", multiple=True, type=Pair("old=new"), help="Rename topic OLD to NEW. Repeatable."
)

AS_TOPIC = click.option(
    "--as-topic", help="Topic of files outside a partition's folder, such as a single copied segment."
)

MESSAGES_ONLY = applied(
    [
        click.option(
            "--type",
            "message_type",
            help="Only messages of this type, such as PartitionRecord or OffsetCommit; its fields become columns.",
        ),
        click.option(
            "--definitions",
            type=click.Path(exists=True, file_okay=False),
            help="Folder with Kafka's JSON message definitions of the release that wrote the log.",
        ),
    ]
)


class Format(click.ParamType[FormatString]):
    """A format string as in kcat."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FormatString:
        """Return its pieces."""
        return value if isinstance(value, FormatString) else FormatString.parse(value)


KCAT_FORMAT = click.option("-f", "template", type=Format(), help=format_string.HELP)
