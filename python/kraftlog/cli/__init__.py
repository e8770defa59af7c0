"""The command line: each table is a command, and a few more that look at logs as a whole."""

from __future__ import annotations

import os
import sys

import click

import kraftlog
from kraftlog.cli import (
    demo,
    downgrade,
    downgrade_check,
    dump,
    health,
    image,
    pack,
    recover,
    shell,
    stats,
    tables,
    verify,
)
from kraftlog.errors import RecordError

EXIT_ERROR, EXIT_USAGE = 1, 2


class Commands(click.Group):
    """A group of commands that ends without an error when the reader of its output closes the pipe."""

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


for command in (
    *tables.COMMANDS,
    image.image,
    image.diff_command,
    health.command,
    shell.shell,
    downgrade_check.command,
    downgrade.command,
    dump.dump,
    verify.verify,
    stats.stats,
    recover.recover,
    pack.pack,
    demo.demo,
):
    commands.add_command(command)


def main() -> None:
    """Run the command line."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        sys.exit(130)
    except RecordError as error:
        print(f"kraftlog: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    except (OSError, ValueError) as error:
        print(f"kraftlog: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
