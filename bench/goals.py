"""What the speed and the memory must reach, and whether they do."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

import backing_up
import bare_codecs
import cleaning
import corpus
import extracting
import folds
import growing
import objects
import redacting
import restoring
import searching
import serving
import start
import stores
import tiers
import transactional as tx
import typed_records as typed
import typed_values
import works
from compare import contenders as others
from growth import Growth
from internal_topics import COMMITS, METADATA, SINGLES
from report import Block, short
from works import STREAMED

MIB = 1 << 20
MOST_MEMORY = 300 * MIB
MOST_STORED_MEMORY = 256 * MIB
MOST_STORED_SEGMENT = 2048  # bytes of memory, of one segment more
MOST_HELD = 64 << 10  # bytes of a table of one record
MOST_REPLAY_GROWTH = 64 * MIB  # beside ten times as many changes: what is held of a stretch of the log varies
MOST_TABLE_GROWTH = 64 * MIB
MOST_OPENING_SECONDS = 2.0
MOST_START_SECONDS = {"version": 0.12, "segments": 0.35}  # of CPU
MOST_BROKER_SECONDS, MOST_BROKER_MEGABYTES = 0.15, 60.0
MOST_START_SECONDS |= dict.fromkeys(("messages", "image", "offsets", start.TO_TABLE), 0.5)
MOST_JSON_SECONDS, MOST_JSON_MEGABYTES = 2.0, 200.0
LEAST, MOST = ">=", "<"
WITHOUT = "without"  # begins the note of a goal for which somebody was left out
PLAIN = tuple(workload.name for workload in corpus.PLAIN)
SHORT_VALUES = tuple(workload.name for workload in corpus.PLAIN if workload.value_bytes < 1000)
LONG_VALUES = tuple(name for name in PLAIN if name not in SHORT_VALUES)
HEADERS = corpus.WITH_HEADERS.name
COMPRESSED = tuple(workload.name for workload in corpus.COMPRESSED if workload.compression in bare_codecs.CODECS)


@dataclass
class Outcome:
    """One goal and what was measured for it.

    Attributes
    ----------
    measured : list of (str, float)
        Where, and how much; the worst one decides. Empty when it was not measured, ``note`` says why.
    """

    goal: str
    sign: str
    bound: float
    measured: list[tuple[str, float]]
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None when it was not measured."""
        if not self.measured:
            return None
        return all(v >= self.bound if self.sign == LEAST else v < self.bound for _, v in self.measured)


@dataclass(frozen=True)
class RatioGoal:
    """A goal on the ratio of two contenders, on some workloads."""

    text: str
    work: str
    name: str
    base: str
    bound: float
    logs: tuple[str, ...] = ()  # all
    excuse: Callable[[], str] = str  # says why it does not count on this machine

    def outcome(self, blocks: Sequence[Block]) -> Outcome:
        """Look the ratios up."""
        chosen = (
            [b for b in blocks if b.work == self.work and (not self.logs or b.workload in self.logs)]
            if not self.excuse()
            else []
        )
        both = [b for b in chosen if self.base in b and self.name in b]
        ratios = [(b.workload, b[self.name].speed_against(b[self.base])) for b in both]
        absent = next((name for name in (self.name, self.base) if any(name not in b for b in chosen)), "")
        return Outcome(self.text, LEAST, self.bound, ratios, self.excuse() or (absent and f"{WITHOUT} {absent}"))


@dataclass(frozen=True)
class RateGoal:
    """A goal on what one contender does a second, in millions."""

    text: str
    work: str
    name: str
    bound: float
    workloads: tuple[str, ...]

    def outcome(self, blocks: Sequence[Block]) -> Outcome:
        """Look the rates up."""
        chosen = [block for block in blocks if block.work == self.work and block.workload in self.workloads]
        rates = [(block.workload or self.name, block[self.name].records_per_second / 1e6) for block in chosen]
        return Outcome(self.text, LEAST, self.bound, rates)


def _needs_x86_crc() -> str:
    info = Path("/proc/cpuinfo")
    if platform.machine() not in ("x86_64", "AMD64"):
        return "x86 only"
    flags = info.read_text() if info.exists() else "sse4_2 pclmulqdq"
    return "" if "sse4_2" in flags and "pclmulqdq" in flags else "no SSE4.2 or PCLMULQDQ here"


