"""Transforms rows of a table before output: a chain of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kraftlog.tables.read import Read

if TYPE_CHECKING:
    from kraftlog.tables.redaction import Redaction

Source = Callable[[Read], Iterator[pa.RecordBatch]]


class Stage(Protocol):
    """One step: it requests rows from its source, and returns those that a ``Read`` requests."""

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows of ``read.schema``; the stage may request other columns, files and bounds from the source."""
        ...


class Redacted:
    """Redacts records.

    Parameters
    ----------
    redaction : Redaction
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the redacted rows."""
        return self._redaction.stream(source(read), read.notes)


def through(stages: Iterable[Stage], source: Source) -> Source:
    """Return a source followed by stages; the first one is next to the files."""

    def behind(source: Source, stage: Stage) -> Source:
        return partial(stage.rows, source=source)

    return reduce(behind, stages, source)
