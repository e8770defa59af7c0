"""``Pass``: what a pass over log files carries from the caller down to the decoder, and what it returns beside rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.notes import Notes

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Pass:
    """Options of a pass, with its faults and notes.

    Attributes
    ----------
    options : ReadOptions
    faults : list of Fault
        Receives faults.
    notes : Notes
        Receives information for users that is not a fault, and what ``read_committed`` left out.
    catalog : Catalog
        Message definitions.
    workers : int
        Number of decoding threads; rows and their order do not depend on it.
    range_bytes : int or None
        Bytes of log per task of a thread; by default a segment.
    on_progress : callable or None
        Called with the number of log bytes read since the last call.
    """

    options: ReadOptions = ReadOptions()  # noqa: RUF009  (frozen)
    faults: list[Fault] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    catalog: Catalog = BUILT_IN
    workers: int = 1
    range_bytes: int | None = None
    on_progress: Progress | None = None

    def advance(self, count: int) -> None:
        """Report a number of log bytes as read."""
        if self.on_progress is not None:
            self.on_progress(count)

    def add(self, *faults: Fault) -> None:
        """Add faults; raise the first one if the pass is strict."""
        if faults and self.options.strict:
            raise error_from_fault(faults[0])
        self.faults.extend(faults)

    def with_options(self, options: ReadOptions) -> Self:
        """Return the same pass with other options: its faults and notes go where those of this pass go."""
        return replace(self, options=options)

    def of_whole_log(self) -> Self:
        """Return the same pass without bounds: a part of a log would show an older state."""
        return self.with_options(ReadOptions(strict=self.options.strict, heal=self.options.heal))

    def faults_only(self) -> Self:
        """Return the same pass without progress and notes, for files that are not those which the caller shows."""
        return replace(self, on_progress=None, notes=Notes())

    def apart(self) -> Self:
        """Return the same pass with faults and notes of its own, for a part that is read ahead or may be dropped."""
        return replace(self, faults=[], notes=Notes())
