"""The repairs of a partition's folder, file by file. This module writes nothing.

A broker recovers the segments from the recovery point on, unless it was closed cleanly, and a segment that lacks its
``.index`` or has a ``.txnindex`` of transactions that ended before it. Their log files are authoritative: a torn tail
is truncated, and index files, producer snapshots and leader epochs are rebuilt from the log. Kafka also truncates sound
batches after damage, and removes the segments after a cut; here that requires an option.

The result is that of Kafka 2.8 to 4.3. Steps that depend on a clock are left out: a broker drops producers without a
write for ``producer.id.expiration.ms``. Releases before 2.0 put the first offset of a batch into ``.index``. With
``rebuild``, files with more information than a log with removed records are kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import UNFINISHED
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.layout.index_files import ENTRY_TYPES, PREALLOCATED
from kraftlog.layout.leader_epochs import LEADER_EPOCHS, epochs_after_recovery, leader_epochs_bytes
from kraftlog.layout.names import SWAP, parse_segment_file
from kraftlog.layout.partition_folder import PartitionFolder, Replacement
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.layout.rebuild import Rebuild, Rebuilt
from kraftlog.layout.recovered import first_unflushed, is_taken_as_it_is
from kraftlog.layout.segment import Segment
from kraftlog.write.log_directory_state import LogDirectoryState
from kraftlog.write.recovery_action import Action, RecoverOptions, keep, refuse, remove, trust, write

UNREADABLE = "unreadable_file"


class RecoveryPlan:
    """The actions that one partition needs.

    Carry them out one at a time, in this order: the folder is usable after each of them.

    Parameters
    ----------
    folder : PartitionFolder
    state : LogDirectoryState
        State of the log directory.
    options : RecoverOptions
    """

    def __init__(self, folder: PartitionFolder, state: LogDirectoryState, options: RecoverOptions) -> None:
        self._folder = folder
        self._path = Path(str(folder.path))
        # after the rename, a .swap is an ordinary segment
        self._segments = [
            replace(each, file_name=each.file_name.removesuffix(SWAP)) if each.is_swap and options.write else each
            for each in folder.segments
        ]
        self._swapped = {each.swap.base_offset for each in folder.replacements}
        self._options = options
        partition = (folder.topic or "", folder.partition or 0)
        self._log_start = state.log_starts.get(partition, 0)
        self._recovery_point = 0 if options.rebuild else state.recovery_points.get(partition, 0)
        self._is_clean = state.is_clean and not options.rebuild
        self._rebuild: Rebuild | None = None
        self._rebuilt = -1  # the index of the last segment

    def actions(self) -> Iterator[Action]:
        """Return actions for all files of the partition, segment by segment; those that are right are kept."""
        yield from self._left_over()
        first = self._first_unflushed()
        reason = "closed cleanly: not read" if self._is_clean else "before the recovery point: not read"
        for number, segment in enumerate(self._segments):
            if number < first and self._is_trusted(segment):
                yield trust(segment.local_path, segment.size, reason)
                continue
            try:
                rebuild = self._producers_before(number)
            except (OSError, ValueError) as error:
                yield refuse(segment.local_path, segment.size, str(error))
                return
            if number >= first:
                yield from self._snapshot(rebuild, segment.base_offset or 0)
            is_cut = yield from self._segment(rebuild, number)
            if is_cut is None:
                return
            if number < first and "index" in segment.beside:
                self._rebuild = None  # the snapshot is removed before a broker reads it here
            if is_cut:
                break
        if first < len(self._segments) and self._rebuild is not None:
            yield from self._end(self._rebuild)

    def _is_trusted(self, segment: Segment) -> bool:
        """Whether a segment before the recovery point is skipped; a cleaner's output gets new index files."""
        return segment.base_offset not in self._swapped and is_taken_as_it_is(segment)

    def _first_unflushed(self) -> int:
        """Return the number of the first segment that a broker recovers: the one with the recovery point."""
        return len(self._segments) if self._is_clean else first_unflushed(self._segments, self._recovery_point)

    def _segment(self, rebuild: Rebuild, number: int) -> Generator[Action, None, bool | None]:
        """Recover a segment; return whether a cut in it ends the log, or None for a damaged file that is kept."""
        segment, later = self._segments[number], self._segments[number + 1 :]
        try:
            with closing(disk().open(segment.local_path)) as file:
                size = file.size
                rebuilt = rebuild.segment(file, segment.base_offset or 0)
        except (OSError, ValueError) as error:
            yield refuse(segment.local_path, segment.size, str(error))
            return None
        if rebuilt.fault is not None and rebuilt.fault.error == UNREADABLE:
            yield refuse(segment.local_path, size, rebuilt.fault.message)  # unreadable bytes may hold sound batches
            return None
        lacks_index = "index" not in segment.beside and segment.base_offset not in self._swapped
        if rebuilt.size == size:
            sound = keep(segment.local_path, size, "every batch is sound")
            yield from self._in_safe_order(sound, self._index_files(segment, rebuilt), log_first=lacks_index)
            return False
        damage = _damage(rebuilt, size, len(later))
        if not self._options.cut_damage and (rebuilt.sound_behind or later):
            yield refuse(segment.local_path, size, f"{damage}; --cut-damage cuts there, as Kafka does")
            return None
        # A broker recovers a segment without .index before all others, and keeps the segments after it. After a cut in
        # any # other segment it removes the following ones: here from the last one backwards, so that the log never has
        # a hole.
        for behind in [] if lacks_index else reversed(later):
            yield remove(behind.local_path, behind.size, "after the cut")
            for kind in sorted(ENTRY_TYPES.keys() & behind.beside.keys()):
                yield self._remove(self._beside(behind, kind), "after the cut")
        cut = Action(segment.local_path, "cut", size, rebuilt.size, damage)
        yield from self._in_safe_order(cut, self._index_files(segment, rebuilt), log_first=lacks_index)
        return not lacks_index

    @staticmethod
    def _in_safe_order(log: Action, index_files: Iterator[Action], *, log_first: bool) -> Iterator[Action]:
        """Return the actions on a log file and its index files.

        A segment without ``.index`` is synced before it gets one: if it were torn again after a crash, the segments
        after it would be removed.
        """
        if log_first:
            yield log
        yield from index_files
        if not log_first:
            yield log

    def _producers_before(self, number: int) -> Rebuild:
        """Return the producers before a segment: from the last snapshot and the log after it."""
        base_offset = self._segments[number].base_offset or 0
        if self._rebuild is not None and self._rebuilt == number - 1:
            self._rebuilt = number
            return self._rebuild
        rebuild = Rebuild(self._log_start, self._options.interval_bytes)
        for offset in sorted(self._folder.producer_snapshots, reverse=True):
            if (self._log_start < offset or self._options.rebuild) and offset <= base_offset:
                try:
                    states = read_producer_snapshot(self._folder.producer_snapshots[offset])
                except (OSError, CorruptRecordError):  # a broker also tries the previous one
                    continue
                rebuild = Rebuild(offset, self._options.interval_bytes)
                rebuild.begin_with(states)
                break
        ends = [other.base_offset or 0 for other in self._segments[1:]]
        for earlier, end in zip(self._segments, ends, strict=False):
            if rebuild.next_offset < end <= base_offset:
                with closing(disk().open(earlier.local_path)) as file:
                    rebuild.replay(file)
        self._rebuild, self._rebuilt = rebuild, number
        return rebuild

    def _end(self, rebuild: Rebuild) -> Iterator[Action]:
        """Align the files of the whole log: snapshots without a segment, and leader epochs."""
        end = rebuild.next_offset
        if self._log_start > end:
            reason = f"the log start offset {self._log_start} is after the end, {end}: Kafka deletes the log"
            yield refuse(self._segments[-1].local_path, self._segments[-1].size, reason)
            return
        yield from self._snapshot(rebuild, end)
        bases = {segment.base_offset for segment in self._segments}
        for offset, path in sorted(self._folder.producer_snapshots.items()):
            if offset > end:
                yield self._remove(Path(str(path)), f"after the end of the log, {end}")
            elif offset <= self._log_start and not self._options.rebuild:
                yield self._remove(Path(str(path)), f"not after the log start offset, {self._log_start}")
            elif offset not in bases and offset != end:
                yield self._remove(Path(str(path)), "has no segment")
        yield from self._leader_epochs(rebuild.epochs, end)

    def _leader_epochs(self, of_batches: list[tuple[int, int]], end: int) -> Iterator[Action]:
        path = self._path / LEADER_EPOCHS
        there = self._read(path)
        try:
            of_checkpoint = read_leader_epochs(path) if there else []
        except (OSError, ValueError, CorruptRecordError):
            of_checkpoint = []
        start = max(self._log_start, self._segments[0].base_offset or 0)
        epochs = epochs_after_recovery(of_checkpoint, of_batches, start, end)
        not_written = [entry for entry in of_checkpoint if entry[1] == end and entry not in epochs]
        if not self._options.write and there and epochs + not_written == of_checkpoint:
            reason = "has the epoch of a leader that has not written yet" if not_written else "what the log says"
            yield keep(path, len(there), reason)
        elif there is not None or epochs:
            data = (
                leader_epochs_bytes(epochs) if epochs or there else b""
            )  # a log without epochs may have an empty file
            yield write(path, there, data, "does not match the epochs of the log")

    def _left_over(self) -> Iterator[Action]:
        """Remove files of an interrupted recovery, and index files without a segment, as a starting broker does."""
        for name, entry in sorted(self._folder.entries.items()):
            if name.endswith(UNFINISHED):
                yield remove(self._path / name, entry.size or 0, "left by a recovery that did not finish")
            parsed = parse_segment_file(name)
            if parsed is not None and parsed.state == SWAP and parsed.base_offset not in self._swapped:
                yield remove(self._path / name, entry.size or 0, "left by a cleaner that did not finish")  # KAFKA-6264
        for path in self._folder.without_log:
            yield self._remove(Path(str(path)), "without a log file")
        for replacement in self._folder.replacements:
            yield from self._swap(replacement)

    def _swap(self, replacement: Replacement) -> Iterator[Action]:
        """Finish an interrupted cleaning: its output replaces the segments that begin within it.

        The index files of the output are rebuilt from it, as for any segment that is recovered.
        """
        swap = replacement.swap
        for segment in replacement.replaced:
            if segment.base_offset != swap.base_offset:
                yield remove(segment.local_path, segment.size, f"replaced by {swap.file_name}")
        for kind in sorted(ENTRY_TYPES.keys() & swap.beside.keys()):
            yield self._remove(Path(str(swap.beside[kind])), "made anew")
        yield Action(swap.local_path, "rename", swap.size, swap.size, "the output of a cleaner, which replaces it")

    def _index_files(self, segment: Segment, rebuilt: Rebuilt) -> Iterator[Action]:
        for kind in ENTRY_TYPES:
            path = self._beside(segment, kind)
            there = self._read(path)
            data = rebuilt.files.get(kind, b"")
            lacks = kind == "txnindex" and self._lacks_records
            if lacks and there and there != data and _holds(there, data):
                yield keep(path, len(there), "has transactions whose records the log no longer has completely")
            elif kind == "txnindex" and there is None and not data:
                continue
            elif not self._options.write and there is not None and _is_in_use(there, data, kind):
                yield keep(path, len(there), "preallocated for a segment that is open for writing")
            else:
                yield write(path, there, data, self._reason(there, kind))

    def _reason(self, there: bytes | None, kind: str) -> str:
        """Return the reason to write an index file; closer entries come from another interval."""
        size = ENTRY_TYPES[kind].itemsize
        if kind == "index" and there and len(there) % size == 0:
            positions = np.frombuffer(there.rstrip(b"\0").ljust(len(there), b"\0"), ENTRY_TYPES[kind])["position"]
            distances = np.diff(positions[: np.count_nonzero(positions)], prepend=0)
            if len(distances) and 0 < distances.min() <= self._options.interval_bytes:
                return (
                    f"does not match the log with index.interval.bytes {self._options.interval_bytes}: its entries are "
                    f"{distances.min()} bytes apart (--index-interval-bytes)"
                )
        return "does not match the log"

    def _snapshot(self, rebuild: Rebuild, offset: int) -> Iterator[Action]:
        """Write the producers at an offset; a broker has no snapshot of the log start, and none before it.

        Releases before 0.11, whose format had no producers, have no snapshots.
        """
        if not rebuild.has_producer_ids and not self._folder.producer_snapshots:
            return
        path = self._path / f"{offset:020d}.snapshot"
        there = self._read(path)
        if there is not None and self._lacks_records and offset != rebuild.begins_at:
            try:
                rebuild.producers_are(read_producer_snapshot(path))
            except (OSError, CorruptRecordError) as error:
                yield write(path, there, producer_snapshot_bytes(rebuild.producers()), str(error))
            else:
                yield keep(path, len(there), "has producers whose batches the log no longer has completely")
        elif offset > self._log_start and (there is None or offset != rebuild.begins_at):
            yield write(path, there, producer_snapshot_bytes(rebuild.producers()))
        elif there is not None and offset > self._log_start:
            yield keep(path, len(there), "the source of the producers")

    @property
    def _lacks_records(self) -> bool:
        """Whether files with more information than the log are kept; a broker would rewrite them after a crash."""
        return self._options.rebuild and self._rebuild is not None and not self._rebuild.is_complete

    def _beside(self, segment: Segment, kind: str) -> Path:
        return self._path / f"{segment.base_offset:020d}.{kind}"

    def _read(self, path: Path) -> bytes | None:
        return disk().read_bytes(path) if path.name in self._folder.entries else None

    def _remove(self, path: Path, reason: str) -> Action:
        return remove(path, self._folder.entries[path.name].size or 0, reason)


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
    """Whether a file is preallocated; closing the segment writes the last entry of a time index."""
    size = ENTRY_TYPES[kind].itemsize
    used = there[: -(-len(there.rstrip(b"\0")) // size) * size]
    last = data[:-size] if kind == "timeindex" else data
    return kind in PREALLOCATED and len(there) > len(data) and used in (data, last)
