"""Usage: plots.py RESULTS.json ... [--out FOLDER]. Draws what ``run.py --json`` has written, as PNG files.

Throughput by size and implementation, by threads, and memory by size of the log: each from the last file that has it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws without a screen
import matplotlib.pyplot as plt
import numpy as np

import corpus

OUT = corpus.CACHE.parent / "bench" / "plots"
INCHES = (11, 6)
HATCHES = {"memcpy": "//", "plain C loop": "//", "bare decompression": ".."}  # what the hardware or a library allows
COLOURS = {
    "kraftlog": "#c8102e",
    "Kafka's Java": "#1f4e9c",
    "Rust": "#e07b00",
    "Go": "#00a6a6",
    "aiokafka": "#6b3fa0",
    "kafka-python": "#8c6d46",
    "pyarrow": "#5a9e2f",
}
FADE = 0.25  # of each further way of one implementation
TITLES = {
    "decode": "Log bytes to columns or records",
    "encode": "Columns or records to log bytes",
    "scan": "Batch headers",
    "small": "Buffers of one record",
}
VARIANTS = ("kraftlog, offsets only",)  # do less than the others

Result = Mapping[str, Any]


def main() -> None:
    """Draw what the files have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    documents = [json.loads(path.read_text()) for path in options.results]
    for work in TITLES:
        if results := _of(documents, work):
            _save(_throughput(work, results), options.out / f"{work}.png")
    if results := _of(documents, "threads"):
        _save(_threads(results), options.out / "threads.png")
    memory = [document["growth"]["memory"] for document in documents if document["growth"]["memory"]]
    if memory:
        _save(_memory(memory[-1]), options.out / "memory.png")


def _of(documents: Sequence[Result], work: str) -> list[Result]:
    found = [[result for result in document["results"] if result["work"] == work] for document in documents]
    return next((results for results in reversed(found) if results), [])


def _throughput(work: str, results: Sequence[Result]) -> plt.Figure:
    """Bars for each log, of every contender that was measured on it, on a logarithmic scale."""
    logs = list(dict.fromkeys(result["log"] for result in results))
    names = [n for n in dict.fromkeys(result["contender"] for result in results) if n not in VARIANTS]
    figure, axes = plt.subplots(figsize=INCHES)
    width = 0.85 / len(names)
    for i, name in enumerate(names):
        speeds = {r["log"]: r["records_per_second"] / 1e6 for r in results if r["contender"] == name}
        at = [logs.index(log) + (i - (len(names) - 1) / 2) * width for log in speeds]
        axes.bar(at, list(speeds.values()), width, label=name, **_style(name, names))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("M records/s (higher is better)")
    axes.set_xticks(range(len(logs)), [_words(log) for log in logs])
    axes.set_title(TITLES[work])
    _finish(figure, axes)
    return figure


def _threads(results: Sequence[Result]) -> plt.Figure:
    """MB/s with one thread and with two, and how many times as many."""
    speeds = {(r["log"], r["contender"]): r["bytes_per_second"] / 1e6 for r in results}
    logs, names = (list(dict.fromkeys(parts)) for parts in zip(*speeds, strict=True))
    names = [name for name in names if all((log, name) in speeds for log in logs)]
    figure, axes = plt.subplots(figsize=INCHES)
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        at = np.arange(len(logs)) + (i - (len(names) - 1) / 2) * width
        bars = axes.bar(at, [speeds[log, name] for log in logs], width, label=name, color=plt.cm.Reds(0.45 + 0.3 * i))
        if i:
            axes.bar_label(bars, [f"{speeds[log, name] / speeds[log, names[0]]:.2f}x" for log in logs])
    axes.set_ylabel("MB/s before compression (higher is better)")
    axes.set_xticks(range(len(logs)), [_words(log) for log in logs])
    axes.set_title("Log bytes to columns, by threads")
    _finish(figure, axes)
    return figure


def _memory(peaks: Mapping[str, float]) -> plt.Figure:
    """Most memory while a log is read, by its size."""
    sizes = [int(size) / (1 << 30) for size in peaks]
    figure, axes = plt.subplots(figsize=INCHES)
    axes.plot(sizes, [peak / (1 << 20) for peak in peaks.values()], "o-", color=COLOURS["kraftlog"])
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:.2g}" for size in sizes])
    axes.set_ylim(0, 1.25 * max(peaks.values()) / (1 << 20))
    axes.set_xlabel("GiB of segments read")
    axes.set_ylabel("most MiB of memory that no file stands behind")
    axes.set_title("Memory by size of the log")
    _finish(figure, axes, legend=False)
    return figure


def _style(name: str, names: Sequence[str]) -> dict[str, Any]:
    if name in HATCHES:
        return {"color": "#555555", "hatch": HATCHES[name], "fill": False}
    whose = next(start for start in COLOURS if name.startswith(start))
    ways = [n for n in names if n.startswith(whose)]
    return {"color": COLOURS[whose], "alpha": max(FADE, 1 - FADE * ways.index(name))}


def _words(log: str) -> str:
    workload = next((w for w in corpus.WORKLOADS if w.name == log), None)
    if workload is None:
        return log
    parts = [f"{workload.value_bytes:,} B", f"{workload.batch_kib} KiB" if workload.batch_kib else "one record"]
    parts += [f"{workload.headers} headers"] * bool(workload.headers)
    parts += [workload.compression] * (workload.compression != "none")
    return "\n".join(parts)


def _finish(figure: plt.Figure, axes: plt.Axes, legend: bool = True) -> None:
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.tight_layout()


def _save(figure: plt.Figure, file: Path) -> None:
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(file)


if __name__ == "__main__":
    main()
