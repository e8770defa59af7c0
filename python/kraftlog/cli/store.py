"""``kraftlog store``: a log directory that is written without a broker, with Kafka's transactions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.cli import options, tables
from kraftlog.cli.output import BINARY_TEXTS, Output
from kraftlog.cli.pack_input import BINARY_HELP, input_rows
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.options import ISOLATION_LEVELS, READ_COMMITTED
from kraftlog.disk.disk import disk
from kraftlog.layout.checkpoints import META_PROPERTIES
from kraftlog.log_store.errors import StoreError
from kraftlog.log_store.store import LogStore
from kraftlog.schema import RECORDS
from kraftlog.types import IsolationLevel


def _of_a_node(_: click.Context, __: click.Parameter, directory: str) -> str:
    """Refuse a folder that is no log directory of a node, which opening it would make it."""
    if disk().entry(Path(directory) / META_PROPERTIES) is None:
        raise click.BadParameter(f"{directory} has no {META_PROPERTIES}: it is no log directory of a KRaft node")
    return directory


DIRECTORY = click.argument("directory", type=click.Path(file_okay=False))
EXISTING = click.argument("directory", type=click.Path(file_okay=False, exists=True), callback=_of_a_node)
REFUSED = 1


class _Commands(click.Group):
    """Commands whose refusals are one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except StoreError as error:
            click.echo(f"kraftlog: {error}", err=True)
            sys.exit(REFUSED)


@click.group(cls=_Commands)
def store() -> None:
    """Write and read a log directory as a broker of one node does.

    The directory is one that a KRaft broker can open, and the other way round. Each command holds its lock, finishes
    transactions that were decided, and aborts others. The tables of it are those of any log directory: kraftlog
    transactional-ids DIRECTORY, kraftlog offsets DIRECTORY.

    \b
    Example:
      kraftlog store create-topic mine orders --partitions 3
    """  # noqa: D301  (\b keeps the example as it is)


@store.command()
@DIRECTORY
@click.option("--node-id", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True)
def init(directory: str, node_id: int) -> None:
    """Make a log directory with a metadata log; one that is there already stays as it is."""
    LogStore(directory, node_id=node_id).close()


@store.command("create-topic")
@DIRECTORY
@click.argument("topic")
@click.option("--partitions", type=int, default=1, show_default=True)
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="Such as retention.ms=86400000.")
def create_topic(directory: str, topic: str, partitions: int, configs: tuple[str, ...]) -> None:
    """Create a topic; the log directory is made when it is missing."""
    pairs = [config.partition("=") for config in configs]
    for config, (_, is_pair, _) in zip(configs, pairs, strict=True):
        if not is_pair:
            raise click.BadParameter(f"{config!r} is not NAME=VALUE", param_hint="--config")
    with LogStore(directory) as opened:
        opened.create_topic(topic, partitions, {name: value for name, _, value in pairs})
    click.echo(f"{topic}: {partitions} partition{'s' if partitions > 1 else ''}")


@store.command("delete-topic")
@EXISTING
@click.argument("topic")
def delete_topic(directory: str, topic: str) -> None:
    """Delete a topic with all its records."""
    with LogStore(directory) as opened:
        opened.delete_topic(topic)


