"""Exactly-once writes into a log directory, as the Spark sink makes them.

Tasks stage files of batches (``staging``; ``rows`` says which partition a row goes to). One durable file, the decision
(``decision``), makes a write count. After it the staged files become segments and get their markers (``finish``), in
steps that can be repeated: when the driver dies, the next write or ``recover`` finishes it. ``write`` is the interface
of all that; ``committed_batches`` keeps which micro-batches were committed.

Logs are written through ``kraftlog.write.partition_log``. Nothing here knows of Spark.
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
