"""What kafka-dump-log says on standard error behind all files: offsets that jump, index files that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftlog.disk.remote_path import LogPath

Pairs = list[tuple[int, int]]


@dataclass
class Differences:
    """What was noted of files, by their paths.

    Attributes
    ----------
    jumps : dict
        Of a log, the offset before each one that does not follow, with that one; -1 stands before the first.
    mismatches : dict
        Of an ``.index``, each offset that is not the last of the batch that it points at, with that one.
    timestamps : dict
        Of a ``.timeindex``, timestamps that are not the largest of their batch, with that one.
    out_of_order : dict
        Of a ``.timeindex``, timestamps that do not rise, with the one before.
    not_found : dict
        Of a ``.timeindex``, offsets that are the last of no batch, with that of the batch that holds them, or -1.
    """

    jumps: dict[LogPath, dict[int, int]] = field(default_factory=dict)
    mismatches: dict[LogPath, dict[int, int]] = field(default_factory=dict)
    timestamps: dict[LogPath, Pairs] = field(default_factory=dict)
    out_of_order: dict[LogPath, Pairs] = field(default_factory=dict)
    not_found: dict[LogPath, Pairs] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Return the lines, in the order in which kafka-dump-log prints the kinds."""
        for path, found in self.mismatches.items():
            yield f"Mismatches in :{path.absolute()}"
            for offset in sorted(found, reverse=True):
                yield f"  Index offset: {offset}, log offset: {found[offset]}"
        for path, pairs in self.timestamps.items():
            yield f"Found timestamp mismatch in :{path.absolute()}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in pairs)
        for path, pairs in self.out_of_order.items():
            yield f"Found out of order timestamp in :{path.absolute()}"
            for timestamp, before in pairs:
                yield f"  Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
        for path, pairs in self.not_found.items():
            yield f"The following indexed offsets are not found in :{path.absolute()}"
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in pairs)
        for path, found in self.jumps.items():
            yield f"Non-consecutive offsets in {path.absolute()}"
            for before in sorted(found):
                yield f"  {before} is followed by {found[before]}"
