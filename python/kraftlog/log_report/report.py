"""``kraftlog.report``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from kraftlog.audit.rows import row_of
from kraftlog.disk.durable import new_file
from kraftlog.disk.remote_path import AnyPath, PathLike, StorageOptions, log_path
from kraftlog.layout.discover import LogPaths, each_path
from kraftlog.layout.identity import Identity
from kraftlog.layout.log_directory import refuse_inside
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.log_report.facts import Facts, collect
from kraftlog.log_report.finding import Finding
from kraftlog.log_report.findings import findings, verdict
from kraftlog.log_report.page import check_package, pieces
from kraftlog.read.log_pass import Progress
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.times import milliseconds
from kraftlog.transactions.cut import CutTime

_PIECES_AT_ONCE = 1 << 10


class Report:
    """The facts and findings of a log, and the page with them.

    Attributes
    ----------
    facts : Facts
        Facts from the tables.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings, errors first."""
        return findings(self.facts)

    @property
    def verdict(self) -> str:
        """Number of findings of each severity."""
        return verdict(self.findings)

    @property
    def has_faults(self) -> bool:
        """Whether there are read faults or failed checks."""
        return bool(self.facts.faults or self.facts.other_faults)

    @property
    def html(self) -> str:
        """The page."""
        return b"".join(self.pieces()).decode()

    @property
    def json(self) -> str:
        """The findings as a JSON object, with the verdict and all rows of the table ``findings``."""
        rows = [row_of(one) for one in self.facts.audit]
        return json.dumps(
            {
                "verdict": self.verdict,
                "has_faults": self.has_faults,
                "now": datetime.fromtimestamp(self.facts.now / 1000, UTC).isoformat(),
                "paths": list(self.facts.paths),
                "findings": [asdict(one) for one in self.findings],
                "audit": rows,
            },
            indent=2,
        )

    def pieces(self) -> Iterator[bytes]:
        """Return the page as UTF-8, piece by piece."""
        for some in in_chunks(pieces(self.facts, self.findings)):
            yield some.encode("utf-8", "replace")

    def write(self, path: PathLike) -> None:
        """Write the page to a file, which gets its name when it is complete and replaces an existing one."""
        refuse_inside(Path(path))
        with new_file(Path(path)) as file:
            for piece in self.pieces():
                file.append(piece)

    def __repr__(self) -> str:
        lines = [f"{one.severity}: {one.title}" for one in self.findings]
        return "\n".join([f"<kraftlog.Report: {len(self.facts.partitions)} partitions>", *lines])


def in_chunks(texts: Iterable[str]) -> Iterator[str]:
    """Return texts joined into larger ones."""
    some: list[str] = []
    for text in texts:
        some.append(text)
        if len(some) == _PIECES_AT_ONCE:
            yield "".join(some)
            some.clear()
    yield "".join(some)


def report(
    paths: LogPaths,
    output: PathLike | None = None,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    now: datetime | str | int | None = None,
    workers: int = 1,
    storage_options: StorageOptions | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Read a log and create a page with its contents, its problems, and recommended actions.

    Each segment is read once and checked as by ``Log.verify``. Memory depends on the number of partitions, groups and
    transactions, not on their size. The page is self-contained HTML without external resources or scripts.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``open``.
    output : path, optional
        File for the page.
    topics : str or iterable of str, optional
    partitions : iterable of int, optional
    now : datetime, str or int, optional
        Reference time for ages; default: the current time.
    workers : int
        Number of partitions that are read in parallel.
    storage_options : mapping, optional
        Options of the file systems of URIs.
    on_progress : callable, optional
        Called with the number of log bytes read since the last call.

    Returns
    -------
    Report
        ``html`` is the page; ``findings`` need attention.

    Raises
    ------
    ImportError
        When jinja2 is not installed; the extra ``report`` installs it.
    FileNotFoundError
        When a path does not exist.
    ValueError
        When a folder contains no log files, a requested topic does not exist, or the output is inside a folder that is
        read.

    Examples
    --------
    >>> import kraftlog
    >>> report = kraftlog.report("tests/golden/transactions_hanging/log")
    >>> report.findings[0].title
    '1 batch with an impossible producer epoch or sequence'
    >>> report.html[:15]
    '<!DOCTYPE html>'
    """
    given = each_path(paths)
    log = open_log(given, topics=topics, partitions=partitions, storage_options=storage_options)
    if output is not None:
        refuse_inside(Path(output), log.folders)
    at = None if now is None else milliseconds(now)
    made = report_of(log, given, now=at, workers=workers, on_progress=on_progress)
    if output is not None:
        made.write(output)
    return made


def report_of(
    log: Log,
    paths: Sequence[AnyPath | RemoteTier | Identity | CutTime],
    *,
    now: int | None = None,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> Report:
    """Return the report of an open log.

    Parameters
    ----------
    log : Log
    paths : sequence of path or RemoteTier
        Paths for the commands on the page.
    now : int, optional
        Reference time for ages, in milliseconds; default: the current time.
    workers : int
    on_progress : callable, optional
    """
    if workers < 1:
        raise ValueError(f"workers {workers} is less than 1")
    check_package()
    at = time.time_ns() // 1_000_000 if now is None else now
    return Report(collect(log, _words(paths), at, workers=workers, on_progress=on_progress))


def _words(paths: Sequence[AnyPath | RemoteTier | Identity | CutTime]) -> list[str]:
    """Return paths as arguments of a command, without passwords of URIs."""
    words: list[str] = []
    for path in paths:
        if isinstance(path, Identity):
            words += [word for one in path.topic_ids for word in ("--topic-id", one)]
            words += [] if path.cluster_id is None else ["--cluster-id", path.cluster_id]
        elif isinstance(path, CutTime):
            words += ["--cut", str(path)]
        else:
            words += ["--remote-tier", str(path)] if isinstance(path, RemoteTier) else [str(log_path(path))]
    return words
