"""Where the readers of a partition are, and what they have found intact."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from kraftlog.disk.entries import FileState

_MOST_PLACES = 1024  # of next offsets, and of checked batches, that are remembered for each partition


class Place(NamedTuple):
    """A batch: the number of its segment, its byte there, and the inode of the file, in which alone it is there."""

    number: int
    position: int
    inode: int | None = None


class Asked(NamedTuple):
    """What is read: as the parameters of ``SegmentBatches.read``."""

    offset: int
    max_bytes: int
    end_offset: int


class Checked(NamedTuple):
    """Batches that were intact: the number of their segment, their bytes [start, end), and the state of the file."""

    number: int
    start: int
    end: int
    last_offset: int
    state: FileState


class Places:
    """Where the next fetches begin, and what the last ones have found intact; threads may share it."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._checked: OrderedDict[Asked, Checked] = OrderedDict()
        self._lock = Lock()

    def checked(self, asked: Asked) -> Checked | None:
        """Return the batches that were found when the same was asked."""
        with self._lock:
            return self._checked.get(asked)

    def note_checked(self, asked: Asked, checked: Checked) -> None:
        """Note what was found."""
        with self._lock:
            self._checked[asked] = checked
            if len(self._checked) > _MOST_PLACES:
                self._checked.popitem(last=False)

    def of(self, offset: int) -> Place | None:
        """Return the batch that begins with an offset, if it is known."""
        with self._lock:
            return self._places.get(offset)

    def note(self, offset: int, place: Place) -> None:
        """Note the batch that begins with an offset."""
        with self._lock:
            self._places[offset] = place
            if len(self._places) > _MOST_PLACES:
                self._places.popitem(last=False)
