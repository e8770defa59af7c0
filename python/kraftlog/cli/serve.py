"""``kraftlog serve``: a log that Kafka's clients read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.metadata_options import Moment
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import report_faults
from kraftlog.cli.server_process import EndSignal, listener_options
from kraftlog.layout.discover import LogPaths
from kraftlog.server.as_of import AsOf
from kraftlog.server.log_server import LogServer
from kraftlog.server.options import ServerArguments
from kraftlog.tables.open_log import open as open_log
from kraftlog.transactions.cut import Side


class AsOfOption(click.ParamType["AsOf"]):
    """An offset of the metadata log, a time, or a cut."""

    name = "OFFSET|TIME|CUT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AsOf:
        """Return the moment."""
        is_cut = isinstance(value, str) and value.partition(":")[0] in [side.value for side in Side]
        moment: AsOf = (options.CutOption() if is_cut else Moment()).convert(value, param, ctx)
        return moment


@click.command("serve")
@options.PATHS
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic. Can be given more than once.")
@click.option(
    "--as-of",
    type=AsOfOption(),
    help="Serve the log as it was: an offset of the metadata log, a time such as -1h, or a cut: end,"
    " at-or-before:TIME, at-or-after:TIME. Groups then have the offsets that they had committed.",
)
@redacts
@listener_options
@click.option(
    "--group-offsets",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the offsets that groups commit; by default they are kept in memory.",
)
@click.option("--leave-out-damaged", is_flag=True, help="Leave out damaged batches instead of failing to fetch them.")
def command(
    paths: LogPaths,
    topics: tuple[str, ...],
    as_of: AsOf | None,
    rules: tuple[str, ...],
    key_file: Path | None,
    listener: ServerArguments,
    group_offsets: Path | None,
    leave_out_damaged: bool,
    ready_file: Path | None,
) -> None:
    """Serve a log to Kafka's clients, for reading: a directory of a broker, a backup, a tier.

    kcat, a consumer in any language, Kafka Connect or Flink read it as they read a broker, at both isolation levels,
    by offset and by time, with consumer groups. Nothing is written to the log; producers are refused. It is served as
    it was when the command started, or with --as-of as it was at an earlier moment. With --redact every batch is
    rewritten, and one that cannot be decoded is damaged. Connections are encrypted with --ssl-certificate and
    authenticated with --users, and accepted from this host only, unless --host is another address.

    \b
    Examples:
      kraftlog serve sample/broker --port 9092
      kraftlog serve sample/broker --as-of at-or-before:2026-11-21T03:13:27Z
    """  # noqa: D301  (\b keeps the examples as they are)
    log = open_log(paths, topics=topics or None)
    ended = EndSignal()
    with LogServer(
        log,
        as_of=as_of,
        redaction=redaction_of(rules, key_file),
        group_offsets=group_offsets,
        leave_out_damaged=leave_out_damaged,
        **listener,
    ) as server:
        notes = server.notes
        for note in notes:
            print(note, file=sys.stderr)
        print(f"topics: {len(server.topics)}, partitions: {sum(server.topics.values())}", file=sys.stderr)
        ended.wait(server.bootstrap_servers, ready_file)
    for note in server.notes[len(notes) :]:  # on what was redacted
        print(note, file=sys.stderr)
    sys.exit(report_faults(server.faults))


COMMANDS = [command]
