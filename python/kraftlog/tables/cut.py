"""The cut of a log at a time, and the files of the log as they were at a cut."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, is_metadata, log_start_offset
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.tables.transactions import (
    Commits,
    TransactionsOfLog,
    coordinator_transactions,
    input_offsets,
    transactional_commits,
)
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import Cut, CutTime, Offsets, Side, WholeTransaction, greatest_cut, least_cut
from kraftlog.transactions.transaction import PARTITION, CoordinatorTransaction, Transaction


class _Frontier:
    """Where the log of a partition reaches a time.

    Attributes
    ----------
    first_later : int or None
        Base offset of the first batch that is later than the time: of markers, and of records outside of transactions.
    end_not_later : int
        End offset of the last such batch that is not later.
    end_offset : int
        Of the log.
    """

    def __init__(self, timestamp: int, log_start_offset: int, *, keeps_ends: bool) -> None:
        self.first_later: int | None = None
        self.end_not_later = self.end_offset = log_start_offset
        self._timestamp = timestamp
        self._ends: list[np.ndarray] | None = [] if keeps_ends else None

    def add(self, _: Segment, headers: Headers) -> None:
        """Take the next headers."""
        headers = headers[headers["crc_ok"] != 0]
        if not len(headers):
            return
        batch_ends = last_offsets(headers) + 1
        attributes = headers["attributes"]
        counts = (attributes & TRANSACTIONAL_BIT == 0) | (attributes & CONTROL_BIT != 0)
        is_later = headers["max_timestamp"] > self._timestamp
        later, earlier = np.flatnonzero(counts & is_later), np.flatnonzero(counts & ~is_later)
        if self.first_later is None and len(later):
            self.first_later = int(headers["base_offset"][later[0]])
        if len(earlier):
            self.end_not_later = int(batch_ends[earlier[-1]])
        self.end_offset = int(batch_ends[-1])
        if self._ends is not None:
            self._ends.append(np.asarray(batch_ends))

    def batch_end(self, offset: int) -> int:
        """Return the end of the batch that holds the record before an offset."""
        batch_ends = np.concatenate(self._ends or [np.empty(0, np.int64)])
        at = int(np.searchsorted(batch_ends, offset))
        return offset if at == len(batch_ends) else int(batch_ends[at])


def find_cut(
    found: Discovery,
    lines: Iterable[Segment],
    time: CutTime,
    read: Pass,
) -> Cut:
    """Return the cut at a time, of partitions that are no metadata log.

    Parameters
    ----------
    found : Discovery
        All replicas: the coordinators' topics are looked for in their directories.
    lines : iterable of Segment
        Of one replica of each partition.
    time : CutTime
    read : Pass
        Receives what cannot be read, and as notes what cannot be known of transactions.

    Raises
    ------
    ValueError
        When there is no cut after the time.
    """
    segments = [one for one in lines if one.topic_partition is not None and not one.state and not is_metadata(one)]
    known = coordinator_transactions(found, read.faults_only())
    commits = transactional_commits(segments, read.faults_only())
    sources = {TopicPartition(topic, number) for rows in commits.values() for _, _, topic, number, _ in rows}
    logs, frontiers = TransactionsOfLog(), dict[TopicPartition, _Frontier]()
    for group in by_partition(segments):
        of = group[0].topic_partition
        assert of is not None
        keeps_ends = time.side is Side.AT_OR_AFTER and of in sources
        start = log_start_offset(group, ReadOptions())
        frontier = frontiers[of] = _Frontier(time.timestamp, start, keeps_ends=keeps_ends)
        logs.read(group, read, also=frontier.add)
    each = _transactions(logs, known, read.notes)
    whole = [WholeTransaction.of(one, _committed(one, commits)) for one in each]
    log_ends = {of: one.end_offset for of, one in frontiers.items()}
    if time.side is Side.END:
        return Cut(greatest_cut(log_ends, whole), log_ends)
    asked = {of: one.end_offset if one.first_later is None else one.first_later for of, one in frontiers.items()}
    if time.side is Side.AT_OR_BEFORE:
        return Cut(greatest_cut(asked, whole), asked)
    asked = {of: max(one.end_not_later, asked[of]) for of, one in frontiers.items()}
    return Cut(least_cut(asked, log_ends, whole, lambda of, offset: frontiers[of].batch_end(offset)), asked)


def end_cut(
    logs: TransactionsOfLog,
    log_ends: Offsets,
    known: Iterable[CoordinatorTransaction],
    commits: Commits,
    earlier: Offsets | None = None,
) -> Cut:
    """Return the greatest cut of logs whose headers were read already.

    Parameters
    ----------
    logs : TransactionsOfLog
        The headers of all batches; or of those after an earlier cut, and from the first offset on of transactions that
        are open there. Others end before it in all their partitions, so that no later cut tears them.
    log_ends : mapping of TopicPartition to int
        Where the log of each partition ends.
    known : iterable of CoordinatorTransaction
    commits : Commits
        The offsets that these transactions committed.
    earlier : mapping of TopicPartition to int, optional
        The earlier cut, which is the least that there is.
    """
    notes: list[str] = []
    each = _transactions(logs, known, notes)
    ends = greatest_cut(log_ends, [WholeTransaction.of(one, _committed(one, commits)) for one in each])
    ends = {of: max(end, min((earlier or {}).get(of, end), log_ends[of])) for of, end in ends.items()}
    return Cut(ends, log_ends, tuple(notes), _open_from(each, ends))


def _transactions(
    logs: TransactionsOfLog, known: Iterable[CoordinatorTransaction], notes: list[str]
) -> list[Transaction]:
    """Return the transactions of logs; it is noted if some partitions of them are unknown."""
    each = [one for some in logs.transactions(known) for one in some]
    alone = sum(one.identified_by == PARTITION and len(one.parts) > 0 for one in each)
    if alone and len({part.of for one in each for part in one.parts}) > 1:
        notes.append(
            f"{alone} transaction{'s are' if alone > 1 else ' is'} known by partition only, since "
            "__transaction_state does not reach so far back: the cut may tear them"
        )
    return each


def _open_from(transactions: Iterable[Transaction], ends: Offsets) -> dict[TopicPartition, int]:
    """Return the first offset of the transactions that are open at a cut, of partitions that have some."""
    found: dict[TopicPartition, int] = {}
    for part in (part for one in transactions for part in one.parts):
        end = ends.get(part.of, -1)
        if 0 <= part.first_offset < end and not (part.has_ended and part.marker_offset < end):
            found[part.of] = min(part.first_offset, found.get(part.of, end))
    return found


def _committed(one: Transaction, commits: Commits) -> list[tuple[TopicPartition, int]]:
    rows = input_offsets(one, commits)
    return [(TopicPartition(row["topic"], row["partition"]), row["offset"]) for row in rows]


def files_at(found: Discovery, cut: Cut, faults: Iterable[Fault] = ()) -> Discovery:
    """Return files as they were at a cut: what lies after it is not there.

    Partitions that are not of the cut stay as they are. Transactions that are open at the cut count as aborted.

    Parameters
    ----------
    found : Discovery
    cut : Cut
    faults : iterable of Fault
        Faults that were found when the cut was computed. Readers of the files find those before the cut again; the
        others are kept with the files, so that each table reports them. So are those of segments that are cut and
        cannot be read so far: they end where the readable part does.
    """
    segments: list[Segment] = []
    unread: list[Fault] = []
    for group in by_partition(found.segments):
        end = None if group[0].topic_partition is None else cut.ends.get(group[0].topic_partition)
        segments += group if end is None else _segments_at(group, end, unread)
    sizes = {(one.topic, one.partition, one.base_offset): one.size for one in segments}

    def is_read(fault: Fault) -> bool:
        size = sizes.get((fault.topic, fault.partition, fault.segment_base_offset))
        return size is not None and (fault.position or 0) < size

    after = [fault for fault in dict.fromkeys([*faults, *unread]) if not is_read(fault)]
    notes, every = [*found.notes, *cut.notes()], [*found.faults, *after]
    return replace(found, segments=segments, notes=notes, faults=every, source=None, ends_at_cut=cut.ends)


def _segments_at(group: list[Segment], end_offset: int, faults: list[Fault]) -> list[Segment]:
    kept = [one for one in group if one.base_offset is None or one.base_offset < end_offset] or group[:1]
    last = kept[-1]
    size = _position_of(last, end_offset, faults)
    # its .txnindex may have entries of what lies after the cut
    beside = tuple(kind for kind in last.kinds_beside if kind != "txnindex")
    settled = min(last.settled_offset, last.base_offset or 0)
    ended = replace(last, size=size, kinds_beside=beside, end_offset=None, settled_offset=settled, is_cut=True)
    return [*kept[:-1], ended]


def _position_of(segment: Segment, offset: int, faults: list[Fault]) -> int:
    """Return the byte at which the first batch from an offset on begins, or the readable part of the file ends."""
    end, unread = 0, list[Fault]()
    for check_crc in (False, True):  # without its crc, a batch counts only if the next header can be read
        unread.clear()
        start = 0
        with segment_file(segment, unread, strict=False) as file:
            with suppress(OSError):  # the walk says so
                start, _ = seek(segment, file, ReadOptions(start_offset=offset, include_deleted=True))
            scan = HeaderScan(file, start, check_crc=check_crc)
            end = start
            for headers in scanned(segment, scan, []):  # who reads the segment reports its damage
                after = np.flatnonzero(headers["base_offset"] >= offset)
                if len(after):
                    return int(headers["position"][after[0]])
                end = int(ends(headers)[-1])
        if not unread:
            break
    faults += unread
    return end
