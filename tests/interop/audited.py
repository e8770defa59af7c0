"""Audits of the log directories of all nodes that tests start: of a healthy one, nothing is found that matters."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import kraftlog
from kraftlog.errors import Fault


class Audits:
    """Audits log directories, and keeps the findings.

    Parameters
    ----------
    file : Path or None
        Receives a line for each directory.

    Attributes
    ----------
    counts : Counter
        Of directories by their state, and of findings by their severity.
    findings : list of str
        Those above "note".
    test : str
        The module whose nodes are audited.
    is_of_healthy : bool
        Whether the module leaves healthy clusters; one that does not says why in ``NOT_AUDITED``.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []
        self.test = ""
        self.is_of_healthy = True

    def __call__(self, log_dirs: list[Path], state: str) -> None:
        """Audit directories whose nodes are "live" or "stopped"."""
        if not self.is_of_healthy or not any(any(log_dir.glob("*-*")) for log_dir in log_dirs):
            return
        faults: list[Fault] = []  # files of a node that runs vanish
        found = kraftlog.open(log_dirs).findings(faults=faults).to_pylist()
        if state == "stopped":
            self.findings += [f"{self.test}, {state}: {fault}" for fault in faults]
        self.counts[state] += 1
        self.counts.update(row["severity"] for row in found)
        shown = [{name: row[name] for name in ("severity", "code", "topic", "partition", "known")} for row in found]
        self.findings += [f"{self.test}, {state}: {row}" for row in shown if row["severity"] != "note"]
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps({"test": self.test, "state": state, "findings": shown}) + "\n")
