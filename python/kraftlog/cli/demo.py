"""``kraftlog demo``: what this package does, on log files that a real Kafka wrote."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from kraftlog.cli.output import open_writer
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log

SHOWN = 6
TABLES = {
    "segments": ["topic", "partition", "base_offset", "next_offset", "size_in_bytes", "batches", "records", "clean"],
    "batches": ["topic", "position", "base_offset", "last_offset", "records_count", "compression", "max_timestamp"],
    "records": ["topic", "offset", "timestamp", "key", "value", "headers"],
}


def _show(console: Console, log: Log, table: str) -> None:
    stream = log.scan(table, TABLES[table])
    rows = stream.to_table()
    console.print(
        f"\n[bold]{table}[/bold]: {rows.num_rows} rows" + (f", the first {SHOWN}:" if rows.num_rows > SHOWN else ":")
    )
    with open_writer("table", None, rows.schema, "utf8", force=False) as writer:
        for batch in rows.slice(0, SHOWN).combine_chunks().to_batches():
            writer.write(batch)


def _spark_job(console: Console, folder: str, output: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812  (Spark's own habit)

    from kraftlog.spark.export import to_parquet
    from kraftlog.spark.session import local_session

    spark = local_session()
    try:
        export = to_parquet(spark, folder, str(output), overwrite=True)
        totals = (
            spark.read.schema(export.schema)
            .parquet(str(output))
            .groupBy("topic", "partition")
            .agg(F.count("*").alias("records"), F.sum(F.length("value")).alias("value_bytes"))
            .orderBy("topic", "partition")
        )
        console.print("\n[bold]Spark[/bold]: the same records, written to Parquet and added up:")
        totals.show(truncate=False)
    finally:
        spark.stop()
    console.print(f"Parquet files: {output}")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False), default="tests/golden/codecs/log")
@click.option("--output", type=click.Path(file_okay=False), default="demo-output", show_default=True)
@click.option("--spark/--no-spark", default=True, show_default=True, help="Run the Spark job too.")
def demo(folder: str, output: str, spark: bool) -> None:
    """Show what is in FOLDER, and turn it into Parquet files with Spark.

    The folder of --output is new, empty, or holds files of an earlier demo, which are replaced; any other is refused.

    \b
    Example:
      kraftlog demo sample/codecs
    """  # noqa: D301  (\b keeps the example as it is)
    if spark:
        from kraftlog.spark.export_publish import refuse_other_files

        refuse_other_files(Path(output))
    console = Console(highlight=False)
    log = open_log(folder)
    console.print(f"{folder}: {log.segments_count} segments, {log.size_in_bytes} bytes")
    for table in TABLES:
        _show(console, log, table)
    if spark:
        _spark_job(console, folder, Path(output).absolute())


COMMANDS = [demo]
