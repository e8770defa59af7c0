"""Records that ``read_committed`` leaves out, for those who hand records on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraftlog.codec.options import NO_BOUND, READ_UNCOMMITTED, ReadOptions
from kraftlog.notes import Notes
from kraftlog.tables.log_files import LogFiles


@dataclass
class LeftOut:
    """Numbers of records that ``read_committed`` left out.

    Attributes
    ----------
    aborted : int
        Records of aborted transactions.
    unstable : int
        Records from the first open transaction of a partition on; a consumer waits for its end.
    is_within_times : bool
        Whether only some of the aborted records may be within the times that were asked for: they are not decoded.
    """

    aborted: int = 0
    unstable: int = 0
    is_within_times: bool = False

    def add(self, log: LogFiles, notes: Notes, options: ReadOptions) -> None:
        """Add what a pass over a log left out; what follows the offsets at which it stopped is read for it."""
        self.aborted += notes.aborted_records
        self.is_within_times |= (options.start_timestamp, options.end_timestamp) != (-NO_BOUND, NO_BOUND)
        for topic, partition, offset in notes.unstable_offsets:
            files = log.lines.found.only(lambda one, number, of=(topic, partition): (one, number) == of)  # type: ignore[misc]
            rest = replace(
                options,
                isolation_level=READ_UNCOMMITTED,
                start_offset=max(offset, options.start_offset),
                include_control=False,
                from_headers=True,
                strict=False,
            )
            records = log.of_files(files).scan("records", ["partition"], rest)
            self.unstable += sum(rows.num_rows for rows in records.batches())

    def __str__(self) -> str:
        """Return the sentence that users see."""
        parts = []
        if self.aborted:
            most = "at most " if self.is_within_times else ""
            parts.append(f"{most}{self.aborted:,} record{'s' if self.aborted > 1 else ''} of aborted transactions")
        if self.unstable:
            parts.append(f"{self.unstable:,} record{'s' if self.unstable > 1 else ''} from open transactions on")
        return f"read_committed: left out {' and '.join(parts) or 'no records'}"
