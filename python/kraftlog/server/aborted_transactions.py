"""The aborted transactions of a partition, as a response to a fetch names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kraftlog.layout.segment import Segment
from kraftlog.server.readable_log import AbortedTransaction
from kraftlog.transactions.producer import ABORTED


def aborted_transactions(segments: Sequence[Segment], high_watermark: int) -> list[AbortedTransaction]:
    """Return the transactions whose markers in segments abort them, by their first offset.

    Parameters
    ----------
    segments : sequence of Segment
        In order, from the start of the log.
    high_watermark : int
        End of the log.
    """
    from kraftlog.read.transaction_map import TransactionMap, open_rows

    found = TransactionMap(list(segments))
    rows = [step.ended for step in found.along(0)]
    if segments and segments[-1].is_cut:  # what is open at a cut counts as aborted, and has no marker
        rows.append(open_rows(found.open_at_end()))
    joined = np.concatenate(rows) if rows else open_rows([])
    is_aborted = (joined["state"] == ABORTED) | (joined["marker_offset"] > high_watermark)
    return sorted(
        (AbortedTransaction(*map(int, row)) for row in joined[is_aborted][list(AbortedTransaction._fields)]),
        key=lambda one: one.first_offset,
    )


def overlapping(aborted: Iterable[AbortedTransaction], offset: int, last_offset: int) -> list[AbortedTransaction]:
    """Return the transactions that reach into a range of offsets."""
    return [one for one in aborted if one.first_offset <= last_offset and one.marker_offset >= offset]
