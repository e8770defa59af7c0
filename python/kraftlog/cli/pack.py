"""``kraftlog pack``: records in, a log file out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from kraftlog.cli.options import FORCE
from kraftlog.cli.output import BINARY_TEXTS
from kraftlog.cli.pack_input import BINARY_HELP, InputError, input_rows
from kraftlog.cli.target import check_target
from kraftlog.codec.batch_encoder import LARGEST_OFFSET
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.codec.encode import Encoder
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.disk.durable import new_file
from kraftlog.transactions.metadata_encoder import DEFAULT_BATCH_BYTES
from kraftlog.transactions.metadata_transaction import TransactionEncoder

PLAIN_BATCH_BYTES = 1 << 20
_ONLY_PLAIN = (
    *("producer_id", "producer_epoch", "base_sequence", "is_transactional"),
    *("compression", "compression_level"),
)


@click.command()
@click.argument("source", metavar="INPUT", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="The log file to write.")
@FORCE
@click.option("--binary", type=click.Choice(BINARY_TEXTS), default="text", show_default=True, help=BINARY_HELP)
@click.option("--compression", type=click.Choice(COMPRESSION_TYPES), default="none", show_default=True)
@click.option("--compression-level", type=int, help="Of gzip, lz4 or zstd.")
@click.option(
    "--max-batch-bytes", type=int, help="Most bytes of a batch before compression; 1 MiB, or 8192 of metadata."
)
@click.option(
    "--base-offset", type=click.IntRange(0, LARGEST_OFFSET), default=0, show_default=True, help="Of the first record."
)
@click.option(
    "--leader-epoch",
    type=click.IntRange(-1, 2**31 - 1),
    default=-1,
    show_default=True,
    help="partition_leader_epoch of the batches.",
)
@click.option("--producer-id", type=click.IntRange(-1, 2**63 - 1), default=-1, show_default=True)
@click.option("--producer-epoch", type=click.IntRange(-1, 2**15 - 1), default=-1, show_default=True)
@click.option("--base-sequence", type=click.IntRange(-1, 2**31 - 1), default=-1, show_default=True)
@click.option("--transactional", "is_transactional", is_flag=True, help="Batches of a producer's transaction.")
@click.option(
    "--metadata-transaction",
    "transaction",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="Records of the metadata log, as one transaction (KIP-868).",
)
def pack(source: str, output: str, force: bool, binary: str, transaction: str | None, **options: Any) -> None:
    """Pack records into a log file.

    INPUT is JSON Lines as `kraftlog records --format jsonl` writes them, or Parquet; - is standard input, for JSON
    Lines. Packed are the columns key, value, timestamp or timestamp_ms, and headers. Offsets count from --base-offset.

    \b
    Example:
      kraftlog records sample/codecs/codec-lz4-0 --format jsonl | kraftlog pack - --output records.log
    """  # noqa: D301  (\b keeps the example as it is)
    target = Path(output)
    check_target(target, (), force=force)
    if source != "-" and target.exists() and target.samefile(source):
        raise click.UsageError(f"--output {output} is the input")
    options["partition_leader_epoch"] = options.pop("leader_epoch")
    encoded, batch_bytes = (_plain, PLAIN_BATCH_BYTES) if transaction is None else (_metadata, DEFAULT_BATCH_BYTES)
    if options["max_batch_bytes"] is None:
        options["max_batch_bytes"] = batch_bytes
    try:
        with input_rows(source, binary) as rows, new_file(target) as file:
            for data in encoded(rows, transaction or None, options):
                file.append(data)
    except (InputError, pa.ArrowInvalid) as error:
        where = "standard input" if source == "-" else source
        raise InputError(f"{where}: {error}") from None


def _plain(rows: Iterator[pa.RecordBatch], _: str | None, options: dict[str, Any]) -> Iterator[pa.Buffer]:
    encoder = Encoder(**options)
    for batch in rows:
        encoder.write(batch)
        yield encoder.take()
    yield encoder.finish()


def _metadata(rows: Iterator[pa.RecordBatch], name: str | None, options: dict[str, Any]) -> Iterator[pa.Buffer]:
    """Pack one transaction; its records have one timestamp, as those of an append have: that of the first."""
    for option in _ONLY_PLAIN:
        if options.pop(option) not in (-1, False, None, "none"):
            raise click.UsageError(f"--metadata-transaction does not go with --{option.replace('_', '-')}")
    packed: TransactionEncoder | None = None
    done = 0
    for batch in rows:
        packed = packed or TransactionEncoder(name, timestamp_ms=_first_timestamp_ms(batch), **options)
        yield packed.write(_values(batch, done))
        done += batch.num_rows
    yield (packed or TransactionEncoder(name, **options)).end()


def _first_timestamp_ms(batch: pa.RecordBatch) -> int:
    import pyarrow.compute as pc

    for column in ("timestamp_ms", "timestamp"):
        if column in batch.schema.names and batch.num_rows:
            first = batch.column(column).slice(0, 1)
            if pa.types.is_timestamp(first.type):
                first = pc.floor_temporal(first, unit="millisecond").cast(pa.timestamp("ms"))
            milliseconds = first.cast(pa.int64())[0].as_py()
            return NO_TIMESTAMP if milliseconds is None else int(milliseconds)
    return NO_TIMESTAMP


def _values(batch: pa.RecordBatch, done: int) -> pa.RecordBatch:
    """Return the values alone; what records of the metadata log do not have is refused."""
    import pyarrow.compute as pc

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "key":
            bad, what = column.is_valid(), "is not null"
        elif name == "headers":
            bad, what = pc.greater(pc.fill_null(pc.list_value_length(column), 0), 0), "is not empty"
        elif name == "value":
            bad, what = column.is_null(), "is null"
        else:
            continue
        at = pc.index(bad, True).as_py()
        if at >= 0:
            raise InputError(f"record {done + at}: field {name!r} {what}, which a metadata record does not allow")
    if "value" not in batch.schema.names:
        raise InputError("no column value")
    return batch.select(["value"])


COMMANDS = [pack]
