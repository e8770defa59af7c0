"""Rows of which the last one of each key counts, held in a few runs.

What comes is put behind what there is, and runs of like size are made one, in which each key is left once. So a row is
copied a few times at most, memory is that of the rows that count, and what a copy holds stays as it is: runs do not
change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

Fold = Callable[[pa.RecordBatch, bool], pa.RecordBatch]
_FEW = 1024  # rows: to fold fewer costs more than to keep them


@dataclass(frozen=True)
class Runs:
    """Rows, oldest first.

    Parameters
    ----------
    schema : pyarrow.Schema
    fold : callable
        Leaves the last row of each key. With True as its second argument there are no older rows: those that remove a
        key can go, too.
    runs : tuple of pyarrow.RecordBatch
    """

    schema: pa.Schema
    fold: Fold
    runs: tuple[pa.RecordBatch, ...] = ()

    def added(self, rows: pa.RecordBatch) -> Runs:
        """Return these runs with later rows behind them."""
        runs = [*self.runs, pa.concat_batches([rows])] if rows.num_rows else list(self.runs)
        while len(runs) > 1 and runs[-2].num_rows < 2 * runs[-1].num_rows:
            last = runs.pop()
            merged = pa.concat_batches([runs[-1], last])
            runs[-1] = merged if merged.num_rows < _FEW else self.fold(merged, len(runs) == 1)
        return Runs(self.schema, self.fold, tuple(runs))

    @cached_property
    def folded(self) -> pa.RecordBatch:
        """The last row of each key, those that were removed left out."""
        none = pa.RecordBatch.from_pylist([], schema=self.schema)
        return self.fold(pa.concat_batches([none, *self.runs]), True)