RATIOS = [
    RatioGoal("decode, x aiokafka to pyarrow", "decode", STREAMED, others.AIOKAFKA_ARROW, 30, SHORT_VALUES),
    RatioGoal("decode, x aiokafka iterated", "decode", STREAMED, others.AIOKAFKA, 10, SHORT_VALUES),
    RatioGoal("decode, x Kafka's Java in memory", "decode", STREAMED, others.JAVA_DECODE, 2, (*SHORT_VALUES, HEADERS)),
    RatioGoal("decode, x memcpy, 1,000 B", "decode", STREAMED, works.MEMCPY, 0.85, LONG_VALUES),
    RatioGoal("decode, x pyarrow from Parquet", "decode", STREAMED, others.PARQUET, 1, (*PLAIN, HEADERS)),
    RatioGoal("to_table, x streamed", "decode", works.IN_ONE, STREAMED, 0.7, (*PLAIN, HEADERS)),
    RatioGoal("layout='view', x memcpy, 1,000 B", "decode", works.VIEW, works.MEMCPY, 1.5, LONG_VALUES),
    RatioGoal("layout='view', x Kafka's Java, 1,000 B", "decode", works.VIEW, others.JAVA_DECODE, 1, LONG_VALUES),
    RatioGoal("decode, x bare decompression", "decode", STREAMED, works.BARE, 1 / 1.3, COMPRESSED),
    RatioGoal("encode, x aiokafka's builder", "encode", STREAMED, others.AIOKAFKA_BUILDER, 10, SHORT_VALUES),
    RatioGoal("encode, x Kafka's MemoryRecordsBuilder", "encode", STREAMED, others.JAVA_ENCODE, 2.5, SHORT_VALUES),
    RatioGoal("encode, x Rust kafka-protocol", "encode", STREAMED, others.RUST_RECORDS, 1.5, SHORT_VALUES),
    RatioGoal("encode, x memcpy, 1,000 B", "encode", STREAMED, works.MEMCPY, 0.7, LONG_VALUES),
    RatioGoal("encode of one chunk, x streamed", "encode", works.ONE_CHUNK, STREAMED, 0.8, (*PLAIN, HEADERS)),
    RatioGoal("encode of many chunks, x streamed", "encode", works.CHUNKED, STREAMED, 0.8, (*PLAIN, HEADERS)),
    RatioGoal("records of small buffers, x aiokafka", "small", works.EACH_ITERATED, others.AIOKAFKA, 1),
    RatioGoal("header scan, x Kafka's Java in memory", "scan", works.SCANNER, others.JAVA_DECODE, 1.5, PLAIN),
    RatioGoal("header scan, x plain C loop", "scan", works.SCANNER, works.C_LOOP, 1, PLAIN),
    RatioGoal("2 threads, x one", "threads", works.TWO_THREADS, STREAMED, 1.9, PLAIN),
    RatioGoal("2 threads, x one, compressed", "threads", works.TWO_THREADS, STREAMED, 1.8, COMPRESSED),
    RatioGoal("2 Encoders in threads, x in turn", "encoders", works.TWO_ENCODERS, works.ONE_ENCODER, 1.8),
    RatioGoal("ten times the bytes, x as fast a byte", "growth", growing.AT_ONCE, growing.IN_TENTHS, 1 / 1.3),
    RatioGoal("crc32c, x memcpy", "crc32c", works.CRC32C, works.MEMCPY, 1.3, PLAIN, excuse=_needs_x86_crc),
    RatioGoal("boundary scan, x headers and records walked", "boundaries", tx.BOUNDARIES, tx.WALK, 0.5, PLAIN),
    RatioGoal("packed as a transaction, x encoded plain", "pack", tx.PACKED, tx.ENCODED, 0.97, PLAIN),
    RatioGoal("commits every 10 MB, x none, 1,000 B", "commits", tx.PER_COMMIT, tx.WITHOUT, 0.97, LONG_VALUES),
    *(
        RatioGoal(
            f"read_committed, x read_uncommitted, {log}",
            "read_committed", tx.committed(log), tx.uncommitted(log), bound, PLAIN,
        )
        for log, bound in ((tx.PLAIN_LOG, 0.99), (tx.COMMITTED_LOG, 0.99), (tx.ABORTED_LOG, 1))
    ),
    *(
        RatioGoal(f"{log}, {own}, x {theirs}", "typed", own, theirs, bound, (log,))
        for log, of_values in ((METADATA, 4), (COMMITS, 5))
        for own, theirs, bound in ((typed.BINARY, typed.KAFKA, of_values), (typed.FROM_LOG, typed.KAFKA_FROM_LOG, 3))
    ),
    *(
        RatioGoal(f"{log}, {folds.REPLAYED}, x {folds.KAFKA}", "replay", folds.REPLAYED, folds.KAFKA, bound, (log,))
        for log, bound in ((METADATA, 10), (SINGLES, 8))
    ),
    RatioGoal(f"{folds.TABLE}, x {folds.LOADED}", "fold", folds.TABLE, folds.LOADED, 5, (COMMITS,)),
    RatioGoal(
        "produced with commits every 100 ms, x without, 1,000 B",
        "store", stores.IN_TRANSACTIONS.format(1000), stores.PRODUCED.format(1000), 0.97,
    ),
    *(
        RatioGoal(
            f"consumer at read_committed, x read_uncommitted, {size:,} B",
            "store", stores.CONSUMED.format(size, "read_committed"), stores.CONSUMED.format(size, "read_uncommitted"),
            0.99,
        )
        for size in stores.SIZES
    ),
    RatioGoal(
        f"commit behind {stores.OLDER:,} others, x behind a few", "store", stores.LATER.format(stores.OLDER),
        stores.FIRST, 0.9,
    ),
    RatioGoal(
        "consumer, x Kafka's consumer, 100 B",
        "store", stores.CONSUMED.format(100, "read_uncommitted"), stores.KAFKA, 5,
    ),
    *(
        RatioGoal(
            f"{form.format(own, *sizes)}, x Kafka", "serve", form.format(own, *sizes),
            form.format(serving.KAFKA, *sizes), bound,
        )
        for own, form, bound in (
            (serving.OWN, serving.PRODUCED, 1), (serving.OWN, serving.COMMITTED, 1), (serving.OWN, serving.FETCHED, 1),
            (serving.OWN, serving.ROUND_TRIPS, 0.5), (serving.SERVE, serving.CONSUMED, 1),
        )
        for sizes in ([(size,) for size in serving.SIZES] if form.endswith(" B") else [()])
    ),
    *(
        RatioGoal(
            f"{serving.COMMITTED.format(name, size)}, x without", "serve",
            serving.COMMITTED.format(name, size), serving.PRODUCED.format(name, size), bound,
        )
        for name, bound in ((serving.OWN, 0.97), (serving.KAFKA, 0))  # the client waits, whatever the server
        for size in serving.SIZES
    ),
    RatioGoal("Avro, flat records to columns, x fastavro's loop", "avro", typed_values.KRAFTLOG,
              typed_values.FASTAVRO, 10, ("flat",)),
    *(
        RatioGoal(f"redaction, x a step for each record, {place}", "redact", redacting.COLUMNS, redacting.RECORDS,
                  bound, (place,))
        for place, bound in (("place masked", 30), ("place hashed", 8), ("header hashed", 10))
    ),
    *(
        RatioGoal(f"a remote tier, 50 ms a request, x plain ranges, {layout}", "tier", tiers.TIER.format(layout),
                  tiers.RANGES.format(layout), 0.9)
        for layout in tiers.LAYOUTS
    ),
    *(
        RatioGoal(f"segments of an object store, 50 ms a request, {workers} workers, x plain ranges", "objects",
                  objects.RECORDS.format(objects.SEGMENTS, workers), objects.RANGES.format(objects.SEGMENTS), 0.9)
        for workers in objects.WORKERS
    ),
]  # fmt: skip

