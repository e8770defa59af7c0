"""What kraftlog and Kafka's ``UnifiedLog`` say of one partition, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from random_partition import rows

import kraftlog

RECORDS = ["offset", "timestamp_ms", "key", "value"]
PRODUCERS = [
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "last_timestamp_ms",
    "coordinator_epoch",
    "current_transaction_first_offset",
]
NONE = -1
NAMES = {"-1": "latest", "-2": "earliest", "-3": "max-timestamp"}


def read(folder: Path, *, is_sound: bool = True, **options: Any) -> list[tuple[Any, ...]]:
    """Return the records that a consumer gets; of a log that is not sound those that are left."""
    stream = kraftlog.open(folder).records(RECORDS, strict=is_sound, **options)
    return _tuples(stream.to_table())


def producers(folder: Path, *, is_sound: bool) -> list[list[int]]:
    """Return the producers as Kafka has them, where -1 is nothing."""
    table = kraftlog.open(folder).producers(PRODUCERS, strict=is_sound, faults=[])
    return sorted([NONE if cell is None else cell for cell in row] for row in _tuples(table))


def unlike_aborted(state: Any, folder: Path, *, is_sound: bool) -> list[tuple[int, int]]:
    """Return producer and marker of the aborted transactions that Kafka knows and kraftlog does not, or otherwise.

    The table has those of which there is data, and what is left of it; Kafka's index the others, too.
    """
    columns = ["producer_id", "marker_offset", "first_offset", "state"]
    table = kraftlog.open(folder).partition_transactions(columns, strict=is_sound, faults=[])
    ours = {row[:2]: row[2] for row in _tuples(table) if row[3] == "aborted" and row[2] is not None}
    theirs, start = {(one, last): first for one, first, last, _ in state["aborted"]}, state["start"]
    found = [key for key, first in ours.items() if key[1] >= start and max(first, start) < theirs.get(key, first + 1)]
    if not state["is_cleaned"]:
        found += [key for key, first in theirs.items() if first >= start and ours.get(key) != first]
    return sorted(found)


def offset_at(folder: Path, time: str, isolation_level: str, *, is_sound: bool) -> int | None:
    """Return the offset of a time, as ListOffsets has it."""
    asked: Any = NAMES.get(time, int(time))
    options: Any = {"isolation_level": isolation_level, "strict": is_sound}
    (found,) = kraftlog.open(folder).partition_offsets(asked, ["offset"], **options).to_table()["offset"].to_pylist()
    return found if found is None else int(found)


def stable_offset(folder: Path, *, is_sound: bool) -> int | None:
    """Return the last stable offset as Kafka has it behind a load: the base offset of the batch that is there.

    A crash can take the marker of a transaction whose first records a cleaner has removed. Kafka looks for the place
    where the transaction begins (``UnifiedLog.maybeConvertToOffsetMetadata``), and takes the offset of what it finds.
    """
    found = offset_at(folder, "-1", "read_committed", is_sound=is_sound)
    batches = kraftlog.open(folder).batches(["base_offset", "last_offset"], strict=is_sound, faults=[])
    start = offset_at(folder, "-2", "read_uncommitted", is_sound=is_sound)
    if found is None or start is None:
        return None
    bases = batches["base_offset"].filter(pc.greater_equal(batches["last_offset"], found)).to_pylist()
    return max(bases[0], start) if bases else found


def hides_later_records(folder: Path, time: int, *, is_sound: bool) -> bool:
    """Whether Kafka looks for a time in a segment that has no such record any more, and in no segment behind it.

    A cleaner leaves the last batch of a producer without records and with its largest timestamp, and records before the
    log start offset are deleted; ``UnifiedLog.searchOffsetInLocalLog`` takes the first segment that had such a record.
    """
    found = offset_at(folder, str(time), "read_uncommitted", is_sound=is_sound)
    if found is None:
        return False
    columns = ["segment_base_offset", "base_offset", "max_timestamp_ms"]
    batches = kraftlog.open(folder).batches(columns, strict=is_sound, faults=[])
    holding = pc.max(batches.filter(pc.less_equal(batches["base_offset"], found))["segment_base_offset"])
    stamps = batches.filter(pc.less(batches["segment_base_offset"], holding))["max_timestamp_ms"]
    return any(stamp >= time for stamp in stamps.to_pylist() if stamp is not None)


def differences(state: Any, folder: Path, *, is_sound: bool = True) -> list[str]:
    """Return in what kraftlog says another thing of a folder than Kafka did.

    Parameters
    ----------
    state : object
        What ``PartitionLogs`` answered.
    folder : Path
        A log directory with one partition.
    is_sound : bool
        Whether kraftlog must find no fault.
    """
    found: list[str] = []

    def compare(what: str, theirs: object, ours: Callable[..., object], *arguments: Any, **options: Any) -> None:
        try:
            answer = ours(*arguments, **options, is_sound=is_sound)
        except Exception as error:
            found.append(f"{what}: {type(error).__name__}: {error}")
        else:
            if answer != theirs:
                found.append(f"{what}: Kafka {_short(theirs, answer)}, kraftlog {_short(answer, theirs)}")

    for level, name in ("read_uncommitted", "records"), ("read_committed", "committed"):
        theirs = list(rows(state[name]))
        compare(level, theirs, read, folder, isolation_level=level)
        compare(f"{level} by two", theirs, read, folder, isolation_level=level, workers=2, batch_rows=3)
        if theirs:
            first, end = theirs[len(theirs) // 3][0], theirs[2 * len(theirs) // 3][0]
            wanted = [row for row in theirs if first <= row[0] < end]
            bounds = {"start_offset": first, "end_offset": end}
            compare(f"{level} between offsets", wanted, read, folder, isolation_level=level, **bounds)
    # Kafka's may lie before the log start: a consumer gets nothing then either
    stable = max(state["stable"], state["start"])
    compare("log end", state["end"], offset_at, folder, "-1", "read_uncommitted")
    compare("log start", state["start"], offset_at, folder, "-2", "read_uncommitted")
    compare("last stable offset", stable, stable_offset, folder)
    compare("producers", sorted(state["producers"]), producers, folder)
    compare("aborted transactions", [], unlike_aborted, state, folder)
    for time, answer in state["times"].items():
        if time in ("-1", "-2"):
            continue
        name, offset = NAMES.get(time, "a time"), None if answer is None or answer[0] < 0 else answer[0]
        if offset is None and int(time) >= 0 and hides_later_records(folder, int(time), is_sound=is_sound):
            continue
        compare(f"offset at {name}", offset, offset_at, folder, time, "read_uncommitted")
        committed = None if offset is None or offset >= stable else offset
        compare(f"stable offset at {name}", committed, offset_at, folder, time, "read_committed")
    return found


def _tuples(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def _short(one: object, other: object) -> str:
    if isinstance(one, list) and isinstance(other, list):
        return f"{[each for each in one if each not in other][:3]} of {len(one)}"
    return repr(one)
