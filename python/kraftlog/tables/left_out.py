"""Records that ``read_committed`` leaves out, for those who hand records on."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from kraftlog.codec.options import ReadOptions
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
    """

    aborted: int = 0
    unstable: int = 0

    def add(self, log: LogFiles, notes: Notes, options: ReadOptions) -> None:
        """Add what a pass over a log left out; headers after the offsets at which it stopped are read for it."""
        self.aborted += notes.aborted_records
        for topic, partition, offset in notes.unstable_offsets:
            files = log.lines.found.only(lambda one, number, of=(topic, partition): (one, number) == of)  # type: ignore[misc]
            bounds = ReadOptions(start_offset=offset, end_offset=options.end_offset, check_crc=False)
            columns = ["base_offset", "records_count", "is_control"]
            batches = log.of_files(files).scan("batches", columns, bounds).to_table()
            data = batches.filter(pc.invert(batches["is_control"]))
            before_end = pc.subtract(options.end_offset, data["base_offset"])
            self.unstable += pc.sum(pc.min_element_wise(data["records_count"], before_end), min_count=0).as_py()

    def __str__(self) -> str:
        """Return the sentence that users see."""
        parts = []
        if self.aborted:
            parts.append(f"{self.aborted:,} record{'s' if self.aborted > 1 else ''} of aborted transactions")
        if self.unstable:
            parts.append(f"{self.unstable:,} record{'s' if self.unstable > 1 else ''} from open transactions on")
        return f"read_committed: left out {' and '.join(parts) or 'no records'}"
