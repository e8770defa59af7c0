"""Redaction from the options of commands and of Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.tables.redaction import Redaction

KEY_VARIABLE = "KRAFTLOG_REDACT_KEY"


def given_redaction(rules: Sequence[str], key_file: str | Path | None) -> Redaction | None:
    """Return the redaction for rules; None without rules.

    Parameters
    ----------
    rules : sequence of str
    key_file : path or None
        A file with the key, without the end of its line. The default is the environment variable
        ``KRAFTLOG_REDACT_KEY``.

    Raises
    ------
    ValueError
        When a rule is invalid, the key is missing or too short, or there is a key without rules.
    """
    if not rules:
        return Redaction.of(rules, None if key_file is None else b"")
    given = disk().read_bytes(Path(key_file)) if key_file is not None else os.environ.get(KEY_VARIABLE, "").encode()
    return Redaction.of(rules, given.rstrip(b"\r\n") or None)
