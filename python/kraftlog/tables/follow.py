"""Following logs while they are written: new rows, across segment rolls, retention and truncation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import AnyPath, LogPath
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_ends import GrowingLogEnd
from kraftlog.read.partitions import by_partition
from kraftlog.tables.all_tables import TABLES, table_named
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.options import MessageOptions
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.search import Search
from kraftlog.tables.user_options import given_numbers
from kraftlog.topics import names
from kraftlog.values.typed_options import TypedOptions

REMEMBERED_BATCHES = 20_000
SECONDS_BETWEEN_LOOKS = 1.0
LEAST_STRETCH = 1000  # offsets that are read at a time, from the end on, for the last rows


@dataclass
class _Partition:
    """The position in one partition."""

    end: GrowingLogEnd
    next_offset: int | None = None  # None: nothing was looked at yet


class Follower:
    """The rows of a table, and rows that are added later.

    For records, messages and message types they are new records, in order in each partition. When a log is truncated,
    as a follower does after a change of leader, a note gives the new end, and the records written after it are
    returned. A batch that is still being written waits. With ``read_committed``, records wait for the end of their
    transaction. For groups and transactional_ids they are the current rows of changed entries.

    Parameters
    ----------
    open_log : callable
        Lists the current files.
    table : str
    columns : sequence of str, optional
    options : ReadOptions
    search : Search, optional
        Only matching records.
    typed : TypedOptions, optional
        Formats of keys and values. The initially inferred types and the reader's schema do not change; schemas that are
        added later are used.
    redaction : Redaction, optional
        Redaction of the records.
    last : int, optional
        Begin with the last rows at the first look: this number per partition, or of a folded table.
    from_end : int, optional
        Begin this number of offsets before the end of each partition.
    workers : int

    Attributes
    ----------
    schema : pyarrow.Schema
    faults : list of Fault
        Faults, each reported once.
    notes : list of str
        Truncations, deletions, and partitions that appeared or disappeared.

    Raises
    ------
    ValueError
        When the table cannot be followed, or has no such column.
    """

    def __init__(
        self,
        open_log: Callable[[], Log],
        table: str = "records",
        columns: Sequence[str] | None = None,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        *,
        search: Search | None = None,
        typed: TypedOptions | None = None,
        redaction: Redaction | None = None,
        last: int | None = None,
        from_end: int | None = None,
        workers: int = 1,
    ) -> None:
        if last is not None and last < 0:
            raise ValueError(f"last {last} is negative")
        self._log = open_log()
        self._open_log = open_log
        self._definition = table_named(table, self._log.catalog)
        if not self._definition.can_be_followed:
            can_be = ", ".join(one.name for one in TABLES.values() if one.can_be_followed)
            raise ValueError(f"the table {table} cannot be followed; {can_be} and types of messages can")
        if options.committed_only:
            raise ValueError("committed_only has no meaning for a log that is followed: its files prove what they did")
        if redaction is not None and table != "records":
            raise ValueError(f"redaction is of the table records, not of {table}")
        self._typed_options, self._redaction = typed, redaction
        self._typed = None if typed is None else typed.resolved(self._log.lines.found, strict=options.strict)
        self.schema = (
            self._definition.schema.select(columns)
            if self._typed is None
            else self._log.scan(table, columns, options, typed=self._typed).schema
        )
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self._table = table
        self._options = options
        self._search = search
        self._last = last
        self._from_end = from_end
        self._workers = workers
        self._looks = 0
        self._partitions: dict[str, _Partition] = {}
        self._files: list[tuple[LogPath, int]] = []
        self._folded: dict[tuple[object, ...], dict[str, object]] = {}

    def rows(self, wait: Callable[[], bool] | None = None) -> Iterator[pa.RecordBatch]:
        """Return existing rows, and then new ones, without an end.

        Parameters
        ----------
        wait : callable, optional
            Called when all rows were returned; returns whether to look again. By default a second passes.
        """
        while True:
            yield from self.look()
            if not (wait or _second)():
                return

    def look(self) -> Iterator[pa.RecordBatch]:
        """Return the rows that are new since the last look."""
        if self._looks:
            self._log = self._listed()
            if self._typed_options is not None and self._typed is not None:
                self._typed = self._typed_options.renewed(self._typed, self._log.lines.found)
        self._looks += 1
        return self._look_at_folded() if self._definition.key else self._look_at_partitions()

    def _listed(self) -> Log:
        try:
            return self._open_log()
        except (FileNotFoundError, ValueError) as error:  # the last topic was deleted
            self._note(str(error))
            return Log(Discovery(), self._log.catalog)

    def _note(self, text: str) -> None:
        self.notes.append(text)

    def _note_new(self, texts: Iterable[str]) -> None:
        self.notes += [text for text in texts if text not in self.notes]

    def _note_faults(self, found: Iterable[Fault]) -> None:
        self.faults += [fault for fault in found if fault not in self.faults]

    def _look_at_partitions(self) -> Iterator[pa.RecordBatch]:
        lines = self._log.lines
        found = lines.found if self._search is None else self._search.of(lines.found)
        self._note_new(lines.notes(heals=self._options.heal))
        self._note_faults(self._log.unreadable())
        groups = {_key(group[0]): group for group in by_partition(found.segments) if _is_of_log(group[0])}
        if self._looks == 1 and (others := [one for one in found.segments if not _is_of_log(one)]):
            raise ValueError(f"{others[0].name}: only the folders of partitions can be followed, not other files")
        for key in self._partitions.keys() - groups.keys():
            self._note(f"{key} is gone")
            del self._partitions[key]
        for key, group in groups.items():
            if key not in self._partitions:
                self._partitions[key] = _Partition(GrowingLogEnd(self._options, REMEMBERED_BATCHES))
                if self._looks > 1:
                    self._note(f"{key} is new")
            try:
                yield from self._new_rows(group, self._partitions[key])
            except FileNotFoundError:
                continue  # a segment went away meanwhile; the next look sees what is there

    def _new_rows(self, group: list[Segment], partition: _Partition) -> Iterator[pa.RecordBatch]:
        bounds, name = partition.end.bounds(group), group[0].folder.name
        start = max(bounds.log_start_offset, self._options.start_offset)
        end = min(bounds.readable_offset, self._options.end_offset)
        if partition.next_offset is None:
            if self._looks == 1 and self._from_end is not None:
                start = max(start, bounds.log_end_offset - self._from_end)
            if self._looks == 1 and self._last is not None:
                partition.next_offset = max(start, end)
                yield from last_batches(lambda low, high: self._read(group, low, high), start, end, self._last)
                return
            partition.next_offset = start
        kept = partition.end.kept_offset
        if kept is not None and kept < partition.next_offset:
            self._note(f"{name} was cut back to offset {kept}: rows of later offsets are shown as they are now")
            partition.next_offset = kept
        if partition.next_offset < bounds.log_start_offset:
            deleted = f"offsets {partition.next_offset} to {bounds.log_start_offset - 1} were deleted"
            self._note(f"{name} begins at offset {bounds.log_start_offset} now: {deleted} before they were shown")
        start, partition.next_offset = max(partition.next_offset, start), max(partition.next_offset, start, end)
        if start < end:
            yield from self._read(group, start, end)

    def _read(self, group: list[Segment], start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition at offsets [start, end)."""
        log = self._healed(group) if self._looks == 1 else Log(Discovery(segments=group), self._log.catalog)
        options = replace(self._options, start_offset=start, end_offset=end)
        names = self.schema.names
        how: dict[str, Any] = {"workers": self._workers, "search": self._search, "redaction": self._redaction}
        stream = log.scan(self._table, names, options, typed=self._typed, **how)
        try:
            yield from stream
        finally:
            self._note_faults(stream.faults)
            for note in stream.notes if self._redaction else ():
                self._note(note)

    def _healed(self, segments: list[Segment]) -> Log:
        """Return a log of segments of lines, with their missing offsets; later rows would be searched at each look."""
        notes: list[str] = []
        found = self._log.healed(Discovery(segments=segments), self._options, notes)
        self._note_new(notes)
        return Log(found, self._log.catalog)

    def _look_at_folded(self) -> Iterator[pa.RecordBatch]:
        topic, key = self._definition.topic, self._definition.key
        self._note_new(self._log.lines.notes(heals=self._options.heal))
        segments = [segment for segment in self._log.lines.found.segments if segment.topic == topic]
        files = [(segment.path, segment.size) for segment in segments]
        if self._looks > 1 and files == self._files:
            return
        self._files = files
        names = list(dict.fromkeys([*key, *self._definition.schema.shown, *self.schema.names]))
        stream = self._healed(segments).scan(self._table, names, self._options)
        table = stream.to_table()
        self._note_faults([*self._log.unreadable(), *stream.faults])
        before, self._folded = self._folded, {tuple(row[name] for name in key): row for row in table.to_pylist()}
        changed = [number for number, (one, row) in enumerate(self._folded.items()) if before.get(one) != row]
        if self._looks == 1 and self._last is not None:
            changed = changed[max(len(changed) - self._last, 0) :]
        for gone in sorted(before.keys() - self._folded.keys(), key=str):
            self._note(f"{self._table}: {', '.join(map(str, gone))} is gone")
        if changed:
            yield from table.take(changed).select(self.schema.names).combine_chunks().to_batches()


