"""What is done with the rows of a table on their way from the files to a user: a chain of stages."""

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
    """One step: it asks the source for what it needs, and returns what a ``Read`` asks for."""

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows of ``read.schema``; what the source is asked for may have other columns, files and bounds."""
        ...


class Redacted:
    """Takes out what rules say.

    Parameters
    ----------
    redaction : Redaction
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows without it."""
        return self._redaction.stream(source(read), read.notes)


def through(stages: Iterable[Stage], source: Source) -> Source:
    """Return a source behind stages, of which the first is next to the files."""

    def behind(source: Source, stage: Stage) -> Source:
        return partial(stage.rows, source=source)

    return reduce(behind, stages, source)
