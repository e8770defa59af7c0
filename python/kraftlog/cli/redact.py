"""``--redact`` of the commands that copy or show records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kraftlog.tables.given_redaction import KEY_VARIABLE, given_redaction
from kraftlog.tables.redaction import Redaction

Command = TypeVar("Command", bound=Callable[..., Any])


def redacts(command: Command) -> Command:
    """Give a command the options of redaction."""
    rules = click.option(
        "--redact",
        "rules",
        multiple=True,
        metavar="PLACE=HOW",
        help="Redact key, value, header.NAME, or a JSON path such as value.customer.email, by null, hash or mask;"
        " several times.",
    )
    key = click.option(
        "--redact-key",
        "key_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"The file with the key of hash; by default the environment variable {KEY_VARIABLE} has the key.",
    )
    return rules(key(command))


def redaction_of(rules: Sequence[str], key_file: Path | None) -> Redaction | None:
    """Return what the options ask for."""
    if key_file is not None and not rules:
        raise click.UsageError("--redact-key goes with --redact")
    return given_redaction(rules, key_file)
