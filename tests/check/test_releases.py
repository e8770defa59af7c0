"""Healthy directories are silent, whichever release wrote them, closed cleanly or in use."""

from __future__ import annotations

import pytest

import kraftlog
from golden_releases import LOGS, folder_of


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_verify_finds_nothing(release: str, state: str):
    assert list(kraftlog.open(folder_of(release, state) / "log").verify()) == []


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_there_are_no_errors(release: str, state: str):
    log = kraftlog.open(folder_of(release, state) / "log")
    for level in ("read_uncommitted", "read_committed"):
        for rows in (log.records(["offset"], isolation_level=level), log.messages(["offset", "error"])):
            rows.to_table()
            assert rows.faults == []
    assert log.found.unread == []