def last_batches(
    read: Callable[[int, int], Iterable[pa.RecordBatch]], start: int, end: int, count: int
) -> list[pa.RecordBatch]:
    """Return the last rows of a partition, which is read backwards in ranges of increasing size.

    Parameters
    ----------
    read : callable
        Returns the rows at offsets [low, high), in order.
    start, end : int
        Offsets of the partition.
    count : int
        Maximum number of rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> def even(low, high):
    ...     yield pa.record_batch({"offset": [at for at in range(low, high) if at % 2 == 0]})
    >>> [batch["offset"].to_pylist() for batch in last_batches(even, 0, 5000, 3)]
    [[4994, 4996, 4998]]
    """
    held: deque[pa.RecordBatch] = deque()
    rows, stretch = 0, max(LEAST_STRETCH, 2 * count)
    while end > start and rows < count:
        low = max(start, end - stretch)
        found = [batch for batch in read(low, end) if batch.num_rows]
        held.extendleft(reversed(found))
        rows += sum(batch.num_rows for batch in found)
        end, stretch = low, 4 * stretch
        while held and rows - held[0].num_rows >= count:
            rows -= held.popleft().num_rows
    if held and rows > count:
        held[0] = held[0].slice(rows - count)
    return list(held)


def _is_of_log(segment: Segment) -> bool:
    return segment.topic is not None and segment.base_offset is not None and not segment.state


