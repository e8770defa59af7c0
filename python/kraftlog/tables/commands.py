"""Commands for further details, ready for a shell: all text from a log is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

BROKER = "--bootstrap-server <broker>"


def kraftlog(command: str, paths: Sequence[str], *options: object) -> str:
    """Return a command of kraftlog over paths.

    Parameters
    ----------
    command : str
        Name of the command.
    paths : sequence of str
        Paths as the user named them.
    *options : object
        Further words.

    Examples
    --------
    >>> from kraftlog.tables.commands import kraftlog
    >>> kraftlog("verify", ["/data/kafka logs"], "-t", "a;b")
    "kraftlog verify '/data/kafka logs' -t 'a;b'"
    >>> kraftlog("verify", ["-copy"])  # not an option
    'kraftlog verify ./-copy'
    """
    named = [quote(f"./{path}" if path.startswith("-") else path) for path in paths]
    return " ".join(["kraftlog", command, *named, *(quote(str(option)) for option in options)])


def of_partition(topic: str | None, partition: int | None) -> list[object]:
    """Return the options that choose a partition."""
    return [] if topic is None else ["-t", topic, "-p", partition]


def kafka(script: str, *options: object) -> str:
    """Return a command of Kafka's own tools.

    Examples
    --------
    >>> from kraftlog.tables.commands import kafka
    >>> kafka("kafka-topics.sh", "--describe", "--unavailable-partitions")
    'kafka-topics.sh --bootstrap-server <broker> --describe --unavailable-partitions'
    """
    return " ".join([script, BROKER, *(quote(str(option)) for option in options)])
