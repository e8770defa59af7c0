"""Does it stay small and quick when the log grows: memory of a long read or replay, and opening of many segments.

Also how quick it is when there is hardly any log: the start of the program.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import numpy.typing as npt

import corpus
import kraftlog
import many_segments
import metadata_corpus
import offsets_corpus
import scanning
import serving
import start
from metadata_corpus import MetadataLog
from offsets_corpus import OffsetsLog

PROBE = Path(__file__).resolve().with_name("memory_probe.py")
IMAGE_PROBE, HELD_PROBE = PROBE.with_name("image_probe.py"), PROBE.with_name("held_probe.py")
TABLE_PROBE, JSON_PROBE = PROBE.with_name("table_probe.py"), PROBE.with_name("image_json_probe.py")
METADATA_TABLES = ("messages", "PartitionChangeRecord", "metadata_changes")
WORKLOAD, MOST_COMMITS = corpus.Workload(100, 64), 1_000_000
BYTES_OF_COMMIT = 256  # at most
SEGMENTS_OF_LONG_LOG = 16
FREE_BYTES_LEFT = 2 << 30  # on the disk, beside what is written
OPENINGS = 3
STATUS = "/proc/self/status"
NO_ANONYMOUS = "not measured: this system does not tell anonymous from mapped memory"
NO_OPEN = "kraftlog.open does not exist"


@dataclass
class Growth:
    """What was measured; notes say why something was not.

    Attributes
    ----------
    memory : dict of int to int
        Most bytes of anonymous memory while so many bytes of a log are read.
    table_memory : dict of str to tuple of int
        Most bytes while a table is read: of a tenth of a long ``__consumer_offsets``, and of all of it; of a metadata
        log of a few changes, and of many.
    replay_memory : tuple of int, optional
        Most bytes while a metadata log is replayed: one of a few changes, and one of many of as many partitions.
    json_image : tuple of float, optional
        CPU seconds and the most megabytes, with those of files, while an image of many partitions is written as JSON.
    read_bytes_per_second : float, optional
    held_bytes : float, optional
        Of memory, by a table of one record.
    open_seconds, segments_seconds : float, optional
        Of ``kraftlog.open`` and of its ``segments``.
    start_seconds : dict of str to float
        CPU time of the program with a command on a small directory.
    broker_start : tuple of float, optional
        Seconds from the start of a process with a broker until a client has produced a record, and megabytes of memory.
    stored : int
        Segments of the backups that are made.
    changes : int
        Of partitions, in the long metadata log.
    topics : int
        In the image that is written as JSON.
    starts : int
        Of each command, and of a broker; the quickest one counts.
    stored_memory : dict of str to tuple of (int, float)
        Most bytes while a step of a backup of so many segments runs, and how many more a segment takes.
    """

    log_bytes: int = 4 << 30
    opened: int = 10_000
    changes: int = 2_000_000
    topics: int = 10_000
    starts: int = start.STARTS
    memory: dict[int, int] = field(default_factory=dict)
    table_memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    replay_memory: tuple[int, int] | None = None
    json_image: tuple[float, float] | None = None
    read_bytes_per_second: float | None = None
    held_bytes: float | None = None
    memory_note: str = "not asked for"
    open_seconds: float | None = None
    segments_seconds: float | None = None
    open_note: str = "not asked for"
    start_seconds: dict[str, float] = field(default_factory=dict)
    broker_start: tuple[float, float] | None = None
    stored: int = 100_000
    stored_memory: dict[str, tuple[int, float]] = field(default_factory=dict)
    stored_note: str = "not asked for"

    @property
    def replayed(self) -> tuple[MetadataLog, MetadataLog]:
        """Metadata logs of the same partitions, one of a tenth of the changes and one of all."""
        return MetadataLog(self.topics // 10, self.changes // 10), MetadataLog(self.topics // 10, self.changes)

    @property
    def json_log(self) -> MetadataLog:
        """The metadata log of the image that is written as JSON."""
        return MetadataLog(self.topics, 0)

    @property
    def log_text(self) -> str:
        """Size of the long log."""
        return f"{self.log_bytes / (1 << 30):g} GiB"


def measure_memory(growth: Growth) -> None:
    """Read parts of a long log and all of it, each in a process of its own."""
    growth.memory_note = _why_no_memory(growth.log_bytes)
    if growth.memory_note:
        return
    segments = sorted(_long_log(growth.log_bytes).glob("*.log"))
    for count in (1, 4, len(segments)):
        size = sum(segment.stat().st_size for segment in segments[:count])
        answer = subprocess.run([sys.executable, PROBE, *segments[:count]], check=True, stdout=subprocess.PIPE)
        found = json.loads(answer.stdout)
        growth.memory[size] = found["peak_memory"]
        growth.read_bytes_per_second = size / found["seconds"]


def measure_tables(growth: Growth) -> None:
    """Read tables of a tenth of a long log of commits and of all of it, each in a process of its own."""
    if _why_no_memory(2 * growth.log_bytes):
        return
    segments = sorted(_long_offsets(growth.log_bytes).glob("*.log"))
    for table in ("messages", "offsets"):
        peaks = []
        for count in (max(len(segments) // 10, 1), len(segments)):
            command = [sys.executable, TABLE_PROBE, table, *segments[:count]]
            peaks.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["peak_memory"])
        growth.table_memory[table] = peaks[0], peaks[1]


def measure_held(growth: Growth) -> None:
    """Hold many tables of one record, in a process of its own."""
    if Path(STATUS).exists():
        answer = subprocess.run([sys.executable, HELD_PROBE], check=True, stdout=subprocess.PIPE)
        growth.held_bytes = json.loads(answer.stdout)["bytes"]


def measure_replay(growth: Growth) -> None:
    """Replay a short and a long metadata log to images of one size, each in a process of its own."""
    if not Path(STATUS).exists():
        return
    peaks = []
    for log in growth.replayed:
        command = [sys.executable, IMAGE_PROBE, metadata_corpus.path(log)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        assert found["partitions"] == log.partitions
        peaks.append(found["peak_memory"])
    growth.replay_memory = peaks[0], peaks[1]


def measure_metadata(growth: Growth) -> None:
    """Read tables of a short and a long metadata log, and write an image as JSON, each in a process of its own."""
    if not Path(STATUS).exists():
        return
    for table in METADATA_TABLES:
        commands = [[TABLE_PROBE, table, metadata_corpus.path(log)] for log in growth.replayed]
        short, long = (_answer(command)["peak_memory"] for command in commands)
        growth.table_memory[f"{table} of metadata"] = short, long
    found = _answer([JSON_PROBE, metadata_corpus.path(growth.json_log)])
    growth.json_image = found["seconds"], found["peak_memory"] / corpus.MB


def _answer(command: list[str | Path]) -> dict[str, int]:
    answer: dict[str, int] = json.loads(
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE).stdout
    )
    return answer


def measure_stored(growth: Growth) -> None:
    """Back up very many small segments, each step in a process of its own."""
    growth.stored_note = "" if Path(STATUS).exists() else NO_ANONYMOUS
    if not growth.stored_note:
        growth.stored_memory = many_segments.measured(growth.stored)


def measure_start(growth: Growth) -> None:
    """Run commands that have next to nothing to do, and start brokers."""
    growth.start_seconds = {command: start.cpu_seconds(command, growth.starts) for command in start.COMMANDS}
    started = []
    for _ in range(growth.starts):
        begin = perf_counter()
        broker = serving.first_record(serving.own_broker)
        started.append((perf_counter() - begin, broker.memory / 1e6))
        broker.end()
    growth.broker_start = min(started)


def measure_opening(growth: Growth) -> None:
    """Open a directory of many small segments."""
    growth.open_note = "" if hasattr(kraftlog, "open") else NO_OPEN
    if growth.open_note:
        return
    directory = _small_segments(growth.opened)
    opening, listing = [], []
    for _ in range(OPENINGS):
        begun = perf_counter()
        log = kraftlog.open(directory)
        opened = perf_counter()
        rows = len(log.segments())
        listing.append(perf_counter() - opened)
        opening.append(opened - begun)
        assert rows == growth.opened
    growth.open_seconds, growth.segments_seconds = median(opening), median(listing)


def _why_no_memory(size: int) -> str:
    if not hasattr(kraftlog, "open"):
        return NO_OPEN
    if not Path(STATUS).exists():
        return NO_ANONYMOUS
    corpus.CACHE.mkdir(parents=True, exist_ok=True)
    needed = size + FREE_BYTES_LEFT
    if not _long_log_path(size).exists() and shutil.disk_usage(corpus.CACHE).free < needed:
        return f"less than {needed >> 30} GiB free on the disk"
    return ""


def _long_log_path(size: int) -> Path:
    return corpus.CACHE / f"long-{size >> 20}MiB-{corpus.VERSION}" / "bench-0"


def _long_log(size: int) -> Path:
    """Return a partition of segments that are alike but for their offsets."""
    directory = _long_log_path(size)
    if directory.exists():
        return directory
    segment = np.fromfile(corpus.path(WORKLOAD, -(-size // SEGMENTS_OF_LONG_LOG) / corpus.MB), np.uint8)
    return _repeated(segment, SEGMENTS_OF_LONG_LOG, directory)


def _long_offsets(size: int) -> Path:
    """Return a partition of ``__consumer_offsets`` of segments that are alike but for their offsets."""
    directory = corpus.CACHE / f"long-offsets-{size >> 20}MiB-{offsets_corpus.VERSION}" / "__consumer_offsets-0"
    if directory.exists():
        return directory
    log = OffsetsLog.of_records(min(MOST_COMMITS, size // BYTES_OF_COMMIT))
    segment = np.fromfile(offsets_corpus.path(log) / f"{0:020d}.log", np.uint8)
    return _repeated(segment, -(-size // len(segment)), directory)


def _repeated(segment: npt.NDArray[np.uint8], times: int, directory: Path) -> Path:
    """Write a segment again and again, with the offsets that follow."""
    headers = scanning.headers(segment)
    cells = headers["position"][:, None] + np.arange(8)  # a batch starts with its base offset, which no checksum covers
    records = int(headers["records_count"].sum())
    unfinished = directory.with_name("unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for first in range(0, times * records, records):
        segment[cells] = (headers["base_offset"] + first).astype(">i8").view(np.uint8).reshape(-1, 8)
        segment.tofile(unfinished / f"{first:020d}.log")
    unfinished.rename(directory)
    return directory


def _small_segments(count: int) -> Path:
    """Return a partition of segments of one batch, with the index files that Kafka leaves beside them."""
    directory = corpus.CACHE / f"small-{count}-{corpus.VERSION}" / "bench-0"
    if directory.exists():
        return directory
    rows = next(corpus.rows(WORKLOAD)).slice(0, 10)
    last_timestamp = rows["timestamp_ms"][-1].as_py()
    unfinished = directory.with_name("unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for first in range(0, count * rows.num_rows, rows.num_rows):
        stem = unfinished / f"{first:020d}"
        stem.with_suffix(".log").write_bytes(kraftlog.encode(rows, base_offset=first))
        stem.with_suffix(".index").touch()
        entry = last_timestamp.to_bytes(8, "big") + (rows.num_rows - 1).to_bytes(4, "big")
        stem.with_suffix(".timeindex").write_bytes(entry)
    unfinished.rename(directory)
    return directory