RATES = [
    RateGoal("batches of one record decoded, M/s (10 us each)", "small", works.EACH, 0.1, (corpus.SMALL.name,)),
    RateGoal("zeros behind a batch, MB/s (64 MiB in 10 ms)", "growth", growing.AT_ONCE, 6711, (growing.ZEROS,)),
    RateGoal("boundary scan, M records/s, 100 B", "boundaries", tx.BOUNDARIES, 80, ("v100_b8", "v100_b64")),
    RatioGoal("extract, to cp and sync", "extract", extracting.EXTRACT, extracting.CP, 0.8, PLAIN),
    RatioGoal("a first backup, to cp and sync", "backup", backing_up.FIRST, backing_up.CP, 0.8, ("",)),
    RatioGoal("a backup with 1 % new, x the first", "backup", backing_up.LATER, backing_up.FIRST_OF_MANY, 50, ("",)),
    *(
        RatioGoal(
            f"restore, to cp and sync, {of}", "restore", restoring.RESTORE.format(of), restoring.CP.format(of), 0.8
        )
        for of in restoring.REPLICAS
    ),
    RateGoal("a rare text found in a file, MB/s", "grep", searching.GREP, 1000, PLAIN),
    RateGoal("plan_batches, M sizes/s", "plan", tx.PLAN, 200, ("",)),
    # what Kafka does on the machine that the goals are stated for: 14.3 M metadata records/s, 9 M commits/s, and
    # 1.0 M metadata records/s replayed
    RateGoal("metadata records to typed columns, M/s", "typed", typed.BINARY, 4 * 14.3, (METADATA,)),
    RateGoal("offset commits to typed columns, M/s", "typed", typed.BINARY, 5 * 9.0, (COMMITS,)),
    RateGoal("produced from Arrow, M records/s, 100 B", "store", stores.PRODUCED.format(100), 5, ("",)),
    RateGoal("produced from Arrow, GB/s, 1,000 B", "store", stores.PRODUCED.format(1000), 1, ("",)),
    RateGoal("a compacted log cleaned, MB/s", "clean", cleaning.CLEANED, 200, ("",)),
    RateGoal("metadata replayed to an image, M records/s", "replay", folds.REPLAYED, 10 * 1.0, (METADATA,)),
]


