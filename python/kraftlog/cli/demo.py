"""``kraftlog demo``: what this package does, on log files that a real Kafka wrote."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kraftlog.cli.sample import SAMPLE_LOGS
from kraftlog.disk.disk import disk

ORDERS_BY_PARTITION = """
select partition, count(*) records, min(timestamp) "first", max(timestamp) "last" from orders group by 1 order by 1
""".strip()
SPACE = "topic,partition,records,size_in_bytes,key_bytes,value_bytes,overhead_bytes,unread_bytes"
# of a job of seconds the optimizing compiler of Java takes half
SHORT_JOB = {"spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
SHOWN = {
    "Is it broken? A bit of one batch was flipped; all others are read": (
        *("verify", "sample/damaged"),
        *("--columns", "position,size_in_bytes,base_offset,error,message"),
    ),
    "Why does my consumer hang? A transaction is open, and its coordinator knows nothing of it": (
        *("hanging", "sample/hanging"),
        *("--columns", "topic,partition,transactional_id,start_offset,last_timestamp"),
    ),
    "Which records hold a text": (
        *("grep", "sample/broker", "--topic", "orders", "--value", "gamma theta", "-c", "3"),
        *("--columns", "partition,offset,timestamp,key,value"),
    ),
    "A question in SQL": ("sql", "sample/broker", ORDERS_BY_PARTITION),
    "What fills the disk": ("stats", "sample/broker", "--space", "--columns", SPACE),
}


def _show(question: str, words: tuple[str, ...]) -> None:
    from kraftlog.cli import PROGRAM, commands

    click.secho(f"{question}:", bold=True)
    click.echo(f"$ {PROGRAM} {shlex.join(words)}")
    args = [str(SAMPLE_LOGS / word.removeprefix("sample/")) if word.startswith("sample/") else word for word in words]
    try:
        commands.main([*args, "--format", "table"], prog_name=PROGRAM, standalone_mode=False)
    except SystemExit:
        pass  # verify ends so where it has found damage
    except ImportError as error:
        click.echo(f"{PROGRAM}: {error}")
    click.echo()


def _check_spark() -> None:
    """Refuse what would end the demo after its first minute."""
    from kraftlog.spark.java import check_user_name, use_java

    try:
        check_user_name()
        use_java()
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None


def _spark_job(folder: Path, output: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812  (Spark's own habit)

    from kraftlog.spark.export import to_parquet
    from kraftlog.spark.session import local_session

    spark = local_session(**SHORT_JOB)
    try:
        export = to_parquet(spark, str(folder), str(output), overwrite=True)
        totals = (
            spark.read.schema(export.schema)
            .parquet(str(output))
            .groupBy("topic", "partition")
            .agg(F.count("*").alias("records"), F.sum(F.length("value")).alias("value_bytes"))
            .orderBy("topic", "partition")
        )
        totals.show(truncate=False)
    finally:
        spark.stop()
    click.echo(f"Parquet files: {output}")


@click.command()
@click.option(
    "--spark", is_flag=True, help="Write records to Parquet with Spark as well (pip install 'kraftlog[spark]')."
)
@click.option(
    "--output", type=click.Path(file_okay=False), default="demo-output", show_default=True, help="Folder for Parquet."
)
def demo(spark: bool, output: str) -> None:
    """Show what commands find in logs that a real Kafka wrote: damage, a hanging transaction, what fills the disk.

    The logs come with kraftlog; 'kraftlog sample sample' writes them to a folder, for the commands that are shown.
    The folder of --output is new, empty, or holds files of an earlier demo, which are replaced; any other is refused.

    \b
    Example:
      kraftlog demo
    """  # noqa: D301  (\b keeps the example as it is)
    if spark:
        from kraftlog.stream import optional_package

        for package in ("pyspark", "pandas"):
            optional_package(package, "kraftlog demo --spark", "'kraftlog[spark]'")
        from kraftlog.spark.export_publish import refuse_other_files

        refuse_other_files(Path(output))
        _check_spark()
        disk().make_folder(Path(output))
    for question, words in SHOWN.items():
        _show(question, words)
    if spark:
        click.echo("Two topics in five compression formats, written to Parquet and added up by Spark:")
        _spark_job(SAMPLE_LOGS / "codecs", Path(output).absolute())
    else:
        click.echo("kraftlog sample sample writes these logs to a folder; kraftlog demo --spark goes on to Parquet.")


COMMANDS = [demo]
