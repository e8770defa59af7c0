"""Options of the commands that produce into a live broker."""

from __future__ import annotations

from pathlib import Path

import click

from kraftlog.broker.replay import DEFAULT_TIMEOUT
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.disk.disk import disk

RATE = click.option("--rate", help="Records a second, such as 5000, or bytes, such as 10MB.")
COMPRESSION = click.option(
    "--compression", type=click.Choice(COMPRESSION_TYPES), help="Of what is sent; by default none."
)
CLIENT_CONFIG = click.option(
    "--client-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with properties of librdkafka, NAME=VALUE, such as security.protocol=SSL.",
)
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="Seconds after which a broker that does not answer is given up.",
)


def settings_of(path: Path | None) -> dict[str, str]:
    """Return the properties of a file; none without one."""
    found: dict[str, str] = {}
    if path is None:
        return found
    for number, line in enumerate(disk().read_bytes(path).decode().splitlines(), 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not name.strip():
            raise click.UsageError(f"--client-config {path}, line {number}: expected NAME=VALUE, found {line!r}")
        found[name.strip()] = value.strip()
    return found