def outcomes(blocks: Sequence[Block], growth: Growth) -> list[Outcome]:
    """Judge all goals."""
    memory = [(f"{size / (1 << 30):.2g} GiB", peak / MIB) for size, peak in growth.memory.items()]
    held = [("each", growth.held_bytes / 1024)] if growth.held_bytes is not None else []
    replay = []
    if growth.replay_memory is not None:
        short_replay, long_replay = growth.replay_memory
        replay = [(f"{long_replay / MIB:.0f} - {short_replay / MIB:.0f} =", (long_replay - short_replay) / MIB)]
    tables = [
        (f"{table}: {whole / MIB:.0f} - {part / MIB:.0f} =", (whole - part) / MIB)
        for table, (part, whole) in growth.table_memory.items()
    ]
    json_seconds, json_peak, broker_seconds, broker_memory = [], [], [], []
    if growth.json_image is not None:
        image = f"{growth.json_log.partitions:,} partitions"
        json_seconds, json_peak = ([(image, figure)] for figure in growth.json_image)
    if growth.broker_start is not None:
        broker_seconds, broker_memory = ([("first record", figure)] for figure in growth.broker_start)
    stored = [(step, peak / MIB) for step, (peak, _) in growth.stored_memory.items()]
    each = [(step, more) for step, (_, more) in growth.stored_memory.items()]
    opening = [("open", growth.open_seconds), ("segments", growth.segments_seconds)] if growth.open_seconds else []
    return [
        *(goal.outcome(blocks) for goal in (*RATIOS, *RATES)),
        Outcome("MiB while a log is read", MOST, MOST_MEMORY / MIB, memory, growth.memory_note),
        Outcome("KiB held by a table of one record", MOST, MOST_HELD / 1024, held, growth.memory_note),
        Outcome("MiB more for tables of ten times the log", MOST, MOST_TABLE_GROWTH / MIB, tables, growth.memory_note),
        Outcome("MiB more to replay ten times the changes", MOST, MOST_REPLAY_GROWTH / MIB, replay, growth.memory_note),
        Outcome("s of CPU for an image as JSON", MOST, MOST_JSON_SECONDS, json_seconds, growth.memory_note),
        Outcome("MB for an image as JSON", MOST, MOST_JSON_MEGABYTES, json_peak, growth.memory_note),
        Outcome(
            f"MiB for backups of {growth.stored:,} segments", MOST, MOST_STORED_MEMORY / MIB, stored, growth.stored_note
        ),
        Outcome("bytes of memory of each segment of a backup", MOST, MOST_STORED_SEGMENT, each, growth.stored_note),
        Outcome(f"s to open {growth.opened:,} segments", MOST, MOST_OPENING_SECONDS, opening, growth.open_note),
        *(
            Outcome(f"s of CPU to start, {command}", MOST, most, _one(growth.start_seconds, command), growth.open_note)
            for command, most in MOST_START_SECONDS.items()
        ),
        Outcome("s to start a broker", MOST, MOST_BROKER_SECONDS, broker_seconds, growth.open_note),
        Outcome("MB of a broker", MOST, MOST_BROKER_MEGABYTES, broker_memory, growth.open_note),
    ]


def _one(measured: dict[str, float], name: str) -> list[tuple[str, float]]:
    return [(name, measured[name])] if name in measured else []


def table(found: Sequence[Outcome]) -> Table:
    """Return the outcomes as a table: the worst figure, where it was measured, and all the others."""
    out = Table(title="goals", title_justify="left")
    for heading in ("goal", "needed", "measured", "met"):
        out.add_column(heading, justify="right" if heading == "needed" else "left")
    for outcome in found:
        measured = ", ".join(f"{where} {short(value)}" for where, value in outcome.measured)
        verdict = {True: "yes", False: "NO", None: "not measured"}[outcome.met]
        out.add_row(outcome.goal, f"{outcome.sign} {short(outcome.bound)}", measured or outcome.note, verdict)
    return out
