"""Measures kraftlog in Spark beside Spark's own Kafka source and beside what Spark's transport allows.

One Spark session, ``local[2]`` with ``spark.python.unix.domain.socket.enabled``, does everything; every contender runs
once a round. Spark's Kafka source reads from a live broker on this machine, whose log directory kraftlog reads. Needs
the ``spark`` and ``bench`` extras, Maven and a JDK; with ``--quick`` there is no broker and no goal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jobs
import spark_connector
import topics
from rich.console import Console
from rich.table import Table
from spark_goals import GOALS

import goals
import report
from kraftlog.spark import register
from kraftlog.spark.session import local_session
from report import Block, short
from rounds import interleave

WIDTH = 132
QUICK = {"records": 20_000, "rounds": 1}
METHOD = (
    "{records:,} records of 8 + 100 bytes in 2 partitions, batches of 64 KiB, in the page cache; local[2], Unix domain "
    "socket on; medians of {rounds} interleaved rounds behind a warm-up; the broker and Spark share the cores.\n"
    "x base: x the floor of the same way; for one core x both; for read_committed x read_uncommitted.\n"
    "kafka tuned: {tuned}"
)
BASES = {
    jobs.READ_RANGES: jobs.MAP_IN_ARROW,
    jobs.FORMAT: jobs.DATA_SOURCE,
    jobs.READ_RANGES + jobs.ONE_CORE: jobs.READ_RANGES,
    jobs.FORMAT + jobs.ONE_CORE: jobs.FORMAT,
    jobs.READ_RANGES + jobs.COMMITTED: jobs.READ_RANGES,
    jobs.FORMAT + jobs.COMMITTED: jobs.FORMAT,
    jobs.TO_PARQUET: jobs.PYARROW,
}


def main() -> int:
    """Run what the command line asks for; 1 with ``--check`` when a goal is missed."""
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(", ".join(f"{name} {value}" for name, value in report.machine().items()))
    with tempfile.TemporaryDirectory(prefix="kraftlog-bench-") as scratch, logs(options, Path(scratch)) as made:
        log_dir, servers, settings = made
        spark = local_session(spark_driver_memory="4g", spark_local_dir=scratch, **settings)
        register(spark)
        console.print(f"Spark {spark.version}")
        at = jobs.Jobs(spark, log_dir, options.records, Path(scratch), servers)
        blocks = [at.block(work) for work in options.works]
        interleave([contender for block in blocks for contender in block.contenders], options.rounds)
        at.close()
        spark.stop()
    tuned = ", ".join(f"{name}={value}" for name, value in jobs.TUNING.items())
    console.print(METHOD.format(records=options.records, rounds=options.rounds, tuned=tuned))
    console.print(table(blocks))
    found = [goal.outcome(blocks) for goal in GOALS] if not options.quick else []
    if found:
        console.print(goals.table(found))
    if options.json:
        options.json.write_text(json.dumps(document(blocks, found), indent=1))
    return int(options.check and any(outcome.met is False for outcome in found))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000, help="in each topic (10,000,000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few records and no broker: whether it works")
    parser.add_argument("--only", nargs="+", default=jobs.WORKS, choices=jobs.WORKS, metavar="WORK", dest="works",
                        help=f"of {', '.join(jobs.WORKS)}")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
        options.works = [work for work in options.works if work != jobs.ISOLATION]  # needs a real coordinator's log
    return options


@contextmanager
def logs(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[Path, str | None, dict[str, str]]]:
    """Yield the log directory, the running broker's address, and what Spark needs for it."""
    if options.quick:
        topics.make_without_broker(scratch / "logs", options.records)
        yield scratch / "logs", None, {}
        return
    made = topics.Topics(options.records)
    with made.broker as broker:
        made.make()
        yield made.log_dir, broker.bootstrap_servers, {"spark_jars": spark_connector.jars(made.home / "connector")}


def table(blocks: list[Block]) -> Table:
    """Return all blocks as one table."""
    out = Table(title="kraftlog in Spark", title_justify="left")
    for heading in ("work", "contender"):
        out.add_column(heading, no_wrap=True)
    for heading in ("s", "M records/s", "x base", "x kafka", "x kafka tuned"):
        out.add_column(heading, justify="right", no_wrap=True)
    for block in blocks:
        for number, contender in enumerate(block.contenders):
            bases = (BASES.get(contender.name), jobs.CONNECTOR, jobs.TUNED)
            ratios = [short(block.ratio(contender.name, base)) for base in bases]
            seconds = short(contender.records / contender.records_per_second)
            figures = (seconds, short(contender.records_per_second / 1e6), *ratios)
            last = number == len(block.contenders) - 1
            out.add_row(block.work if number == 0 else "", contender.name, *figures, end_section=last)
    return out


def document(blocks: list[Block], found: list[goals.Outcome]) -> dict[str, Any]:
    """Return everything as plain objects."""
    return {
        "machine": report.machine(),
        "results": [
            {"work": block.work, "contender": c.name, "records_per_second": c.records_per_second, "seconds": c.seconds}
            for block in blocks
            for c in block.contenders
        ],
        "goals": [{**vars(outcome), "met": outcome.met} for outcome in found],
    }


if __name__ == "__main__":
    sys.exit(main())
