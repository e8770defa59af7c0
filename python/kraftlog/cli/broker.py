"""``kraftlog broker``: a log directory that Kafka's clients write and read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click

from kraftlog.cli.server_process import EndSignal, listener_options
from kraftlog.server.broker import Broker
from kraftlog.server.options import ServerArguments
from kraftlog.write.log_options import Fsync


@click.command("broker")
@click.argument("path", type=click.Path(file_okay=False, path_type=Path))
@listener_options
@click.option(
    "--auto-create-partitions",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Partitions of a topic that a client creates by its first use; 0: clients create topics explicitly.",
)
@click.option(
    "--fsync",
    type=click.Choice(get_args(Fsync)),
    default="commit",
    show_default=True,
    help="When to wait for the disk: before records are acknowledged to acks=all, after each batch, or only when a "
    "segment is closed.",
)
def command(
    path: Path,
    listener: ServerArguments,
    ready_file: Path | None,
    auto_create_partitions: int,
    fsync: Fsync,
) -> None:
    """Be one broker over a log directory, for tests and edges: clients produce, consume, commit and administrate.

    PATH is created if it is missing; it may be the directory of a KRaft cluster of one node that is stopped. Kafka can
    open it afterwards. Idempotent and transactional producers, both isolation levels, groups of the classic and the
    newer protocol, topics and their configs work as with Kafka. There are no replicas. Connections are encrypted with
    --ssl-certificate and authenticated with --users, and accepted from this host only, unless --host is another
    address. Ctrl-C and SIGTERM close it in order.

    \b
    Example:
      kraftlog broker test-broker --port 9092
    """  # noqa: D301  (\b keeps the example as it is)
    ended = EndSignal()
    with Broker(
        path,
        auto_create_partitions=auto_create_partitions,
        fsync=fsync,
        **listener,
    ) as broker:
        print(f"topics: {len(broker.store.topics)}", file=sys.stderr)
        ended.wait(broker.bootstrap_servers, ready_file)


COMMANDS = [command]
