"""``kraftlog serve``: a log that Kafka's clients read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kraftlog.cli import options
from kraftlog.cli.report import report_faults
from kraftlog.cli.server_process import EndSignal, address_options
from kraftlog.layout.discover import LogPaths
from kraftlog.server.log_server import LogServer
from kraftlog.tables.open_log import open as open_log


@click.command("serve")
@options.PATHS
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic. Can be given more than once.")
@address_options
@click.option(
    "--group-offsets",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the offsets that groups commit; by default they are kept in memory.",
)
@click.option("--leave-out-damaged", is_flag=True, help="Leave out damaged batches instead of failing to fetch them.")
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
    ended = EndSignal()
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
        ended.wait(server.bootstrap_servers, ready_file)
    sys.exit(report_faults(server.faults))


COMMANDS = [command]
