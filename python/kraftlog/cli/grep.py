"""``kraftlog grep``: records that hold a text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from glob import glob
from pathlib import Path
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.redact import redacts
from kraftlog.cli.tables import run_table
from kraftlog.cli.typed import TYPED
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import RemotePath, log_path
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.search import Search

_WANTED = ("text", "key", "value", "header", "json_path", "key_equals")  # options that may be given several times
_HOW = ("regex", "ignore_case", "invert", "any_of", "key_partitions")
_NOTHING = (
    "nothing to search for: give a text and then paths, such as kraftlog grep TEXT DIR, or --text, --key, --key-equals,"
    " --value, --header or --json-path"
)

_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "-e", "--text", multiple=True, metavar="TEXT", help="In the key, the value or a header, as TEXT before PATHS."
    ),
    click.option("--key", multiple=True, metavar="TEXT", help="In the key; several times, as those below."),
    click.option("--value", multiple=True, metavar="TEXT", help="In the value."),
    click.option(
        "--header",
        multiple=True,
        metavar="[NAME=]TEXT",
        help="In the value of a header; of this name, where one is given.",
    ),
    click.option(
        "--json-path",
        multiple=True,
        metavar="PATH[=TEXT]",
        help="The value is JSON and has this at a path such as customer.id or items[*].sku; without a text, anything;"
        " 'amount>100', and >=, <, <=, !=, compare. Of several all must hold.",
    ),
    click.option("--key-equals", multiple=True, metavar="TEXT", help="The whole key."),
    click.option("--regex", is_flag=True, help="Texts are regular expressions of RE2, but not those of --key-equals."),
    click.option("-i", "--ignore-case", is_flag=True, help="Of the letters of ASCII."),
    click.option("-v", "--invert", is_flag=True, help="Show the records that do not match."),
    click.option("--any", "any_of", is_flag=True, help="One of all conditions is enough."),
    click.option(
        "--key-partitions",
        type=click.IntRange(min=1),
        metavar="N",
        help="The topic has N partitions, which its producers choose by Kafka's murmur2 of the key: read only those of"
        " --key-equals.",
    ),
    click.option("--count", "counts", is_flag=True, help="Show how many records match in each partition."),
]


def _split(given: list[Any]) -> tuple[str | None, list[Any]]:
    """Return the text among arguments, the first or the last one when it is the only one that is no path.

    Raises
    ------
    click.UsageError
        When it cannot be told.
    """
    unknown = [at for at, one in enumerate(given) if not _is_path(one)]
    if len(unknown) == 1 and len(given) > 1 and unknown[0] in (0, len(given) - 1):
        return str(given.pop(unknown[0])), given
    return None, given


def _is_path(given: Any) -> bool:
    """Whether there is something at a path; of a URI that shows when it is read."""
    if not isinstance(given, str) or isinstance(log_path(given), RemotePath) or disk().entry(Path(given)) is not None:
        return True
    return any(character in given for character in "*?[") and bool(glob(given))  # noqa: PTH207  (it may be absolute)


def _grep(paths: LogPaths, output: Output, counts: bool, **given: Any) -> None:
    """Show the records that hold a text, as the table records: kraftlog grep TEXT PATHS...

    PATHS may come first, too: the text is the first or the last argument, whichever is no path. A text that is also a
    path needs --text. The exit code is 1 when nothing is found. Where several kinds are given, all must be found, of
    each kind one of its texts, of --json-path all; with --any one is enough. Batches are searched as bytes, and
    only those that hold the texts are decoded: what is rare is found as fast as the log is read. All batches and
    records are checked: damage is reported as records does, also where nothing is found. With --redact texts are found
    in what was there, and what is shown is redacted.

    \b
    Example:
      kraftlog grep '#42|' sample/broker --columns topic,partition,offset,key
      kraftlog grep sample/broker -t orders --value '#42|' --columns partition,offset,key
      kraftlog grep sample/broker -t orders --key '^tx-[bc]' --regex --isolation-level read_committed --count
    """  # noqa: D301  (\b keeps the example as it is)
    text, rest = _split(list(paths) if isinstance(paths, tuple | list) else [paths])
    if text is not None:
        where = " ".join(str(one) for one in rest if isinstance(one, str))
        print(f"searching for {text!r} in keys, values and headers of {where}", file=sys.stderr)
        given["text"] = (*given["text"], text)
    if not any(given[name] for name in _WANTED):
        missing = [repr(one) for one in rest if not _is_path(one)]
        if len(missing) > 1:
            raise click.UsageError(f"expected one text and paths; there is no file or folder {' or '.join(missing)}")
        raise click.UsageError(_NOTHING)
    if given["key_partitions"] is not None and (not given["key_equals"] or given["invert"] or given["any_of"]):
        raise click.UsageError("--key-partitions requires --key-equals and cannot be combined with --invert or --any")
    search = Search(**{name: given.pop(name) for name in (*_WANTED, *_HOW)})
    run_table("records", tuple(rest), output, given, search=search, counts=counts)


def _command() -> click.Command:
    decorators = [
        options.PATHS,
        *_OPTIONS,
        options.WHICH,
        options.of_table(TABLES["records"]),
        options.KCAT_OFFSET,
        options.KCAT_FORMAT,
        TYPED,
        redacts,
        options.FOLLOW,
        options.OUTPUT_OF_RECORDS,
        options.READING,
    ]
    run: Any = _grep
    for decorator in reversed(decorators):
        run = decorator(run)
    return click.command("grep", help=_grep.__doc__)(run)


command = _command()

COMMANDS = [command]
