"""The start and the end of a partition's log, and its offsets for times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kraftlog import schema
from kraftlog.codec.headers import NO_TIMESTAMP, last_offsets
from kraftlog.codec.options import EARLIEST, LATEST, NO_BOUND, READ_COMMITTED, READ_UNCOMMITTED, ReadOptions
from kraftlog.disk.waiting import slow_property
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import end_offset
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, log_start_offset
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.read.segment_reader import segment_headers
from kraftlog.read.transaction_map import OpenTransaction, TransactionMap
from kraftlog.tables.found_offset import Found, Time
from kraftlog.transactions.producer import TransactionFold

_COLUMNS = ["offset", "timestamp_ms"]


class PartitionEnds:
    """Start and end of the log of a partition, computed on request.

    Parameters
    ----------
    segments : list of Segment
        Live segments of one partition, in order.
    faults : list of Fault
        Receives what cannot be read, or is damaged where the end is looked for.

    Attributes
    ----------
    log_start_offset : int
        The first offset that consumers can read.
    faults : list of Fault
        Those of this partition, up to now.
    """

    def __init__(self, segments: list[Segment], faults: list[Fault]) -> None:
        self.segments = segments
        self.log_start_offset = log_start_offset(segments, ReadOptions())
        self._faults = faults
        self.faults: list[Fault] = []

    @slow_property
    def log_end_offset(self) -> int | None:
        """The offset after the last intact batch; None if the last segment cannot be read."""
        last, faults = self.segments[-1], list[Fault]()
        found = end_offset(last, faults, check_crc=True)
        self._note(faults)
        if any(fault.error == "unreadable_file" for fault in faults):
            return None
        return max(found, self.log_start_offset)

    @slow_property
    def last_stable_offset(self) -> int | None:
        """The last stable offset: the first offset of the earliest open transaction, or the end.

        At a cut it is the end, since open transactions count as aborted. None if a segment that decides it cannot be
        read.
        """
        found = TransactionMap(self.segments)
        opened = found.open_at_end()
        self._note(found.faults)
        if any(fault.error == "unreadable_file" for fault in found.faults):
            return None
        self._note(self._left_out(found, opened))
        is_held_back = opened and not self.segments[-1].is_cut
        stable = opened[0].first_offset if is_held_back else self.log_end_offset
        return None if stable is None else max(stable, self.log_start_offset)

    def _left_out(self, found: TransactionMap, opened: list[OpenTransaction]) -> list[Fault]:
        """Return the damaged batches that the map silently ignores, of the segments whose headers decide.

        The crc of markers is always verified. The data of a transaction matters if headers contradict the map: if the
        map ignored the first batch of a transaction.
        """
        faults: list[Fault] = []
        fold = TransactionFold()
        walked = [n for n in range(len(self.segments)) if found.is_known(n) and found.found(n).has_positions]
        for number in walked:
            for headers in segment_headers(self.segments[number], faults, check_control=True):
                fold.add(headers)
        believed = set(zip(fold.open["producer_id"].tolist(), fold.open["first_offset"].tolist(), strict=True))
        if believed - {(one.producer_id, one.first_offset) for one in opened}:
            faults = []
            for number in walked:
                for _ in segment_headers(self.segments[number], faults, check_crc=True):
                    pass
        return faults

    def _note(self, faults: list[Fault]) -> None:
        self.faults += [fault for fault in faults if fault not in self.faults]
        self._faults += [fault for fault in faults if fault not in self._faults]

    def at(self, time: Time, read: Pass) -> Found:
        """Return the offset for a time, like a broker for a consumer with the isolation level of the options.

        Parameters
        ----------
        time : str or int
            A timestamp selects the first record, in log order, with this or a later timestamp, including control
            records.
        read : Pass
        """
        committed = read.options.isolation_level == READ_COMMITTED
        end = self.last_stable_offset if committed else self.log_end_offset
        if time == EARLIEST:
            return Found(self.log_start_offset)
        if time == LATEST or end is None:
            return Found(end)
        if isinstance(time, str):
            found = self._largest_timestamp(read)
        else:
            found = self._first(read.with_options(ReadOptions(start_timestamp=time, strict=read.options.strict)))
        return found if found.offset is None or found.offset < end else Found()

    def _largest_timestamp(self, read: Pass) -> Found:
        """Return the first record with the largest timestamp."""
        largest, batch = NO_TIMESTAMP, None
        for segment in self.segments:
            for headers in segment_headers(segment, self._faults, strict=read.options.strict):
                at = int(np.argmax(headers["max_timestamp"]))
                if headers["max_timestamp"][at] > largest:
                    largest, batch = int(headers["max_timestamp"][at]), headers[at : at + 1]
            read.advance(segment.size)
        if batch is None:
            return Found()
        first, last = int(batch["base_offset"][0]), int(last_offsets(batch)[0])
        within = ReadOptions(start_timestamp=largest, strict=read.options.strict, include_deleted=True)
        if batch["magic"][0] >= 2:  # the offset of an older, compressed one is that of its last message
            within = replace(within, start_offset=first, end_offset=last + 1)
        return self._first(read.with_options(within).faults_only())

    def _first(self, read: Pass) -> Found:
        """Return the first record within bounds."""
        options = read.options
        least = options.start_timestamp
        if least == NO_BOUND:  # no bound of readers lies behind it, so that they would leave such a record out
            options = replace(options, start_timestamp=-NO_BOUND)
        options = replace(options, include_control=True, isolation_level=READ_UNCOMMITTED)
        ranges, wanted = plan(self.segments, options, None), schema.RECORDS.select(_COLUMNS)
        # one range after the other: the first row is all that is needed
        one = Pass(options, self._faults, on_progress=read.on_progress)
        for batch in read_ranges(ranges, wanted, one):
            stamps = batch.column("timestamp_ms")
            for row in range(batch.num_rows):
                if stamps[row].is_valid and stamps[row].as_py() >= least:
                    return Found(batch.column("offset")[row].as_py(), stamps[row].as_py())
        return Found()


def live_logs(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Return the live segments of each partition, and then each file outside a partition's folder."""
    groups = by_partition(segment for segment in segments if not segment.state)
    return sorted(groups, key=lambda group: group[0].topic is None)
