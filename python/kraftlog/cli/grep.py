"""``kraftlog grep``: records that hold a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.output import Output
from kraftlog.cli.redact import redacts
from kraftlog.cli.tables import run_table
from kraftlog.cli.typed import TYPED
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.search import Search

_WANTED = ("key", "value", "header", "json_path", "key_equals")  # options that may be given several times
_HOW = ("regex", "ignore_case", "invert", "key_partitions")

_OPTIONS: list[Callable[[Any], Any]] = [
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
        help="The value is JSON and has this at a path such as customer.id or items[*].sku; without a text, anything.",
    ),
    click.option("--key-equals", multiple=True, metavar="TEXT", help="The whole key."),
    click.option("--regex", is_flag=True, help="Texts are regular expressions of RE2, but not those of --key-equals."),
    click.option("-i", "--ignore-case", is_flag=True, help="Of the letters of ASCII."),
    click.option("-v", "--invert", is_flag=True, help="Show the records that do not match."),
    click.option(
        "--key-partitions",
        type=click.IntRange(min=1),
        metavar="N",
        help="The topic has N partitions, which its producers choose by Kafka's murmur2 of the key: read only those of"
        " --key-equals.",
    ),
    click.option("--count", "counts", is_flag=True, help="Show how many records match in each partition."),
]


def _grep(paths: LogPaths, output: Output, counts: bool, **given: Any) -> None:
    """Show the records that hold a text, as the table records.

    Where several kinds are given, all must be found, of each kind one of its texts. Batches are searched as bytes, and
    only those that hold the texts are decoded: what is rare is found as fast as the log is read. All batches and
    records are checked: damage is reported as records does, also where nothing is found. With --redact texts are found
    in what was there, and what is shown is redacted.

    \b
    Example:
      kraftlog grep sample/broker -t orders --value '#42|' --columns partition,offset,key
      kraftlog grep sample/broker -t orders --key '^tx-[bc]' --regex --isolation-level read_committed --count
    """  # noqa: D301  (\b keeps the example as it is)
    search = Search(**{name: given.pop(name) for name in (*_WANTED, *_HOW)})
    run_table("records", paths, output, given, search=search, counts=counts)


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