@store.command()
@EXISTING
@click.argument("topic")
@click.argument("source", metavar="INPUT", default="-", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--transactional-id", help="Write all of it in one transaction.")
@click.option("--partition", type=click.IntRange(0), help="Of all records; by default their keys decide.")
@click.option("--binary", type=click.Choice(BINARY_TEXTS), default="text", show_default=True, help=BINARY_HELP)
@click.option("--compression", type=click.Choice(COMPRESSION_TYPES), default="none", show_default=True)
def produce(
    directory: str,
    topic: str,
    source: str,
    transactional_id: str | None,
    partition: int | None,
    binary: str,
    compression: str,
) -> None:
    """Write records to a topic: JSON Lines or Parquet as `kraftlog pack` takes them.

    Without --transactional-id what stands before a line that cannot be read is written.

    \b
    Example:
      echo '{"key": "a", "value": "one"}' | kraftlog store produce mine orders
    """  # noqa: D301  (\b keeps the example as it is)
    count = 0
    with LogStore(directory) as opened, opened.producer(transactional_id, compression=compression) as producer:
        if transactional_id is not None:
            producer.begin_transaction()
        with input_rows(source, binary) as rows:
            for batch in rows:
                producer.send(topic, _with_timestamps(batch), partition=partition)
                count += batch.num_rows
        if transactional_id is not None:
            producer.commit_transaction()
    click.echo(f"{count} records", err=True)


def _with_timestamps(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with timestamps of Arrow, null where there is none."""
    if "timestamp_ms" not in rows.schema.names:
        return rows
    numbers = rows.column("timestamp_ms").cast(pa.int64())
    stamps = pc.if_else(pc.equal(numbers, NO_TIMESTAMP), pa.scalar(None, pa.int64()), numbers)
    stamps = stamps.cast(pa.timestamp("ms", "UTC"))
    return rows.drop_columns(["timestamp_ms"]).append_column("timestamp", stamps)


@store.command()
@EXISTING
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--group", help="Begin behind the offsets that this group has committed, and commit those of the end.")
@click.option("--isolation-level", type=click.Choice(ISOLATION_LEVELS), default=READ_COMMITTED, show_default=True)
@options.output_options(has_bytes=True, piped="jsonl")
def consume(
    directory: str, topics: tuple[str, ...], group: str | None, isolation_level: IsolationLevel, output: Output
) -> None:
    """Show the records of topics that a group has not consumed yet, and commit its offsets.

    \b
    Example:
      kraftlog store consume mine orders --group billing
    """  # noqa: D301  (\b keeps the example as it is)
    if output.limit is not None or output.tail is not None:
        raise click.UsageError("--limit and --tail would consume what they do not show")
    with (
        LogStore(directory) as opened,
        opened.consumer(group, isolation_level=isolation_level) as consumer,
    ):
        consumer.subscribe(topics)
        with output.open(RECORDS.select(output.columns)) as writer:
            while (rows := consumer.poll()).num_rows:
                for batch in rows.select(RECORDS.select(output.columns).names).to_batches():
                    writer.write(batch)
        if group is not None:
            consumer.commit()


@store.command()
@EXISTING
@click.argument("transactional_id")
def abort(directory: str, transactional_id: str) -> None:
    """Abort what a transactional id left open, and fence its producer.

    Opening the directory has aborted it already: this says what became of it.
    """
    with LogStore(directory) as opened:
        found = {state.transactional_id: state for state in opened.transactional_ids()}
    if transactional_id not in found:
        raise click.BadParameter(f"no transactional id {transactional_id!r}; there are {', '.join(found) or 'none'}")
    state = found[transactional_id]
    click.echo(f"{transactional_id}: producer {state.producer_id}, epoch {state.producer_epoch}, {state.status_name}")


@store.command()
@EXISTING
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@click.option(
    "--roll", is_flag=True, help="Begin new segments first: the last segment of a partition is never cleaned."
)
def compact(directory: str, topics: tuple[str, ...], roll: bool) -> None:
    """Compact topics, and remove what is older or more than they keep, as a broker does by itself.

    \b
    Example:
      kraftlog store compact mine --roll
    """  # noqa: D301  (\b keeps the example as it is)
    with LogStore(directory) as opened:
        done = [*opened.clean(topics or None, roll=roll), *opened.apply_retention(topics or None)]
    for each in done:
        if each.size_after != each.size_before:
            click.echo(f"{each.topic}-{each.partition}: {each.size_before} bytes, now {each.size_after}")


_TABLES = {command.name: command for command in tables.COMMANDS}
store.add_command(_TABLES["offsets"], "groups")
store.add_command(_TABLES["transactional-ids"], "transactions")

COMMANDS = [store]
