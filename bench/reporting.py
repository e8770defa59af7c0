"""How long a report takes, and how much memory: of a log directory that is made of a few files under many names.

Four files are linked into as many folders of partitions as are asked for, so that a directory of 10 GB takes 40 MB of
disk; what is measured is reading from memory, with every byte checked.

    python bench/reporting.py --partitions 1000 --gigabytes 10
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import corpus
import kraftlog

WORKLOADS = [
    corpus.Workload(100, 64),
    corpus.Workload(1000, 64),
    corpus.Workload(100, 64, compression="lz4"),
    corpus.Workload(100, 64, compression="zstd"),
]
PARTITIONS_OF_TOPIC = 25
CORPUS_MEGABYTES = 200  # of the files that the batches are from, or so many times what is taken of them:
CORPUS_TIMES = 10  # it is compressed
MB = 1_000_000


def make(folder: Path, partitions: int, gigabytes: float) -> int:
    """Make a log directory; return its bytes."""
    each = gigabytes * 1000 / partitions
    files = [_cut(folder, number, workload, each) for number, workload in enumerate(WORKLOADS)]
    size = 0
    for number in range(partitions):
        name = f"topic-{number // PARTITIONS_OF_TOPIC:04d}-{number % PARTITIONS_OF_TOPIC}"
        (folder / "logs" / name).mkdir(parents=True)
        os.link(files[number % len(files)], folder / "logs" / name / f"{0:020d}.log")
        size += files[number % len(files)].stat().st_size
    return size


def _cut(folder: Path, number: int, workload: corpus.Workload, megabytes: float) -> Path:
    """Copy whole batches of a file of the corpus until there are so many MB."""
    source = corpus.path(workload, min(CORPUS_MEGABYTES, CORPUS_TIMES * megabytes))
    file = folder / f"{number}.log"
    headers = kraftlog.open(source).batches(["position", "size_in_bytes"]).to_pydict()
    ends = [position + size for position, size in zip(*headers.values(), strict=True)]
    with source.open("rb") as whole:
        file.write_bytes(whole.read(min((end for end in ends if end >= megabytes * MB), default=ends[-1])))
    return file


def main() -> None:
    """Make the directory, and its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="report-"))
    try:
        size = make(folder, given.partitions, given.gigabytes)
        start, cpu = time.perf_counter(), time.process_time()
        report = kraftlog.report(folder / "logs", folder / "report.html", workers=given.workers)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        assert not report.has_faults
        page = (folder / "report.html").stat().st_size
    finally:
        shutil.rmtree(folder)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(
        f"{given.partitions} partitions, {size / 1e9:.2f} GB: {seconds:.1f} s ({cpu:.1f} s of CPU), "
        f"{size / seconds / 1e9:.2f} GB/s; a page of {page / MB:.2f} MB; at most {most / MB:.0f} MB of memory"
    )


if __name__ == "__main__":
    main()
