"""``Read``: one pass over the files of a log that produces the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import is_metadata, topics_of
from kraftlog.tables.deleted_records import notes_of_deleted
from kraftlog.tables.table import Table
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.topics import CLUSTER_METADATA

if TYPE_CHECKING:
    from kraftlog.metadata.diff.change_filter import ChangeFilter
    from kraftlog.tables.filter_bounds import FilterBounds


@dataclass(frozen=True, kw_only=True)
class Read(Pass):
    """A pass that produces the rows of a table, from some files.

    Attributes
    ----------
    table : Table
    files : Discovery
    schema : pyarrow.Schema
        Columns of the table.
    where : ChangeFilter or None
        Which rows of ``metadata_changes`` are wanted.
    bounds : FilterBounds or None
        Rows that these rule out may be left out.
    healed : callable or None
        For tables of data: returns files with missing offsets from other replicas; notes receive these offsets.
    """

    table: Table
    files: Discovery
    schema: pa.Schema
    where: ChangeFilter | None = None
    bounds: FilterBounds | None = None
    healed: Callable[[Discovery, ReadOptions, list[str]], Discovery] | None = None

    @classmethod
    def of_segments(
        cls,
        table: Table,
        segments: Iterable[Segment],
        columns: Sequence[str] | None = None,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        faults: list[Fault] | None = None,
    ) -> Self:
        """Return a pass over some segments."""
        found = [] if faults is None else faults
        return cls(
            table=table,
            files=Discovery(segments=list(segments)),
            schema=table.schema.select(columns),
            options=options,
            faults=found,
        )

    @property
    def segments(self) -> list[Segment]:
        """The live segments."""
        return self.files.segments

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Return the rows; folders that could not be listed are faults of every table."""
        table, options = self.table, self.options
        files = self.files if self.healed is None else self.healed(self.files, options, self.notes)
        if table.is_of_files:
            options = replace(options, include_deleted=True)
        note_unreadable(files, self.faults, strict=options.strict)
        if table.has_records:
            self.notes.extend(notes_of_deleted(files.segments, options))
        if options.salvage and not options.searches:
            self.notes.append("nothing is salvaged: what is found behind damage is never part of read_committed")
        missing = missing_topic(table, files.segments)
        if missing is not None:
            self.notes.append(f"no {missing} among {', '.join(topics_of(files.segments))}")
        return table.rows_of(replace(self, options=options, files=files))


def missing_topic(table: Table, segments: Iterable[Segment]) -> str | None:
    """Return the topic that a table requires, if it is not among the segments."""
    if table.is_of_metadata:
        return None if any(map(is_metadata, segments)) else CLUSTER_METADATA
    return None if table.topic is None or any(one.topic == table.topic for one in segments) else table.topic
