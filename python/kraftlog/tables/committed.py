"""Rows of records that are proven to be committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import by_partition
from kraftlog.tables.high_watermarks import HighWatermarks
from kraftlog.tables.lines import Lines
from kraftlog.tables.read import Read, missing_topic
from kraftlog.tables.stage import Source


class CommittedEnds:
    """Where each partition ends for readers of what is committed.

    Parameters
    ----------
    lines : Lines
        Of all files that may prove something.
    faults : list of Fault
        Receives files that cannot be read.
    notes : list of str
        Receives where partitions end before their logs, and why.
    """

    def __init__(self, lines: Lines, faults: list[Fault], notes: list[str]) -> None:
        self._lines, self._notes = lines, notes
        self._watermarks = HighWatermarks(lines, faults)

    def of(self, group: list[Segment]) -> int | None:
        """Return where a partition's rows end; None when that is its end."""
        line = self._lines.partition_of(group[0]).line
        found = self._watermarks.of(group[0], line.end.end_offset)
        if found.at_least >= line.end.end_offset:
            return None
        note = (
            f"{group[0].topic}-{group[0].partition}: read up to offset {found.at_least} of {line.end.end_offset}; "
            f"what follows may not be committed ({found.why})"
        )
        if note not in self._notes:
            self._notes.append(note)
        return found.at_least

    def within(self, group: list[Segment], options: ReadOptions) -> ReadOptions:
        """Return the options of one partition, whose rows end there."""
        end = self.of(group)
        return replace(
            options,
            end_offset=options.end_offset if end is None else min(options.end_offset, end),
            committed_only=False,
        )


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
        ends = CommittedEnds(self._lines, read.faults, read.notes)
        runs: list[tuple[int | None, list[Segment]]] = []
        for group in by_partition(read.segments):
            end = ends.of(group)
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
