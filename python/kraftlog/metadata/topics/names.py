"""Names of topics, which the core knows by number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.arrow_arrays import array_of


@dataclass(frozen=True)
class Names:
    """Names of topics by number; ``TopicsState`` drops the names of removed topics when there are many."""

    pieces: tuple[pa.Array, ...] = ()

    @property
    def end(self) -> int:
        """How many there are: the number of the next one."""
        return sum(len(piece) for piece in self.pieces)

    def added(self, names: pa.Array) -> Names:
        """Return these and more."""
        pieces = [*self.pieces, pa.concat_arrays([names])] if len(names) else list(self.pieces)
        while len(pieces) > 1 and len(pieces[-2]) < 2 * len(pieces[-1]):
            last = pieces.pop()
            pieces[-1] = pa.concat_arrays([pieces[-1], last])
        return Names(tuple(pieces))

    def take(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        """Return names by their numbers."""
        taken = pa.chunked_array(self.pieces, pa.string()).take(array_of(numbers))
        return pa.concat_arrays([pa.nulls(0, pa.string()), *taken.chunks])
