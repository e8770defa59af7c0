"""Measures kraftlog beside what the hardware allows and beside other implementations, and says which goals are met.

Needs the package's ``bench`` extra and a C compiler; ``--compare`` also Maven with a JDK, Cargo and Go, as far as they
are there. Log files are made in ``build/bench-corpus`` and stay there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from rich.console import Console

import backing_up
import cleaning
import corpus
import following
import goals
import growing
import growth
import internal_topics
import markdown
import objects
import redacting
import report
import restoring
import serving
import stores
import tiers
import transactional
import typed_values
import works
from compare.processes import TARGETS, Peers
from material import Material
from rounds import interleave

WIDTH = 132
SMALL_MEGABYTES = 2  # of batches of one record
QUICK = {"megabytes": 20.0, "rounds": 3, "grown": {"log_bytes": 512 << 20, "opened": 1_000, "stored": 10_000}}
FEW = {"log_bytes": 16 << 20, "opened": 100, "stored": 1_000, "changes": 10_000, "topics": 100, "starts": 1}
SMOKE = {"megabytes": 2.0, "rounds": 1, "grown": FEW}
ALONE = {  # on no log
    "varint": lambda megabytes, _: works.varint(megabytes),
    "plan": lambda megabytes, _: transactional.plan(megabytes),
    "store": stores.store,
    "serve": serving.serve,
    "clean": lambda megabytes, _: cleaning.clean(megabytes),
    "backup": lambda megabytes, _: backing_up.backup(megabytes),
    "last": lambda megabytes, _: following.last(megabytes),
    "tier": lambda megabytes, _: tiers.tier(megabytes),
    "objects": lambda megabytes, _: objects.objects(megabytes),
    "restore": lambda megabytes, _: restoring.restore(megabytes),
}
OF_VALUES = {"avro": typed_values.pieces, "redact": redacting.pieces}  # in memory
COMPARED = [*works.COMPARED, *internal_topics.WORKS]
EVERY = [*works.BY_NAME, *ALONE, *OF_VALUES, *internal_topics.WORKS, "growth", "memory", "stored", "open"]


def main() -> int:
    """Run what the command line asks for; 1 with ``--check`` when a goal is missed."""
    options = parse()
    _keep_bytecode()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    peers = Peers(options.peers, are_warm=options.rounds > 1)
    print(", ".join(f"{name} {value}" for name, value in (report.machine() | peers.versions()).items()))
    blocks = sorted(measure(options, peers, Console(stderr=True)), key=lambda block: EVERY.index(block.work))
    grown = growth.Growth(**options.grown)
    if "memory" in options.works:
        growth.measure_memory(grown)
        growth.measure_tables(grown)
        growth.measure_held(grown)
        growth.measure_replay(grown)
        growth.measure_metadata(grown)
    if "stored" in options.works:
        growth.measure_stored(grown)
    if "open" in options.works:
        growth.measure_opening(grown)
        growth.measure_start(grown)
    if options.compare:
        print(f"\n{markdown.how(options)}\n")
        print(markdown.compared(blocks, peers.left_out))
    else:
        console.print(report.table(blocks))
    if grown.read_bytes_per_second:
        console.print(f"{grown.log_text} of segments: read at {grown.read_bytes_per_second / 1e6:,.0f} MB/s")
    found = goals.outcomes(blocks, grown)
    if options.compare:
        print()
        print(markdown.goals(found))
    else:
        console.print(goals.table(found))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document(blocks, grown, found, peers), indent=1))
    return int(options.check and any(outcome.met is False for outcome in found))


def _keep_bytecode() -> None:
    """Let the processes that are started have compiled modules, as installed packages do."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(TARGETS / "bytecode")


def parse() -> argparse.Namespace:
    """Read the command line."""
    names = [workload.name for workload in corpus.WORKLOADS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200, help="size of each log before compression (200)")
    parser.add_argument("--rounds", type=int, help="7; with --compare 5")
    parser.add_argument("--quick", action="store_true", help="small logs and few rounds: a rough look")
    parser.add_argument("--smoke", action="store_true", help="tiny logs and one round: whether it runs")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=[*EVERY, *names], metavar="NAME",
        help=f"of {', '.join(EVERY)}; and of the logs {', '.join(names)}",
    )  # fmt: skip
    parser.add_argument(
        "--compare", action="store_true",
        help=f"beside other implementations, in Markdown; unless --only says what, {', '.join(COMPARED)}",
    )  # fmt: skip
    parser.add_argument(
        "--peers", nargs="+", choices=Peers.NAMES, metavar="NAME", help=f"compare with these: {', '.join(Peers.NAMES)}"
    )
    parser.add_argument(
        "--cpu-time", action="store_true", help="of each process instead of wall time: for a machine that is shared"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.set_defaults(grown={})
    options = parser.parse_args()
    if options.peers is None:
        options.peers = Peers.NAMES if options.compare else []
    if options.rounds is None:
        options.rounds = 5 if options.compare else 7
    if options.quick:
        vars(options).update(QUICK)
    if options.smoke:
        vars(options).update(SMOKE)
    all_works = COMPARED if options.compare else EVERY
    options.works = [name for name in EVERY if name in options.only] or all_works
    options.workloads = [w for w in corpus.WORKLOADS if w.name in options.only] or corpus.WORKLOADS
    return options


def measure(options: argparse.Namespace, peers: Peers, progress: Console) -> Iterator[report.Block]:
    """Yield each piece of work on each log, measured in rounds of its own."""
    asked = [name for name in works.BY_NAME if name in options.works]
    for workload in options.workloads if asked else []:
        names = [name for name in asked if workload in works.LOGS.get(name, corpus.PLAIN)]
        if not names:
            continue
        progress.print(f"{workload.name} ...")
        material = Material(workload, options.megabytes if workload != corpus.SMALL else SMALL_MEGABYTES)
        for name in names:
            with closing(peers):
                block = report.Block(name, workload.name, works.BY_NAME[name](material, peers))
                interleave(block.contenders, options.rounds, options.cpu_time)
            yield block
    for name in [name for name in ALONE if name in options.works]:
        with closing(peers):
            block = report.Block(name, "", ALONE[name](options.megabytes, peers))
            interleave(block.contenders, options.rounds, options.cpu_time)
        yield block
    for name in [name for name in OF_VALUES if name in options.works]:
        for piece, contenders in OF_VALUES[name]().items():
            progress.print(f"{name}, {piece} ...")
            interleave(contenders, options.rounds, options.cpu_time)
            yield report.Block(name, piece, contenders)
    for path, contenders in (growing.paths(options.megabytes) if "growth" in options.works else {}).items():
        progress.print(f"growth, {path} ...")
        interleave(contenders, options.rounds, on_cpu=True)
        yield report.Block("growth", path, contenders)
    for piece in [piece for piece in internal_topics.PIECES if piece.work in options.works]:
        progress.print(f"{piece.work}, {piece.log} ...")
        with closing(peers):
            block = report.Block(piece.work, piece.log, piece.contenders(options.megabytes, peers))
            interleave(block.contenders, options.rounds, options.cpu_time, internal_topics.LEAST_SECONDS)
        yield block


def document(
    blocks: list[report.Block], grown: growth.Growth, found: list[goals.Outcome], peers: Peers
) -> dict[str, object]:
    """Return everything as plain objects."""
    return {
        "machine": report.machine() | peers.versions(),
        "results": report.as_json(blocks),
        "growth": vars(grown),
        "goals": [{**vars(outcome), "met": outcome.met} for outcome in found],
    }


if __name__ == "__main__":
    sys.exit(main())
