"""The command line: each table is a command, and a few more that look at logs as a whole."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

import kraftlog
from kraftlog.errors import RecordError

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
TABLES = "tables"
MODULES = {
    "image": "image",
    "diff": "image",
    "health": "health",
    "timeline": "timeline",
    "shell": "shell",
    "downgrade-check": "downgrade_check",
    "downgrade": "downgrade",
    "dump": "dump",
    "verify": "verify",
    "stats": "stats",
    "recover": "recover",
    "pack": "pack",
    "demo": "demo",
}


class Commands(click.Group):
    """A group of commands: the module of a command is imported when it is used, and those of tables together.

    It ends without an error when the reader of its output closes the pipe.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted([*_commands_of(TABLES), *MODULES])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None when there is none of that name."""
        return _commands_of(MODULES.get(name, TABLES)).get(name)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the interpreter must not try to flush what is left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(kraftlog.__version__, prog_name="kraftlog")
def commands() -> None:
    """Read Kafka's log files without a broker.

    PATHS are segment files, folders of partitions, log directories, or globs of these; URIs such as s3://bucket/logs
    work, too. Nothing is written to them, but by recover --write.
    The exit code is 1 when something could not be read, 2 when the command was not understood.
    """


def _commands_of(module: str) -> dict[str, click.Command]:
    found = import_module(f"kraftlog.cli.{module}")
    return {command.name or "": command for command in found.COMMANDS}


class _NoPandas:
    """Finds all modules but pandas as others do."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used on the command line", name=name)


def _keep_pandas_out() -> None:
    """Let pyarrow look for pandas in vain: it imports it where it can, which takes longer than most commands do."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])  # it looks once, with the first values that it is given
    finally:
        sys.meta_path.remove(_NoPandas)


def main() -> None:
    """Run the command line."""
    _keep_pandas_out()
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort):
        print("kraftlog: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except RecordError as error:
        print(f"kraftlog: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    except (OSError, ValueError) as error:
        print(f"kraftlog: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
