"""Files and folders that are not read."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.disk.remote_path import LogPath
from kraftlog.layout import names

NOT_READ = "not_read"
TIER_ORPHAN, TIER_DUPLICATE = "tier_orphan", "tier_duplicate"
MISSING_SEGMENT = "missing_segment"
STOPS_BROKER = "stops_broker"  # a folder that a broker takes for a partition and that stops it
NOTHING_LOST = (TIER_ORPHAN, TIER_DUPLICATE, STOPS_BROKER)  # a fault that affects no reader


@dataclass(frozen=True)
class Unread:
    """A file or folder that is not read, and the reason; ``error`` is its code in the table errors."""

    path: LogPath
    size: int
    reason: str
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    error: str = NOT_READ

    @property
    def is_fault(self) -> bool:
        """Whether the result may be incomplete because of it."""
        return self.error != NOT_READ and self.error not in NOTHING_LOST

    @property
    def name(self) -> str:
        """Folder and file name, for messages."""
        folder = self.path.parent
        above = f"{folder.parent.name}/" if folder.name.isdigit() else ""  # in a remote tier, by partition
        return names.printable(f"{above}{folder.name}/{self.path.name}")
