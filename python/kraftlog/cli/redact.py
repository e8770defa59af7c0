"""``--redact`` of the commands that copy records."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kraftlog.disk.disk import disk
from kraftlog.tables.redaction import Redaction

Command = TypeVar("Command", bound=Callable[..., Any])
VARIABLE = "KRAFTLOG_REDACT_KEY"


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
        help=f"The file with the key of hash; by default the environment variable {VARIABLE} has the key.",
    )
    return rules(key(command))


def redaction_of(rules: Sequence[str], key_file: Path | None) -> Redaction | None:
    """Return what the options ask for; the end of a line behind a key is no part of it."""
    if not rules:
        if key_file is not None:
            raise click.UsageError("--redact-key goes with --redact")
        return None
    given = disk().read_bytes(key_file) if key_file is not None else os.environ.get(VARIABLE, "").encode()
    return Redaction(rules, given.rstrip(b"\r\n") or None)
