"""The page of a restore: what was written, and how it differs from the source."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.backup.restore import Restore
from kraftlog.log_report import texts
from kraftlog.log_report.finding import counted
from kraftlog.log_report.page import rendered


def restored_page(done: Restore) -> Iterator[str]:
    """Return the page, piece by piece."""
    written = [one.written for one in done.partitions if one.written is not None]
    tiles = [
        ("topics", texts.number(len({one.topic for one in done.partitions}))),
        ("partitions", texts.number(len(done.partitions))),
        ("replicas", texts.number(sum(len(one.replicas) for one in done.partitions))),
        ("records", texts.number(sum(one.records for one in written)) if written else "-"),
        ("in log files", texts.size(sum(one.size_in_bytes for one in written) if written else None)),
        ("groups", texts.number(len(done.groups))),
    ]
    what = "Everything is there" if written else "Nothing was written; everything would be there"
    if done.faults:
        what = f"{counted(len(done.faults), 'fault', 'faults')}: data is missing"
    title = f"Restored cluster {done.cluster_id}"
    yield from rendered("restored.html", {"title": title, "done": done, "tiles": tiles, "verdict": what})
