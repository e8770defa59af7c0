"""Redaction as the options of commands and of Spark give it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.tables.redaction import Redaction

KEY_VARIABLE = "KRAFTLOG_REDACT_KEY"


def given_redaction(rules: Sequence[str], key_file: str | Path | None) -> Redaction | None:
    """Return what rules ask for; None without rules.

    Parameters
    ----------
    rules : sequence of str
    key_file : path or None
        A file with the key; the end of a line behind it is no part of it. Without one the environment variable
        ``KRAFTLOG_REDACT_KEY`` has the key.

    Raises
    ------
    ValueError
        When a rule is none, the key is missing or too short, or there is one without rules.
    """
    if not rules:
        return Redaction.of(rules, None if key_file is None else b"")
    given = disk().read_bytes(Path(key_file)) if key_file is not None else os.environ.get(KEY_VARIABLE, "").encode()
    return Redaction.of(rules, given.rstrip(b"\r\n") or None)
