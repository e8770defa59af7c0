"""What there is to repair in a partition's folder, file by file. Nothing is written here.

The log files are the truth. A torn tail is to be cut off; index files and producer snapshots that are not what the log
says are to be written anew. Kafka's recovery also cuts off sound batches that lie behind damage, and removes the
segments behind a cut; here that is refused unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kraftlog.disk.durable import UNFINISHED
from kraftlog.disk.mapping import map_file
from kraftlog.errors import CorruptRecordError
from kraftlog.layout import names
from kraftlog.layout.discover import Segment
from kraftlog.layout.index_files import ENTRY_TYPES, PREALLOCATED
from kraftlog.layout.rebuild import Rebuild, Rebuilt
from kraftlog.layout.small_files import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.read.index_interval import shown_interval
from kraftlog.write.recovery_action import Action, RecoverOptions, keep, refuse, remove, write


class RecoveryPlan:
    """The actions that one partition needs.

    They are to be done one at a time as they come: in this order the folder is usable after each of them.

    Parameters
    ----------
    segments : list of Segment
        All live segments of a partition's folder, in their order.
    options : RecoverOptions
    """

    def __init__(self, segments: list[Segment], options: RecoverOptions) -> None:
        self._segments = segments
        self._options = options
        self._folder = segments[0].local_path.parent
        interval_bytes = options.interval_bytes if options.interval_bytes is not None else shown_interval(segments)
        self._rebuild = Rebuild(segments[0].base_offset or 0, interval_bytes)

    def actions(self) -> Iterator[Action]:
        """Return actions for all files of the partition, segment by segment; those that are right are kept."""
        yield from self._left_over()
        yield from self._first_snapshot()
        for number, segment in enumerate(self._segments):
            if number:
                yield self._snapshot(segment.base_offset or 0)
            later = self._segments[number + 1 :]
            try:
                buffer = map_file(segment.local_path)
                rebuilt = self._rebuild.segment(buffer, segment.base_offset or 0)
            except (OSError, ValueError) as error:
                yield refuse(segment.local_path, segment.size, str(error))
                return
            size = memoryview(buffer).nbytes
            del buffer  # nothing may be mapped that is about to be cut
            if rebuilt.size == size:
                yield from self._index_files(segment, rebuilt)
                yield Action(segment.local_path, "keep", size, size, "every batch is sound")
                continue
            damage = _damage(rebuilt, size, len(later))
            if not self._options.cut_damage and (rebuilt.sound_behind or later):
                yield refuse(segment.local_path, size, f"{damage}; --cut-damage cuts there, as Kafka does")
                return
            # from the last one on, so that what is left has no hole at any moment
            for behind in reversed(later):
                for path in _files_of(behind):
                    yield remove(path, "behind the cut")
            yield from self._index_files(segment, rebuilt)
            yield Action(segment.local_path, "cut", size, rebuilt.size, damage)
            break
        yield self._snapshot(self._rebuild.next_offset)
        yield from self._snapshots_behind_the_end()

    def _left_over(self) -> Iterator[Action]:
        """Remove what a recovery that was stopped left, and index files of no segment, as Kafka does when it starts."""
        for path in sorted(self._folder.iterdir()):
            name = names.parse_segment_file(path.name)
            if path.name.endswith(UNFINISHED):
                yield remove(path, "left by a recovery that did not finish")
            elif name and not name.state and name.kind in ENTRY_TYPES and not path.with_suffix(".log").exists():
                yield remove(path, "without a log file")

    def _index_files(self, segment: Segment, rebuilt: Rebuilt) -> Iterator[Action]:
        for kind in ENTRY_TYPES:
            path = segment.local_path.with_suffix(f".{kind}")
            data = rebuilt.files.get(kind)
            there = path.read_bytes() if path.exists() else None
            lacks = kind == "txnindex" and not self._rebuild.is_complete
            if lacks and there and there != data and _holds(there, data or b""):
                yield keep(path, there, "knows transactions of which the log no longer has all")
            elif data is None:
                if there:
                    yield remove(path, "no transaction was aborted here")
            elif not self._options.write and there is not None and _is_in_use(there, data, kind):
                yield keep(path, there, "preallocated for a segment that is written to")
            else:
                yield write(path, there, data)

    def _first_snapshot(self) -> Iterator[Action]:
        """Begin with the producers of the part of the log that was deleted."""
        path = self._snapshot_path(self._segments[0].base_offset or 0)
        if not path.exists():
            return
        try:
            self._rebuild.begin_with(read_producer_snapshot(path))
        except (OSError, CorruptRecordError) as error:
            yield remove(path, str(error))

    def _snapshot(self, offset: int) -> Action:
        path = self._snapshot_path(offset)
        there = path.read_bytes() if path.exists() else None
        data = producer_snapshot_bytes(self._rebuild.producers())
        if there is not None and there != data and not self._rebuild.is_complete:
            try:
                self._rebuild.producers_are(read_producer_snapshot(path))
            except (OSError, CorruptRecordError) as error:
                return write(path, there, data, str(error))
            return keep(path, there, "knows producers of which the log no longer has all batches")
        return write(path, there, data)

    def _snapshot_path(self, offset: int) -> Path:
        return self._folder / f"{offset:020d}.snapshot"

    def _snapshots_behind_the_end(self) -> Iterator[Action]:
        end = self._rebuild.next_offset
        for path in sorted(self._folder.glob("*.snapshot")):
            name = names.parse_segment_file(path.name)
            if name is not None and name.base_offset > end:
                yield remove(path, f"behind the end of the log, {end}")


def _files_of(segment: Segment) -> list[Path]:
    """Return the log file and its index files."""
    log_file = segment.local_path
    return [log_file, *(log_file.with_name(path.name) for kind, path in segment.beside.items() if kind in ENTRY_TYPES)]


def _damage(rebuilt: Rebuilt, size: int, later: int) -> str:
    if rebuilt.fault is None:
        what = f"torn tail of {size - rebuilt.size} bytes"
    else:
        batches = "1 sound batch" if rebuilt.sound_behind == 1 else f"{rebuilt.sound_behind} sound batches"
        what = f"{rebuilt.fault.message}; {size - rebuilt.size} bytes from there on hold {batches}"
    return what + (f", and {later} segments follow" if later > 1 else ", and 1 segment follows" if later else "")


def _holds(there: bytes, data: bytes) -> bool:
    """Whether a ``.txnindex`` has all the transactions of another one."""
    kind = ENTRY_TYPES["txnindex"]

    def ends(entries: bytes) -> set[tuple[int, int]]:
        rows = np.frombuffer(entries, kind)
        return set(zip(rows["producer_id"].tolist(), rows["last_offset"].tolist(), strict=True))

    return len(there) % kind.itemsize == 0 and ends(data) <= ends(there)


def _is_in_use(there: bytes, data: bytes, kind: str) -> bool:
    """Whether a file is preallocated; the last entry of a time index is written when the segment is closed."""
    size = ENTRY_TYPES[kind].itemsize
    used = there[: -(-len(there.rstrip(b"\0")) // size) * size]
    last = data[:-size] if kind == "timeindex" else data
    return kind in PREALLOCATED and len(there) > len(data) and used in (data, last)
