"""Exactly-once writes into a log directory: prepared by tasks, decided once, finished by whoever comes next.

Tasks stage files (``staging``), one durable decision makes them count (``decision``), and steps that may be repeated
put them in their places and append the markers (``finish``). ``write`` has it all together.
"""

from __future__ import annotations

from kraftlog.store.staging import BatchOptions, StagedFile, Stager, WriteEndedError
from kraftlog.store.write import (
    CommitUnfinishedError,
    abort,
    abort_unfinished,
    begin,
    commit,
    make_write_folder,
    recover,
)
from kraftlog.store.write_id import WriteId, new_write, write_of_batch

__all__ = [
    "BatchOptions",
    "CommitUnfinishedError",
    "StagedFile",
    "Stager",
    "WriteEndedError",
    "WriteId",
    "abort",
    "abort_unfinished",
    "begin",
    "commit",
    "make_write_folder",
    "new_write",
    "recover",
    "write_of_batch",
]
