"""The command line: each table is a command, and a few more that look at logs as a whole."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

import kraftlog
from kraftlog.cli.interrupts import lost_interrupts_repeated
from kraftlog.cli.tasks import MODULES, OTHER_NAMES, RARE, TASKS, WITHOUT_ARROW
from kraftlog.tables.all_tables import TABLES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM = "kraftlog"
# of Python alone, or of commands that are no tables
OPTIONS_OF_PYTHON = {"key_equals", "key_partitions", "json_path", "committed_only", "topic_ids", "cluster_id"}
OPTIONS_OF_PYTHON |= {f"{part}_{what}" for part in ("key", "value") for what in ("format", "schema", "framing")}
_ALL = "kraftlog.cli.all"  # in the context of help: all commands are listed
EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


class Commands(click.Group):
    """A group of commands: the module of a command is imported when it is used, and those of tables are one.

    It ends without an error when the reader of its output closes the pipe.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, by task."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None when there is none of that name."""
        if name not in MODULES:
            return None
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads for linear algebra, of which there is none here
        if MODULES[name] not in WITHOUT_ARROW:
            _keep_pandas_out()
        found: list[click.Command] = import_module(f"kraftlog.cli.{MODULES[name]}").COMMANDS
        return next(command for command in found if command.name == name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant; of a name that is not there, the nearest ones are named."""
        if args[0] not in MODULES and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = OTHER_NAMES.get(args[0]) or " or ".join(get_close_matches(args[0], MODULES))
            raise click.UsageError(
                f"there is no command {args[0]!r}" + (f"; did you mean {near}?" if near else ""), ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, under the name of its task."""
        widest = max(map(len, MODULES))
        left_out = () if ctx.meta.get(_ALL) else RARE
        for task, commands in TASKS.items():
            with formatter.section(task):
                shown = [(name, sentence) for name, (_, sentence) in commands.items() if name not in left_out]
                formatter.write_dl([(name.ljust(widest), sentence) for name, sentence in shown])
        if left_out:
            formatter.write_paragraph()
            formatter.write_text(f"There are more: {', '.join(left_out)}; kraftlog --help --all lists them.")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``--all`` beside ``--help``, in both orders, before help is printed."""
        if {"--all"} < {*args} <= {"--all", *ctx.help_option_names}:
            ctx.meta[_ALL] = True
            args = [word for word in args if word != "--all"]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so; their modules are not needed."""
        from click.shell_completion import CompletionItem

        sentences = {name: sentence for commands in TASKS.values() for name, (_, sentence) in commands.items()}
        found = [CompletionItem(name, help=help_) for name, help_ in sentences.items() if name.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the interpreter must not try to flush what is left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(kraftlog.__version__, prog_name=PROGRAM)
def commands() -> None:
    """Read Kafka's log files without a broker.

    PATHS are segment files, folders of partitions, log directories, or globs of these; URIs such as s3://bucket/logs
    work, too. Nothing is written to them, but by recover --write.

    The exit code is 1 when something could not be read, and 2 when the command was not understood.

    \b
    Examples:
      kraftlog sample sample           write logs of a real Kafka, for these
      kraftlog topics sample/broker    what is in it?
      kraftlog verify sample/damaged   is it broken?
      kraftlog why sample/hanging      why does my consumer hang?
      kraftlog records sample/codecs -t codec-lz4 -o -5 -f '%o %k\\n'
    """  # noqa: D301  (\b keeps the examples as they are)


class _NoPandas:
    """Finds all modules but pandas as others do."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used on the command line", name=name)


def _keep_pandas_out() -> None:
    """Hide pandas from pyarrow, which imports it where it can; this takes longer than most commands do."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])  # it looks once, with the first values that it is given
    finally:
        sys.meta_path.remove(_NoPandas)


def in_shell(message: str) -> str:
    """Return a message with the options of this door: ``--key-partitions`` for ``key_partitions``."""
    import re

    names = {name for table in TABLES.values() for name in table.option_names} | OPTIONS_OF_PYTHON
    is_option = rf"(?<![\w.-])({'|'.join(sorted(name for name in names if '_' in name))})(?![\w.-])"
    return re.sub(is_option, lambda found: "--" + found[1].replace("_", "-"), message)


def main() -> None:
    """Run the command line."""
    try:
        with lost_interrupts_repeated():
            commands(prog_name=PROGRAM, standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.ctx is not None:
            near = OTHER_NAMES.get(f"{error.ctx.info_name} {error.option_name}")
            if near:
                error = click.UsageError(f"there is no option {error.option_name!r}; did you mean {near}?", error.ctx)
        error.show()
        sys.exit(EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort):
        print("kraftlog: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        print(f"kraftlog: {error}", file=sys.stderr)  # an optional package, and what installs it
        sys.exit(EXIT_USAGE)
    except (OSError, ValueError) as error:
        from kraftlog.errors import RecordError

        print(f"kraftlog: {in_shell(str(error))}", file=sys.stderr)
        sys.exit(EXIT_ERROR if isinstance(error, RecordError) else EXIT_USAGE)
