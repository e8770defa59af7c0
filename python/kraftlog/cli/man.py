"""``kraftlog man``: the manual page, made of the help texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

import kraftlog
from kraftlog.cli.tasks import TASKS

SECTION = "1"


@click.command()
@click.pass_context
def man(ctx: click.Context) -> None:
    """Print the manual page, for man: all commands with their options.

    \b
    Example:
      kraftlog man
    """  # noqa: D301  (\b keeps the example as it is)
    root = ctx.find_root()
    for line in page(root):
        click.echo(line)


def page(root: click.Context) -> Iterator[str]:
    """Return the lines of the page in the language of man.

    Parameters
    ----------
    root : click.Context
        Of the group of all commands.
    """
    group = root.command
    assert isinstance(group, click.Group)
    name = root.info_name or group.name or ""
    first, *others = _paragraphs(group.help or "")
    yield f'.TH {name.upper()} {SECTION} "" "{name} {kraftlog.__version__}"'
    yield from (".ad l", ".nh")  # names of columns and options are not broken, and not spaced out
    yield from (".SH NAME", rf"{name} \- {_plain(first.rstrip('.'))}")
    yield from (".SH SYNOPSIS", rf".B {name}", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...")
    yield ".SH DESCRIPTION"
    yield from _text(others)
    for task, commands in TASKS.items():
        yield f".SH {task.upper()}"
        for command_name in commands:
            command = group.get_command(root, command_name)
            assert command is not None
            ctx = click.Context(command, parent=root, info_name=command_name)
            yield from _command(ctx)
            for sub_name, sub in command.commands.items() if isinstance(command, click.Group) else ():
                yield from _command(click.Context(sub, parent=ctx, info_name=f"{command_name} {sub_name}"))


def _command(ctx: click.Context) -> Iterator[str]:
    usage = " ".join(ctx.command.collect_usage_pieces(ctx))
    yield f".SS {ctx.info_name} {_plain(usage)}"
    yield from _text(_paragraphs(ctx.command.help or ""))
    for parameter in ctx.command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and isinstance(parameter, click.Option):
            names, text = record
            yield from (".TP", rf"\fB{_plain(names)}\fR", _plain(text) or "The default.")


def _paragraphs(text: str) -> list[str]:
    return cleandoc(text).split("\n\n")


def _text(paragraphs: list[str]) -> Iterator[str]:
    """Return paragraphs; one that begins with click's mark is kept line by line."""
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            lines = paragraph.splitlines()[1:]
            yield from (".PP", ".nf", *map(_plain, lines), ".fi")
        else:
            yield from (".PP", _plain(" ".join(paragraph.split())))


def _plain(text: str) -> str:
    """Return text in which nothing means something to man."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


COMMANDS = [man]
