"""Rows of records that are proven to be committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import by_partition
from kraftlog.tables.high_watermarks import HighWatermarks
from kraftlog.tables.lines import Lines
from kraftlog.tables.read import Read, missing_topic
from kraftlog.tables.stage import Source


class CommittedOnly:
    """Ends each partition at the high watermark that its files prove; a note gives this offset and its proof.

    Parameters
    ----------
    lines : Lines
        Lines of all files that may prove high watermarks.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows before it."""
        watermarks = HighWatermarks(self._lines, read.faults)
        runs: list[tuple[int | None, list[Segment]]] = []
        for group in by_partition(read.segments):
            end = self._end_of(group, watermarks, read.notes)
            if end is None and runs and runs[-1][0] is None:
                runs[-1][1].extend(group)  # all of it is read
            else:
                runs.append((end, group))
        having = [(end, group) for end, group in runs if missing_topic(read.table, group) is None]
        files = read.files
        for end, group in having or [(None, read.segments)]:
            options = read.options
            if end is not None:
                options = replace(options, end_offset=min(options.end_offset, end))
            yield from source(replace(read, files=replace(files, segments=group), options=options))
            files = Discovery()  # what cannot be read is reported once

    def _end_of(self, group: list[Segment], watermarks: HighWatermarks, notes: list[str]) -> int | None:
        """Return the end offset of a partition's rows; None without a bound."""
        line = self._lines.partition_of(group[0]).line
        found = watermarks.of(group[0], line.end.end_offset)
        if found.at_least >= line.end.end_offset:
            return None
        note = (
            f"{group[0].topic}-{group[0].partition}: read up to offset {found.at_least} of {line.end.end_offset}; "
            f"what follows may not be committed ({found.why})"
        )
        if note not in notes:
            notes.append(note)
        return found.at_least
