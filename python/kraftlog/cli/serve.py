"""``kraftlog serve``: a log that Kafka's clients read."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from threading import Event
from types import FrameType

import click

from kraftlog.cli import options
from kraftlog.cli.report import report_faults
from kraftlog.disk.durable import write_file
from kraftlog.layout.discover import LogPaths
from kraftlog.server.log_server import LogServer
from kraftlog.server.options import LOOPBACK
from kraftlog.tables.open_log import open as open_log

_PORT = 9092


@click.command("serve")
@options.PATHS
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic. Can be given more than once.")
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 for any free port.")
@click.option("--advertised-host", help="Host that clients connect to, if it is not --host.")
@click.option(
    "--group-offsets",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the offsets that groups commit; by default they are kept in memory.",
)
@click.option("--leave-out-damaged", is_flag=True, help="Leave out damaged batches instead of failing to fetch them.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write host and port to this file when clients can connect.",
)
def command(
    paths: LogPaths,
    topics: tuple[str, ...],
    host: str,
    port: int,
    advertised_host: str | None,
    group_offsets: Path | None,
    leave_out_damaged: bool,
    ready_file: Path | None,
) -> None:
    """Serve a log to Kafka's clients, for reading: a directory of a broker, a backup, a tier.

    kcat, a consumer in any language, Kafka Connect or Flink read it as they read a broker, at both isolation levels,
    by offset and by time, with consumer groups. Nothing is written to the log; producers are refused. It is served as
    it was when the command started. Connections are neither encrypted nor authenticated, and accepted from this host
    only, unless --host is another address.

    \b
    Example:
      kraftlog serve sample/broker --port 9092
    """  # noqa: D301  (\b keeps the example as it is)
    log = open_log(paths, topics=topics or None)
    ended = Event()

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with LogServer(
        log,
        group_offsets=group_offsets,
        leave_out_damaged=leave_out_damaged,
        host=host,
        port=port,
        advertised_host=advertised_host,
    ) as server:
        for note in server.notes:
            print(note, file=sys.stderr)
        print(f"topics: {len(server.topics)}, partitions: {sum(server.topics.values())}", file=sys.stderr)
        print(server.bootstrap_servers, flush=True)
        if ready_file is not None:
            write_file(ready_file, f"{server.bootstrap_servers}\n".encode())
        ended.wait()
    sys.exit(report_faults(server.faults))


COMMANDS = [command]