def _key(segment: Segment) -> str:
    """Return the key of a partition, which does not depend on the chosen replica."""
    return str(segment.topic_partition or segment.folder)


def _second() -> bool:
    time.sleep(SECONDS_BETWEEN_LOOKS)
    return True


def follow(
    paths: AnyPath | Iterable[AnyPath],
    table: str = "records",
    columns: Sequence[str] | None = None,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    search: Search | None = None,
    last: int | None = None,
    redact: Iterable[str] = (),
    redact_key: bytes | None = None,
    strict: bool = False,
    **options: Unpack[MessageOptions],
) -> Follower:
    """Follow logs while they are written: existing rows, and then new ones.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``open``; folders of partitions, or log directories, whose new partitions are followed, too.
    table : str
        ``records``, ``messages``, a message type such as ``OffsetCommit``; or ``groups`` and ``transactional_ids``,
        with the rows that have changed.
    columns : sequence of str, optional
    topics : str or iterable of str, optional
    partitions : iterable of int, optional
    search : kraftlog.tables.search.Search, optional
        Only matching records.
    last : int, optional
        Begin with the last rows of each partition; 0: only new rows.
    redact, redact_key
        As in ``Log.records``; ``search`` applies to the original data.
    strict : bool
        Raise at the first fault.
    **options
        As in ``Log.records`` and ``Log.messages``, if the table has them.

    Raises
    ------
    TypeError
        For an option that the table does not have.

    Returns
    -------
    Follower
        ``look()`` returns the new rows; ``rows()`` waits for more and never ends.

    Examples
    --------
    >>> import kraftlog
    >>> path, columns = "tests/golden/transactions/log", ["partition", "offset"]
    >>> follower = kraftlog.follow(path, columns=columns, topics=["orders"], last=1)
    >>> [row for batch in follower.look() for row in batch.to_pylist()]
    [{'partition': 0, 'offset': 129}, {'partition': 1, 'offset': 68}, {'partition': 2, 'offset': 34}]
    >>> list(follower.look())
    []
    """
    every = [paths] if isinstance(paths, str) or not isinstance(paths, Iterable) else list(paths)
    wanted = names(topics), given_numbers("partitions", partitions)

    def listed() -> Log:
        return open_log(every, topics=wanted[0], partitions=wanted[1])

    read = table_named(table).read_options({**options, "strict": strict})
    redaction = Redaction.of(redact, redact_key)
    return Follower(listed, table, columns, read, search=search, redaction=redaction, last=last)
