"""Types that several modules name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer as Buffer
else:
    Buffer: TypeAlias = Any  # collections.abc has it from Python 3.12 on

IsolationLevel = Literal["read_uncommitted", "read_committed"]


class InputFile(Protocol):
    """A file that is read at any position; ``Disk.open`` returns one.

    One with ``fileno`` is read by its descriptor without the GIL. ``window_bytes``, where there is one, says how much
    is read at once.
    """

    path: Any
    size: int

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end); raises OSError when they do not all come."""

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on; raises OSError when they do not all come."""
